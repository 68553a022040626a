package sandbox

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// containerArgs is the command line of Podman or Docker up to the second stage.
// The container has no network, no capabilities, a read-only root, and mounts
// for exactly what was declared; the second stage adds its own filter and
// checks the rest. dir holds the second stage.
func containerArgs(engine Backend, p *plan, from containerRoot, uid, gid int, dir string, hard hardLimits) []string {
	l := p.limits
	args := []string{
		"run", "--rm", "--name=" + containerName(dir), "--interactive", "--pull=never", "--network=none", "--cap-drop=ALL", "--security-opt=no-new-privileges",
		"--read-only", "--ipc=private", "--cgroupns=private", "--hostname=sandbox", "--log-driver=none",
		"--user=" + strconv.Itoa(uid) + ":" + strconv.Itoa(gid), "--workdir=" + p.dir,
		// The engines' own defaults are above what they may set where they are
		// themselves confined.
		"--ulimit=core=0", ulimit("nofile", l.OpenFiles, hard.files), ulimit("nproc", l.Processes, hard.processes),
	}
	private := ":rw,nosuid,nodev,mode=1777"
	if engine == Podman {
		// It would fill private places with what the image has there. What it has
		// to be told Docker does anyway.
		args, private = append(args, "--read-only-tmpfs=false", "--pidfile="+dir+"/pid", "--pid=private", "--uts=private", "--init=false",
			"--security-opt=mask=/proc/acpi:/proc/kcore:/proc/keys:/proc/timer_list"), private+",notmpcopyup"
		if from.keep {
			args = append(args, "--userns=keep-id")
		}
	}
	if l.Memory > 0 {
		args = append(args, "--memory="+strconv.FormatInt(l.Memory, 10))
	}
	if l.Processes > 0 {
		args = append(args, "--pids-limit="+strconv.FormatInt(l.Processes, 10))
	}
	size := strconv.FormatInt(l.TempSize, 10)
	args = append(args, "--shm-size="+size)
	for _, t := range containerPrivate(p) {
		args = append(args, "--tmpfs="+t+private+",size="+size)
	}
	for _, path := range append(slices.Clone(from.mounts), dir) {
		args = append(args, "--mount="+bindMount(path, true))
	}
	for _, r := range p.roots {
		args = append(args, "--mount="+bindMount(r.path, !r.write))
	}
	for _, pin := range p.pins {
		args = append(args, "--mount="+bindMount(pin, false))
	}
	for _, f := range p.sealed {
		if f.link == "" {
			args = append(args, "--mount="+bindMount(f.path, true))
		}
	}
	return append(args, from.image)
}

// containerRoot is what a container's root is made of: an image, and what of the
// host is mounted over it.
type containerRoot struct {
	image  string
	mounts []string
	keep   bool // the engine is an ordinary user's own, who stays the same inside
}

// containerName is what a run's container is called: as its directory, which
// nothing else is.
func containerName(dir string) string { return filepath.Base(dir) }

// containerPrivate are empty and the run's own.
func containerPrivate(p *plan) []string { return []string{"/tmp", "/run", "/var/tmp", p.home} }

// hardLimits are what this process may give on; 0 is no limit.
type hardLimits struct{ files, processes int64 }

// ulimit is one resource limit, no higher than ours.
func ulimit(name string, want, hard int64) string {
	n := want
	if hard > 0 && (n <= 0 || n > hard) {
		n = hard
	}
	if n <= 0 {
		n = -1
	}
	v := strconv.FormatInt(n, 10)
	return "--ulimit=" + name + "=" + v + ":" + v
}

// bindMount is one mount in the comma-separated form both engines read. A
// comma in a path would begin another option, so such paths are quoted.
func bindMount(path string, readOnly bool) string {
	field := "source=" + path + ",target=" + path
	if strings.ContainsAny(path, ",\"") {
		q := strings.ReplaceAll(path, `"`, `""`)
		field = `"source=` + q + `","target=` + q + `"`
	}
	m := "type=bind," + field
	if readOnly {
		m += ",readonly"
	}
	return m
}
