package sandbox

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/seed-3ebc6b8a/gatehouse/internal/launch"
)

// spawn starts a process from a thread of its own. The thread stays for as
// long as the process does, because the parent-death signal follows the thread,
// and is thrown away afterwards, because what before did to it (mount
// namespace, control group, Landlock domain) must not reach other goroutines.
type spawn struct {
	path   string
	argv   []string
	env    []string
	dir    string
	files  []*os.File
	attr   *syscall.SysProcAttr
	before func() error

	proc  *os.Process
	calls chan func()
	quit  chan struct{}
	gone  chan struct{}
	once  sync.Once
}

func (s *spawn) start() error {
	s.quit, s.gone, s.calls = make(chan struct{}), make(chan struct{}), make(chan func())
	started := make(chan error, 1)
	go func() {
		defer close(s.gone)
		runtime.LockOSThread() // never unlocked: the thread ends with this
		err := s.begin()
		started <- err
		if err != nil {
			return
		}
		for {
			select {
			case f := <-s.calls:
				f()
			case <-s.quit:
				return
			}
		}
	}()
	return <-started
}

func (s *spawn) begin() error {
	if s.before != nil {
		if err := s.before(); err != nil {
			return err
		}
	}
	// Helpers get no environment and no directory of the caller's.
	if s.env == nil {
		s.env, s.dir = []string{}, "/"
	}
	var err error
	s.proc, err = os.StartProcess(s.path, s.argv, &os.ProcAttr{Dir: s.dir, Env: s.env, Files: s.files, Sys: s.attr})
	return err
}

// on runs f on the thread that started the process, and waits for it.
func (s *spawn) on(f func()) {
	done := make(chan struct{})
	select {
	case s.calls <- func() { f(); close(done) }:
		<-done
	case <-s.gone:
	}
}

// release waits until the thread is gone.
func (s *spawn) release() {
	s.once.Do(func() { close(s.quit) })
	<-s.gone
}

// control is the first stage's end of the socket pair.
type control struct {
	conn *net.UnixConn
	peer *os.File
}

func newControl() (*control, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	peer := os.NewFile(uintptr(fds[1]), "control")
	if err := unix.SetsockoptInt(fds[0], unix.SOL_SOCKET, unix.SO_PASSCRED, 1); err != nil {
		_ = unix.Close(fds[0])
		_ = peer.Close()
		return nil, err
	}
	f := os.NewFile(uintptr(fds[0]), "control")
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		_ = peer.Close()
		return nil, err
	}
	return &control{conn: c.(*net.UnixConn), peer: peer}, nil
}

func (c *control) close() {
	_ = c.conn.Close()
	_ = c.peer.Close()
}

// report is what the second stage proved.
type report struct {
	facts uint64
	abi   int
	pid   int // of the second stage, as seen from here
	files []*os.File
}

// errNoReport: the back-end ended before the second stage spoke.
var errNoReport = errors.New("the second stage did not report")

// receive waits for the report. A message that starts with "!" is a failure.
func (c *control) receive() (*report, error) {
	buf, oob := make([]byte, 4096), make([]byte, 256)
	n, oobn, _, _, err := c.conn.ReadMsgUnix(buf, oob)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if n == 0 {
		return nil, errNoReport
	}
	msg := string(buf[:n])
	if rest, failed := strings.CutPrefix(msg, "! "); failed {
		return nil, errors.New(rest)
	}
	r := &report{}
	parts := strings.Fields(msg)
	if len(parts) != 3 || parts[0] != "=" {
		return nil, fmt.Errorf("unexpected report %q", msg)
	}
	if r.facts, err = strconv.ParseUint(parts[1], 16, 64); err != nil {
		return nil, err
	}
	if r.abi, err = strconv.Atoi(parts[2]); err != nil {
		return nil, err
	}
	msgs, err := unix.ParseSocketControlMessage(oob[:oobn])
	if err != nil {
		return nil, err
	}
	for _, m := range msgs {
		if cred, err := unix.ParseUnixCredentials(&m); err == nil {
			r.pid = int(cred.Pid)
			continue
		}
		fds, err := unix.ParseUnixRights(&m)
		if err != nil {
			return nil, err
		}
		for _, fd := range fds {
			unix.CloseOnExec(fd)
			r.files = append(r.files, os.NewFile(uintptr(fd), "from-inside"))
		}
	}
	return r, nil
}

func (r *report) close() {
	for _, f := range r.files {
		_ = f.Close()
	}
}

// goOn lets the command start.
func (c *control) goOn() error {
	_, err := c.conn.Write([]byte("g"))
	return err
}

// startFailure waits for the end of the conversation and returns why the
// program could not be executed, if it could not.
func (c *control) startFailure() string {
	buf := make([]byte, 512)
	n, err := c.conn.Read(buf)
	if err != nil || n == 0 {
		return ""
	}
	reason, _ := strings.CutPrefix(string(buf[:n]), "x ")
	return reason
}

// namespaces reads the inode numbers of our own namespaces.
func namespaces() []uint64 {
	var list []uint64
	for _, name := range launch.NamespaceNames {
		var st unix.Stat_t
		if err := unix.Stat("/proc/self/ns/"+name, &st); err != nil {
			// Comparing against zero would always differ, that is, always
			// claim isolation; the largest number never exists inside either,
			// so leave the namespace out and with it all that follow.
			return list
		}
		list = append(list, st.Ino)
	}
	return list
}
