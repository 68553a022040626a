//go:build linux

package sandbox_test

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// thirdAttacks are what thirdAttempts run.
var thirdAttacks = map[string]func([]string) error{
	"openat2": func(a []string) error {
		fd, err := unix.Openat2(unix.AT_FDCWD, a[0], &unix.OpenHow{Flags: unix.O_RDONLY})
		return printFD(fd, err)
	},
	"openat2root": func(a []string) error {
		top, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY, 0)
		if err != nil {
			return err
		}
		fd, err := unix.Openat2(top, a[0], &unix.OpenHow{Flags: unix.O_RDONLY, Resolve: unix.RESOLVE_IN_ROOT})
		return printFD(fd, err)
	},
	"fdclimb": func(a []string) error {
		fd, err := unix.Open(".", unix.O_PATH|unix.O_DIRECTORY, 0)
		if err != nil {
			return err
		}
		got, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d/%s", fd, a[0]), unix.O_RDONLY, 0)
		return printFD(got, err)
	},
	"memfdexec": func(a []string) error {
		program, err := os.ReadFile("/bin/cat")
		if err != nil {
			return err
		}
		fd, err := unix.MemfdCreate("x", 0)
		if err != nil {
			return err
		}
		if _, err := unix.Write(fd, program); err != nil {
			return err
		}
		return syscall.Exec(fmt.Sprintf("/proc/self/fd/%d", fd), []string{"cat", a[0]}, nil)
	},
	"execat": func(a []string) error {
		fd, err := unix.Open(a[0], unix.O_PATH, 0)
		if err != nil {
			return err
		}
		empty, argv := []byte{0}, []*byte{&[]byte(a[0] + "\x00")[0], &[]byte("ESCAPED\x00")[0], nil}
		env := []*byte{nil}
		_, _, errno := unix.Syscall6(unix.SYS_EXECVEAT, uintptr(fd), uintptr(unsafe.Pointer(&empty[0])), uintptr(unsafe.Pointer(&argv[0])),
			uintptr(unsafe.Pointer(&env[0])), unix.AT_EMPTY_PATH, 0)
		return errOf(errno)
	},
	"copyrange": func(a []string) error {
		src, err := unix.Open(a[0], unix.O_RDONLY, 0)
		if err != nil {
			return err
		}
		dst, err := unix.Open("copied", unix.O_RDWR|unix.O_CREAT, 0o600)
		if err != nil {
			return err
		}
		if _, err := unix.CopyFileRange(src, nil, dst, nil, 100, 0); err != nil {
			return err
		}
		b, err := os.ReadFile("copied")
		fmt.Println(string(b))
		return err
	},
	"splicefile": func(a []string) error {
		src, err := unix.Open(a[0], unix.O_RDONLY, 0)
		if err != nil {
			return err
		}
		var p [2]int
		if err := unix.Pipe(p[:]); err != nil {
			return err
		}
		if _, err := unix.Splice(src, nil, p[1], nil, 100, 0); err != nil {
			return err
		}
		return printFD(p[0], nil)
	},
	"tmpfile": func(a []string) error {
		fd, err := unix.Open(a[0], unix.O_TMPFILE|unix.O_RDWR, 0o600)
		if err != nil {
			return err
		}
		return unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, a[0]+"/planted", unix.AT_SYMLINK_FOLLOW)
	},
	"chroothere": func([]string) error { return escapedIf(unix.Chroot(".")) },
	"setnspid": func(a []string) error {
		pid, _ := strconv.Atoi(a[0])
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			return err
		}
		runtime.LockOSThread()
		return escapedIf(unix.Setns(fd, unix.CLONE_NEWUTS|unix.CLONE_NEWIPC))
	},
	"listener": func([]string) error {
		runtime.LockOSThread()
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return err
		}
		allow := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}
		prog := unix.SockFprog{Len: 1, Filter: &allow}
		_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, uintptr(unsafe.Pointer(&prog)))
		return escapedIf(errOf(errno))
	},
	"realtime": func([]string) error {
		return escapedIf(unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: 1, Priority: 1}, 0))
	},
	"discipline": func([]string) error {
		fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY, 0)
		if err != nil {
			return err
		}
		return escapedIf(unix.IoctlSetPointerInt(fd, unix.TIOCSETD, 0))
	},
	"robust": func(a []string) error {
		pid, _ := strconv.Atoi(a[0])
		var head, size uintptr
		_, _, errno := unix.Syscall(unix.SYS_GET_ROBUST_LIST, uintptr(pid), uintptr(unsafe.Pointer(&head)), uintptr(unsafe.Pointer(&size)))
		return escapedIf(errOf(errno))
	},
	"madvise": func(a []string) error {
		pid, _ := strconv.Atoi(a[0])
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			return err
		}
		_, _, errno := unix.Syscall6(unix.SYS_PROCESS_MADVISE, uintptr(fd), 0, 0, unix.MADV_COLD, 0, 0)
		return escapedIf(errOf(errno))
	},
	"movepages": func(a []string) error {
		pid, _ := strconv.Atoi(a[0])
		_, _, errno := unix.Syscall6(unix.SYS_MOVE_PAGES, uintptr(pid), 0, 0, 0, 0, 0)
		return escapedIf(errOf(errno))
	},
	"fanotify": func(a []string) error {
		fd, err := unix.FanotifyInit(unix.FAN_CLASS_NOTIF, 0)
		if err != nil {
			return err
		}
		return escapedIf(unix.FanotifyMark(fd, unix.FAN_MARK_ADD, unix.FAN_OPEN, unix.AT_FDCWD, a[0]))
	},
	"acl": func(a []string) error { // version 2: owner, group and others may do all
		value := []byte{2, 0, 0, 0, 1, 0, 7, 0, 255, 255, 255, 255, 4, 0, 7, 0, 255, 255, 255, 255, 32, 0, 7, 0, 255, 255, 255, 255}
		return escapedIf(unix.Setxattr(a[0], "system.posix_acl_access", value, 0))
	},
	"sibling": sibling,
	"openr": func(a []string) error {
		f, err := os.Open(a[0])
		if err == nil {
			_, err = f.Read(make([]byte, 1))
		}
		return escapedIf(err)
	},
	"rawproxy": rawProxy,
}

