package sandbox

import (
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"sync"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// filterOptions choose the variant of the filter.
type filterOptions struct {
	notify bool // report refusals to a listener instead of answering directly
	unix   bool // AF_UNIX sockets may be made
	inet   bool // TCP sockets may be made
	shared bool // the process shares namespaces with the host
	noExec bool // starting a program goes to the listener
}

// syscallRule is a call by name and number.
type syscallRule struct {
	name string
	nr   uint32
}

// denied are calls no confined program needs. They reach other processes, the
// kernel's own configuration, or parts of it that have a record of holes.
var denied = []syscallRule{
	{"ptrace", unix.SYS_PTRACE}, {"process_vm_readv", unix.SYS_PROCESS_VM_READV}, {"process_vm_writev", unix.SYS_PROCESS_VM_WRITEV},
	{"process_madvise", unix.SYS_PROCESS_MADVISE}, {"process_mrelease", unix.SYS_PROCESS_MRELEASE},
	{"kcmp", unix.SYS_KCMP}, {"pidfd_getfd", unix.SYS_PIDFD_GETFD},
	{"io_uring_setup", unix.SYS_IO_URING_SETUP}, {"io_uring_enter", unix.SYS_IO_URING_ENTER}, {"io_uring_register", unix.SYS_IO_URING_REGISTER},
	{"bpf", unix.SYS_BPF}, {"perf_event_open", unix.SYS_PERF_EVENT_OPEN}, {"userfaultfd", unix.SYS_USERFAULTFD},
	{"add_key", unix.SYS_ADD_KEY}, {"request_key", unix.SYS_REQUEST_KEY}, {"keyctl", unix.SYS_KEYCTL},
	{"mount", unix.SYS_MOUNT}, {"umount2", unix.SYS_UMOUNT2}, {"pivot_root", unix.SYS_PIVOT_ROOT}, {"chroot", unix.SYS_CHROOT},
	{"open_tree", unix.SYS_OPEN_TREE}, {"open_tree_attr", unix.SYS_OPEN_TREE_ATTR}, {"move_mount", unix.SYS_MOVE_MOUNT},
	{"fsopen", unix.SYS_FSOPEN}, {"fsconfig", unix.SYS_FSCONFIG}, {"fsmount", unix.SYS_FSMOUNT}, {"fspick", unix.SYS_FSPICK},
	{"mount_setattr", unix.SYS_MOUNT_SETATTR}, {"statmount", unix.SYS_STATMOUNT}, {"listmount", unix.SYS_LISTMOUNT},
	{"unshare", unix.SYS_UNSHARE}, {"setns", unix.SYS_SETNS},
	{"swapon", unix.SYS_SWAPON}, {"swapoff", unix.SYS_SWAPOFF}, {"reboot", unix.SYS_REBOOT}, {"kexec_load", unix.SYS_KEXEC_LOAD},
	{"init_module", unix.SYS_INIT_MODULE}, {"finit_module", unix.SYS_FINIT_MODULE}, {"delete_module", unix.SYS_DELETE_MODULE},
	{"acct", unix.SYS_ACCT}, {"quotactl", unix.SYS_QUOTACTL}, {"quotactl_fd", unix.SYS_QUOTACTL_FD},
	{"settimeofday", unix.SYS_SETTIMEOFDAY}, {"clock_settime", unix.SYS_CLOCK_SETTIME}, {"adjtimex", unix.SYS_ADJTIMEX},
	{"clock_adjtime", unix.SYS_CLOCK_ADJTIME}, {"sethostname", unix.SYS_SETHOSTNAME}, {"setdomainname", unix.SYS_SETDOMAINNAME},
	{"name_to_handle_at", unix.SYS_NAME_TO_HANDLE_AT}, {"open_by_handle_at", unix.SYS_OPEN_BY_HANDLE_AT},
	{"fanotify_init", unix.SYS_FANOTIFY_INIT}, {"fanotify_mark", unix.SYS_FANOTIFY_MARK}, {"syslog", unix.SYS_SYSLOG},
	{"vhangup", unix.SYS_VHANGUP}, {"migrate_pages", unix.SYS_MIGRATE_PAGES}, {"move_pages", unix.SYS_MOVE_PAGES},
	{"nfsservctl", unix.SYS_NFSSERVCTL}, {"lsm_set_self_attr", unix.SYS_LSM_SET_SELF_ATTR},
}

// deniedShared are denied as well when there are no namespaces: they reach the
// host's shared objects, or change what Landlock does not cover by path.
var deniedShared = []syscallRule{
	{"shmget", unix.SYS_SHMGET}, {"shmat", unix.SYS_SHMAT}, {"shmctl", unix.SYS_SHMCTL},
	{"semget", unix.SYS_SEMGET}, {"semctl", unix.SYS_SEMCTL}, {"semop", unix.SYS_SEMOP}, {"semtimedop", unix.SYS_SEMTIMEDOP},
	{"msgget", unix.SYS_MSGGET}, {"msgctl", unix.SYS_MSGCTL}, {"msgsnd", unix.SYS_MSGSND}, {"msgrcv", unix.SYS_MSGRCV},
	{"mq_open", unix.SYS_MQ_OPEN}, {"mq_unlink", unix.SYS_MQ_UNLINK},
	{"fchmodat", unix.SYS_FCHMODAT}, {"fchmodat2", unix.SYS_FCHMODAT2}, {"fchownat", unix.SYS_FCHOWNAT},
	{"setxattr", unix.SYS_SETXATTR}, {"lsetxattr", unix.SYS_LSETXATTR}, {"removexattr", unix.SYS_REMOVEXATTR},
	{"lremovexattr", unix.SYS_LREMOVEXATTR}, {"setxattrat", unix.SYS_SETXATTRAT}, {"removexattrat", unix.SYS_REMOVEXATTRAT},
	// A descriptor that can only read is enough for these.
	{"fsetxattr", unix.SYS_FSETXATTR}, {"fremovexattr", unix.SYS_FREMOVEXATTR},
	{"file_setattr", unix.SYS_FILE_SETATTR},
}

// otherPid are calls whose first argument, when not zero, names another
// process; without a pid namespace that may be one of the host's.
var otherPid = []syscallRule{
	{"prlimit64", unix.SYS_PRLIMIT64}, {"sched_setaffinity", unix.SYS_SCHED_SETAFFINITY},
	{"sched_setscheduler", unix.SYS_SCHED_SETSCHEDULER}, {"sched_setparam", unix.SYS_SCHED_SETPARAM},
	{"sched_setattr", unix.SYS_SCHED_SETATTR},
}

// newestKnown is the last call this table was written against. Anything later
// does not exist for the program, so a new kernel opens no new door.
const newestKnown = unix.SYS_FILE_SETATTR

const (
	retAllow = unix.SECCOMP_RET_ALLOW
	retKill  = unix.SECCOMP_RET_KILL_PROCESS
	offNr    = 0
	offArch  = 4
	setID    = unix.S_ISUID | unix.S_ISGID
	nsFlags  = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER |
		unix.CLONE_NEWPID | unix.CLONE_NEWNET
)

func retErrno(e unix.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(e) }

// argLow and argHigh are offsets of the halves of an argument.
func argLow(i int) uint32  { return 16 + 8*uint32(i) }
func argHigh(i int) uint32 { return argLow(i) + 4 }

// filter collects what happens to which call. Whatever is not in it is allowed.
type filter struct {
	blocks map[uint32][]bpf.Instruction
	deny   uint32 // what a refusal returns
}

// filters caches assembled programs: there are a handful at most.
var filters sync.Map

// buildFilter assembles the filter into the kernel's form.
func buildFilter(o filterOptions) ([]byte, error) {
	if f, ok := filters.Load(o); ok {
		return f.([]byte), nil
	}
	if auditArch == 0 {
		return nil, errors.New("no seccomp table for this architecture")
	}
	f := &filter{deny: retErrno(unix.EPERM), blocks: map[uint32][]bpf.Instruction{}}
	if o.notify {
		f.deny = unix.SECCOMP_RET_USER_NOTIF
	}
	// Its flags are behind a pointer. Programs fall back to clone.
	f.ret(unix.SYS_CLONE3, retErrno(unix.ENOSYS))
	// So are the mode and flags of openat2.
	f.ret(unix.SYS_OPENAT2, retErrno(unix.ENOSYS))
	f.clone()
	f.ioctl(o)
	f.sockets(o)
	f.setIDBits(o)
	f.seccompCall()
	f.personality()
	for _, c := range denied {
		f.ret(c.nr, f.deny)
	}
	for _, c := range archDenied {
		f.ret(c.nr, f.deny)
	}
	if o.shared {
		f.sharedRules()
	}
	if o.noExec {
		f.ret(unix.SYS_EXECVE, unix.SECCOMP_RET_USER_NOTIF)
		f.ret(unix.SYS_EXECVEAT, unix.SECCOMP_RET_USER_NOTIF)
	}
	raw, err := f.assemble()
	if err == nil {
		filters.Store(o, raw)
	}
	return raw, err
}

// ret gives a call one answer, whatever was said about it before.
func (f *filter) ret(nr, action uint32) {
	f.blocks[nr] = []bpf.Instruction{bpf.RetConstant{Val: action}}
}

// call gives a call a body that inspects its arguments and falls off its end
// when it has no objection.
func (f *filter) call(nr uint32, body ...bpf.Instruction) {
	f.blocks[nr] = append(body, bpf.RetConstant{Val: retAllow})
}

// tree searches for the call's number. Loading a filter makes the kernel try
// it on every number, so a list would be paid for on each start.
func (f *filter) tree(nrs []uint32) []bpf.Instruction {
	switch len(nrs) {
	case 0:
		return []bpf.Instruction{bpf.RetConstant{Val: retAllow}}
	case 1:
		head := []bpf.Instruction{bpf.JumpIf{Cond: bpf.JumpEqual, Val: nrs[0], SkipTrue: 1}, bpf.RetConstant{Val: retAllow}}
		return append(head, f.blocks[nrs[0]]...)
	}
	mid := len(nrs) / 2
	left := f.tree(nrs[:mid])
	prog := []bpf.Instruction{
		bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: nrs[mid], SkipFalse: 1},
		bpf.Jump{Skip: uint32(len(left))},
	}
	return append(append(prog, left...), f.tree(nrs[mid:])...)
}

