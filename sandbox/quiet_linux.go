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

	"golang.org/x/sys/unix"

	"github.com/seed-3ebc6b8a/gatehouse/internal/launch"
)

// quiet is a back-end that closes descriptors on the way, so that there is no
// conversation with the second stage. The proof is turned round: the second
// stage is told what it must find inside and ends instead of starting the
// command when something is missing.
type quiet struct {
	backend Backend
	program string
	id      identity
	want    uint64 // facts that must hold inside
	holds   Guarantee
	args    func(dir string) []string
	config  func(cfg *launch.Config, dir string)
	// end ends what the back-end started, where that is not below it.
	end func(dir string)
}

func (q *quiet) start(p *plan, st *streams) (*job, error) {
	switch {
	case p.port != 0:
		return nil, &missingError{HostNames}
	case p.ownView():
		return nil, errOwnView
	case p.spec.TTY != nil:
		return nil, errors.New("no terminal under this back-end")
	}
	if missing := p.need &^ q.holds; missing != 0 {
		return nil, &missingError{missing}
	}
	j, err := newJob(q.backend, p, st)
	if err != nil {
		return nil, err
	}
	j.guarantees = q.holds
	st.err.until, st.err.seen = launch.Started, make(chan struct{})
	if err := q.stage(j); err != nil {
		j.abandon()
		return nil, err
	}
	argv := append([]string{filepath.Base(q.program)}, q.args(j.private)...)
	argv = append(argv, j.private+"/launch", launch.Mark, j.private+"/config", "-")
	j.spawn = &spawn{path: q.program, argv: argv, files: slices.Clone(st.child), attr: &syscall.SysProcAttr{Setsid: true, Pdeathsig: unix.SIGTERM}}
	// A helper that looks its user up wants to know where it lives.
	j.spawn.env, j.spawn.dir = append(userEnv(), helperEnv...), "/"
	q.id.credential(j.spawn.attr)
	if err := j.before(); err != nil {
		j.abandon()
		return nil, err
	}
	if err := j.spawn.start(); err != nil {
		j.abandon()
		return nil, err
	}
	st.started()
	_ = j.ctl.peer.Close()
	if j.main, err = pidfd(j.spawn.proc.Pid); err != nil {
		return nil, j.fail(err)
	}
	pid := j.spawn.proc.Pid
	j.stop = func() { endHelper(pid) }
	if dir := j.private; q.end != nil {
		j.stop = func() { q.end(dir) }
		j.sweep = func() bool {
			// A helper that came to its own end saw that of what it started.
			if j.state == nil || !j.state.Exited() {
				q.end(dir)
			}
			return false
		}
	}
	ended := make(chan struct{})
	go func() { st.copies.Wait(); close(ended) }()
	select {
	case <-st.err.seen:
		return j, nil
	case <-ended:
	}
	select {
	case <-st.err.seen: // both at once: a command that said nothing
		return j, nil
	default:
	}
	said := firstLine(strings.TrimSpace(string(st.err.held)))
	return nil, j.fail(fmt.Errorf("did not start: %s", said))
}

