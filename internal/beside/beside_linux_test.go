package beside_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/beside"
)

// TestTrusted: a program that others could have written is not started.
func TestTrusted(t *testing.T) {
	t.Parallel()
	for mode, want := range map[os.FileMode]bool{0o755: true, 0o700: true, 0o775: false, 0o757: false, 0o644: false} {
		path := filepath.Join(t.TempDir(), "program")
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if got := beside.Trusted(path); got != want {
			t.Errorf("%o: %v", mode, got)
		}
	}
	if beside.Trusted(t.TempDir()) || beside.Trusted("/nowhere/at-all") {
		t.Error("what is no file is trusted")
	}
	if path, ok := beside.Find("no-such-program"); ok {
		t.Errorf("%s was found", path)
	}
}

// TestAttackReplacedProgram: a copy runs as it was, whatever becomes of the file,
// and cannot be written.
func TestAttackReplacedProgram(t *testing.T) {
	t.Parallel()
	source, err := exec.LookPath("true")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, raw, 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := beside.Copy("program", path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := os.WriteFile(path, []byte("#!/bin/sh\nexit 9\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/fd/3")
	cmd.ExtraFiles = []*os.File{f}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s %v", out, err)
	}
	if w, err := os.OpenFile("/proc/self/fd/"+filepath.Base(f.Name()), os.O_WRONLY, 0); err == nil {
		if _, err := w.WriteAt([]byte("x"), 0); err == nil {
			t.Error("the copy was written")
		}
		_ = w.Close()
	}
}
