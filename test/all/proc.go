package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// command is a child that is ended, with everything it started, when the
// context ends.
type command struct {
	dir  string
	env  []string // added to the environment
	args []string
	// out takes standard output, err standard error; nil drops it.
	out, err io.Writer
}

type backgroundKey struct{}

// inBackground marks what runs under the context as giving way to the rest.
func inBackground(ctx context.Context) context.Context {
	return context.WithValue(ctx, backgroundKey{}, true)
}

func (c command) run(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, c.args[0], c.args[1:]...)
	cmd.Dir = c.dir
	cmd.Env = append(os.Environ(), c.env...)
	cmd.Stdout, cmd.Stderr = c.out, c.err
	cmd.WaitDelay = 10 * time.Second
	ownGroup(cmd)
	if err := cmd.Start(); err != nil {
		return err
	}
	if ctx.Value(backgroundKey{}) != nil {
		giveWay(cmd)
	}
	err := cmd.Wait()
	endGroup(cmd)
	return err
}

// output runs a command and returns what it printed; an error carries what it
// said on standard error.
func output(ctx context.Context, dir string, args ...string) (string, error) {
	var out, errs bytes.Buffer
	err := command{dir: dir, args: args, out: &out, err: &errs}.run(ctx)
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, strings.TrimSpace(errs.String()))
	}
	return out.String(), nil
}

// check runs a command that says what is wrong and fails, such as go vet.
func check(ctx context.Context, c command) outcome {
	var both bytes.Buffer
	c.out, c.err = &both, &both
	return verdict(c.run(ctx), both.String())
}

// verdict makes the outcome of a step without tests of its own.
func verdict(err error, detail string) outcome {
	if err == nil {
		return outcome{tally: tally{pass: 1}}
	}
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || strings.TrimSpace(detail) == "" {
		detail = strings.TrimLeft(strings.TrimRight(detail, "\n")+"\n"+err.Error()+"\n", "\n")
	}
	return outcome{tally: tally{fail: 1}, failed: true, detail: detail}
}
