package supervise

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// group is the cgroup of a tree, "" where none can be made. It is named after
// its supervisor, so that whoever knows that one finds it.
type group string

const groupPrefix = "gatehouse-job-"

// groupName is what a supervisor's cgroup is called: process ids come again,
// ids with start times do not.
func groupName(p Process) string {
	return groupPrefix + strconv.Itoa(p.PID) + "-" + strconv.FormatUint(p.Start, 10)
}

// ownGroup is the folder of the cgroup that a process is in, where the machine
// has one hierarchy of cgroups (version 2).
func ownGroup(pid int) (string, bool) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", false
	}
	own, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup")
	if err != nil {
		return "", false
	}
	path := ""
	for line := range strings.Lines(string(own)) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "0::/"); ok {
			path = "/" + rest
		}
	}
	if path == "" || strings.HasPrefix(path, "/..") {
		return "", false // none, or one that this namespace does not show
	}
	for line := range strings.Lines(string(mounts)) {
		// id parent device root mount options … - type source options
		fields := strings.Fields(line)
		_, kind, ok := strings.Cut(line, " - ")
		if !ok || !strings.HasPrefix(kind, "cgroup2 ") || len(fields) < 6 {
			continue
		}
		if inside, ok := strings.CutPrefix(path, strings.TrimSuffix(fields[3], "/")); ok {
			return filepath.Join(fields[4], inside), true
		}
	}
	return "", false
}

// makeGroup makes a supervisor's cgroup where it may. One that cannot be killed
// as a whole is of no use.
func makeGroup(pid int) group {
	self, ok := Read(pid)
	parent, found := ownGroup(pid)
	if !ok || !found {
		return ""
	}
	g := group(filepath.Join(parent, groupName(self)))
	if os.Mkdir(string(g), 0o700) != nil {
		return ""
	}
	if _, err := os.Stat(g.file("cgroup.kill")); err != nil {
		g.remove()
		return ""
	}
	return g
}

func (g group) file(name string) string { return filepath.Join(string(g), name) }

func (g group) open() (*os.File, bool) {
	if g == "" {
		return nil, false
	}
	dir, err := os.Open(string(g))
	return dir, err == nil
}

// kill ends all that is in the cgroup at one stroke, what it is starting
// included.
func (g group) kill() {
	if g != "" {
		_ = os.WriteFile(g.file("cgroup.kill"), []byte("1"), 0) // the processes are looked for as well
	}
}

// remove takes the cgroup away; it is empty then.
func (g group) remove() {
	if g != "" {
		_ = os.Remove(string(g)) // an empty folder that stays behind holds nobody
	}
}

// EndGroups kills what is left in the cgroups of supervisors that are to be dead,
// and removes those that are empty. They lie in the cgroup of the gate; nothing
// is done about one that is not found there.
func EndGroups(supervisors []Process) {
	parent, ok := ownGroup(os.Getpid())
	if !ok {
		return
	}
	for _, p := range supervisors {
		g := group(filepath.Join(parent, groupName(p)))
		if _, err := os.Lstat(string(g)); err == nil {
			g.kill()
			g.remove()
		}
	}
}

// TidyGroups removes the empty cgroups of supervisors that are dead, also of
// those that never had an order.
func TidyGroups() {
	parent, ok := ownGroup(os.Getpid())
	if !ok {
		return
	}
	entries, _ := os.ReadDir(parent) // what cannot be read cannot be tidied
	for _, e := range entries {
		rest, ours := strings.CutPrefix(e.Name(), groupPrefix)
		pid, start, _ := strings.Cut(rest, "-")
		id, errID := strconv.Atoi(pid)
		began, errStart := strconv.ParseUint(start, 10, 64)
		if !ours || errID != nil || errStart != nil {
			continue
		}
		if now, ok := Read(id); !ok || now.Start != began {
			group(filepath.Join(parent, e.Name())).remove()
		}
	}
}