// stage puts the second stage and its configuration where the back-end can
// see them: read-only, in a directory of the run's own.
func (q *quiet) stage(j *job) error {
	p := j.plan
	filter, err := buildFilter(filterOptions{unix: len(p.spec.UnixSockets) > 0, shared: true})
	if err != nil {
		return err
	}
	if j.private, err = os.MkdirTemp("", "gatehouse-run-"); err != nil {
		return err
	}
	if err := os.Chmod(j.private, 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(j.private+"/tmp", 0o700); err != nil {
		return err
	}
	if q.id.drop {
		if err := os.Chown(j.private+"/tmp", q.id.uid, q.id.gid); err != nil {
			return err
		}
	}
	cfg := &launch.Config{
		Path: p.path, Argv: p.spec.Command, Env: p.env, Dir: p.dir, Umask: 0o022, Filter: filter,
		Limits: rlimits(p.limits, q.id.uid, false, false), Namespaces: namespaces(), Quiet: true, Want: q.want,
	}
	q.config(cfg, j.private)
	if err := os.WriteFile(j.private+"/config", cfg.Encode(), 0o444); err != nil {
		return err
	}
	src, err := launcher(p.spec)
	if err != nil {
		return err
	}
	// A child that another run starts meanwhile would hold the file open for
	// writing until it executes something, and keep this one from executing it.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	out, err := os.OpenFile(j.private+"/launch", os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o555)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, io.NewSectionReader(src, 0, 1<<30))
	return errors.Join(err, out.Close())
}

// endHelper ends a helper's namespace: the helper itself on request, its child,
// the first process inside, for certain.
func endHelper(pid int) {
	kids, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	for _, k := range strings.Fields(string(kids)) {
		if n, err := strconv.Atoi(k); err == nil {
			_ = unix.Kill(n, unix.SIGKILL)
		}
	}
	_ = unix.Kill(pid, unix.SIGTERM)
}

// startFirejail: namespaces by firejail, which is set-user-id and so works
// where unprivileged user namespaces are off; files and calls by Landlock and
// seccomp in the second stage.
func startFirejail(p *plan, st *streams) (*job, error) {
	program, ok := trustedSetuid("firejail")
	if !ok {
		return nil, errors.New("firejail is not installed in a system directory")
	}
	abi := landlockABI()
	if abi < 5 {
		return nil, fmt.Errorf("landlock version %d confines too little under firejail; 5 is needed", abi)
	}
	id, err := chooseIdentity(p)
	if err != nil {
		return nil, err
	}
	if id.fresh { // firejail only runs for users it can look up
		id = identity{uid: 65534, gid: 65534, drop: true}
	}
	q := &quiet{
		backend: Firejail, program: program, id: id,
		want: launch.FactPidNS | launch.FactNetNS | launch.FactIPCNS | launch.FactMountNS | launch.FactNoNewPrivs | launch.FactNoCaps |
			launch.FactSeccomp | launch.FactLandlockFS | launch.FactNotRoot,
		// Entries are made read-only, but a directory above them can still be
		// renamed, so protected paths are not claimed.
		holds: WriteRoots | ReadRoots | Metadata | NoNetwork | UnixSockets | Processes | ProcessesHidden | IPC | Privileges |
			Syscalls | Environment | Descriptors | TreeDead | TerminalSafe,
		args: func(dir string) []string { return firejailArgs(p, dir) },
		config: func(cfg *launch.Config, dir string) {
			cfg.HandledFS, cfg.Scoped = landlockMasks(abi)
			cfg.Rules = confinedRules(p, cfg.HandledFS, dir+"/tmp")
			// Its own /tmp would hide declared roots that lie there.
			cfg.Env = setEnv(setEnv(cfg.Env, "TMPDIR", dir+"/tmp"), "HOME", dir+"/tmp")
		},
	}
	if len(p.spec.UnixSockets) > 0 {
		q.holds &^= UnixSockets
	}
	return q.start(p, st)
}

// firejailArgs is the command line up to the second stage.
func firejailArgs(p *plan, dir string) []string {
	args := []string{
		"--quiet", "--noprofile", "--net=none", "--caps.drop=all", "--nonewprivs", "--noroot", "--keep-var-tmp", "--ipc-namespace", "--private-dev",
		"--read-only=" + dir, "--read-write=" + dir + "/tmp", "--deterministic-exit-code",
	}
	for _, f := range p.sealed {
		if f.link == "" {
			args = append(args, "--read-only="+f.path)
		}
	}
	return append(args, "--")
}

// confinedRules are the Landlock rules of a run whose temporary files are
// under tmp.
func confinedRules(p *plan, handled uint64, tmp string) []launch.Rule {
	read, write := landlockRead, handled&^unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	var rules []launch.Rule
	for _, path := range append(slices.Clone(p.runtime), "/etc/passwd", "/etc/group", "/etc/nsswitch.conf") {
		// A link into a tree that has a rule of its own needs none.
		if _, err := os.Readlink(path); err == nil {
			if target, err := filepath.EvalSymlinks(path); err == nil && within(target, "/usr") {
				continue
			}
		}
		rules = append(rules, launch.Rule{Path: path, Access: read})
	}
	for _, path := range procFiles {
		rules = append(rules, launch.Rule{Path: path, Access: read &^ unix.LANDLOCK_ACCESS_FS_EXECUTE})
	}
	device := uint64(unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV)
	for _, path := range deviceFiles {
		rules = append(rules, launch.Rule{Path: path, Access: device})
	}
	for _, r := range p.roots {
		access := read
		if r.write {
			access = write
		}
		rules = append(rules, launch.Rule{Path: r.path, Access: access})
	}
	return append(rules, launch.Rule{Path: tmp, Access: write})
}

// trustedSetuid finds a set-user-id helper of root's.
func trustedSetuid(name string) (string, bool) {
	path, ok := trustedProgram(name)
	if !ok {
		return "", false
	}
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil || st.Uid != 0 {
		return "", false
	}
	return path, true
}
