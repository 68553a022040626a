package sandbox

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-3ebc6b8a/gatehouse/internal/launch"
)

// rlimits translates Limits for the second stage. They always apply; a control
// group, where one can be made, bounds the tree as a whole on top.
func rlimits(l Limits, uid int, ownUserNS, grouped bool) []launch.Limit {
	list := []launch.Limit{
		{Resource: unix.RLIMIT_CORE, Value: 0},
		{Resource: unix.RLIMIT_NOFILE, Value: uint64(l.OpenFiles)},
		{Resource: unix.RLIMIT_FSIZE, Value: uint64(l.FileSize)},
	}
	if l.CPU > 0 {
		list = append(list, launch.Limit{Resource: unix.RLIMIT_CPU, Value: uint64((l.CPU + time.Second - 1) / time.Second)})
	}
	// Private writable memory, not address space: runtimes reserve far more
	// of the latter than they ever touch.
	if l.Memory > 0 && !grouped {
		list = append(list, launch.Limit{Resource: unix.RLIMIT_DATA, Value: uint64(l.Memory)})
	}
	if l.Processes > 0 && (ownUserNS || !grouped) {
		n := uint64(l.Processes)
		if !ownUserNS {
			// Counted over all processes of the user; leave room for them.
			n += processesOf(uid)
		}
		list = append(list, launch.Limit{Resource: unix.RLIMIT_NPROC, Value: n})
	}
	return list
}

func processesOf(uid int) uint64 {
	dirs, _ := filepath.Glob("/proc/[0-9]*/task/[0-9]*")
	var n uint64
	for _, d := range dirs {
		var st unix.Stat_t
		if unix.Stat(d, &st) == nil && int(st.Uid) == uid {
			n++
		}
	}
	return n
}

// group is a control group of one run, in either version.
type group struct {
	dirs []string // one in version 2, one per controller in version 1
	v2   bool
	fd   *os.File
}

const cgroupRoot = "/sys/fs/cgroup"

// newGroup makes a control group with the limits, or returns nil where none
// can be made. The caller records which of the two it was.
func newGroup(l Limits) *group {
	if l.Memory == 0 && l.Processes == 0 {
		return nil
	}
	own := ownGroups()
	var id [8]byte
	_, _ = rand.Read(id[:])
	name := "gatehouse-" + hex.EncodeToString(id[:])
	if g := newGroupV1(l, own, name); g != nil {
		return g
	}
	return newGroupV2(l, own[""], name)
}

// ownGroups maps controllers to our own group's path; "" is version 2.
func ownGroups() map[string]string {
	own := map[string]string{}
	raw, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return own
	}
	for line := range strings.Lines(string(raw)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		for _, c := range strings.Split(parts[1], ",") {
			own[c] = parts[2]
		}
	}
	return own
}

func newGroupV1(l Limits, own map[string]string, name string) *group {
	g := &group{}
	make1 := func(controller string, set map[string]int64) bool {
		base, ok := own[controller]
		if !ok {
			return false
		}
		dir := filepath.Join(cgroupRoot, controller, base, name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			return false
		}
		g.dirs = append(g.dirs, dir)
		for file, v := range set {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(strconv.FormatInt(v, 10)), 0); err != nil {
				return false
			}
		}
		return true
	}
	ok := true
	if l.Memory > 0 {
		ok = make1("memory", map[string]int64{"memory.limit_in_bytes": l.Memory})
	}
	if ok && l.Processes > 0 {
		ok = make1("pids", map[string]int64{"pids.max": l.Processes})
	}
	if !ok {
		g.remove()
		return nil
	}
	return g
}

