package job

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// process is one line of /proc.
type proc struct {
	pid, parent int
	start       uint64
	zombie      bool
}

// processes lists what runs here, as far as it can be seen.
func processes() []proc {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	var list []proc
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			if p, ok := readProc(pid); ok {
				list = append(list, p)
			}
		}
	}
	return list
}

// readProc reads one process. Its name, in brackets, is its own choice and may
// hold anything.
func readProc(pid int) (proc, bool) {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return proc{}, false
	}
	at := bytes.LastIndexByte(raw, ')')
	fields := strings.Fields(string(raw[at+1:]))
	if at < 0 || len(fields) < 20 {
		return proc{}, false
	}
	parent, errParent := strconv.Atoi(fields[1])
	start, errStart := strconv.ParseUint(fields[19], 10, 64)
	return proc{pid: pid, parent: parent, start: start, zombie: fields[0] == "Z" || fields[0] == "X"}, errParent == nil && errStart == nil
}

// below are the processes under the roots, without these.
func below(list []proc, roots map[int]bool) []proc {
	var out []proc
	seen := map[int]bool{}
	for grown := true; grown; {
		grown = false
		for _, p := range list {
			if !seen[p.pid] && (roots[p.parent] || seen[p.parent]) && !roots[p.pid] {
				seen[p.pid], grown = true, true
				out = append(out, p)
			}
		}
	}
	return out
}

// end kills a process if it is still the one that was seen: the handle is opened
// first, then it is looked at again, so that a used process id is never hit.
func end(p proc) error {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if now, ok := readProc(p.pid); !ok || now.start != p.start || now.zombie {
		return nil
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return err
	}
	return nil
}

// left are the processes of jobs that ended without a supervisor: those under
// one that is recorded and those that carry a job's variable. Processes of the
// gate itself are never among them.
func left(jobs []Job) []proc {
	list := processes()
	roots, wanted := map[int]bool{}, map[string]bool{}
	var out []proc
	for _, b := range jobs {
		wanted[marker+"="+b.ID] = true
		if p, ok := readProc(b.process.PID); ok && b.process.PID > 1 && p.start == b.process.Start && b.process.Boot == bootID() {
			roots[p.pid] = true
			if !p.zombie {
				out = append(out, p)
			}
		}
	}
	out = append(out, below(list, roots)...)
	self := os.Getpid()
	for _, p := range list {
		if !p.zombie && p.pid != self && carries(p.pid, wanted) {
			out = append(out, p)
		}
	}
	out = slices.DeleteFunc(out, func(p proc) bool { return p.pid == self || p.zombie })
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
	pause := time.Millisecond
	for began := time.Now(); ; pause = min(2*pause, 100*time.Millisecond) {
		alive := left(jobs)
		if len(alive) == 0 {
			return nil
		}
		for _, p := range alive {
			_ = end(p) // what could not be ended is found again
		}
		if time.Since(began) > patience {
			var pids []int
			for _, p := range alive {
				pids = append(pids, p.pid)
			}
			return pids
		}
		time.Sleep(pause)
	}
}
