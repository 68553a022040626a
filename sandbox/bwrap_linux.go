package sandbox

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/seed-3ebc6b8a/gatehouse/internal/beside"
	"github.com/seed-3ebc6b8a/gatehouse/internal/launch"
)

// bubble builds one bubblewrap command line. Everything declared is handed
// over as an open descriptor: bubblewrap compares what it mounted with what was
// opened, so a path swapped in between ends the run instead of widening it.
type bubble struct {
	plan  *plan
	id    identity
	over  []string // lower, layer and target of an overlay to mount first
	args  []string
	files []*os.File // from descriptor 3 up
	own   []*os.File // to close after the start
}

func (b *bubble) add(args ...string) { b.args = append(b.args, args...) }

// pass hands a file over and returns its number there.
func (b *bubble) pass(f *os.File, ours bool) string {
	b.files = append(b.files, f)
	if ours {
		b.own = append(b.own, f)
	}
	return strconv.Itoa(2 + len(b.files))
}

func (b *bubble) close() {
	for _, f := range b.own {
		_ = f.Close()
	}
	b.own = nil
}

// data passes a small file by content: --file makes it, --ro-bind-data lays it
// over what is there.
func (b *bubble) data(op, dest, content string) error {
	f, err := beside.Sealed("data", 0o444, func(w io.Writer) error {
		_, err := io.WriteString(w, content)
		return err
	})
	if err != nil {
		return err
	}
	b.add("--perms", "0444", op, b.pass(f, true), dest)
	return nil
}

// startBubblewrap is the preferred back-end.
func startBubblewrap(p *plan, st *streams) (*job, error) {
	bwrap, ok := trustedProgram("bwrap")
	if !ok {
		return nil, fmt.Errorf("bubblewrap is not installed in a system directory")
	}
	id, err := chooseIdentity(p)
	if err != nil {
		return nil, err
	}
	stage2, err := launcher(p.spec)
	if err != nil {
		return nil, err
	}
	j, err := newJob(Bubblewrap, p, st)
	if err != nil {
		return nil, err
	}
	j.group = newGroup(p.limits)
	cfg, err := bubbleConfig(p, j.group != nil)
	if err != nil {
		j.abandon()
		return nil, err
	}
	infoR, infoW, err := os.Pipe()
	if err != nil {
		j.abandon()
		return nil, err
	}
	defer infoR.Close()
	b := &bubble{plan: p, id: id}
	j.spawn = &spawn{path: bwrap, attr: &syscall.SysProcAttr{}}
	id.credential(j.spawn.attr)
	j.spawn.before = func() error {
		if err := j.group.join(j.spawn.attr); err != nil {
			return err
		}
		return b.prepare(j, stage2, cfg, infoW)
	}
	err = j.spawn.start()
	b.close()
	_ = infoW.Close()
	if err != nil {
		j.abandon()
		return nil, err
	}
	if err := j.handshake(infoR, bubbleGuarantees); err != nil {
		return nil, err
	}
	return j, nil
}

// prepare runs on the thread that starts bubblewrap, inside its mount
// namespace if it has one of its own.
func (b *bubble) prepare(j *job, stage2 *os.File, cfg *launch.Config, info *os.File) error {
	conf, err := beside.Sealed("config", 0o444, func(w io.Writer) error {
		_, err := w.Write(cfg.Encode())
		return err
	})
	if err != nil {
		return err
	}
	exe := b.pass(stage2, false)
	confFD := b.pass(conf, true)
	ctl := b.pass(j.ctl.peer, false)
	b.namespaceArgs(b.pass(info, false))
	if err := b.mounts(); err != nil {
		return err
	}
	argFile, err := beside.Sealed("args", 0o444, func(w io.Writer) error {
		_, err := io.WriteString(w, strings.Join(b.args, "\x00")+"\x00")
		return err
	})
	if err != nil {
		return err
	}
	j.spawn.argv = []string{"bwrap", "--args", b.pass(argFile, true), "--", "/proc/self/fd/" + exe, launch.Mark, confFD, ctl}
	j.spawn.files = append(slices.Clone(j.streams.child), b.files...)
	if b.over != nil {
		b.overlayFirst(j, exe)
	}
	return nil
}

