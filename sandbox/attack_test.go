//go:build linux

package sandbox_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// attack is what this binary does when it is started as an attacker. It says
// ESCAPED when it got what it wanted.
func attack(name string, args []string) {
	for i := range args {
		args[i] = os.ExpandEnv(args[i])
	}
	for _, table := range []map[string]func([]string) error{fileAttacks, kernelAttacks, processAttacks, reachAttacks, resourceAttacks, moreAttacks, thirdAttacks, fourthAttacks} {
		if f := table[name]; f != nil {
			if err := f(args); err != nil {
				fmt.Println("failed:", err)
				os.Exit(1)
			}
			return
		}
	}
	fmt.Println("no such attack:", name)
	os.Exit(3)
}

func escapedIf(err error) error {
	if err == nil {
		fmt.Println("ESCAPED")
	}
	return err
}

func errOf(errno syscall.Errno) error {
	if errno == 0 {
		return nil
	}
	return errno
}

var fileAttacks = map[string]func([]string) error{
	"exchange": func(a []string) error {
		return unix.Renameat2(unix.AT_FDCWD, a[0], unix.AT_FDCWD, a[1], unix.RENAME_EXCHANGE)
	},
	"linkfd": func(a []string) error {
		fd, err := unix.Open(a[0], unix.O_PATH, 0)
		if err != nil {
			return err
		}
		if err := unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, a[1], unix.AT_SYMLINK_FOLLOW); err != nil {
			return err
		}
		return show(a[1])
	},
	"bindunix": func(a []string) error {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		return unix.Bind(fd, &unix.SockaddrUnix{Name: a[0]})
	},
	"setxattr": func(a []string) error { return unix.Setxattr(a[0], "user.evil", []byte("x"), 0) },
	"fchmodat2": func(a []string) error {
		fd, err := unix.Open(a[0], unix.O_PATH, 0)
		if err != nil {
			return err
		}
		p, _ := unix.BytePtrFromString("")
		_, _, errno := unix.Syscall6(unix.SYS_FCHMODAT2, uintptr(fd), uintptr(unsafe.Pointer(p)), 0o777, unix.AT_EMPTY_PATH, 0, 0)
		return errOf(errno)
	},
	"utimensat": func(a []string) error { return os.Chtimes(a[0], time.Unix(1, 0), time.Unix(1, 0)) },
	"climb": func(a []string) error {
		fd, err := unix.Open(".", unix.O_PATH|unix.O_DIRECTORY, 0)
		if err != nil {
			return err
		}
		up, err := unix.Openat(fd, "..", unix.O_PATH|unix.O_DIRECTORY, 0)
		if err != nil {
			return err
		}
		f, err := unix.Openat(up, "out/new", unix.O_CREAT|unix.O_WRONLY, 0o644)
		if err != nil {
			return err
		}
		return unix.Close(f)
	},
	// swaprace lets one name alternate between a directory and a link to the
	// outside while writing through it.
	"swaprace": func(a []string) error {
		_ = os.Mkdir("d", 0o755)
		_ = os.Symlink(a[0], "l")
		stop := time.Now().Add(150 * time.Millisecond)
		go func() {
			for time.Now().Before(stop) {
				_ = unix.Renameat2(unix.AT_FDCWD, "d", unix.AT_FDCWD, "l", unix.RENAME_EXCHANGE)
			}
		}()
		for i := 0; time.Now().Before(stop); i++ {
			_ = os.WriteFile(fmt.Sprintf("d/new%d", i%10), []byte("x"), 0o644)
		}
		return nil
	},
	"mmap": func(a []string) error {
		fd, err := unix.Open(a[0], unix.O_RDONLY, 0)
		if err != nil {
			return err
		}
		b, err := unix.Mmap(fd, 0, len(secret), unix.PROT_READ, unix.MAP_PRIVATE)
		if err == nil {
			fmt.Println(string(b))
		}
		return err
	},
	"reopen": func(a []string) error {
		fd, err := unix.Open(a[0], unix.O_PATH, 0)
		if err != nil {
			return err
		}
		return show(fmt.Sprintf("/proc/self/fd/%d", fd))
	},
	"sendfile": func(a []string) error {
		fd, err := unix.Open(a[0], unix.O_RDONLY, 0)
		if err != nil {
			return err
		}
		b := make([]byte, 64)
		n, err := unix.Pread(fd, b, 0)
		fmt.Println(string(b[:max(n, 0)]))
		return err
	},
	"handle": func(a []string) error {
		h, id, err := unix.NameToHandleAt(unix.AT_FDCWD, a[0], 0)
		if err != nil {
			return err
		}
		_ = id
		dir, err := unix.Open("/", unix.O_RDONLY, 0)
		if err != nil {
			return err
		}
		fd, err := unix.OpenByHandleAt(dir, h, unix.O_RDONLY)
		if err != nil {
			return err
		}
		return show(fmt.Sprintf("/proc/self/fd/%d", fd))
	},
	"inotify": func(a []string) error {
		fd, err := unix.InotifyInit1(0)
		if err != nil {
			return err
		}
		_, err = unix.InotifyAddWatch(fd, a[0], unix.IN_ALL_EVENTS)
		return escapedIf(err)
	},
	"anyfd": func([]string) error {
		for fd := 3; fd < 1024; fd++ {
			b := make([]byte, 64)
			if n, err := unix.Pread(fd, b, 0); err == nil && n > 0 {
				fmt.Println(string(b[:n]))
			}
		}
		return nil
	},
	"creatsuid": func(a []string) error {
		unix.Umask(0)
		fd, err := unix.Open(a[0], unix.O_CREAT|unix.O_WRONLY, 0o4755)
		_ = unix.Close(fd)
		return err
	},
	"mknodsuid":  func(a []string) error { return unix.Mknod(a[0], unix.S_IFREG|0o4755, 0) },
	"fchmodsuid": func(a []string) error { return chmodFile(a[0]) },
	"openat2suid": func(a []string) error {
		unix.Umask(0)
		fd, err := unix.Openat2(unix.AT_FDCWD, a[0], &unix.OpenHow{Flags: unix.O_CREAT | unix.O_WRONLY, Mode: 0o4755})
		_ = unix.Close(fd)
		return err
	},
	"openw":  func(a []string) error { return open(a[0], unix.O_WRONLY) },
	"openr":  func(a []string) error { return open(a[0], unix.O_RDONLY) },
	"openrw": func(a []string) error { return open(a[0], unix.O_RDWR) },
	"mkdir": func(a []string) error {
		err := escapedIf(os.Mkdir(a[0], 0o755))
		_ = os.Remove(a[0])
		return err
	},
	"cat": func(a []string) error { return show(a[0]) },
	"grep": func(a []string) error {
		b, err := os.ReadFile(a[0])
		if err == nil && strings.Contains(string(b), a[1]) {
			fmt.Println("ESCAPED")
		}
		return err
	},
	"readlink": func(a []string) error {
		_, err := os.Readlink(a[0])
		return escapedIf(err)
	},
	"ls": func(a []string) error {
		_, err := os.ReadDir(a[0])
		return escapedIf(err)
	},
}

