package launch

import (
	"os"
	"runtime"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Mark is the first argument that makes a program the second stage.
const Mark = "gatehouse-second-stage"

// MarkOverlay makes a program the stage before a back-end: it mounts an overlay
// in the namespaces it was started in and becomes the back-end.
const MarkOverlay = "gatehouse-overlay-stage"

// Requested reports whether this process was started as a stage.
func Requested() bool {
	return len(os.Args) == 4 && os.Args[1] == Mark || len(os.Args) > 6 && os.Args[1] == MarkOverlay
}

// Main runs the second stage and never returns. It is entered only when
// Requested is true; the arguments are the descriptor (or path) of the
// configuration and the descriptor of the socket pair, "-" for none.
func Main() {
	// Landlock, seccomp and the parent-death signal belong to a thread. The
	// same thread executes the command, which takes its restrictions along.
	runtime.LockOSThread()
	if os.Args[1] == MarkOverlay {
		overlay(os.Args[2], os.Args[3], os.Args[4], os.Args[5:])
	}
	st := stage{ctl: -1}
	if os.Args[3] != "-" {
		fd, err := strconv.Atoi(os.Args[3])
		if err != nil {
			st.fail("descriptor", syscall.EBADF)
		}
		st.ctl = fd
	}
	raw, err := readConfig(os.Args[2])
	if err != nil {
		st.fail("read configuration", err)
	}
	st.cfg, err = Decode(raw)
	if err != nil {
		st.fail("decode configuration", syscall.EINVAL)
	}
	st.run()
}

// overlay mounts layer over lower at target and executes argv. Only the layer
// is ever written: the lower directory is the real one and stays as it is.
func overlay(lower, layer, target string, argv []string) {
	st := stage{ctl: -1}
	opts := "lowerdir=" + lower + ",upperdir=" + layer + "/upper,workdir=" + layer + "/work,userxattr"
	st.must("overlay", unix.Mount("overlay", target, "overlay", unix.MS_NOSUID|unix.MS_NODEV, opts))
	// The right to mount was for this one mount.
	st.must("drop capabilities", unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0))
	st.fail("back-end", syscall.Exec(argv[0], argv, []string{}))
}

type stage struct {
	cfg   *Config
	ctl   int // socket pair to the first stage
	facts uint64
	abi   int
	fds   []int // to hand out: the proxy's listener, the channel's, seccomp's
}

// fail reports what went wrong and ends the process. Nothing was executed.
func (s *stage) fail(what string, err error) {
	msg := "! " + what + ": " + err.Error()
	if s.ctl >= 0 {
		_, _ = unix.Write(s.ctl, []byte(msg))
	} else {
		_, _ = unix.Write(2, []byte("gatehouse-launch: "+msg[2:]+"\n"))
	}
	unix.Exit(ExitSetup)
}

func (s *stage) must(what string, err error) {
	if err != nil {
		s.fail(what, err)
	}
}