// printFD prints what a descriptor has.
func printFD(fd int, err error) error {
	if err != nil {
		return err
	}
	b := make([]byte, 200)
	n, err := unix.Read(fd, b)
	fmt.Println(string(b[:max(n, 0)]))
	return err
}

// sibling makes a process whose parent is this one's: whoever waits for this
// one does not wait for it. It writes later.
func sibling(a []string) error {
	path, _ := unix.BytePtrFromString(a[0])
	nap := unix.Timespec{Nsec: int64(300 * time.Millisecond)}
	runtime.LockOSThread()
	pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, unix.CLONE_PARENT|uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 {
		return errno
	}
	if pid == 0 {
		_, _, _ = unix.RawSyscall(unix.SYS_SETSID, 0, 0, 0)
		_, _, _ = unix.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&nap)), 0, 0)
		_, _, _ = unix.RawSyscall6(unix.SYS_OPENAT, ^uintptr(99), uintptr(unsafe.Pointer(path)), unix.O_CREAT|unix.O_WRONLY, 0o644, 0, 0)
		_, _, _ = unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}
	return nil
}

// rawWords are what is said to the proxy; a bar is a pause, PORT the listener's.
// Those that begin with a plus are said in a tunnel to the declared host.
var rawWords = map[string]string{
	"method":       "+FOO / HTTP/1.1\r\nHost: evil.test\r\n\r\n",
	"small":        "+get / HTTP/1.1\r\nHost: evil.test\r\n\r\n",
	"line":         "+\r\nGET / HTTP/1.1\r\nHost: evil.test\r\n\r\n",
	"split":        "+F|OO / HTTP/1.1\r\nHost: evil.test\r\n\r\n",
	"bare":         "+GET / HTTP/1.1\nHost: evil.test\n\n",
	"http2":        "+PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nevil.test",
	"twice":        "+GET / HTTP/1.1\r\nHost: good.test:PORT\r\nHost: evil.test\r\n\r\n",
	"absolute":     "+GET http://evil.test/ HTTP/1.1\r\nHost: good.test:PORT\r\n\r\n",
	"folded":       "+GET / HTTP/1.1\r\nHost: good.test:PORT\r\n evil.test\r\n\r\n",
	"space":        "+GET / HTTP/1.1\r\nHost : evil.test\r\n\r\n",
	"pipelined":    "+GET / HTTP/1.1\r\nHost: good.test:PORT\r\n\r\nGET / HTTP/1.1\r\nHost: evil.test\r\n\r\n",
	"chunked":      "+POST / HTTP/1.1\r\nHost: good.test:PORT\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\nHost: evil.test\r\n\r\n",
	"encoding":     "+POST / HTTP/1.1\r\nHost: good.test:PORT\r\nContent-Length: 48\r\nTransfer-Encoding: xchunked\r\n\r\nGET / HTTP/1.1\r\nHost: evil.test\r\n\r\n",
	"length":       "+POST / HTTP/1.1\r\nHost: good.test:PORT\r\nContent-Length: 0\r\nContent-Length: 40\r\n\r\nGET / HTTP/1.1\r\nHost: evil.test\r\n\r\n",
	"hello":        "+\x16\x03\x01\x00\x05\x01\x00\x00\x01evil.test",
	"highbytes":    "+GET /\xff\xfe HTTP/1.1\r\nHost: evil.test\r\n\r\n",
	"plain-twice":  "GET http://good.test:PORT/ HTTP/1.1\r\nHost: good.test:PORT\r\nHost: evil.test\r\n\r\n",
	"plain-user":   "GET http://good.test:PORT@evil.test:PORT/ HTTP/1.1\r\nHost: evil.test:PORT\r\n\r\n",
	"plain-next":   "GET http://good.test:PORT/ HTTP/1.1\r\nHost: good.test:PORT\r\n\r\nGET http://evil.test:PORT/ HTTP/1.1\r\nHost: evil.test:PORT\r\n\r\n",
	"plain-hash":   "GET http://evil.test:PORT#@good.test:PORT/ HTTP/1.1\r\nHost: evil.test:PORT\r\n\r\n",
	"plain-slash":  "GET http://evil.test:PORT\\@good.test:PORT/ HTTP/1.1\r\nHost: good.test:PORT\r\n\r\n",
	"plain-https":  "GET https://evil.test:PORT/ HTTP/1.1\r\nHost: evil.test:PORT\r\n\r\n",
	"origin-form":  "GET / HTTP/1.1\r\nHost: evil.test:PORT\r\n\r\n",
	"connect-path": "CONNECT evil.test:PORT/good.test:PORT HTTP/1.1\r\nHost: good.test:PORT\r\n\r\n",
	"connect-next": "CONNECT evil.test:PORT HTTP/1.1\r\nHost: good.test:PORT\r\n\r\n",
	"socks4":       "\x04\x01\x00\x50\x00\x00\x00\x01u\x00evil.test\x00",
	"socks-nul":    "\x05\x01\x00|\x05\x01\x00\x03\x13evil.test\x00good.test\x00\x50",
	"socks-port":   "\x05\x01\x00|\x05\x01\x00\x03\x09good.test\x00\x00",
	"socks-bind":   "\x05\x01\x00|\x05\x02\x00\x03\x09evil.test\x00\x50",
	"socks-udp":    "\x05\x01\x00|\x05\x03\x00\x03\x09evil.test\x00\x50",
}

func rawProxy(a []string) error {
	c, proxied, err := proxyConn()
	if err != nil {
		return err
	}
	defer c.Close()
	port := os.Getenv("TCP")
	words, inside := strings.CutPrefix(rawWords[a[0]], "+")
	if words == "" {
		return errors.New("no such words")
	}
	answer := make([]byte, 4096)
	if inside && proxied {
		fmt.Fprintf(c, "CONNECT good.test:%s HTTP/1.1\r\nHost: good.test:%s\r\n\r\n", port, port)
		if n, err := c.Read(answer); err != nil || !strings.Contains(string(answer[:n]), " 200 ") {
			return fmt.Errorf("no tunnel: %q %v", answer[:n], err)
		}
	}
	for part := range strings.SplitSeq(words, "|") {
		if _, err := c.Write([]byte(strings.ReplaceAll(part, "PORT", port))); err != nil {
			return err
		}
		time.Sleep(30 * time.Millisecond)
	}
	_ = c.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
	for {
		n, err := c.Read(answer)
		fmt.Printf("%q\n", answer[:n])
		if err != nil {
			return nil
		}
	}
}