// newGroupV2 looks for a place where the controllers are handed down: our own
// group if it has no processes to object, else the one above.
func newGroupV2(l Limits, own, name string) *group {
	if own == "" {
		return nil
	}
	for _, parent := range []string{own, filepath.Dir(own)} {
		base := filepath.Join(cgroupRoot, parent)
		handed, err := os.ReadFile(filepath.Join(base, "cgroup.subtree_control"))
		if err != nil || !strings.Contains(string(handed), "memory") || !strings.Contains(string(handed), "pids") {
			continue
		}
		dir := filepath.Join(base, name)
		if os.Mkdir(dir, 0o755) != nil {
			continue
		}
		g := &group{dirs: []string{dir}, v2: true}
		set := map[string]string{}
		if l.Memory > 0 {
			set["memory.max"], set["memory.swap.max"] = strconv.FormatInt(l.Memory, 10), "0"
		}
		if l.Processes > 0 {
			set["pids.max"] = strconv.FormatInt(l.Processes, 10)
		}
		ok := true
		for file, v := range set {
			err := os.WriteFile(filepath.Join(dir, file), []byte(v), 0)
			ok = ok && (err == nil || file == "memory.swap.max")
		}
		if g.fd, err = os.Open(dir); err == nil && ok {
			return g
		}
		g.remove()
	}
	return nil
}

// holds is what the group adds to a run's guarantees.
func (g *group) holds(l Limits) Guarantee {
	var h Guarantee
	if l.Memory > 0 {
		h |= MemoryLimit
	}
	if l.Processes > 0 {
		h |= ProcessLimit
	}
	return h
}

// join puts the calling thread into a version 1 group, so that what it starts
// is inside from its first instruction; version 2 does the same at clone.
func (g *group) join(attr *syscall.SysProcAttr) error {
	if g == nil {
		return nil
	}
	if g.v2 {
		attr.UseCgroupFD, attr.CgroupFD = true, int(g.fd.Fd())
		return nil
	}
	tid := []byte(strconv.Itoa(unix.Gettid()))
	for _, d := range g.dirs {
		if err := os.WriteFile(filepath.Join(d, "tasks"), tid, 0); err != nil {
			return err
		}
	}
	return nil
}

// leave takes the calling thread out again, once what it started is inside: a
// group with a member cannot be removed.
func (g *group) leave() {
	if g == nil || g.v2 {
		return
	}
	tid := []byte(strconv.Itoa(unix.Gettid()))
	for _, d := range g.dirs {
		_ = os.WriteFile(filepath.Join(filepath.Dir(d), "tasks"), tid, 0)
	}
}

// usage reads the high-water marks before the group goes away.
func (g *group) usage(u *Usage) (forkRefusals int64) {
	if g == nil {
		return 0
	}
	for _, d := range g.dirs {
		for _, f := range []string{"memory.max_usage_in_bytes", "memory.peak"} {
			if n, err := strconv.ParseInt(readTrim(filepath.Join(d, f)), 10, 64); err == nil {
				u.PeakMemory = n
			}
		}
		for _, f := range []string{"memory.oom_control", "memory.events", "pids.events"} {
			for line := range strings.Lines(readTrim(filepath.Join(d, f))) {
				k, v, _ := strings.Cut(strings.TrimSpace(line), " ")
				n, _ := strconv.ParseInt(v, 10, 64)
				switch {
				case k == "oom_kill":
					u.OOMKills = n
				case k == "max" && f == "pids.events":
					forkRefusals = n
				}
			}
		}
	}
	return forkRefusals
}

func readTrim(path string) string {
	b, _ := os.ReadFile(path)
	return strings.TrimSpace(string(b))
}

// remove deletes the group, from the thread that may still be in it. Its last
// members may still be on their way out.
func (g *group) remove() {
	if g == nil {
		return
	}
	g.leave()
	if g.fd != nil {
		_ = g.fd.Close()
	}
	for _, d := range g.dirs {
		for range 50 {
			if err := os.Remove(d); err == nil || errors.Is(err, os.ErrNotExist) {
				break
			}
			time.Sleep(2 * time.Millisecond)
		}
	}
}
