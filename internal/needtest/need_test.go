package needtest_test

import (
	"os"
	"os/exec"
	"slices"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/needtest"
)

// ending is a test whose end is looked at.
type ending struct {
	testing.TB
	failed, skipped bool
}

func (e *ending) Helper()               {}
func (e *ending) Fatalf(string, ...any) { e.failed = true }
func (e *ending) Skipf(string, ...any)  { e.skipped = !e.failed } // nothing follows a failure

func TestMissing(t *testing.T) {
	for _, c := range []struct {
		complete string
		fails    bool
	}{{"", false}, {"1", true}} {
		t.Setenv(needtest.Complete, c.complete)
		e := &ending{}
		needtest.Programs(e, "no-program-of-this-name")
		if e.failed != c.fails || e.skipped == c.fails {
			t.Errorf("complete %q: failed %t, skipped %t", c.complete, e.failed, e.skipped)
		}
		e = &ending{}
		if needtest.OneOf(e, "no-program-of-this-name", "go") == "" || e.failed || e.skipped {
			t.Errorf("complete %q: a program that is there is missed", c.complete)
		}
	}
}

func TestChildren(t *testing.T) {
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	if pids := needtest.Children(t, os.Getpid()); !slices.Contains(pids, cmd.Process.Pid) {
		t.Errorf("%d is not among %v", cmd.Process.Pid, pids)
	}
}
