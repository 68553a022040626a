package link

import (
	"bufio"
	"context"
	"io"
	"os/exec"
	"sync"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/mcp/wire"
	"github.com/seed-3ebc6b8a/gatehouse/sandbox"
)

// Process says how an upstream's process is started.
type Process struct {
	Command []string
	Dir     string
	// Env is the whole environment, as NAME=value.
	Env []string
	// Confine confines the process; nil runs it as it is.
	Confine *sandbox.Spec
	// Stderr gets what the process says besides messages.
	Stderr io.Writer
}

// lines is a stream of one message per line.
type lines struct {
	in     *bufio.Reader
	out    io.Writer
	once   sync.Once
	finish func() error
	err    error
}

// NewLines makes a stream over a connection. Close closes it.
func NewLines(conn io.ReadWriteCloser) Stream {
	return &lines{in: bufio.NewReaderSize(conn, 64<<10), out: conn, finish: conn.Close}
}

// Read returns the next line.
func (l *lines) Read() ([]byte, error) { return wire.ReadLine(l.in) }

// Write writes a line.
func (l *lines) Write(_ context.Context, message []byte) error {
	_, err := l.out.Write(append(message[:len(message):len(message)], '\n'))
	return err
}

// Close ends both directions.
func (l *lines) Close() error {
	l.once.Do(func() { l.err = l.finish() })
	return l.err
}

// patience is how long a process may take to end by itself once its input has
// ended; after that it is killed.
const patience = 2 * time.Second

// StartProcess starts an upstream's process and returns the stream of its
// standard input and output.
func StartProcess(p Process) (Stream, error) {
	if p.Confine != nil {
		return startConfined(p)
	}
	cmd := exec.Command(p.Command[0], p.Command[1:]...)
	cmd.Dir, cmd.Env, cmd.Stderr = p.Dir, p.Env, p.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	group(cmd)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	end := func() error {
		stdin.Close()
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		select {
		case <-ended:
		case <-time.After(patience):
			killGroup(cmd)
			<-ended
		}
		return nil
	}
	return &lines{in: bufio.NewReaderSize(stdout, 64<<10), out: stdin, finish: end}, nil
}

// startConfined starts the process in the sandbox.
func startConfined(p Process) (Stream, error) {
	inRead, inWrite := io.Pipe()
	outRead, outWrite := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	spec := *p.Confine
	spec.Command, spec.Dir = p.Command, p.Dir
	spec.Stdin, spec.Stdout, spec.Stderr = inRead, outWrite, p.Stderr
	proc, err := sandbox.Start(ctx, spec)
	if err != nil {
		cancel()
		return nil, err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = proc.Wait() // how it ended is nobody's business
		outWrite.Close()
		inRead.Close()
	}()
	end := func() error {
		defer cancel()
		inWrite.Close()
		select {
		case <-ended:
		case <-time.After(patience):
			proc.Kill()
			outRead.Close() // nobody reads its last words
			<-ended
		}
		return outRead.Close()
	}
	return &lines{in: bufio.NewReaderSize(outRead, 64<<10), out: inWrite, finish: end}, nil
}
