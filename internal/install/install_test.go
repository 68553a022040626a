package install_test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/install"
	"github.com/seed-3ebc6b8a/gatehouse/internal/needtest"
)

func program(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"gatehouse", "gatehouse-hook"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "gatehouse")
}

// TestSystem lays the system's gate out under another root, has systemd read
// its units, and takes it out again with the data left.
func TestSystem(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	plan := install.System(install.Options{Program: program(t), Home: "/home/ann", Listen: "127.0.0.1:7878"})
	target := install.Target{Root: root, Log: io.Discard, Run: func(args ...string) error {
		t.Errorf("%q was run for another root", args)
		return nil
	}}
	if err := plan.Apply(target); err != nil {
		t.Fatal(err)
	}
	modes := map[string]os.FileMode{
		"/usr/local/bin/gatehouse": 0o755, "/usr/local/bin/gatehouse-hook": 0o755, "/var/lib/gatehouse": 0o700,
		"/etc/systemd/system/gatehouse.service": 0o644, "/etc/systemd/system/gatehouse.socket": 0o644,
	}
	for path, want := range modes {
		info, err := os.Stat(filepath.Join(root, path))
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v %v", path, info, err)
		}
	}
	verify(t, root)
	if err := plan.Remove(target); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "usr/local/bin/gatehouse")); err == nil {
		t.Error("the program is still there")
	}
	if _, err := os.Stat(filepath.Join(root, "var/lib/gatehouse")); err != nil {
		t.Error("the data is gone")
	}
}

// verify has systemd read the units, where it is.
func verify(t *testing.T, root string) {
	t.Helper()
	needtest.Programs(t, "systemd-analyze")
	out, err := exec.Command("systemd-analyze", "verify", "--man=no", "--root="+root, "gatehouse.socket", "gatehouse.service").CombinedOutput()
	for line := range strings.Lines(string(out)) {
		// The other units of the system are not under this root.
		if strings.Contains(line, "gatehouse") && !strings.Contains(line, "sysinit.target not found") {
			t.Errorf("systemd-analyze verify: %v: %s", err, line)
		}
	}
}

// TestUser: a person's own service, on Linux and on a Mac, survives paths with
// spaces.
func TestUser(t *testing.T) {
	t.Parallel()
	o := install.Options{Program: "/Users/ann/my tools/gatehouse", Listen: "127.0.0.1:7878"}
	mac := install.User(o, "darwin", "/Users/ann", "/Users/ann/<data>")
	if f := mac.Files[0]; !strings.HasPrefix(f.Path, "/Users/ann/Library/LaunchAgents/") || !strings.Contains(f.Text, "<string>/Users/ann/my tools/gatehouse</string>") || !strings.Contains(f.Text, "&lt;data&gt;") {
		t.Errorf("%+v", f)
	}
	linux := install.User(o, "linux", "/home/ann", "/home/ann/data")
	if f := linux.Files[0]; f.Path != "/home/ann/.config/systemd/user/gatehouse.service" || !strings.Contains(f.Text, `ExecStart="/Users/ann/my tools/gatehouse" up --data /home/ann/data`) {
		t.Errorf("%+v", f)
	}
}
