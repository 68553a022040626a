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

// serveNotify answers the calls the filter refuses. The answer is always the
// same: it reports, it never decides, and nothing it reads from the process
// matters to the outcome, so there is nothing to race.
func (j *job) serveNotify(f *os.File) {
	stop, stopW, err := os.Pipe()
	if err != nil {
		// Without a listener the kernel answers ENOSYS, which refuses too.
		_ = f.Close()
		return
	}
	j.services = append(j.services, stopW)
	j.waits.Go(func() {
		defer f.Close()
		defer stop.Close()
		for {
			fds := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLIN}, {Fd: int32(stop.Fd()), Events: unix.POLLIN}}
			if _, err := unix.Poll(fds, -1); err != nil && err != unix.EINTR {
				return
			}
			if fds[1].Revents != 0 || fds[0].Revents&(unix.POLLHUP|unix.POLLERR) != 0 {
				return
			}
			if fds[0].Revents&unix.POLLIN != 0 {
				j.answer(int(f.Fd()))
			}
		}
	})
}

func (j *job) answer(fd int) {
	var n seccompNotif
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&n))); errno != 0 {
		return
	}
	program := programName(n.pid)
	resp := seccompResp{id: n.id, errno: -int32(unix.EPERM)}
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
	}
	return "not allowed in a sandbox"
}