func load(off uint32) bpf.Instruction { return bpf.LoadAbsolute{Off: off, Size: 4} }

func (f *filter) clone() {
	f.call(unix.SYS_CLONE,
		load(argLow(0)),
		bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: nsFlags, SkipFalse: 1},
		bpf.RetConstant{Val: f.deny},
	)
}

// ioctl refuses pushing input into a terminal, and the other requests that
// reach beyond the caller's own view of one. The kernel ignores the upper half
// of the request, and so must this.
func (f *filter) ioctl(o filterOptions) {
	body := []bpf.Instruction{load(argLow(1))}
	requests := []uint32{unix.TIOCSTI, 0x541C /* TIOCLINUX */, 0x541D /* TIOCCONS */, unix.TIOCSETD, 0x5437 /* TIOCVHANGUP */}
	if o.shared {
		// Flags of a file can be set by who can only read it.
		requests = append(requests, unix.FS_IOC_SETFLAGS, 0x401c5820 /* FS_IOC_FSSETXATTR */)
	}
	for _, req := range requests {
		body = append(body, bpf.JumpIf{Cond: bpf.JumpEqual, Val: req, SkipFalse: 1}, bpf.RetConstant{Val: f.deny})
	}
	f.call(unix.SYS_IOCTL, body...)
}

