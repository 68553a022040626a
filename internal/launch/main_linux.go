package launch

import (
	"os"
	"runtime"
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
	argv := make([]*byte, len(os.Args)+1)
	for i, a := range os.Args {
		argv[i], _ = unix.BytePtrFromString(a)
	}
	begin(argv)
}

// begin is where both entries meet: Main, and the entry that does without the
// runtime. argv ends in nil.
func begin(argv []*byte) {
	st := stage{ctl: -1}
	if equal(argv[1], MarkOverlay) {
		st.overlay(argv[2:])
	}
	if !equal(argv[3], "-") {
		fd, ok := number(argv[3])
		if !ok {
			st.fail("descriptor", unix.EBADF)
		}
		st.ctl = fd
	}
	st.cfg = parse(st.readConfig(argv[2]))
	if !st.cfg.ok {
		st.fail("decode configuration", unix.EINVAL)
	}
	st.run()
}

// overlay mounts a layer over a lower directory at a target (the first three
// arguments) and executes the rest. Only the layer is ever written: the lower
// directory is the real one and stays as it is.
func (s *stage) overlay(args []*byte) {
	t := text{to: options[:]}
	t.add("lowerdir=").addC(args[0]).add(",upperdir=").addC(args[1]).add("/upper,workdir=").addC(args[1]).add("/work,userxattr")
	if t.full {
		s.fail("overlay", unix.ENAMETOOLONG)
	}
	name := cstring("overlay\x00")
	s.must("overlay", errno(unix.RawSyscall6(unix.SYS_MOUNT, ptr(name), ptr(args[2]), ptr(name), unix.MS_NOSUID|unix.MS_NODEV, ptr(&options[0]), 0)))
	// The right to mount was for this one mount.
	s.must("drop capabilities", prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL))
	var none *byte
	s.fail("back-end", errno(unix.RawSyscall(unix.SYS_EXECVE, ptr(args[3]), uintptr(unsafe.Pointer(&args[3])), uintptr(unsafe.Pointer(&none)))))
}

type stage struct {
	cfg   view
	ctl   int // socket pair to the first stage
	facts uint64
	abi   int
	fds   [3]int32 // to hand out: the proxy's listener, the channel's, seccomp's
	nfds  int
}

// fail reports what went wrong and ends the process. Nothing was executed.
func (s *stage) fail(what string, err unix.Errno) {
	s.failAt(what, nil, err)
}

func (s *stage) failAt(what string, where *byte, err unix.Errno) {
	t := text{to: message[:]}
	fd := s.ctl
	if fd < 0 {
		fd = 2
		t.add("gatehouse-launch: ")
	} else {
		t.add("! ")
	}
	t.add(what)
	if where != nil {
		t.add(" ").addC(where)
	}
	t.add(": ").add(err.Error())
	if s.ctl < 0 {
		t.add("\n")
	}
	t.write(fd)
	exit(ExitSetup)
}

func (s *stage) must(what string, err unix.Errno) {
	if err != 0 {
		s.fail(what, err)
	}
}

func (s *stage) run() {
	c := &s.cfg
	s.observe()
	_, _, _ = unix.RawSyscall(unix.SYS_UMASK, uintptr(c.umask), 0, 0)
	if err := errno(unix.RawSyscall(unix.SYS_CHDIR, ptr(c.dir), 0, 0)); err != 0 {
		s.failAt("change directory to", c.dir, err)
	}
	if c.tty {
		s.must("controlling terminal", s.terminal())
	}
	if c.listen != 0 {
		s.must("listen for the proxy", s.listen(c.listen))
	}
	if c.socket.len() > 0 {
		s.must("listen on the channel's path", s.listenAt(c.socket))
	}
	for limits := c.limits; limits.n > 0; {
		resource, value := limits.pair()
		s.must("limit", s.limit(uintptr(resource), value))
	}
	s.must("no new privileges", prctl(unix.PR_SET_NO_NEW_PRIVS, 1))
	s.facts |= FactNoNewPrivs
	if c.handledFS != 0 || c.scoped != 0 || c.handledNet != 0 {
		s.must("landlock", s.landlock())
	}
	// The keys of whoever started us are not the command's. A kernel without
	// keys has none to keep from it.
	_, _, _ = unix.RawSyscall(unix.SYS_KEYCTL, unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0)
	s.must("close descriptors", s.closeOthers())
	if c.filter.len() != 0 {
		s.must("seccomp", s.seccomp())
	}
	if c.quiet {
		if c.want&^s.facts != 0 {
			s.fail("guarantees missing", unix.EPERM)
		}
		t := text{to: message[:]}
		t.add(Started).write(2)
	} else {
		s.must("report", s.report())
	}
	s.execute()
}

