//go:build linux

package sandbox_test

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/sandbox"
)

// TestAttack42ContainersEnd: an engine's containers are not below the process
// that asks for them, and their first process ignores what it has no handler
// for. When a run is over they are gone all the same.
func TestAttack42ContainersEnd(t *testing.T) {
	for _, b := range []sandbox.Backend{sandbox.Podman, sandbox.Docker} {
		t.Run(string(b), func(t *testing.T) {
			needBackend(t, b)
			h := newHost(t, escapeUser)
			defer h.close()
			s := h.spec(b)
			mark := strconv.FormatInt(1_000_000+time.Now().UnixNano()%1_000_000, 10)
			s.Limits.Wall = 3 * time.Second
			s.Command = []string{"/bin/sh", "-c", "trap '' TERM INT HUP; setsid sleep " + mark + " & sleep " + mark}
			r := run(t, s)
			if r.Ended != sandbox.EndWall {
				t.Errorf("ended by %s: %s", r.Ended, r.Stderr)
			}
			if left := processesWith(mark); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// processesWith lists the processes of this machine that have an argument.
func processesWith(arg string) []string {
	var found []string
	all, _ := os.ReadDir("/proc")
	for _, e := range all {
		if line, err := os.ReadFile("/proc/" + e.Name() + "/cmdline"); err == nil && strings.Contains(string(line), "sleep\x00"+arg) {
			found = append(found, e.Name()+" "+strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}