// sockets leaves TCP where a network is declared or the namespace is empty,
// AF_UNIX where sockets were named, and pairs of connected sockets. A datagram
// pair is refused: it can be connected again, to a path.
func (f *filter) sockets(o filterOptions) {
	no := bpf.RetConstant{Val: f.deny}
	yes := bpf.RetConstant{Val: retAllow}
	family := []bpf.Instruction{load(argLow(0))}
	if o.unix {
		family = append(family, bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_UNIX, SkipFalse: 1}, yes)
	}
	if !o.inet {
		f.call(unix.SYS_SOCKET, append(family, no)...)
	} else {
		f.call(unix.SYS_SOCKET, append(family,
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_INET, SkipTrue: 2},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_INET6, SkipTrue: 1},
			no,
			load(argLow(1)),
			bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: 0xf},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SOCK_STREAM, SkipTrue: 1},
			no,
			load(argLow(2)),
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: 2},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.IPPROTO_TCP, SkipTrue: 1},
			no,
		)...)
	}
	f.call(unix.SYS_SOCKETPAIR,
		load(argLow(0)),
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_UNIX, SkipTrue: 1},
		no,
		load(argLow(1)),
		bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: 0xf},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SOCK_STREAM, SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SOCK_SEQPACKET, SkipTrue: 1},
		no,
	)
}

// setIDBits refuses to create or make a set-user-id or set-group-id file. As
// root's own files may be what is written, such a file would be a door for any
// user of the host.
func (f *filter) setIDBits(o filterOptions) {
	mode := func(arg int) []bpf.Instruction {
		return []bpf.Instruction{
			load(argLow(arg)),
			bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: setID, SkipFalse: 1},
			bpf.RetConstant{Val: f.deny},
		}
	}
	f.call(unix.SYS_FCHMOD, mode(1)...)
	f.call(unix.SYS_FCHMODAT, mode(2)...)
	f.call(unix.SYS_FCHMODAT2, mode(2)...)
	f.call(unix.SYS_MKNODAT, mode(2)...)
	// The mode counts only when something is created.
	creating := func(flags, arg int) []bpf.Instruction {
		return append([]bpf.Instruction{
			load(argLow(flags)),
			bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: unix.O_CREAT | unix.O_TMPFILE&^unix.O_DIRECTORY, SkipTrue: 1},
			bpf.RetConstant{Val: retAllow},
		}, mode(arg)...)
	}
	f.call(unix.SYS_OPENAT, creating(2, 3)...)
	for _, c := range archModes {
		if o.shared && c.path {
			f.ret(c.nr, f.deny)
			continue
		}
		if c.flags > 0 {
			f.call(c.nr, creating(c.flags, c.mode)...)
			continue
		}
		f.call(c.nr, mode(c.mode)...)
	}
}