// execute becomes the command. If that fails the first stage reads the reason
// as the command's own failure: the sandbox stood, the program could not be
// started.
func (s *stage) execute() {
	c := &s.cfg
	err := errno(unix.RawSyscall(unix.SYS_EXECVE, ptr(c.path), c.argv, c.env))
	if s.ctl >= 0 {
		t := text{to: message[:]}
		t.add("x ").add(err.Error()).write(s.ctl)
	}
	t := text{to: message[:]}
	t.add("gatehouse-launch: ").addC(c.path).add(": ").add(err.Error()).add("\n").write(2)
	if err == unix.ENOENT {
		exit(127)
	}
	exit(126)
}

// nsPaths are where NamespaceNames are found.
var nsPaths = [len(NamespaceNames)]string{
	"/proc/self/ns/user\x00", "/proc/self/ns/pid\x00", "/proc/self/ns/ipc\x00", "/proc/self/ns/uts\x00", "/proc/self/ns/net\x00",
	"/proc/self/ns/mnt\x00", "/proc/self/ns/cgroup\x00",
}

// observe proves from the inside what the back-end did.
func (s *stage) observe() {
	list := s.cfg.namespaces
	for i := 0; list.n > 0 && i < len(nsPaths); i++ {
		outside := list.num()
		var st unix.Stat_t
		if errno(unix.RawSyscall6(unix.SYS_NEWFSTATAT, atFDCWD, ptr(cstring(nsPaths[i])), uintptr(unsafe.Pointer(&st)), 0, 0, 0)) == 0 && st.Ino != outside {
			s.facts |= 1 << i
		}
	}
	id := func(nr uintptr) uintptr {
		n, _, _ := unix.RawSyscall(nr, 0, 0, 0)
		return n
	}
	if id(unix.SYS_GETUID) != 0 && id(unix.SYS_GETEUID) != 0 && id(unix.SYS_GETGID) != 0 {
		s.facts |= FactNotRoot
	}
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if errno(unix.RawSyscall(unix.SYS_CAPGET, uintptr(unsafe.Pointer(&hdr)), uintptr(unsafe.Pointer(&data[0])), 0)) == 0 {
		if data[0].Effective|data[1].Effective|data[0].Permitted|data[1].Permitted == 0 {
			s.facts |= FactNoCaps
		}
	}
}

func (s *stage) terminal() unix.Errno {
	// A back-end may already have made us a session leader.
	if err := errno(unix.RawSyscall(unix.SYS_SETSID, 0, 0, 0)); err != 0 && err != unix.EPERM {
		return err
	}
	if err := errno(unix.RawSyscall(unix.SYS_IOCTL, 0, unix.TIOCSCTTY, 0)); err != 0 {
		return err
	}
	s.facts |= FactTerminal
	return 0
}

func (s *stage) listen(port uint16) unix.Errno {
	addr := unix.RawSockaddrInet4{Family: unix.AF_INET, Port: port<<8 | port>>8, Addr: [4]byte{127, 0, 0, 1}}
	return s.listenOn(unix.AF_INET, unsafe.Pointer(&addr), unsafe.Sizeof(addr), 512)
}

// listenAt listens on a path of the sandbox's own.
func (s *stage) listenAt(path bytes) unix.Errno {
	addr := unix.RawSockaddrUnix{Family: unix.AF_UNIX}
	if path.len() >= len(addr.Path) {
		return unix.ENAMETOOLONG
	}
	for i := range path.len() {
		addr.Path[i] = int8(path.at(i))
	}
	return s.listenOn(unix.AF_UNIX, unsafe.Pointer(&addr), unsafe.Sizeof(addr), 64)
}