func (s *stage) run() {
	c := s.cfg
	s.observe()
	unix.Umask(int(c.Umask))
	s.must("change directory to "+c.Dir, unix.Chdir(c.Dir))
	if c.TTY {
		s.must("controlling terminal", s.terminal())
	}
	if c.Listen != 0 {
		s.must("listen for the proxy", s.listen(c.Listen))
	}
	if c.Socket != "" {
		s.must("listen on "+c.Socket, s.listenAt(c.Socket))
	}
	for _, l := range c.Limits {
		lim := unix.Rlimit{Cur: l.Value, Max: l.Value}
		s.must("limit "+strconv.Itoa(int(l.Resource)), s.limit(int(l.Resource), lim))
	}
	s.must("no new privileges", unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
	s.facts |= FactNoNewPrivs
	if c.HandledFS != 0 || c.Scoped != 0 || c.HandledNet != 0 {
		s.must("landlock", s.landlock())
	}
	// The keys of whoever started us are not the command's. A kernel without
	// keys has none to keep from it.
	_, _, _ = unix.RawSyscall(unix.SYS_KEYCTL, unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0)
	s.must("close descriptors", s.closeOthers())
	if len(c.Filter) != 0 {
		s.must("seccomp", s.seccomp())
	}
	if c.Quiet {
		if missing := c.Want &^ s.facts; missing != 0 {
			s.fail("guarantees missing: "+strconv.FormatUint(missing, 2), syscall.EPERM)
		}
		_, _ = unix.Write(2, []byte(Started))
	} else {
		s.must("report", s.report())
	}
	err := syscall.Exec(c.Path, c.Argv, c.Env)
	// From here the first stage reads the reason as the command's own failure:
	// the sandbox stood, the program could not be started.
	if s.ctl >= 0 {
		_, _ = unix.Write(s.ctl, []byte("x "+err.Error()))
	}
	_, _ = unix.Write(2, []byte("gatehouse-launch: "+c.Path+": "+err.Error()+"\n"))
	if err == syscall.ENOENT {
		unix.Exit(127)
	}
	unix.Exit(126)
}

// observe proves from the inside what the back-end did.
func (s *stage) observe() {
	for i, name := range NamespaceNames {
		if i >= len(s.cfg.Namespaces) {
			break
		}
		var st unix.Stat_t
		if unix.Stat("/proc/self/ns/"+name, &st) == nil && st.Ino != s.cfg.Namespaces[i] {
			s.facts |= 1 << i
		}
	}
	if unix.Getuid() != 0 && unix.Geteuid() != 0 && unix.Getgid() != 0 {
		s.facts |= FactNotRoot
	}
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if unix.Capget(&hdr, &data[0]) == nil {
		if data[0].Effective|data[1].Effective|data[0].Permitted|data[1].Permitted == 0 {
			s.facts |= FactNoCaps
		}
	}
}

func (s *stage) terminal() error {
	// A back-end may already have made us a session leader.
	if _, err := unix.Setsid(); err != nil && err != unix.EPERM {
		return err
	}
	if err := unix.IoctlSetInt(0, unix.TIOCSCTTY, 0); err != nil {
		return err
	}
	s.facts |= FactTerminal
	return nil
}

func (s *stage) listen(port uint16) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return err
	}
	addr := &unix.SockaddrInet4{Port: int(port), Addr: [4]byte{127, 0, 0, 1}}
	if err := unix.Bind(fd, addr); err != nil {
		return err
	}
	if err := unix.Listen(fd, 512); err != nil {
		return err
	}
	s.fds = append(s.fds, fd)
	return nil
}

// listenAt listens on a path of the sandbox's own.
func (s *stage) listenAt(path string) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return err
	}
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: path}); err != nil {
		return err
	}
	if err := unix.Listen(fd, 64); err != nil {
		return err
	}
	s.fds = append(s.fds, fd)
	return nil
}

// limit lowers a limit; a hard limit already below the wish is kept.
func (s *stage) limit(resource int, lim unix.Rlimit) error {
	var old unix.Rlimit
	if err := unix.Getrlimit(resource, &old); err != nil {
		return err
	}
	if old.Max < lim.Max {
		lim.Max = old.Max
		lim.Cur = min(lim.Cur, old.Max)
	}
	// The raw call: the standard library would restore its own idea of the
	// open-files limit at exec.
	return unix.Prlimit(0, resource, &lim, nil)
}

