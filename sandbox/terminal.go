package sandbox

import (
	"errors"
	"io"
	"os"
	"time"

	"github.com/creack/pty"
)

// newTerminal gives the command a terminal of its own. The host's terminal is
// never passed in: whoever holds a descriptor of it can type into it.
func newTerminal(s *Spec, limit int64) (*streams, error) {
	master, slave, err := pty.Open()
	if err != nil {
		return nil, err
	}
	st := &streams{tty: master}
	st.out = capped{to: s.Stdout, left: limit}
	if s.Stdout == nil {
		st.out.to = &st.outBuf
	} else {
		// A person's session may print for days.
		st.out.left = 1 << 62
	}
	st.err = capped{to: &st.errBuf, left: limit}
	st.last.Store(time.Now().UnixNano())
	if s.TTY.Rows > 0 && s.TTY.Cols > 0 {
		if err := pty.Setsize(master, &pty.Winsize{Rows: s.TTY.Rows, Cols: s.TTY.Cols}); err != nil {
			return nil, errors.Join(err, master.Close(), slave.Close())
		}
	}
	st.child = []*os.File{slave, slave, slave}
	st.pump(master, &st.out)
	if s.Stdin != nil {
		go func() {
			_, _ = io.Copy(master, s.Stdin)
			// The end of input is a character on a terminal.
			_, _ = master.Write([]byte{4})
		}()
	}
	return st, nil
}

// Resize changes the size of the command's terminal.
func (p *Process) Resize(rows, cols uint16) error {
	tty := p.job.streams.tty
	if tty == nil {
		return errors.New("sandbox: the command has no terminal")
	}
	return pty.Setsize(tty, &pty.Winsize{Rows: rows, Cols: cols})
}
