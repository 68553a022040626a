// Package needtest says what a test needs of the machine it runs on.
//
// The README's test command installs what the tests need. Under it a test that
// does not find something fails, so that nothing is left out in silence. Under
// a plain `go test`, on a machine that has not everything, the test is skipped
// and says how to run it.
//
// What no command can install (another user, a container engine's image) is
// not of this kind: tests that need that skip with their own reason.
package needtest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Complete is the variable that the test command sets once everything that the
// tests need is there.
const Complete = "GATEHOUSE_TESTS_COMPLETE"

// Programs ends the test where one of the programs is not on the path.
func Programs(t testing.TB, names ...string) {
	t.Helper()
	for _, name := range names {
		OneOf(t, name)
	}
}

// OneOf returns the path of the first of the programs that is there, and ends
// the test where none is.
func OneOf(t testing.TB, names ...string) string {
	t.Helper()
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	Missing(t, strings.Join(names, " or ")+" is not installed")
	return ""
}

// Chromium returns the path of the system's browser.
func Chromium(t testing.TB) string {
	t.Helper()
	return OneOf(t, "chromium", "chromium-browser", "google-chrome")
}

// Missing ends the test for want of something: as a failure where everything
// should be there, else as a skip.
func Missing(t testing.TB, what string) {
	t.Helper()
	if os.Getenv(Complete) != "" {
		t.Fatalf("%s, though all that the tests need was found", what)
	}
	t.Skipf("%s: `go run ./test/all` installs what the tests need and runs them", what)
}

// Children are the processes that a process has started, by their lines in
// /proc: not every kernel lists them by itself.
func Children(t testing.TB, parent int) (pids []int) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(files) == 0 {
		t.Fatalf("no processes can be seen in /proc: %v", err)
	}
	for _, file := range files {
		line, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		// The name in brackets is the process's own choice.
		fields := strings.Fields(string(line[bytes.LastIndexByte(line, ')')+1:]))
		if len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			if err != nil {
				t.Fatal(err)
			}
			pids = append(pids, pid)
		}
	}
	return pids
}
