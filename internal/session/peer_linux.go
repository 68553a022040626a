package session

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxAncestors bounds the walk up a process tree.
const maxAncestors = 128

// PeerOf reads who connected to a unix socket. The kernel's record names the
// process that connected; a handle on it (pidfd) makes sure that what /proc
// says afterwards is still about that process.
func PeerOf(conn syscall.Conn) (Peer, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return Peer{}, fmt.Errorf("peer: %w", err)
	}
	var cred *unix.Ucred
	var credErr error
	pidfd := -1
	err = raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		if n, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PEERPIDFD); err == nil {
			pidfd = n
		}
	})
	if err := errors.Join(err, credErr); err != nil {
		return Peer{}, fmt.Errorf("peer: %w", err)
	}
	if cred.Pid <= 0 {
		return Peer{}, ErrGone // in a process namespace that we cannot see
	}
	if pidfd < 0 { // before Linux 6.5
		if pidfd, err = unix.PidfdOpen(int(cred.Pid), 0); err != nil {
			return Peer{}, fmt.Errorf("%w: %w", ErrGone, err)
		}
	}
	defer unix.Close(pidfd)
	chain, err := Ancestry(int(cred.Pid))
	if err != nil {
		return Peer{}, err
	}
	if !running(pidfd) || chain[0].UID != cred.Uid {
		return Peer{}, ErrGone
	}
	return Peer{Chain: chain}, nil
}

// running says whether the process behind a pidfd has not ended: it becomes
// readable when it does.
func running(pidfd int) bool {
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		return err == nil && n == 0
	}
}

// Ancestry reads a process and its ancestors, up to the first that this
// machine's /proc does not show. A parent that is younger than its child is
// someone else with a used process id, and ends the walk.
func Ancestry(pid int) ([]Process, error) {
	var chain []Process
	for range maxAncestors {
		p, parent, err := readProcess(pid)
		if err != nil || (len(chain) > 0 && p.Start > chain[len(chain)-1].Start) {
			if len(chain) == 0 {
				return nil, fmt.Errorf("%w: %w", ErrGone, err)
			}
			return chain, nil
		}
		chain = append(chain, p)
		if pid = parent; pid <= 0 {
			return chain, nil
		}
	}
	return nil, fmt.Errorf("%w: it has more than %d ancestors", ErrGone, maxAncestors)
}

// Alive says whether a process still runs here.
func Alive(p Process) bool {
	now, _, err := readProcess(p.PID)
	return err == nil && now.Is(p)
}

// readProcess reads /proc/PID. The start time is read first and last, so that
// all of it is about one process.
func readProcess(pid int) (p Process, parent int, err error) {
	dir := "/proc/" + strconv.Itoa(pid)
	parent, start, err := readStat(dir)
	if err != nil {
		return p, 0, err
	}
	uid, err := readUID(dir)
	if err != nil {
		return p, 0, err
	}
	exe, err := os.Readlink(dir + "/exe")
	if err != nil {
		// Of another user's process it cannot be read. The name it goes by is
		// the process's own choice; both are shown and tell shells from agents,
		// and nothing else rests on them.
		name, _ := os.ReadFile(dir + "/comm")
		exe = strings.TrimSpace(string(name))
	}
	if _, again, err := readStat(dir); err != nil || again != start {
		return p, 0, ErrGone
	}
	boot, machine, err := here()
	if err != nil {
		return p, 0, err
	}
	return Process{PID: pid, Start: start, UID: uid, Boot: boot, Machine: machine, Exe: exe}, parent, nil
}

// readStat reads the parent and the start time. The program's name, in
// brackets, is the process's own choice and may hold anything, brackets too.
func readStat(dir string) (parent int, start uint64, err error) {
	var buf [1024]byte
	text, err := readProc(dir+"/stat", buf[:])
	if err != nil {
		return 0, 0, err
	}
	_, after, found := cutLast(text, ')')
	fields := strings.Fields(string(after))
	if !found || len(fields) < 20 {
		return 0, 0, fmt.Errorf("%s/stat has an unknown form", dir)
	}
	if fields[0] == "Z" || fields[0] == "X" {
		return 0, 0, ErrGone
	}
	parent, errParent := strconv.Atoi(fields[1])
	start, errStart := strconv.ParseUint(fields[19], 10, 64)
	return parent, start, errors.Join(errParent, errStart)
}

// readProc reads the beginning of a file of /proc, as much as the buffer holds.
// It is on the way of every connection, several times, so it makes no more
// system calls than it must.
func readProc(path string, buf []byte) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	for {
		n, err := unix.Read(fd, buf)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		return buf[:max(n, 0)], err
	}
}

func cutLast(text []byte, sep byte) (before, after []byte, found bool) {
	i := bytes.LastIndexByte(text, sep)
	if i < 0 {
		return text, nil, false
	}
	return text[:i], text[i+1:], true
}

// readUID reads the effective user from status: the owner of /proc/PID is root
// for processes that do not let themselves be traced.
func readUID(dir string) (uint32, error) {
	var buf [4096]byte
	text, err := readProc(dir+"/status", buf[:])
	if err != nil {
		return 0, err
	}
	_, after, found := strings.Cut(string(text), "\nUid:\t")
	fields := strings.Fields(after)
	if !found || len(fields) < 2 {
		return 0, fmt.Errorf("%s/status has an unknown form", dir)
	}
	uid, err := strconv.ParseUint(fields[1], 10, 32)
	return uint32(uid), err
}

// here names this boot of this machine. A start time counts from the boot, and
// several nodes may share a database.
var here = onceHere()

func onceHere() func() (boot, machine string, err error) {
	type names struct{ boot, machine string }
	read := sync.OnceValues(func() (names, error) {
		boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
		if err != nil {
			return names{}, err
		}
		machine, err := os.ReadFile("/etc/machine-id")
		if err != nil { // a container may have none; its name is the next best
			name, err := os.Hostname()
			if err != nil {
				return names{}, err
			}
			machine = []byte(name)
		}
		return names{strings.TrimSpace(string(boot)), strings.TrimSpace(string(machine))}, nil
	})
	return func() (string, string, error) {
		n, err := read()
		return n.boot, n.machine, err
	}
}
