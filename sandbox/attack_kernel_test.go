//go:build linux

package sandbox_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

func ptr(s string) uintptr {
	p, _ := unix.BytePtrFromString(s)
	return uintptr(unsafe.Pointer(p))
}

func sys(nr, a, b, c, d uintptr) error {
	_, _, errno := unix.Syscall6(nr, a, b, c, d, 0, 0)
	return errOf(errno)
}

var kernelAttacks = map[string]func([]string) error{
	"opentree": func(a []string) error {
		_, err := unix.OpenTree(unix.AT_FDCWD, a[0], unix.OPEN_TREE_CLONE)
		return escapedIf(err)
	},
	"fsopen": func([]string) error {
		_, err := unix.Fsopen("tmpfs", 0)
		return escapedIf(err)
	},
	"mountsetattr": func([]string) error {
		fd, err := unix.OpenTree(unix.AT_FDCWD, "/", unix.OPEN_TREE_CLONE)
		if err != nil {
			return err
		}
		return escapedIf(unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOEXEC}))
	},
	"chroot": func(a []string) error { return escapedIf(unix.Chroot(a[0])) },
	"pivot": func([]string) error {
		// Refused by the kernel for its arguments, not for who asks.
		if err := unix.PivotRoot("/", "/"); errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSYS) {
			return err
		}
		return escapedIf(nil)
	},
	"unshare": func(a []string) error {
		flag := map[string]int{
			"user": unix.CLONE_NEWUSER, "mnt": unix.CLONE_NEWNS, "net": unix.CLONE_NEWNET, "uts": unix.CLONE_NEWUTS,
			"ipc": unix.CLONE_NEWIPC, "cgroup": unix.CLONE_NEWCGROUP,
		}[a[0]]
		if a[0] == "user" {
			// This program has threads, and such a one may not; util-linux may.
			return escapedIf(exec.Command("unshare", "-U", "true").Run())
		}
		runtime.LockOSThread()
		return escapedIf(unix.Unshare(flag))
	},
	"clone": func(a []string) error {
		flags := uintptr(unix.CLONE_NEWUSER)
		if a[0] == "usermnt" {
			flags |= unix.CLONE_NEWNS
		}
		c := exec.Command("/bin/true")
		c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags}
		return escapedIf(c.Run())
	},
	"setns": func([]string) error {
		runtime.LockOSThread()
		fd, err := unix.Open("/proc/self/ns/uts", unix.O_RDONLY, 0)
		if err != nil {
			return err
		}
		return escapedIf(unix.Setns(fd, 0))
	},
	"sys":      func(a []string) error { return escapedIf(rawCalls[a[0]]()) },
	"int80":    func([]string) error { return int80() },
	"setuid0":  func([]string) error { return setuid0() },
	"capset":   func([]string) error { return capset() },
	"suidexec": func([]string) error { return suidexec() },
	"ambient": func([]string) error {
		runtime.LockOSThread()
		hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var data [2]unix.CapUserData
		if err := unix.Capget(&hdr, &data[0]); err != nil {
			return err
		}
		data[0].Inheritable = data[0].Permitted
		if err := unix.Capset(&hdr, &data[0]); err != nil {
			return err
		}
		return escapedIf(unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, unix.CAP_SYS_ADMIN, 0, 0))
	},
	// tiocsti types into a terminal as if somebody had.
	"tiocsti": func([]string) error {
		_, slave, err := pty.Open()
		if err != nil {
			return err
		}
		if err := unix.IoctlSetInt(int(slave.Fd()), unix.TIOCSCTTY, 0); err != nil {
			return err
		}
		c := byte('x')
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, slave.Fd(), unix.TIOCSTI, uintptr(unsafe.Pointer(&c)))
		return escapedIf(errOf(errno))
	},
	"rootfile": func([]string) error { return show(os.Getenv("WS") + "/roots-own") },
}

