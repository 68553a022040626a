//go:build linux

package sandbox_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/sandbox"
)

// A control group lives as long as its run.
func TestControlGroupsAreRemoved(t *testing.T) {
	left := func() int {
		n := 0
		_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, d os.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				if m, _ := filepath.Match("gatehouse-*", d.Name()); m {
					n++
				}
			}
			return nil
		})
		return n
	}
	before := left()
	s := script(work(t), "true")
	s.Limits = sandbox.Limits{Memory: 256 << 20, Processes: 64}
	r := run(t, s)
	if got := left(); got > before {
		t.Errorf("%d groups before, %d after", before, got)
	}
	if r.Guarantees.Has(sandbox.MemoryLimit) && r.Usage.PeakMemory == 0 {
		t.Error("the group did not tell its peak")
	}
}
