package session

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
)

// ErrLauncher says that what came to show a receipt is not what could have made
// the sandbox.
var ErrLauncher = errors.New("this receipt is not from the gate's own launcher")

// Launched looks at who shows a receipt, by what the kernel says about it: the
// process at the other end of the socket runs the gate's own program, and the
// child it names is below it, is nobody's tracee, has no privileges to gain and
// a filter; where the back-end makes namespaces, one of its own. It returns what
// was seen. Of another user's process the program cannot be read; then that is
// not among it.
//
// It does not see what is mounted in there, nor that the child becomes the
// command: that is the launcher's word, which is why it has to be ours.
func Launched(p *Peer, child int, namespaces bool) (seen []string, err error) {
	if p == nil || len(p.Chain) == 0 {
		return nil, fmt.Errorf("%w: it did not come over the gate's socket", ErrLauncher)
	}
	launcher := p.Chain[0]
	switch same, err := ownProgram(launcher.PID); {
	case errors.Is(err, os.ErrPermission):
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrLauncher, err)
	case !same:
		return nil, fmt.Errorf("%w: %s runs another program (if it was built anew, restart the gate)", ErrLauncher, launcher.Exe)
	default:
		seen = append(seen, "program")
	}
	if err := untraced(launcher.PID); err != nil {
		return nil, err
	}
	if child == 0 {
		return seen, alive(launcher)
	}
	chain, err := Ancestry(child)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrLauncher, err)
	}
	below := false
	for _, a := range chain[1:] {
		below = below || a.Is(launcher)
	}
	if !below {
		return nil, fmt.Errorf("%w: process %d is not below it", ErrLauncher, child)
	}
	held, err := heldStatus(child, namespaces)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(alive(launcher), alive(chain[0])); err != nil {
		return nil, err
	}
	return append(append(seen, "child"), held...), nil
}

func alive(p Process) error {
	if !Alive(p) {
		return fmt.Errorf("%w: process %d has gone", ErrLauncher, p.PID)
	}
	return nil
}

// heldStatus reads from the kernel what holds a process.
func heldStatus(pid int, namespaces bool) (seen []string, err error) {
	if err := untraced(pid); err != nil {
		return nil, err
	}
	status, err := readStatus(pid)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrLauncher, err)
	}
	want := []struct{ key, value, name string }{
		{"NoNewPrivs", "1", "no-new-privileges"}, {"Seccomp", "2", "seccomp"},
		{"CapEff", "0000000000000000", "no-capabilities"}, {"CapPrm", "0000000000000000", "no-capabilities-permitted"},
	}
	for _, w := range want {
		if status[w.key] != w.value {
			return nil, fmt.Errorf("%w: process %d has %s %q", ErrLauncher, pid, w.key, status[w.key])
		}
		seen = append(seen, w.name)
	}
	if namespaces {
		own, err := readStatus(os.Getpid())
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrLauncher, err)
		}
		if len(strings.Fields(status["NSpid"])) <= len(strings.Fields(own["NSpid"])) {
			return nil, fmt.Errorf("%w: process %d has no process namespace of its own", ErrLauncher, pid)
		}
		seen = append(seen, "pid-namespace")
	}
	return seen, nil
}

// untraced refuses a process that another one steers.
func untraced(pid int) error {
	status, err := readStatus(pid)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrLauncher, err)
	}
	if status["TracerPid"] != "0" {
		return fmt.Errorf("%w: process %d is traced by %s", ErrLauncher, pid, status["TracerPid"])
	}
	return nil
}

func readStatus(pid int) (map[string]string, error) {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return nil, err
	}
	status := map[string]string{}
	for line := range strings.Lines(string(raw)) {
		if key, value, ok := strings.Cut(line, ":"); ok {
			status[key] = strings.TrimSpace(value)
		}
	}
	return status, nil
}

// ownProgram says whether a process runs the file that this one runs, or a copy.
func ownProgram(pid int) (bool, error) {
	const self = "/proc/self/exe"
	theirs := "/proc/" + strconv.Itoa(pid) + "/exe"
	a, err := os.Stat(self)
	if err != nil {
		return false, err
	}
	b, err := os.Stat(theirs)
	if err != nil {
		return false, err
	}
	if os.SameFile(a, b) {
		return true, nil
	}
	if a.Size() != b.Size() {
		return false, nil
	}
	mine, err := ownSum()
	if err != nil {
		return false, err
	}
	other, err := sumOf(theirs)
	return err == nil && mine == other, err
}

var ownSum = sync.OnceValues(func() ([sha256.Size]byte, error) { return sumOf("/proc/self/exe") })

func sumOf(path string) (sum [sha256.Size]byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return sum, err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return sum, err
	}
	return [sha256.Size]byte(h.Sum(nil)), nil
}