// rawCalls are calls that harm nobody when they succeed.
var rawCalls = map[string]func() error{
	"io_uring_setup": func() error {
		var params [120]byte
		return sys(unix.SYS_IO_URING_SETUP, 4, uintptr(unsafe.Pointer(&params)), 0, 0)
	},
	"bpf": func() error {
		attr := struct{ kind, key, value, max uint32 }{2, 4, 4, 1}
		return sys(unix.SYS_BPF, 0, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	},
	"perf": func() error {
		attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{})), Config: unix.PERF_COUNT_SW_PAGE_FAULTS}
		attr.Bits = unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv
		_, err := unix.PerfEventOpen(&attr, 0, -1, -1, 0)
		return err
	},
	"userfaultfd": func() error { return sys(unix.SYS_USERFAULTFD, 1, 0, 0, 0) },
	"fanotify": func() error {
		_, err := unix.FanotifyInit(0, 0)
		return err
	},
	"add_key": func() error {
		b := []byte("x")
		keyring := unix.KEY_SPEC_PROCESS_KEYRING
		_, _, errno := unix.Syscall6(unix.SYS_ADD_KEY, ptr("user"), ptr("gh-escape"), uintptr(unsafe.Pointer(&b[0])), 1, uintptr(keyring), 0)
		return errOf(errno)
	},
	"keyctl": func() error {
		_, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_USER_KEYRING, true)
		return err
	},
	"request_key": func() error {
		err := sys(unix.SYS_REQUEST_KEY, ptr("user"), ptr("gh-nothing"), 0, 0)
		if errors.Is(err, unix.ENOKEY) {
			return nil
		}
		return err
	},
	"syslog": func() error {
		_, err := unix.Klogctl(10, nil)
		return err
	},
	"clock": func() error {
		var ts unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_REALTIME, &ts); err != nil {
			return err
		}
		return unix.ClockSettime(unix.CLOCK_REALTIME, &ts)
	},
	"adjtimex": func() error {
		// Reading is open to all; setting the tick to what it is, is not.
		var t unix.Timex
		if _, err := unix.Adjtimex(&t); err != nil {
			return err
		}
		t.Modes = unix.ADJ_TICK
		_, err := unix.Adjtimex(&t)
		return err
	},
	"sethostname": func() error {
		name, err := os.Hostname()
		if err != nil {
			return err
		}
		return unix.Sethostname([]byte(name))
	},
	"setdomainname": func() error { return unix.Setdomainname([]byte("(none)")) },
	"personality":   func() error { return sys(unix.SYS_PERSONALITY, 0x0400000, 0, 0, 0) },
	"listmount": func() error {
		req := struct {
			size, spare uint32
			id, param   uint64
		}{24, 0, ^uint64(0), 0}
		var ids [4]uint64
		return sys(unix.SYS_LISTMOUNT, uintptr(unsafe.Pointer(&req)), uintptr(unsafe.Pointer(&ids)), 4, 0)
	},
}

func setuid0() error {
	runtime.LockOSThread()
	if _, _, errno := unix.RawSyscall(unix.SYS_SETUID, 0, 0, 0); errno != 0 {
		return errno
	}
	if b, err := os.ReadFile("/proc/self/uid_map"); err == nil && strings.Fields(string(b))[1] == "0" && unix.Getuid() == 0 {
		fmt.Println("ESCAPED")
	}
	return nil
}

func capset() error {
	runtime.LockOSThread()
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	data := [2]unix.CapUserData{{Effective: 1 << unix.CAP_SYS_ADMIN, Permitted: 1 << unix.CAP_SYS_ADMIN}}
	return escapedIf(unix.Capset(&hdr, &data[0]))
}

// suidProgram puts a set-user-id program of root's into the workspace.
func suidProgram(h *host) {
	path := h.ws + "/suid"
	b, err := os.ReadFile("/usr/bin/id")
	if err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o755); err != nil {
		h.t.Fatal(err)
	}
	_ = os.Chown(path, 0, 0)
	_ = os.Chmod(path, os.ModeSetuid|0o755)
}

