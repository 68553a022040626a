package sandbox

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/seed-3ebc6b8a/gatehouse/internal/launch"
)

// spawn starts a process. It is used on a thread that the run has to itself
// (see Process.live): the parent-death signal follows the thread, and what
// before does to it (mount namespace, control group, Landlock domain) must not
// reach other goroutines.
type spawn struct {
	path   string
	argv   []string
	env    []string
	dir    string
	files  []*os.File
	attr   *syscall.SysProcAttr
	before func() error

	proc *os.Process
}

// helperEnv makes a second stage start with as little as possible: one
// processor, no collector. It is not the command's environment.
var helperEnv = []string{"GOMAXPROCS=1", "GOGC=off"}

func (s *spawn) start() error {
	if s.before != nil {
		if err := s.before(); err != nil {
			return err
		}
	}
	// Helpers get no environment and no directory of the caller's.
	if s.env == nil {
		s.env, s.dir = helperEnv, "/"
	}
	var err error
	s.proc, err = os.StartProcess(s.path, s.argv, &os.ProcAttr{Dir: s.dir, Env: s.env, Files: s.files, Sys: s.attr})
	return err
}

// control is the first stage's end of the socket pair.
type control struct {
	fd   int
	peer *os.File
}

func newControl() (*control, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	c := &control{fd: fds[0], peer: os.NewFile(uintptr(fds[1]), "control")}
	if err := unix.SetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_PASSCRED, 1); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

func (c *control) close() {
	_ = c.peer.Close()
	if c.fd >= 0 {
		_ = unix.Close(c.fd)
		c.fd = -1
	}
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
	n, oobn, _, _, err := unix.Recvmsg(c.fd, buf, oob, unix.MSG_CMSG_CLOEXEC)
	for err == unix.EINTR {
		n, oobn, _, _, err = unix.Recvmsg(c.fd, buf, oob, unix.MSG_CMSG_CLOEXEC)
	}
	if err != nil {
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
	_, err := unix.Write(c.fd, []byte("g"))
	return err
}

// startFailure returns why the program could not be executed, if it could not.
// It is asked after the end, when whatever was said is waiting to be read.
func (c *control) startFailure() string {
	buf := make([]byte, 512)
	n, _, err := unix.Recvfrom(c.fd, buf, unix.MSG_DONTWAIT)
	if err != nil || n <= 0 {
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
