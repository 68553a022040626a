package sandbox

import (
	"bytes"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// capped passes the first max bytes on and counts the rest away. It never
// blocks the command: what is beyond the limit is read and dropped.
type capped struct {
	mu        sync.Mutex
	to        io.Writer
	left      int64
	truncated bool

	// until, while not empty, is a mark that ends the back-end's own output and
	// begins the command's; seen is closed when it comes by.
	until string
	held  []byte
	seen  chan struct{}
}

func (c *capped) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	keep := b
	if c.until != "" {
		c.held = append(c.held, b...)
		i := bytes.Index(c.held, []byte(c.until))
		if i < 0 {
			return len(b), nil
		}
		keep, c.until = c.held[i+len(c.until):], ""
		close(c.seen)
	}
	if int64(len(keep)) > c.left {
		keep = keep[:c.left]
		c.truncated = true
	}
	c.left -= int64(len(keep))
	if len(keep) > 0 && c.to != nil {
		if _, err := c.to.Write(keep); err != nil {
			// The reader has gone; the command is not the one to suffer.
			c.to = nil
		}
	}
	return len(b), nil
}

// streams are the host's ends of a command's standard streams.
type streams struct {
	out, err       capped
	outBuf, errBuf bytes.Buffer
	child          []*os.File // the command's ends: 0, 1, 2
	close          []io.Closer
	copies         sync.WaitGroup
	last           atomic.Int64 // unix nanoseconds of the last output
	tty            *os.File     // our end of the command's terminal, if it has one
}

// newStreams connects the Spec's streams through pipes. The command never gets
// a descriptor of the caller's: a terminal or socket behind it would be a way
// out that no namespace closes.
func newStreams(s *Spec, limit int64) (*streams, error) {
	st := &streams{}
	st.out = capped{to: s.Stdout, left: limit}
	st.err = capped{to: s.Stderr, left: limit}
	if s.Stdout == nil {
		st.out.to = &st.outBuf
	}
	if s.Stderr == nil {
		st.err.to = &st.errBuf
	}
	st.last.Store(time.Now().UnixNano())
	if err := st.stdin(s.Stdin); err != nil {
		st.abort()
		return nil, err
	}
	for _, c := range []*capped{&st.out, &st.err} {
		r, w, err := os.Pipe()
		if err != nil {
			st.abort()
			return nil, err
		}
		st.child = append(st.child, w)
		st.pump(r, c)
	}
	return st, nil
}

func (st *streams) stdin(from io.Reader) error {
	if from == nil {
		f, err := os.Open(os.DevNull)
		if err == nil {
			st.child = append(st.child, f)
		}
		return err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	st.child = append(st.child, r)
	st.close = append(st.close, w)
	// Not part of copies: a reader that never ends must not keep a finished
	// run from returning. Closing w ends the writing half.
	go func() {
		_, _ = io.Copy(w, from)
		_ = w.Close()
	}()
	return nil
}

func (st *streams) pump(r *os.File, c *capped) {
	st.copies.Add(1)
	go func() {
		defer st.copies.Done()
		defer r.Close()
		buf := make([]byte, 32<<10)
		for {
			n, err := r.Read(buf)
			if n > 0 {
				st.last.Store(time.Now().UnixNano())
				_, _ = c.Write(buf[:n])
			}
			if err != nil {
				return
			}
		}
	}()
}

// started closes the command's ends on our side.
func (st *streams) started() {
	for _, f := range st.child {
		_ = f.Close()
	}
	st.child = nil
}

// finish waits until everything written has been taken over.
func (st *streams) finish() {
	st.started()
	for _, c := range st.close {
		_ = c.Close()
	}
	st.copies.Wait()
}

func (st *streams) abort() { st.finish() }

func (st *streams) idle() time.Duration {
	return time.Duration(time.Now().UnixNano() - st.last.Load())
}

func (st *streams) fill(r *Result) {
	st.out.mu.Lock()
	r.StdoutTruncated = st.out.truncated
	st.out.mu.Unlock()
	st.err.mu.Lock()
	r.StderrTruncated = st.err.truncated
	st.err.mu.Unlock()
	r.Stdout, r.Stderr = st.outBuf.Bytes(), st.errBuf.Bytes()
}