func (s *stage) listenOn(family uintptr, addr unsafe.Pointer, size, backlog uintptr) unix.Errno {
	fd, _, err := unix.RawSyscall(unix.SYS_SOCKET, family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != 0 {
		return err
	}
	if err := errno(unix.RawSyscall(unix.SYS_BIND, fd, uintptr(addr), size)); err != 0 {
		return err
	}
	if err := errno(unix.RawSyscall(unix.SYS_LISTEN, fd, backlog, 0)); err != 0 {
		return err
	}
	s.handOut(fd)
	return 0
}

func (s *stage) handOut(fd uintptr) {
	s.fds[s.nfds] = int32(fd)
	s.nfds++
}

// limit lowers a limit; a hard limit already below the wish is kept.
func (s *stage) limit(resource uintptr, value uint64) unix.Errno {
	lim := unix.Rlimit{Cur: value, Max: value}
	var old unix.Rlimit
	if err := errno(unix.RawSyscall6(unix.SYS_PRLIMIT64, 0, resource, 0, uintptr(unsafe.Pointer(&old)), 0, 0)); err != 0 {
		return err
	}
	if old.Max < lim.Max {
		lim.Max = old.Max
		lim.Cur = min(lim.Cur, old.Max)
	}
	return errno(unix.RawSyscall6(unix.SYS_PRLIMIT64, 0, resource, uintptr(unsafe.Pointer(&lim)), 0, 0, 0))
}

func (s *stage) landlock() unix.Errno {
	abi, _, err := unix.RawSyscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if err != 0 {
		return err
	}
	s.abi = int(abi)
	attr := unix.LandlockRulesetAttr{Access_fs: s.cfg.handledFS, Access_net: s.cfg.handledNet, Scoped: s.cfg.scoped}
	rules, _, err := unix.RawSyscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if err != 0 {
		return err
	}
	for list := s.cfg.rules; list.n > 0; {
		path, access := list.rule()
		if err := s.allow(rules, path, access); err != 0 {
			return err
		}
	}
	if err := errno(unix.RawSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, rules, 0, 0)); err != 0 {
		return err
	}
	if s.cfg.handledFS != 0 {
		s.facts |= FactLandlockFS
	}
	if s.cfg.scoped != 0 {
		s.facts |= FactLandlockScope
	}
	return 0
}

// allow adds one rule. What does not exist, or cannot be reached, is granted
// nothing.
func (s *stage) allow(rules uintptr, path *byte, access uint64) unix.Errno {
	fd, _, err := unix.RawSyscall6(unix.SYS_OPENAT, atFDCWD, ptr(path), unix.O_PATH|unix.O_CLOEXEC, 0, 0, 0)
	if err == unix.ENOENT || err == unix.EACCES || err == unix.ENOTDIR {
		return 0
	}
	if err != 0 {
		return err
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: access & s.cfg.handledFS, Parent_fd: int32(fd)}
	err = addRule(rules, &rule)
	if err == unix.EINVAL { // not a directory, and has fewer rights to give
		rule.Allowed_access &= fileAccess
		err = addRule(rules, &rule)
	}
	_, _, _ = unix.RawSyscall(unix.SYS_CLOSE, fd, 0, 0)
	return err
}

func addRule(rules uintptr, rule *unix.LandlockPathBeneathAttr) unix.Errno {
	return errno(unix.RawSyscall6(unix.SYS_LANDLOCK_ADD_RULE, rules, unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(rule)), 0, 0, 0))
}

// fileAccess are the rights Landlock accepts on something that is no directory.
const fileAccess = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
	unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV

// closeOthers marks every descriptor from 3 up to be closed by the exec. The
// ones still needed until then survive exactly until then.
func (s *stage) closeOthers() unix.Errno {
	return errno(unix.RawSyscall(unix.SYS_CLOSE_RANGE, 3, uintptr(^uint32(0)), unix.CLOSE_RANGE_CLOEXEC))
}

