package sandbox

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// rootFor returns what a run's container is made of, and the options that its
// engine needs here.
func rootFor(engine Backend, program string, p *plan) (containerRoot, []string, error) {
	keep := engine == Podman && os.Getuid() != 0
	if p.spec.Image != "" {
		return containerRoot{image: p.spec.Image, keep: keep}, nil, nil
	}
	try, _ := hostRoots.LoadOrStore(engine, sync.OnceValues(func() (hostRoot, error) { return tryHostRoot(engine, program, p.runtime) }))
	found, err := try.(func() (hostRoot, error))()
	found.root.keep = keep
	return found.root, found.options, err
}

// hostRoot is the host's root for an engine that was seen to start with it.
type hostRoot struct {
	root    containerRoot
	options []string
}

// hostRoots are tried once per process.
var hostRoots sync.Map

// tryHostRoot makes the root and starts a container that does nothing. Some OCI
// runtimes refuse some layouts of control groups, so Podman is tried with each.
func tryHostRoot(engine Backend, program string, runtime []string) (hostRoot, error) {
	root, err := bareRoot(program, runtime)
	if err != nil {
		return hostRoot{}, err
	}
	tries := [][]string{nil}
	if engine == Podman {
		for _, name := range []string{"crun", "runc"} {
			if path, ok := trustedProgram(name); ok {
				tries = append(tries, []string{"--runtime=" + path})
			}
		}
	}
	hard := ownHardLimits()
	var said []string
	for _, options := range tries {
		args := append(append([]string{}, options...), "run", "--rm", "--network=none", "--read-only", "--pull=never",
			ulimit("nofile", 0, hard.files), ulimit("nproc", 0, hard.processes))
		for _, path := range root.mounts {
			args = append(args, "--mount="+bindMount(path, true))
		}
		out, err := engineCommand(program, nil, append(args, root.image, "/bin/true")...)
		if err == nil {
			return hostRoot{root, options}, nil
		}
		said = append(said, firstLine(strings.TrimSpace(string(out))))
	}
	return hostRoot{}, fmt.Errorf("no container starts here: %s", strings.Join(said, "; "))
}

// bareRoot is the host's root as an image: nothing but empty directories and the
// host's own links between them, over which what a dynamic program needs is
// mounted. It is named after what is in it and made once.
func bareRoot(program string, runtime []string) (containerRoot, error) {
	from := containerRoot{}
	var content bytes.Buffer
	w := tar.NewWriter(&content)
	for _, dir := range []string{"dev", "etc", "home", "proc", "run", "sys", "tmp", "usr", "var", "var/tmp"} {
		h := &tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755}
		if slices.Contains([]string{"run", "tmp", "var/tmp"}, dir) {
			h.Mode = 0o1777 // what is mounted there takes over the mode it finds
		}
		_ = w.WriteHeader(h)
	}
	for _, path := range runtime {
		target, err := os.Readlink(path)
		if err != nil || filepath.Dir(path) != "/" {
			from.mounts = append(from.mounts, path)
			continue
		}
		_ = w.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: strings.TrimPrefix(path, "/"), Linkname: target, Mode: 0o777})
	}
	if err := w.Close(); err != nil { // also for what was written before
		return from, err
	}
	from.image = fmt.Sprintf("gatehouse-bare:%x", sha256.Sum256(content.Bytes()))
	if _, err := engineCommand(program, nil, "image", "inspect", from.image); err == nil {
		return from, nil
	}
	if out, err := engineCommand(program, content.Bytes(), "import", "-", from.image); err != nil {
		return from, fmt.Errorf("%s: %w", firstLine(strings.TrimSpace(string(out))), err)
	}
	return from, nil
}

// engineCommand runs a command of an engine's.
func engineCommand(program string, stdin []byte, args ...string) ([]byte, error) {
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Env, cmd.Stdin = "/", userEnv(), bytes.NewReader(stdin)
	return cmd.CombinedOutput()
}
