package sandbox

import (
	"fmt"
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// seccompNotif mirrors struct seccomp_notif.
type seccompNotif struct {
	id    uint64
	pid   uint32
	flags uint32
	nr    int32
	arch  uint32
	ip    uint64
	args  [6]uint64
}

// seccompResp mirrors struct seccomp_notif_resp.
type seccompResp struct {
	id    uint64
	val   int64
	errno int32
	flags uint32
}

// serveNotify answers the calls the filter refuses. The answer is the same
// whatever the arguments are: it reports, and nothing it reads from the process
// matters to the outcome, so there is nothing to race. It ends by itself when
// the last process under the filter has.
func (j *job) serveNotify(f *os.File) error {
	// Waiting in the runtime's poller costs no thread.
	if err := unix.SetNonblock(int(f.Fd()), true); err != nil {
		return err
	}
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return err
	}
	_ = f.Close()
	n := os.NewFile(uintptr(fd), "seccomp")
	raw, err := n.SyscallConn()
	if err != nil {
		return err
	}
	j.waits.Go(func() {
		defer n.Close()
		for {
			ended := false
			err := raw.Read(func(fd uintptr) bool {
				fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
				if n, err := unix.Poll(fds, 0); err != nil || n == 0 {
					return false
				}
				if fds[0].Revents&unix.POLLIN != 0 {
					j.answer(int(fd))
				}
				ended = fds[0].Revents&(unix.POLLHUP|unix.POLLERR) != 0
				return true
			})
			if err != nil || ended {
				return
			}
		}
	})
	return nil
}

func (j *job) answer(fd int) {
	var n seccompNotif
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&n))); errno != 0 {
		return
	}
	program := programName(n.pid)
	resp := seccompResp{id: n.id, errno: -int32(unix.EPERM)}
	starts := n.nr == unix.SYS_EXECVE || n.nr == unix.SYS_EXECVEAT
	if starts && !j.executed {
		// The second stage becomes the command. Which file that is does not
		// matter here, so there is nothing to race: one start, then none.
		j.executed = true
		resp = seccompResp{id: n.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
		_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&resp)))
		return
	}
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&resp)))
	j.facts.add(Refusal{Kind: RefusedSyscall, Subject: syscallName(uint32(n.nr)), Program: program, Reason: syscallDetail(&n)})
}

// programName is what the process calls itself; good enough for a person to
// read, never used to decide.
func programName(pid uint32) string {
	if pid == 0 {
		return "unknown"
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(b))
}

// syscallDetail explains the calls that are refused for their arguments.
func syscallDetail(n *seccompNotif) string {
	switch uint32(n.nr) {
	case unix.SYS_SOCKET, unix.SYS_SOCKETPAIR:
		return fmt.Sprintf("family %d type %d protocol %d", uint32(n.args[0]), uint32(n.args[1])&0xf, uint32(n.args[2]))
	case unix.SYS_IOCTL:
		return fmt.Sprintf("request 0x%x", uint32(n.args[1]))
	case unix.SYS_CLONE:
		return "a new namespace"
	case unix.SYS_EXECVE, unix.SYS_EXECVEAT:
		return "it may start no program"
	}
	return "not allowed in a sandbox"
}
