package sandbox

import (
	"errors"
	"os"
	"strconv"
	"strings"

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
	root, global, err := rootFor(engine, program, p)
	if err != nil {
		return nil, err
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
		holds: WriteRoots | ReadRoots | ReadAbsent | ProtectedPaths | Metadata | NoNetwork | UnixSockets | Processes | ProcessesHidden | IPC | Privileges |
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
		// Its command takes a while to start where the machine is busy.
		if b, err := os.ReadFile(dir + "/pid"); err == nil {
			if pid, err := strconv.Atoi(strings.TrimSpace(string(b))); err == nil && pid > 1 {
				_ = unix.Kill(pid, unix.SIGKILL)
			}
		}
	}
	_, _ = engineCommand(program, nil, append(args, containerName(dir))...) // one that has ended is gone already
}

// containerRules repeat what the mounts say. What an image holds is nobody's
// secret.
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
