package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/seed-3ebc6b8a/gatehouse/internal/beside"
	"github.com/seed-3ebc6b8a/gatehouse/internal/launch"
)

const (
	landlockRead uint64 = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	landlockV1   uint64 = unix.LANDLOCK_ACCESS_FS_MAKE_SYM<<1 - 1
)

var errOwnView = errors.New("an overlay, files and channels take a mount namespace")

// landlockABI is the kernel's version of Landlock, 0 for none.
func landlockABI() int {
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(abi)
}

// landlockMasks are all rights a version knows: what is not handled is not
// restricted, so nothing may be left out.
func landlockMasks(abi int) (fs, scoped uint64) {
	if abi < 1 {
		return 0, 0
	}
	fs = landlockV1
	if abi >= 2 {
		fs |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if abi >= 3 {
		fs |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if abi >= 5 {
		fs |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	if abi >= 6 {
		scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	return fs, scoped
}

// startLandlock confines without any namespace. It works where bubblewrap may
// not, and holds less: no deny inside a writable root, undeclared names are
// still visible, no network at all.
func startLandlock(p *plan, st *streams) (*job, error) {
	abi := landlockABI()
	if abi < 6 {
		return nil, fmt.Errorf("landlock version %d cannot scope signals; 6 is needed", abi)
	}
	if p.port != 0 {
		return nil, &missingError{HostNames}
	}
	if p.ownView() {
		return nil, errOwnView
	}
	id, err := chooseIdentity(p)
	if err != nil {
		return nil, err
	}
	stage2, err := launcher(p.spec)
	if err != nil {
		return nil, err
	}
	j, err := newJob(Landlock, p, st)
	if err != nil {
		return nil, err
	}
	j.group = newGroup(p.limits)
	cfg, err := j.landlockConfig(abi, id)
	if err != nil {
		j.abandon()
		return nil, err
	}
	conf, err := beside.Sealed("config", 0o444, func(w io.Writer) error {
		_, err := w.Write(cfg.Encode())
		return err
	})
	if err != nil {
		j.abandon()
		return nil, err
	}
	defer conf.Close()
	j.spawn = &spawn{
		path:  "/proc/self/fd/3",
		argv:  []string{"gatehouse-launch", launch.Mark, "4", "5"},
		files: append(slices.Clone(st.child), stage2, conf, j.ctl.peer),
		attr:  &syscall.SysProcAttr{Setsid: true, Pdeathsig: unix.SIGKILL},
	}
	id.credential(j.spawn.attr)
	j.spawn.before = func() error {
		if err := j.group.join(j.spawn.attr); err != nil {
			return err
		}
		return enterScope()
	}
	if err := j.spawn.start(); err != nil {
		j.abandon()
		return nil, err
	}
	j.sweep = j.sweepScope
	if err := j.handshake(nil, landlockGuarantees); err != nil {
		return nil, err
	}
	return j, nil
}

// enterScope puts the calling thread, and with it all it starts, into a
// Landlock domain whose only rule is that signals stay inside. From then on
// "every process I may signal" means "every process of this run", which is how
// the run is swept. It is checked on a live process before it is relied on:
// without the domain the sweep would hit everything.
func enterScope() error {
	witness := signallable()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	// Moving between directories is refused by every domain that does not
	// say otherwise, so this one has to.
	attr := unix.LandlockRulesetAttr{Scoped: unix.LANDLOCK_SCOPE_SIGNAL, Access_fs: unix.LANDLOCK_ACCESS_FS_REFER}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return errno
	}
	defer unix.Close(int(fd))
	top, err := unix.Open("/", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(top)
	rule := unix.LandlockPathBeneathAttr{Allowed_access: unix.LANDLOCK_ACCESS_FS_REFER, Parent_fd: int32(top)}
	if _, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, fd, unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0); errno != 0 {
		return errno
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); errno != 0 {
		return errno
	}
	if witness != 0 && unix.Kill(witness, 0) == nil {
		return errors.New("landlock does not scope signals here")
	}
	return nil
}

// signallable finds a process, other than this one, that may be signalled now.
func signallable() int {
	may := func(pid int) bool { return pid > 0 && pid != os.Getpid() && unix.Kill(pid, 0) == nil }
	// Listing all processes costs as much as starting one.
	for _, pid := range []int{1, os.Getppid()} {
		if may(pid) {
			return pid
		}
	}
	for _, pid := range processIDs() {
		if may(pid) {
			return pid
		}
	}
	return 0
}

func processIDs() []int {
	d, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer d.Close()
	names, _ := d.Readdirnames(-1)
	var ids []int
	for _, n := range names {
		if pid, err := strconv.Atoi(n); err == nil {
			ids = append(ids, pid)
		}
	}
	return ids
}

// sweepScope kills all members of the domain at once: the kernel walks the
// process list under the lock a fork needs, so nothing slips through between.
// It reports whether anything was still alive. It runs on the thread that is
// in the domain.
func (j *job) sweepScope() (found bool) {
	for _, pid := range startedSince(j.spawn.proc.Pid) {
		if unix.Kill(pid, 0) == nil && !ownThread(pid) && !zombie(pid) {
			_ = unix.Kill(-1, unix.SIGKILL)
			return true
		}
	}
	return false
}

// ownThread reports whether a number is one of our own threads, which may always
// be signalled and are not what is looked for.
func ownThread(pid int) bool {
	return unix.Access("/proc/self/task/"+strconv.Itoa(pid), unix.F_OK) == nil
}

// startedSince lists the processes that may have been started after pid.
// Numbers are handed out in order, so usually that is a handful; once they have
// wrapped around it is everybody.
func startedSince(pid int) []int {
	b, _ := os.ReadFile("/proc/loadavg")
	fields := strings.Fields(string(b))
	if len(fields) != 5 {
		return processIDs()
	}
	last, err := strconv.Atoi(fields[4])
	if err != nil || last < pid || last-pid > 4096 {
		return processIDs()
	}
	var list []int
	for n := pid + 1; n <= last; n++ {
		list = append(list, n)
	}
	return list
}

func zombie(pid int) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return true
	}
	i := strings.LastIndexByte(string(b), ')')
	return i < 0 || i+2 >= len(b) || b[i+2] == 'Z' || b[i+2] == 'X'
}

// procFiles are what programs read about the machine; none is about another
// process. /proc/self is the command's own directory, not its children's. Few
// rules cover much, because each costs a look-up on every start.
var procFiles = []string{
	"/proc/self", "/proc/meminfo", "/proc/cpuinfo", "/proc/stat", "/proc/filesystems", "/proc/sys", "/sys/devices/system/cpu",
}

var deviceFiles = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"}

func (j *job) landlockConfig(abi int, id identity) (*launch.Config, error) {
	p := j.plan
	filter, err := buildFilter(filterOptions{notify: true, unix: len(p.spec.UnixSockets) > 0, shared: true, noExec: p.spec.NoExec})
	if err != nil {
		return nil, err
	}
	if j.private, err = os.MkdirTemp("", "gatehouse-run-"); err != nil {
		return nil, err
	}
	if j.private, err = filepath.EvalSymlinks(j.private); err != nil {
		return nil, err
	}
	if id.drop {
		if err := os.Chown(j.private, id.uid, id.gid); err != nil {
			return nil, err
		}
	}
	env := setEnv(p.env, "TMPDIR", j.private)
	if lookupEnv(env, "HOME") != "" {
		env = setEnv(env, "HOME", j.private)
	}
	slices.Sort(env)
	cfg := &launch.Config{
		Path: p.path, Argv: p.spec.Command, Env: env, Dir: p.dir, Umask: 0o022,
		Filter: filter, Notify: true, Limits: rlimits(p.limits, id.uid, false, j.group != nil), TTY: p.spec.TTY != nil,
	}
	cfg.HandledFS, cfg.Scoped = landlockMasks(abi)
	cfg.Rules = confinedRules(p, cfg.HandledFS, j.private)
	return cfg, nil
}

// landlockGuarantees leaves out what Landlock has no words for: hiding names,
// and denying inside what is allowed.
func landlockGuarantees(p *plan, r *report) Guarantee {
	g := Environment | Descriptors
	has := func(f uint64) bool { return r.facts&f == f }
	if has(launch.FactLandlockFS) && r.abi >= 5 {
		g |= WriteRoots | ReadRoots
	}
	if has(launch.FactSeccomp) {
		g |= Metadata | NoNetwork | IPC | Syscalls | TerminalSafe
		if len(p.spec.UnixSockets) == 0 {
			g |= UnixSockets
		}
		if p.spec.NoExec {
			g |= NoPrograms
		}
	}
	if has(launch.FactLandlockScope | launch.FactSeccomp) {
		g |= Processes | TreeDead
	}
	if has(launch.FactNoCaps | launch.FactNoNewPrivs | launch.FactNotRoot) {
		g |= Privileges
	}
	return g
}
