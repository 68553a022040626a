package job

import (
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/seed-3ebc6b8a/gatehouse/internal/beside"
	"github.com/seed-3ebc6b8a/gatehouse/internal/session"
	"github.com/seed-3ebc6b8a/gatehouse/internal/supervise"
)

// holder is the gate's end of a supervisor.
type holder struct {
	proc *os.Process
	who  session.Process
	conn net.Conn
	in   *os.File
	out  *os.File
	err  *os.File
	once sync.Once
}

// newHolder starts a supervisor that waits for its order.
func newHolder() (_ *holder, err error) {
	h := &holder{}
	defer func() {
		if err != nil {
			h.release()
		}
	}()
	var theirs [4]*os.File
	defer func() {
		for _, f := range theirs {
			_ = f.Close()
		}
	}()
	if theirs[0], h.in, err = os.Pipe(); err != nil {
		return h, err
	}
	if h.out, theirs[1], err = os.Pipe(); err != nil {
		return h, err
	}
	if h.err, theirs[2], err = os.Pipe(); err != nil {
		return h, err
	}
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return h, err
	}
	theirs[3] = os.NewFile(uintptr(fds[1]), "supervisor")
	ours := os.NewFile(uintptr(fds[0]), "supervisor")
	h.conn, err = net.FileConn(ours)
	_ = ours.Close()
	if err != nil {
		return h, err
	}
	// One processor and no collector: it does next to nothing. It leads a session
	// of its own, so that a key pressed at the gate's terminal is not for it.
	h.proc, err = os.StartProcess(program(), []string{"gatehouse", supervise.Mark}, &os.ProcAttr{
		Dir: "/", Env: []string{"GOMAXPROCS=1", "GOGC=off"}, Files: theirs[:], Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return h, fmt.Errorf("the supervisor cannot be started: %w", err)
	}
	chain, err := session.Ancestry(h.proc.Pid)
	if err != nil {
		return h, fmt.Errorf("the supervisor is gone: %w", err)
	}
	h.who = chain[0]
	return h, nil
}

// program is what plays the supervisor: the small program that is shipped beside
// the main one, as it was when the gate first needed it, or else this program.
func program() string {
	if f := small(); f != nil {
		return fmt.Sprintf("/proc/self/fd/%d", f.Fd())
	}
	return "/proc/self/exe"
}

// small is the small program, nil if there is none.
var small = sync.OnceValue(func() *os.File {
	path, ok := beside.Find("gatehouse-launch")
	if !ok {
		return nil
	}
	f, _ := beside.Copy("gatehouse-launch", path) // without it the main program does
	return f
})

func (h *holder) process() session.Process { return h.who }

func (h *holder) start(id string, s *Spec) error {
	o := supervise.Order{Path: s.Path, Dir: s.Dir, Args: s.Args, Env: append(append([]string{}, s.Env...), marker+"="+id)}
	return o.Send(h.conn)
}

func (h *holder) stdin() io.WriteCloser { return h.in }
func (h *holder) stdout() io.ReadCloser { return h.out }
func (h *holder) stderr() io.ReadCloser { return h.err }

// kill closes the socket, as the gate's death would, but keeps listening.
func (h *holder) kill() {
	if c, ok := h.conn.(*net.UnixConn); ok {
		_ = c.CloseWrite()
	}
}

func (h *holder) wait() ending {
	w, err := supervise.Hear(h.conn)
	if err != nil {
		return ending{Code: ExitNone, Lost: true}
	}
	return ending{Code: w.Code, Failed: w.Failed}
}

func (h *holder) release() {
	h.once.Do(func() {
		for _, f := range []*os.File{h.in, h.out, h.err} {
			if f != nil {
				_ = f.Close()
			}
		}
		if h.conn != nil {
			_ = h.conn.Close()
		}
		if h.proc != nil {
			_, _ = h.proc.Wait() // without the socket it ends
		}
	})
}