func (s *stage) seccomp() unix.Errno {
	n := s.cfg.filter.len() / int(unsafe.Sizeof(unix.SockFilter{}))
	prog := unix.SockFprog{Len: uint16(n), Filter: (*unix.SockFilter)(unsafe.Pointer(s.cfg.filter.first()))}
	var flags uintptr
	if s.cfg.notify {
		flags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
	}
	fd, _, err := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&prog)))
	if err != 0 {
		return err
	}
	if s.cfg.notify {
		s.handOut(fd)
	}
	// A filter that was accepted but does not bite is no filter: every program
	// we load answers clone3 with ENOSYS, where the kernel would say EINVAL.
	if errno(unix.RawSyscall(unix.SYS_CLONE3, 0, 0, 0)) != unix.ENOSYS {
		return unix.EPROTO
	}
	s.facts |= FactSeccomp
	return 0
}

// rights is a control message with descriptors, as the kernel lays it out.
type rights struct {
	hdr unix.Cmsghdr
	fds [3]int32
}

// report sends the facts and the descriptors, then waits for one byte. The
// message is "= FACTS ABI" so that a person with strace can read it.
func (s *stage) report() unix.Errno {
	t := text{to: message[:]}
	t.add("= ").addHex(s.facts).add(" ").addHex(uint64(s.abi))
	iov := unix.Iovec{Base: &message[0], Len: uint64(t.n)}
	hdr := unix.Msghdr{Iov: &iov, Iovlen: 1}
	passed := rights{fds: s.fds}
	if s.nfds > 0 {
		size := unsafe.Sizeof(passed.hdr) + 4*uintptr(s.nfds)
		passed.hdr = unix.Cmsghdr{Len: uint64(size), Level: unix.SOL_SOCKET, Type: unix.SCM_RIGHTS}
		hdr.Control, hdr.Controllen = (*byte)(unsafe.Pointer(&passed)), uint64(size)
	}
	if err := errno(unix.RawSyscall(unix.SYS_SENDMSG, uintptr(s.ctl), uintptr(unsafe.Pointer(&hdr)), 0)); err != 0 {
		return err
	}
	var word [1]byte
	n, _, err := unix.RawSyscall(unix.SYS_READ, uintptr(s.ctl), uintptr(unsafe.Pointer(&word)), 1)
	for err == unix.EINTR {
		n, _, err = unix.RawSyscall(unix.SYS_READ, uintptr(s.ctl), uintptr(unsafe.Pointer(&word)), 1)
	}
	if err != 0 {
		return err
	}
	if n != 1 || word[0] != 'g' {
		exit(ExitSetup)
	}
	// Nothing of ours stays open in the command; a copy would also keep its
	// end of a connection alive behind the host's back.
	for _, fd := range s.fds[:s.nfds] {
		_, _, _ = unix.RawSyscall(unix.SYS_CLOSE, uintptr(fd), 0, 0)
	}
	return 0
}

// readConfig maps the configuration: a private copy of a file that, where there
// is a socket pair, is sealed.
func (s *stage) readConfig(where *byte) []byte {
	fd, ok := number(where)
	if !ok {
		n, _, err := unix.RawSyscall6(unix.SYS_OPENAT, atFDCWD, ptr(where), unix.O_RDONLY|unix.O_CLOEXEC, 0, 0, 0)
		s.must("open configuration", err)
		fd = int(n)
	}
	var st unix.Stat_t
	s.must("read configuration", errno(unix.RawSyscall(unix.SYS_FSTAT, uintptr(fd), uintptr(unsafe.Pointer(&st)), 0)))
	if st.Size <= 0 || st.Size > 16<<20 {
		s.fail("read configuration", unix.EFBIG)
	}
	at, _, err := unix.RawSyscall6(unix.SYS_MMAP, 0, uintptr(st.Size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE, uintptr(fd), 0)
	s.must("read configuration", err)
	_, _, _ = unix.RawSyscall(unix.SYS_CLOSE, uintptr(fd), 0, 0)
	return unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&at))), st.Size)
}
