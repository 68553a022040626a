package job

import (
	"context"
	"io"
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/session"
	"github.com/seed-3ebc6b8a/gatehouse/sandbox"
)

// confined is a tree in the sandbox, which holds it and ends it with the gate.
type confined struct {
	run             *sandbox.Process
	inR, outR, errR *io.PipeReader
	inW, outW, errW *io.PipeWriter
	cancel          context.CancelFunc
}

func newConfined() *confined {
	c := &confined{}
	c.inR, c.inW = io.Pipe()
	c.outR, c.outW = io.Pipe()
	c.errR, c.errW = io.Pipe()
	return c
}

// process is nobody: the tree is found by the variable it inherits.
func (c *confined) process() session.Process { return session.Process{} }

func (c *confined) start(id string, s *Spec) error {
	spec := *s.Sandbox
	spec.Command = append([]string{s.Path}, s.Args...)
	spec.Dir = s.Dir
	spec.Stdin, spec.Stdout, spec.Stderr = c.inR, c.outW, c.errW
	spec.Limits.Output = 1 << 40 // the log has its own limit
	spec.Env = sandbox.Env{Pass: []string{}, Set: map[string]string{marker: id}}
	for _, e := range s.Env {
		name, value, _ := strings.Cut(e, "=")
		spec.Env.Set[name] = value
	}
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	var err error
	c.run, err = sandbox.Start(ctx, spec)
	return err
}

func (c *confined) stdin() io.WriteCloser { return c.inW }
func (c *confined) stdout() io.ReadCloser { return c.outR }
func (c *confined) stderr() io.ReadCloser { return c.errR }

func (c *confined) kill() {
	if c.cancel != nil {
		c.cancel()
	}
}

func (c *confined) wait() ending {
	r, err := c.run.Wait()
	_ = c.outW.Close()
	_ = c.errW.Close()
	_ = c.inR.Close()
	switch {
	case r == nil:
		return ending{Code: ExitFailure, Failed: err.Error()}
	case r.StartErr != "":
		return ending{Code: ExitNotFound, Failed: r.StartErr}
	}
	return ending{Code: r.ExitCode}
}

func (c *confined) release() {
	if c.cancel != nil {
		c.cancel()
	}
	for _, p := range []io.Closer{c.inR, c.inW, c.outR, c.outW, c.errR, c.errW} {
		_ = p.Close()
	}
}