func (s *stage) landlock() error {
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return errno
	}
	s.abi = int(abi)
	attr := unix.LandlockRulesetAttr{Access_fs: s.cfg.HandledFS, Access_net: s.cfg.HandledNet, Scoped: s.cfg.Scoped}
	rules, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return errno
	}
	for _, r := range s.cfg.Rules {
		fd, err := unix.Open(r.Path, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err == unix.ENOENT || err == unix.EACCES || err == unix.ENOTDIR {
			continue
		}
		if err != nil {
			return err
		}
		rule := unix.LandlockPathBeneathAttr{Allowed_access: r.Access & s.cfg.HandledFS, Parent_fd: int32(fd)}
		errno = addRule(rules, &rule)
		if errno == unix.EINVAL { // not a directory, and has fewer rights to give
			rule.Allowed_access &= fileAccess
			errno = addRule(rules, &rule)
		}
		if errno != 0 {
			return errno
		}
		_ = unix.Close(fd)
	}
	if _, _, errno = unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, rules, 0, 0); errno != 0 {
		return errno
	}
	if s.cfg.HandledFS != 0 {
		s.facts |= FactLandlockFS
	}
	if s.cfg.Scoped != 0 {
		s.facts |= FactLandlockScope
	}
	return nil
}

func addRule(rules uintptr, rule *unix.LandlockPathBeneathAttr) unix.Errno {
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, rules, unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(rule)), 0, 0, 0)
	return errno
}

// fileAccess are the rights Landlock accepts on something that is no directory.
const fileAccess = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
	unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV

// closeOthers marks every descriptor from 3 up to be closed by the exec. The
// ones still needed until then survive exactly until then.
func (s *stage) closeOthers() error {
	return unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC)
}

func (s *stage) seccomp() error {
	n := len(s.cfg.Filter) / int(unsafe.Sizeof(unix.SockFilter{}))
	prog := unix.SockFprog{Len: uint16(n), Filter: (*unix.SockFilter)(unsafe.Pointer(&s.cfg.Filter[0]))}
	var flags uintptr
	if s.cfg.Notify {
		flags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
	}
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return errno
	}
	if s.cfg.Notify {
		s.fds = append(s.fds, int(fd))
	}
	// A filter that was accepted but does not bite is no filter: every program
	// we load answers clone3 with ENOSYS, where the kernel would say EINVAL.
	if _, _, errno = unix.Syscall(unix.SYS_CLONE3, 0, 0, 0); errno != unix.ENOSYS {
		return unix.EPROTO
	}
	s.facts |= FactSeccomp
	return nil
}

// report sends the facts and the descriptors, then waits for one byte. The
// message is "= FACTS ABI" so that a person with strace can read it.
func (s *stage) report() error {
	msg := "= " + strconv.FormatUint(s.facts, 16) + " " + strconv.Itoa(s.abi)
	var oob []byte
	if len(s.fds) > 0 {
		oob = unix.UnixRights(s.fds...)
	}
	if err := unix.Sendmsg(s.ctl, []byte(msg), oob, nil, 0); err != nil {
		return err
	}
	var b [1]byte
	for {
		// Raw, because a wait the scheduler knows of makes it start another
		// thread, which the exec then has to wait for to end.
		n, _, errno := unix.RawSyscall(unix.SYS_READ, uintptr(s.ctl), uintptr(unsafe.Pointer(&b[0])), 1)
		if errno == unix.EINTR {
			continue
		}
		if errno != 0 {
			return errno
		}
		if n != 1 || b[0] != 'g' {
			unix.Exit(ExitSetup)
		}
		break
	}
	// Nothing of ours stays open in the command; a copy would also keep its
	// end of a connection alive behind the host's back.
	for _, fd := range s.fds {
		_ = unix.Close(fd)
	}
	return nil
}

func readConfig(where string) ([]byte, error) {
	fd, err := strconv.Atoi(where)
	if err != nil {
		if fd, err = unix.Open(where, unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
			return nil, err
		}
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	if st.Size <= 0 || st.Size > 16<<20 {
		return nil, unix.EFBIG
	}
	buf := make([]byte, st.Size)
	for off := 0; off < len(buf); {
		n, err := unix.Pread(fd, buf[off:], int64(off))
		if err == unix.EINTR {
			continue
		}
		if err != nil || n == 0 {
			return nil, unix.EIO
		}
		off += n
	}
	_ = unix.Close(fd)
	return buf, nil
}
