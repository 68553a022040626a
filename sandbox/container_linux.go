package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/seed-3ebc6b8a/gatehouse/internal/launch"
)

func startPodman(p *plan, st *streams) (*job, error) { return startContainer(Podman, p, st) }

func startDocker(p *plan, st *streams) (*job, error) { return startContainer(Docker, p, st) }

// startContainer runs the second stage as a container's first process.
func startContainer(engine Backend, p *plan, st *streams) (*job, error) {
	program, ok := trustedProgram(string(engine))
	if !ok {
		return nil, errors.New(string(engine) + " is not installed in a system directory")
	}
	global, err := engineOptions(engine, program, p.spec.Image)
	if err != nil {
		return nil, err
	}
	root := containerRoot{image: p.spec.Image}
	if engine == Docker && root.image == "" {
		if root, err = bareRoot(program, p.runtime); err != nil {
			return nil, err
		}
	}
	id, err := chooseIdentity(p)
	if err != nil {
		return nil, err
	}
	uid, gid := id.uid, id.gid
	id.drop = false // the engine does it, inside
	q := &quiet{
		backend: engine, program: program, id: id,
		want: launch.FactPidNS | launch.FactNetNS | launch.FactIPCNS | launch.FactUTSNS | launch.FactMountNS | launch.FactNoNewPrivs |
			launch.FactNoCaps | launch.FactSeccomp | launch.FactNotRoot,
		holds: WriteRoots | ReadRoots | ProtectedPaths | Metadata | NoNetwork | UnixSockets | Processes | ProcessesHidden | IPC | Privileges |
			Syscalls | Environment | Descriptors | TreeDead | TerminalSafe,
		args: func(dir string) []string {
			return append(global, containerArgs(engine, p, root, uid, gid, dir, ownHardLimits())...)
		},
		config: func(*launch.Config, string) {},
		end:    func(dir string) { removeContainer(engine, program, dir) },
	}
	if abi := landlockABI(); abi >= 5 {
		q.want |= launch.FactLandlockFS
		q.config = func(cfg *launch.Config, dir string) {
			cfg.HandledFS, cfg.Scoped = landlockMasks(abi)
			cfg.Rules = containerRules(p, cfg.HandledFS, dir)
		}
	} else if root.image == "" {
		q.holds &^= ReadRoots // the host's root is all there
	}
	if root.image != "" {
		q.holds |= ReadAbsent
	}
	return q.start(p, st)
}

// removeContainer ends a run's container and all its processes. They are not
// below the engine's command, and signals that it passes on reach a first process
// that the kernel lets ignore them.
func removeContainer(engine Backend, program, dir string) {
	args := []string{"rm", "--force", "--volumes"}
	if engine == Podman {
		args = append(args, "--time=0") // it would ask first, and wait
	}
	cmd := exec.Command(program, append(args, containerName(dir))...)
	cmd.Dir, cmd.Env = "/", userEnv()
	_ = cmd.Run() // one that has ended is gone already
}

// containerRules repeat what the mounts say, and on the host's own root say what
// of it may be read. What an image holds is nobody's secret.
func containerRules(p *plan, handled uint64, dir string) []launch.Rule {
	rules := confinedRules(p, handled, dir+"/tmp")
	for _, path := range append(containerPrivate(p), "/dev/shm") {
		rules = append(rules, launch.Rule{Path: path, Access: handled &^ unix.LANDLOCK_ACCESS_FS_IOCTL_DEV})
	}
	// The processes in it are the run's own.
	rules = append(rules, launch.Rule{Path: "/proc", Access: landlockRead | unix.LANDLOCK_ACCESS_FS_WRITE_FILE},
		launch.Rule{Path: "/dev/pts", Access: landlockRead | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV})
	if p.spec.Image != "" {
		rules = append(rules, launch.Rule{Path: "/", Access: landlockRead})
	}
	return rules
}

func ownHardLimits() hardLimits {
	get := func(resource int) int64 {
		var l unix.Rlimit
		if err := unix.Getrlimit(resource, &l); err != nil || l.Max > 1<<40 {
			return 0
		}
		return int64(l.Max)
	}
	// An engine's monitor lowers its own number of processes and with it what
	// it may give on.
	processes := get(unix.RLIMIT_NPROC)
	if processes == 0 || processes > 4096 {
		processes = 4096
	}
	return hardLimits{get(unix.RLIMIT_NOFILE), processes}
}

// engineOptions finds out how an engine can be made to work here. Some OCI
// runtimes refuse some layouts of control groups, so each is tried, once per
// process, with a container that does nothing.
func engineOptions(engine Backend, program, image string) ([]string, error) {
	if engine != Podman || image != "" {
		return nil, nil
	}
	return podmanOptions(program)
}

var podmanOptions = func() func(string) ([]string, error) {
	var once sync.Once
	var options []string
	var failed error
	return func(program string) ([]string, error) {
		once.Do(func() { options, failed = tryRuntimes(program) })
		return options, failed
	}
}()

func tryRuntimes(program string) ([]string, error) {
	tries := [][]string{nil}
	for _, runtime := range []string{"crun", "runc"} {
		if path, ok := trustedProgram(runtime); ok {
			tries = append(tries, []string{"--runtime=" + path})
		}
	}
	hard := ownHardLimits()
	var said []string
	for _, global := range tries {
		args := append(append([]string{}, global...), "run", "--rm", "--network=none", "--read-only", "--read-only-tmpfs=false",
			ulimit("nofile", 0, hard.files), ulimit("nproc", 0, hard.processes), "--rootfs", "/:O", "/bin/true")
		cmd := exec.CommandContext(context.Background(), program, args...)
		cmd.Dir, cmd.Env = "/", userEnv()
		out, err := cmd.CombinedOutput()
		if err == nil {
			return global, nil
		}
		said = append(said, firstLine(strings.TrimSpace(string(out))))
	}
	return nil, fmt.Errorf("no container starts here: %s", strings.Join(said, "; "))
}