func open(path string, flags int) error {
	fd, err := unix.Open(path, flags|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err == nil {
		_ = unix.Close(fd)
	}
	return escapedIf(err)
}

func show(path string) error {
	b, err := os.ReadFile(path)
	fmt.Println(string(b))
	return err
}

func chmodFile(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Fchmod(int(f.Fd()), 0o4755)
}

var resourceAttacks = map[string]func([]string) error{
	"files": func(a []string) error {
		n, _ := strconv.Atoi(a[0])
		for range n {
			if _, err := unix.Open("/dev/null", unix.O_RDONLY, 0); err != nil {
				return err
			}
		}
		fmt.Println("DONE files")
		return nil
	},
	"bigfile": func(a []string) error {
		n, _ := strconv.Atoi(a[0])
		f, err := os.Create("big")
		if err != nil {
			return err
		}
		for range n {
			if _, err := f.Write(make([]byte, 1<<20)); err != nil {
				return err
			}
		}
		fmt.Println("DONE bigfile")
		return nil
	},
	"memory": func(a []string) error {
		n, _ := strconv.Atoi(a[0])
		for range n {
			b, err := unix.Mmap(-1, 0, 1<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
			if err != nil {
				return err
			}
			for i := 0; i < len(b); i += 4096 {
				b[i] = 1
			}
		}
		fmt.Println("DONE memory")
		return nil
	},
	"procs": func(a []string) error {
		n, _ := strconv.Atoi(a[0])
		var kids []*exec.Cmd
		defer func() {
			for _, k := range kids {
				_ = k.Process.Kill()
				_ = k.Wait()
			}
		}()
		for range n {
			c := exec.Command("/bin/sleep", "20")
			if err := c.Start(); err != nil {
				return err
			}
			kids = append(kids, c)
		}
		fmt.Println("DONE procs")
		return nil
	},
	"spin": func(a []string) error {
		n, _ := strconv.Atoi(a[0])
		var ru unix.Rusage
		for {
			_ = unix.Getrusage(unix.RUSAGE_SELF, &ru)
			if ru.Utime.Sec+ru.Stime.Sec >= int64(n) {
				break
			}
		}
		fmt.Println("DONE spin")
		return nil
	},
	"flood": func(a []string) error {
		n, _ := strconv.Atoi(a[0])
		for range n {
			fmt.Println(strings.Repeat("x", 1023))
		}
		fmt.Println("DONE flood")
		return nil
	},
	"nap": func(a []string) error {
		n, _ := strconv.Atoi(a[0])
		time.Sleep(time.Duration(n) * time.Second)
		fmt.Println("DONE nap")
		return nil
	},
	"forkchain": func(a []string) error {
		n := 0
		if len(a) > 1 {
			n, _ = strconv.Atoi(a[1])
		}
		if n > 300 {
			return nil
		}
		exe, err := os.Executable()
		if err != nil {
			return err
		}
		c := exec.Command(exe, "attack", "forkchain", a[0], strconv.Itoa(n+1))
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		return c.Start()
	},
	"sh": func(a []string) error {
		out, err := exec.Command("/bin/sh", "-c", strings.Join(a, " ")).CombinedOutput()
		fmt.Print(string(out))
		return err
	},
}

var reachAttacks = map[string]func([]string) error{
	"dial": func(a []string) error {
		c, err := net.DialTimeout(a[0], a[1], 5*time.Second)
		if err != nil {
			return err
		}
		b, err := io.ReadAll(c)
		fmt.Print(string(b))
		return err
	},
	"send": func(a []string) error {
		c, err := net.Dial(a[0], a[1])
		if err != nil {
			return err
		}
		_, err = c.Write([]byte("hello"))
		return err
	},
	"dns": func(a []string) error {
		c, err := net.Dial("udp", a[0])
		if err != nil {
			return err
		}
		_, err = c.Write([]byte("\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x06secret\x04evil\x00\x00\x01\x00\x01"))
		return err
	},
	"pairdgram": func(a []string) error {
		p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
		if err != nil {
			return err
		}
		if err := unix.Connect(p[0], &unix.SockaddrUnix{Name: a[0]}); err != nil {
			return err
		}
		_, err = unix.Write(p[0], []byte("x"))
		return err
	},
	"pairsendto": func(a []string) error {
		p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
		if err != nil {
			return err
		}
		return unix.Sendto(p[0], []byte("x"), 0, &unix.SockaddrUnix{Name: a[0]})
	},
	"socket": func(a []string) error {
		var n [3]int
		for i := range n {
			n[i], _ = strconv.Atoi(a[i])
		}
		_, err := unix.Socket(n[0], n[1], n[2])
		return escapedIf(err)
	},
	"fastopen": func(a []string) error {
		port, _ := strconv.Atoi(a[0])
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		return unix.Sendto(fd, []byte("x"), unix.MSG_FASTOPEN, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
	},
	"mptcp": func(a []string) error {
		port, _ := strconv.Atoi(a[0])
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 262)
		if err != nil {
			return err
		}
		return unix.Connect(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
	},
	"lowport": func([]string) error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		return escapedIf(unix.Bind(fd, &unix.SockaddrInet4{Port: 99, Addr: [4]byte{127, 0, 0, 1}}))
	},
	"connect": func(a []string) error { return throughProxy(a[0], a[1]) },
	"plain":   func(a []string) error { return plainRequest(a[0], a[1], a[2]) },
	"socks":   func(a []string) error { return throughSocks(a[0], a[1]) },
}

// proxyConn connects to the proxy, or to the listener without one.
func proxyConn() (net.Conn, bool, error) {
	if p := os.Getenv("HTTP_PROXY"); p != "" {
		c, err := net.Dial("tcp", strings.TrimPrefix(p, "http://"))
		return c, true, err
	}
	c, err := net.Dial("tcp", "127.0.0.1:"+os.Getenv("TCP"))
	return c, false, err
}

func throughProxy(host, port string) error {
	c, proxied, err := proxyConn()
	if err != nil {
		return err
	}
	if proxied {
		fmt.Fprintf(c, "CONNECT %s:%s HTTP/1.1\r\nHost: %s:%s\r\n\r\n", host, port, host, port)
		b := make([]byte, 1024)
		n, _ := c.Read(b)
		if !bytes.Contains(b[:n], []byte(" 200 ")) {
			fmt.Println(string(b[:n]))
			return nil
		}
		fmt.Println("ESCAPED: the tunnel opened")
		return nil
	}
	_, err = io.Copy(os.Stdout, c)
	return err
}

func plainRequest(host, header, port string) error {
	c, proxied, err := proxyConn()
	if err != nil {
		return err
	}
	if !proxied {
		b, _ := io.ReadAll(c)
		fmt.Print(string(b))
		return nil
	}
	fmt.Fprintf(c, "GET http://%s:%s/ HTTP/1.1\r\nHost: %s:%s\r\n\r\n", host, port, header, port)
	b := make([]byte, 1024)
	n, _ := c.Read(b)
	if !bytes.Contains(b[:n], []byte(" 403 ")) {
		fmt.Println("ESCAPED", string(b[:n]))
	}
	return nil
}

func throughSocks(host, port string) error {
	c, proxied, err := proxyConn()
	if err != nil {
		return err
	}
	if !proxied {
		b, _ := io.ReadAll(c)
		fmt.Print(string(b))
		return nil
	}
	n, _ := strconv.Atoi(port)
	_, _ = c.Write([]byte{5, 1, 0})
	b := make([]byte, 64)
	_, _ = io.ReadFull(c, b[:2])
	msg := []byte{5, 1, 0, 3, byte(len(host))}
	msg = append(msg, host...)
	msg = append(msg, byte(n>>8), byte(n))
	_, _ = c.Write(msg)
	if m, _ := c.Read(b); m >= 2 && b[1] == 0 {
		fmt.Println("ESCAPED")
	}
	return nil
}
