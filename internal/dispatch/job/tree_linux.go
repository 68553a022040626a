package job

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/supervise"
)

// left are the processes of jobs that ended without a supervisor: those under
// one that is recorded and those that carry a job's variable. Processes of the
// gate itself are never among them.
func left(jobs []Job) []supervise.Process {
	list := supervise.Processes()
	roots, wanted := map[int]bool{}, map[string]bool{}
	var out []supervise.Process
	for _, b := range jobs {
		wanted[marker+"="+b.ID] = true
		if p, ok := supervise.Read(b.process.PID); ok && b.process.PID > 1 && p.Start == b.process.Start && b.process.Boot == bootID() {
			roots[p.PID] = true
			if !p.Zombie {
				out = append(out, p)
			}
		}
	}
	out = append(out, supervise.Below(list, roots)...)
	self := os.Getpid()
	for _, p := range list {
		if !p.Zombie && p.PID != self && carries(p.PID, wanted) {
			out = append(out, p)
		}
	}
	out = slices.DeleteFunc(out, func(p supervise.Process) bool { return p.PID == self || p.Zombie })
	return out
}

func bootID() string {
	raw, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // without it nothing matches
	return strings.TrimSpace(string(raw))
}

// carries says whether a process has one of the variables.
func carries(pid int, wanted map[string]bool) bool {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil || !bytes.Contains(raw, []byte(marker)) {
		return false
	}
	for v := range bytes.SplitSeq(raw, []byte{0}) {
		if wanted[string(v)] {
			return true
		}
	}
	return false
}

// endLeft kills what is left of jobs until nothing is, or until the time is
// over. It returns what it could not end.
func endLeft(jobs []Job, patience time.Duration) []int {
	if len(jobs) == 0 {
		return nil
	}
	var supervisors []supervise.Process
	for _, b := range jobs {
		if b.process.Boot == bootID() {
			supervisors = append(supervisors, supervise.Process{PID: b.process.PID, Start: b.process.Start})
		}
	}
	pause := time.Millisecond
	for began := time.Now(); ; pause = min(2*pause, 100*time.Millisecond) {
		supervise.EndGroups(supervisors)
		alive := left(jobs)
		if len(alive) == 0 {
			supervise.EndGroups(supervisors) // which were not empty a moment ago
			return nil
		}
		for _, p := range alive {
			_ = p.End() // what could not be ended is found again
		}
		if time.Since(began) > patience {
			var pids []int
			for _, p := range alive {
				pids = append(pids, p.PID)
			}
			return pids
		}
		time.Sleep(pause)
	}
}

// tidyGroups removes the cgroups that supervisors of earlier runs left.
func tidyGroups() { supervise.TidyGroups() }
