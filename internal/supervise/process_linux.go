package supervise

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Process is one that runs here, by its id and when it started.
type Process struct {
	PID, Parent int
	Start       uint64 // ticks since the machine started
	Zombie      bool
}

// Processes lists what runs here, as far as it can be seen.
func Processes() []Process {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	var list []Process
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			if p, ok := Read(pid); ok {
				list = append(list, p)
			}
		}
	}
	return list
}

// Read reads one process. Its name, in brackets, is its own choice and may hold
// anything.
func Read(pid int) (Process, bool) {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return Process{}, false
	}
	at := bytes.LastIndexByte(raw, ')')
	fields := strings.Fields(string(raw[at+1:]))
	if at < 0 || len(fields) < 20 {
		return Process{}, false
	}
	parent, errParent := strconv.Atoi(fields[1])
	start, errStart := strconv.ParseUint(fields[19], 10, 64)
	return Process{PID: pid, Parent: parent, Start: start, Zombie: fields[0] == "Z" || fields[0] == "X"}, errParent == nil && errStart == nil
}

// Below are the processes under the roots, without these.
func Below(list []Process, roots map[int]bool) []Process {
	var out []Process
	seen := map[int]bool{}
	for grown := true; grown; {
		grown = false
		for _, p := range list {
			if !seen[p.PID] && (roots[p.Parent] || seen[p.Parent]) && !roots[p.PID] {
				seen[p.PID], grown = true, true
				out = append(out, p)
			}
		}
	}
	return out
}

// End kills a process if it is still the one that was seen: the handle is opened
// first, then it is looked at again, so that a used process id is never hit.
func (p Process) End() error {
	fd, err := unix.PidfdOpen(p.PID, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if now, ok := Read(p.PID); !ok || now.Start != p.Start || now.Zombie {
		return nil
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return err
	}
	return nil
}