// suidexec runs it, from an unprivileged user if need be.
func suidexec() error {
	c := exec.Command(os.Getenv("WS")+"/suid", "-u")
	if os.Getuid() == 0 {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	out, err := c.Output()
	if strings.TrimSpace(string(out)) == "0" {
		fmt.Println("ESCAPED")
	}
	return err
}

func rootFile(h *host) {
	// Readable by its owner, who is not the one who runs the command.
	path := h.ws + "/roots-own"
	if err := os.WriteFile(path, []byte(secret), 0o600); err != nil {
		h.t.Fatal(err)
	}
	_ = os.Chown(path, 7, 7)
}

var processAttacks = map[string]func([]string) error{
	"victim": func([]string) error { return victim() },
	"ptrace": func(a []string) error {
		runtime.LockOSThread()
		return escapedIf(unix.PtraceAttach(num(a[0])))
	},
	"seize": func(a []string) error {
		runtime.LockOSThread()
		return escapedIf(unix.PtraceSeize(num(a[0])))
	},
	"vmread":   func(a []string) error { return vm(unix.SYS_PROCESS_VM_READV, a) },
	"vmwrite":  func(a []string) error { return vm(unix.SYS_PROCESS_VM_WRITEV, a) },
	"procmem":  func(a []string) error { return procMem(a, false) },
	"procmemw": func(a []string) error { return procMem(a, true) },
	"getfd": func(a []string) error {
		fd, err := unix.PidfdOpen(num(a[0]), 0)
		if err != nil {
			return err
		}
		_, err = unix.PidfdGetfd(fd, 1, 0)
		return escapedIf(err)
	},
	"kcmp": func(a []string) error {
		return escapedIf(sys(unix.SYS_KCMP, uintptr(os.Getpid()), uintptr(num(a[0])), 2, 0))
	},
	"pids": func(a []string) error {
		dirs, err := os.ReadDir("/proc")
		for _, d := range dirs {
			if d.Name() != a[0] {
				continue
			}
			if b, _ := os.ReadFile("/proc/" + a[0] + "/cmdline"); strings.Contains(string(b), "victim") {
				fmt.Println("ESCAPED")
			}
		}
		return err
	},
	"kill": func(a []string) error {
		sig := map[string]syscall.Signal{"KILL": unix.SIGKILL, "STOP": unix.SIGSTOP, "TERM": unix.SIGTERM}[a[1]]
		return unix.Kill(num(a[0]), sig)
	},
	"sigqueue": func(a []string) error {
		var info [128]byte
		*(*int32)(unsafe.Pointer(&info[0])) = int32(unix.SIGKILL)
		*(*int32)(unsafe.Pointer(&info[8])) = -1 // SI_QUEUE
		return sys(unix.SYS_RT_SIGQUEUEINFO, uintptr(num(a[0])), uintptr(unix.SIGKILL), uintptr(unsafe.Pointer(&info)), 0)
	},
	"pidfdkill": func(a []string) error {
		fd, err := unix.PidfdOpen(num(a[0]), 0)
		if err != nil {
			return err
		}
		return unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	},
	"tgkill": func(a []string) error { return unix.Tgkill(num(a[0]), num(a[0]), unix.SIGKILL) },
	"prlimit": func(a []string) error {
		lim := unix.Rlimit{Cur: 10, Max: 10}
		return escapedIf(unix.Prlimit(num(a[0]), unix.RLIMIT_NOFILE, &lim, nil))
	},
	"setpriority": func(a []string) error { return escapedIf(unix.Setpriority(unix.PRIO_PROCESS, num(a[0]), 5)) },
	"affinity": func(a []string) error {
		var set unix.CPUSet
		set.Set(0)
		return escapedIf(unix.SchedSetaffinity(num(a[0]), &set))
	},
	"scheduler": func(a []string) error {
		var param int32
		return escapedIf(sys(unix.SYS_SCHED_SETSCHEDULER, uintptr(num(a[0])), 3, uintptr(unsafe.Pointer(&param)), 0))
	},
	"shm": func(a []string) error {
		id, err := unix.SysvShmGet(num(a[0]), 4096, 0)
		if err != nil {
			return err
		}
		b, err := unix.SysvShmAttach(id, 0, 0)
		if err == nil {
			fmt.Println(string(b[:len(secret)]))
		}
		return err
	},
	"msgq": func(a []string) error {
		id, _, errno := unix.Syscall(unix.SYS_MSGGET, uintptr(num(a[0])), 0, 0)
		if errno != 0 {
			return errno
		}
		var buf struct {
			kind int64
			text [64]byte
		}
		_, _, errno = unix.Syscall6(unix.SYS_MSGRCV, id, uintptr(unsafe.Pointer(&buf)), 64, 0, 0o4000, 0)
		fmt.Println(string(buf.text[:]))
		return errOf(errno)
	},
	"sem": func(a []string) error {
		id, _, errno := unix.Syscall(unix.SYS_SEMGET, uintptr(num(a[0])), 1, 0)
		if errno != 0 {
			return errno
		}
		v, _, errno := unix.Syscall6(unix.SYS_SEMCTL, id, 0, 12, 0, 0, 0)
		if errno == 0 && v == 42 {
			fmt.Println("ESCAPED")
		}
		return errOf(errno)
	},
	"mqopen": func(a []string) error {
		_, _, errno := unix.Syscall6(unix.SYS_MQ_OPEN, ptr(strings.TrimPrefix(a[0], "/")), unix.O_RDONLY, 0, 0, 0, 0)
		return escapedIf(errOf(errno))
	},
}

func num(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}

// hold is what a victim keeps in its memory.
var hold = []byte("memory-" + secret)

// victim makes shared objects under its own number and waits to be harmed.
func victim() error {
	pid := os.Getpid()
	_ = os.WriteFile("/dev/shm/gh-"+strconv.Itoa(pid), []byte(secret), 0o666)
	if id, err := unix.SysvShmGet(pid, 4096, unix.IPC_CREAT|0o666); err == nil {
		if b, err := unix.SysvShmAttach(id, 0, 0); err == nil {
			copy(b, secret)
		}
	}
	if id, _, errno := unix.Syscall(unix.SYS_MSGGET, uintptr(pid), unix.IPC_CREAT|0o666, 0); errno == 0 {
		var buf struct {
			kind int64
			text [64]byte
		}
		buf.kind = 1
		copy(buf.text[:], secret)
		_, _, _ = unix.Syscall6(unix.SYS_MSGSND, id, uintptr(unsafe.Pointer(&buf)), 64, 0, 0, 0)
	}
	if id, _, errno := unix.Syscall(unix.SYS_SEMGET, uintptr(pid), 1, unix.IPC_CREAT|0o666); errno == 0 {
		_, _, _ = unix.Syscall6(unix.SYS_SEMCTL, id, 0, 16, 42, 0, 0)
	}
	_, _, _ = unix.Syscall6(unix.SYS_MQ_OPEN, ptr("gh-"+strconv.Itoa(pid)), unix.O_CREAT|unix.O_RDWR, 0o666, 0, 0, 0)
	fmt.Printf("%d\n", uintptr(unsafe.Pointer(&hold[0])))
	time.Sleep(10 * time.Minute)
	return nil
}

func removeObjects(pid int, name *byte) {
	if id, err := unix.SysvShmGet(pid, 4096, 0); err == nil {
		_, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil)
	}
	if id, _, errno := unix.Syscall(unix.SYS_MSGGET, uintptr(pid), 0, 0); errno == 0 {
		_, _, _ = unix.Syscall(unix.SYS_MSGCTL, id, unix.IPC_RMID, 0)
	}
	if id, _, errno := unix.Syscall(unix.SYS_SEMGET, uintptr(pid), 1, 0); errno == 0 {
		_, _, _ = unix.Syscall(unix.SYS_SEMCTL, id, 0, unix.IPC_RMID)
	}
	_, _, _ = unix.Syscall(unix.SYS_MQ_UNLINK, uintptr(unsafe.Pointer(name)), 0, 0)
}

