package sandbox

import (
	"errors"

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
	if engine == Docker && p.spec.Image == "" {
		return nil, errors.New("docker needs an image")
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
		args:   func(dir string) []string { return containerArgs(engine, p, uid, gid, dir) },
		config: func(*launch.Config, string) {},
	}
	if p.spec.Image != "" {
		q.holds |= ReadAbsent
	} else {
		q.holds &^= ReadRoots // the host's root is all there
	}
	return q.start(p, st)
}