// overlayFirst puts a stage of its own before bubblewrap, in a user namespace
// where it may mount: the overlay has to exist before it can be bound, and only
// newer versions of bubblewrap can make one.
func (b *bubble) overlayFirst(j *job, exe string) {
	argv := append([]string{"gatehouse-launch", launch.MarkOverlay}, b.over...)
	j.spawn.argv[0] = j.spawn.path
	j.spawn.argv = append(argv, j.spawn.argv...)
	j.spawn.path = "/proc/self/fd/" + exe
	a := j.spawn.attr
	a.Cloneflags |= unix.CLONE_NEWUSER | unix.CLONE_NEWNS
	a.UidMappings = []syscall.SysProcIDMap{{ContainerID: b.id.uid, HostID: b.id.uid, Size: 1}}
	a.GidMappings = []syscall.SysProcIDMap{{ContainerID: b.id.gid, HostID: b.id.gid, Size: 1}}
	a.GidMappingsEnableSetgroups = b.id.drop
	// What the overlay does on the command's behalf it does with these, over
	// files of this user's only: its work directory has no permissions at all.
	a.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_DAC_OVERRIDE, unix.CAP_DAC_READ_SEARCH, unix.CAP_CHOWN, unix.CAP_FOWNER, unix.CAP_FSETID}
}

func (b *bubble) namespaceArgs(info string) {
	b.add("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net", "--unshare-cgroup-try",
		"--disable-userns", "--cap-drop", "ALL", "--die-with-parent", "--new-session", "--hostname", "sandbox",
		"--uid", strconv.Itoa(b.id.uid), "--gid", strconv.Itoa(b.id.gid), "--info-fd", info)
}

// bubbleConfig is the second stage's part. The Landlock rules repeat what the
// mounts say, so that one mistake in either is not yet an escape.
func bubbleConfig(p *plan, grouped bool) (*launch.Config, error) {
	filter, err := buildFilter(filterOptions{notify: true, unix: p.unixInside(), inet: true, noExec: p.spec.NoExec})
	if err != nil {
		return nil, err
	}
	cfg := &launch.Config{
		Path: p.path, Argv: p.spec.Command, Env: p.env, Dir: p.dir, Umask: 0o022,
		Filter: filter, Notify: true, Limits: rlimits(p.limits, 0, true, grouped),
		Listen: p.port, Socket: p.channel(), TTY: p.spec.TTY != nil, Namespaces: namespaces(),
	}
	abi := landlockABI()
	cfg.HandledFS, cfg.Scoped = landlockMasks(abi)
	if cfg.HandledFS == 0 {
		return cfg, nil
	}
	read, write := landlockRead, cfg.HandledFS&^unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	cfg.Rules = []launch.Rule{
		{Path: "/", Access: read},
		{Path: "/dev", Access: read | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV},
		{Path: "/proc", Access: read | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE},
	}
	for _, dir := range privateDirs(p) {
		cfg.Rules = append(cfg.Rules, launch.Rule{Path: dir, Access: write})
	}
	for _, r := range p.roots {
		if r.write {
			cfg.Rules = append(cfg.Rules, launch.Rule{Path: r.path, Access: write})
		}
	}
	return cfg, nil
}

// bubbleGuarantees translates what was seen inside into what holds.
func bubbleGuarantees(p *plan, r *report) Guarantee {
	g := Environment | Descriptors
	has := func(f uint64) bool { return r.facts&f == f }
	if has(launch.FactMountNS | launch.FactUserNS | launch.FactNoCaps) {
		g |= WriteRoots | ReadRoots | ReadAbsent | Metadata | ProtectedPaths
	}
	if has(launch.FactNetNS | launch.FactNoCaps) {
		if p.port == 0 {
			g |= NoNetwork
		} else {
			g |= HostNames
		}
	}
	if has(launch.FactSeccomp | launch.FactMountNS | launch.FactNetNS) {
		g |= UnixSockets
	}
	if has(launch.FactPidNS) {
		g |= Processes | ProcessesHidden | TreeDead | DiesWithGate
	}
	if has(launch.FactIPCNS) {
		g |= IPC
	}
	if has(launch.FactNoCaps | launch.FactNoNewPrivs | launch.FactNotRoot) {
		g |= Privileges
	}
	if has(launch.FactSeccomp) {
		g |= Syscalls | TerminalSafe
		if p.spec.NoExec {
			g |= NoPrograms
		}
	}
	if has(launch.FactUserNS) && p.limits.Processes > 0 {
		g |= ProcessLimit
	}
	return g
}

// readInfo takes the process id of the namespace's first process from what
// bubblewrap writes about itself.
func readInfo(r io.Reader) (int, error) {
	sc := bufio.NewScanner(io.LimitReader(r, 4096))
	for sc.Scan() {
		line := strings.TrimSpace(sc.Text())
		if rest, ok := strings.CutPrefix(line, `"child-pid":`); ok {
			return strconv.Atoi(strings.Trim(rest, " ,"))
		}
	}
	return 0, errNoReport
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
