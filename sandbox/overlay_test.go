//go:build linux

package sandbox_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/sandbox"
)

func TestOverlayKeepsChangesOutOfTheRoot(t *testing.T) {
	dir := work(t)
	root, layer := filepath.Join(dir, "root"), filepath.Join(dir, "layer")
	if err := os.MkdirAll(filepath.Join(root, ".git/hooks"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{"keep", "change", "remove"} {
		if err := os.WriteFile(filepath.Join(root, f), []byte("old\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s := sandbox.Spec{
		Command: []string{"/bin/sh", "-c", "echo new > change && rm remove && mkdir d && echo x > d/new && echo evil > .git/hooks/pre-commit && mv keep kept && cat change && ls"},
		Dir:     root, Overlay: sandbox.Overlay{Root: root, Layer: layer},
	}
	r := run(t, s)
	if r.ExitCode != 0 {
		t.Fatalf("%s", r.Stderr)
	}
	for _, f := range []string{"keep", "change", "remove"} {
		if b, err := os.ReadFile(filepath.Join(root, f)); err != nil || string(b) != "old\n" {
			t.Errorf("%s: %q %v", f, b, err)
		}
	}
	if b, err := os.ReadFile(filepath.Join(layer, "upper/change")); err != nil || string(b) != "new\n" {
		t.Errorf("%q %v", b, err)
	}
}
