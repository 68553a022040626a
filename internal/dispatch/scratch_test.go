//go:build unix

package dispatch

import (
	"os"
	"path/filepath"
	"testing"
)

// TestAttackPlantedScratch: what others put among the temporary files under the
// name of a run's folder is not followed and not removed, nor is what another
// gate has there.
func TestAttackPlantedScratch(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	s, other := New(Options{Dir: t.TempDir()}), New(Options{Dir: t.TempDir()})
	victim := t.TempDir()
	put(t, filepath.Join(victim, "keep.txt"), "mine")
	if err := os.Symlink(victim, s.scratch("job_link")); err != nil {
		t.Fatal(err)
	}
	put(t, s.scratch("job_file"), "a file")
	mkdir := func(path string) {
		if err := os.MkdirAll(filepath.Join(path, "deep"), 0o700); err != nil {
			t.Fatal(err)
		}
		// Within a folder that is removed, a link is removed and not followed.
		if err := os.Symlink(victim, filepath.Join(path, "deep", "link")); err != nil {
			t.Fatal(err)
		}
	}
	mkdir(s.scratch("job_left"))
	mkdir(other.scratch("job_other"))
	s.Sweep()
	if _, err := os.Lstat(s.scratch("job_left")); !os.IsNotExist(err) {
		t.Errorf("what was left is still there: %v", err)
	}
	for _, path := range []string{filepath.Join(victim, "keep.txt"), s.scratch("job_link"), s.scratch("job_file"), other.scratch("job_other")} {
		if _, err := os.Lstat(path); err != nil {
			t.Errorf("%v", err)
		}
	}
	if os.Geteuid() == 0 { // another user's, which only root can make
		mkdir(s.scratch("job_theirs"))
		if err := os.Chown(s.scratch("job_theirs"), 65534, 65534); err != nil {
			t.Fatal(err)
		}
		s.Sweep()
		if _, err := os.Lstat(s.scratch("job_theirs")); err != nil {
			t.Errorf("another user's folder was removed: %v", err)
		}
	}
}