// modeCall is an architecture's older call that takes a file mode.
type modeCall struct {
	nr          uint32
	flags, mode int  // argument numbers; flags 0 means always
	path        bool // changes an existing file by path
}

// seccompCall refuses another listener: it would be asked before ours and
// could let a call through.
func (f *filter) seccompCall() {
	f.call(unix.SYS_SECCOMP,
		load(argLow(1)),
		bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, SkipFalse: 1},
		bpf.RetConstant{Val: retErrno(unix.EPERM)},
	)
}

// personality allows asking and the plain Linux ones, with or without address
// randomisation; the rest weakens protections of the process.
func (f *filter) personality() {
	var body []bpf.Instruction
	body = append(body, load(argLow(0)))
	for _, v := range []uint32{0, 0xffffffff, 0x0008, 0x20000, 0x20008, 0x40000} {
		body = append(body, bpf.JumpIf{Cond: bpf.JumpEqual, Val: v, SkipFalse: 1}, bpf.RetConstant{Val: retAllow})
	}
	f.call(unix.SYS_PERSONALITY, append(body, bpf.RetConstant{Val: f.deny})...)
}

func (f *filter) sharedRules() {
	for _, c := range deniedShared {
		f.ret(c.nr, f.deny)
	}
	for _, c := range archDeniedShared {
		f.ret(c.nr, f.deny)
	}
	for _, c := range otherPid {
		f.call(c.nr, load(argLow(0)),
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: 1}, bpf.RetConstant{Val: f.deny})
	}
	for _, nr := range []uint32{unix.SYS_SETPRIORITY, unix.SYS_IOPRIO_SET} {
		f.call(nr, load(argLow(1)),
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: 1}, bpf.RetConstant{Val: f.deny})
	}
	// Times of an open file may change, those of a path may not: a path can
	// name a file that could never have been opened.
	f.call(unix.SYS_UTIMENSAT,
		load(argLow(1)),
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipFalse: 2},
		load(argHigh(1)),
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: 1},
		bpf.RetConstant{Val: f.deny},
	)
}

func (f *filter) assemble() ([]byte, error) {
	prog := []bpf.Instruction{
		bpf.LoadAbsolute{Off: offArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: auditArch, SkipTrue: 1},
		bpf.RetConstant{Val: retKill},
		bpf.LoadAbsolute{Off: offNr, Size: 4},
		// Covers the x32 calls too, whose numbers start at 1<<30.
		bpf.JumpIf{Cond: bpf.JumpGreaterThan, Val: newestKnown, SkipFalse: 1},
		bpf.RetConstant{Val: retErrno(unix.ENOSYS)},
	}
	nrs := slices.Sorted(maps.Keys(f.blocks))
	raw, err := bpf.Assemble(append(prog, f.tree(nrs)...))
	if err != nil {
		return nil, err
	}
	if len(raw) > unix.BPF_MAXINSNS {
		return nil, errors.New("seccomp filter too long")
	}
	out := make([]byte, 0, 8*len(raw))
	for _, r := range raw {
		out = binary.NativeEndian.AppendUint16(out, r.Op)
		out = append(out, r.Jt, r.Jf)
		out = binary.NativeEndian.AppendUint32(out, r.K)
	}
	return out, nil
}

// syscallName names a refused call for a report.
func syscallName(nr uint32) string {
	for _, list := range [][]syscallRule{denied, archDenied, deniedShared, archDeniedShared, otherPid, argumentCalls} {
		for _, c := range list {
			if c.nr == nr {
				return c.name
			}
		}
	}
	return "unknown"
}

// argumentCalls are refused only with certain arguments.
var argumentCalls = []syscallRule{
	{"clone", unix.SYS_CLONE}, {"ioctl", unix.SYS_IOCTL}, {"socket", unix.SYS_SOCKET}, {"socketpair", unix.SYS_SOCKETPAIR},
	{"fchmod", unix.SYS_FCHMOD}, {"fchmodat", unix.SYS_FCHMODAT}, {"mknodat", unix.SYS_MKNODAT}, {"openat", unix.SYS_OPENAT},
	{"personality", unix.SYS_PERSONALITY}, {"utimensat", unix.SYS_UTIMENSAT}, {"setpriority", unix.SYS_SETPRIORITY},
	{"ioprio_set", unix.SYS_IOPRIO_SET}, {"execve", unix.SYS_EXECVE}, {"execveat", unix.SYS_EXECVEAT},
}