func vm(nr uintptr, a []string) error {
	buf := []byte("memory-overwritten!")
	addr, _ := strconv.ParseUint(a[1], 10, 64)
	local := unix.Iovec{Base: &buf[0], Len: uint64(len(hold))}
	remote := unix.RemoteIovec{Base: uintptr(addr), Len: len(hold)}
	_, _, errno := unix.Syscall6(nr, uintptr(num(a[0])), uintptr(unsafe.Pointer(&local)), 1, uintptr(unsafe.Pointer(&remote)), 1, 0)
	return escapedIf(errOf(errno))
}

func procMem(a []string, write bool) error {
	f, err := os.OpenFile("/proc/"+a[0]+"/mem", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	addr, _ := strconv.ParseInt(a[1], 10, 64)
	b := make([]byte, len(hold))
	if write {
		_, err = f.WriteAt(b, addr)
	} else {
		_, err = f.ReadAt(b, addr)
	}
	return escapedIf(err)
}

// int80 writes a 32-bit program that prints and exits, and runs it.
func int80() error {
	path := filepath.Join(os.Getenv("WS"), "elf32")
	if err := os.WriteFile(path, elf32(), 0o755); err != nil {
		return err
	}
	out, err := exec.Command(path).Output()
	fmt.Print(string(out))
	return err
}

// elf32 is a minimal i386 executable: write(1, "ESCAPED\n", 8); exit(0).
func elf32() []byte {
	code := []byte{
		0xb8, 4, 0, 0, 0, 0xbb, 1, 0, 0, 0, 0xb9, 0, 0, 0, 0, 0xba, 8, 0, 0, 0, 0xcd, 0x80,
		0xb8, 1, 0, 0, 0, 0x31, 0xdb, 0xcd, 0x80, 'E', 'S', 'C', 'A', 'P', 'E', 'D', '\n',
	}
	const base = 0x08048000
	entry := uint32(base + 52 + 32)
	le := func(v uint32) []byte { return []byte{byte(v), byte(v >> 8), byte(v >> 16), byte(v >> 24)} }
	copy(code[11:15], le(entry+31))
	size := uint32(52 + 32 + len(code))
	b := []byte{0x7f, 'E', 'L', 'F', 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 3, 0, 1, 0, 0, 0}
	b = append(b, le(entry)...)
	b = append(b, le(52)...)
	b = append(b, le(0)...)
	b = append(b, le(0)...)
	b = append(b, 52, 0, 32, 0, 1, 0, 0, 0, 0, 0, 0, 0)
	for _, v := range []uint32{1, 0, base, base, size, size, 5, 0x1000} {
		b = append(b, le(v)...)
	}
	return append(b, code...)
}
