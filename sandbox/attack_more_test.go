//go:build linux

package sandbox_test

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// moreAttacks are ways that need more than one call.
var moreAttacks = map[string]func([]string) error{
	// clone3 hides its flags behind a pointer, where a filter cannot look.
	"clone3": func([]string) error {
		runtime.LockOSThread()
		args := struct{ flags, pidfd, childTID, parentTID, exitSignal, stack, stackSize, tls, setTID, setTIDSize, cgroup uint64 }{
			flags: unix.CLONE_NEWUSER, exitSignal: uint64(unix.SIGCHLD),
		}
		pid, _, errno := unix.RawSyscall(unix.SYS_CLONE3, uintptr(unsafe.Pointer(&args)), unsafe.Sizeof(args), 0)
		if errno == 0 && pid == 0 {
			_, _, _ = unix.RawSyscall(unix.SYS_EXIT, 0, 0, 0)
		}
		return escapedIf(errOf(errno))
	},
	// fsmount makes a file system by the newer calls, all the way.
	"fsmount": func([]string) error {
		fs, err := unix.Fsopen("tmpfs", 0)
		if err != nil {
			return err
		}
		if err := unix.FsconfigCreate(fs); err != nil {
			return err
		}
		_, err = unix.Fsmount(fs, 0, 0)
		return escapedIf(err)
	},
	// privileged calls that are refused for who asks before they look at what
	// for; asked for nonsense, they harm nobody.
	"privileged": func(a []string) error {
		var err error
		switch a[0] {
		case "swapon":
			err = sys(unix.SYS_SWAPON, ptr("/nonexistent"), 0, 0, 0)
		case "swapoff":
			err = sys(unix.SYS_SWAPOFF, ptr("/nonexistent"), 0, 0, 0)
		case "acct":
			err = sys(unix.SYS_ACCT, 0, 0, 0, 0)
		case "quotactl":
			err = sys(unix.SYS_QUOTACTL, 0x80000800, ptr("/nonexistent"), 0, 0)
		}
		if err == nil || !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.ENOSYS) {
			fmt.Println("ESCAPED", err)
		}
		return err
	},
	// sigio makes the kernel send a signal in our name: to the owner of a
	// descriptor that has become readable.
	"sigio": func(a []string) error {
		var p [2]int
		if err := unix.Pipe2(p[:], unix.O_NONBLOCK); err != nil {
			return err
		}
		if _, err := unix.FcntlInt(uintptr(p[0]), unix.F_SETOWN, num(a[0])); err != nil {
			return err
		}
		if _, err := unix.FcntlInt(uintptr(p[0]), unix.F_SETSIG, int(unix.SIGKILL)); err != nil {
			return err
		}
		if _, err := unix.FcntlInt(uintptr(p[0]), unix.F_SETFL, unix.O_ASYNC|unix.O_NONBLOCK); err != nil {
			return err
		}
		_, err := unix.Write(p[1], []byte("x"))
		return err
	},
	"killgroup": func(a []string) error { return unix.Kill(-num(a[0]), unix.SIGKILL) },
	"parentmem": func([]string) error { return open(fmt.Sprintf("/proc/%d/mem", os.Getppid()), unix.O_RDWR) },
	"opentrunc": func(a []string) error {
		fd, err := unix.Open(a[0], unix.O_RDONLY|unix.O_TRUNC, 0)
		_ = unix.Close(fd)
		return err
	},
	"dirfd": func(a []string) error {
		for fd := 3; fd < 32; fd++ {
			if f, err := unix.Openat(fd, a[0], unix.O_RDONLY, 0); err == nil {
				return show(fmt.Sprintf("/proc/self/fd/%d", f))
			}
		}
		return unix.EBADF
	},
	// byfd changes what a file is through a descriptor that can only read.
	"byfd": func(a []string) error {
		fd, err := unix.Open(a[1], unix.O_RDONLY, 0)
		if err != nil {
			return err
		}
		switch a[0] {
		case "mode":
			return unix.Fchmod(fd, 0o777)
		case "times":
			return unix.UtimesNanoAt(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), []unix.Timespec{{Sec: 1}, {Sec: 1}}, 0)
		case "open-times":
			ts := []unix.Timespec{{Sec: 1}, {Sec: 1}}
			return sys(unix.SYS_UTIMENSAT, uintptr(fd), 0, uintptr(unsafe.Pointer(&ts[0])), 0)
		case "attribute":
			return unix.Fsetxattr(fd, "user.evil", []byte("x"), 0)
		case "owner":
			return unix.Fchown(fd, 12345, 12345)
		case "flags":
			flags := uint32(0x40) // no dump
			_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.FS_IOC_SETFLAGS, uintptr(unsafe.Pointer(&flags)))
			return escapedIf(errOf(errno))
		}
		return unix.EINVAL
	},
	"sparse": func(a []string) error {
		f, err := os.Create("sparse")
		if err != nil {
			return err
		}
		n, _ := strconv.ParseInt(a[0], 10, 64)
		if err := f.Truncate(n); err != nil {
			return err
		}
		fmt.Println("DONE sparse")
		return nil
	},
	"shmfill": func(a []string) error {
		f, err := os.Create("/dev/shm/" + os.Getenv("TOKEN"))
		if err != nil {
			return err
		}
		defer os.Remove(f.Name())
		n, _ := strconv.Atoi(a[0])
		for range n {
			if _, err := f.Write(make([]byte, 1<<20)); err != nil {
				return err
			}
		}
		fmt.Println("DONE shmfill")
		return nil
	},
	// late leaves a thread behind that acts when the main one is done.
	"late": func(a []string) error {
		go func() {
			time.Sleep(200 * time.Millisecond)
			_ = os.WriteFile(a[0], []byte("late"), 0o644)
		}()
		time.Sleep(400 * time.Millisecond)
		return nil
	},
}
