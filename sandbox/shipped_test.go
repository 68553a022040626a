//go:build linux

package sandbox_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/sandbox"
)

// buildLauncher builds the second stage as `make build` does, for the tests that
// are about what is shipped; the others play it themselves.
var buildLauncher = sync.OnceValues(func() (string, error) {
	if given := os.Getenv("GH_LAUNCHER"); given != "" { // the same tests as another user
		return given, nil
	}
	dir, err := os.MkdirTemp("", "gh-launch-")
	if err != nil {
		return "", err
	}
	cleanups = append(cleanups, func() { _ = os.RemoveAll(dir) })
	out := filepath.Join(dir, "gatehouse-launch")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", out, "../cmd/gatehouse-launch")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s %w", text, err)
	}
	return out, os.Chmod(dir, 0o755)
})

func shippedLauncher(t testing.TB) string {
	t.Helper()
	path, err := buildLauncher()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestShippedLauncher: the second stage as a program of its own says what goes
// wrong as the one inside a larger program does.
func TestShippedLauncher(t *testing.T) {
	if out, err := exec.Command(shippedLauncher(t)).CombinedOutput(); err == nil || len(out) == 0 {
		t.Errorf("started by hand: %q %v", out, err)
	}
	for _, stage2 := range []string{"", shippedLauncher(t)} {
		for _, b := range []sandbox.Backend{sandbox.Bubblewrap, sandbox.Landlock} {
			s := script(work(t), "echo $0; exit 3")
			s.Backend, s.Launcher, s.Without = b, stage2, sandbox.ProtectedPaths
			s.Command = append(s.Command, "name")
			r, err := sandbox.Run(t.Context(), s)
			if err != nil || r.ExitCode != 3 || string(r.Stdout) != "name\n" {
				t.Errorf("%s %q: %+v %v", b, stage2, r, err)
			}
			broken := filepath.Join(s.Dir, "broken")
			if err := os.WriteFile(broken, []byte("#!/nowhere\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			s.Command = []string{broken}
			r, err = sandbox.Run(t.Context(), s)
			if err != nil || r.ExitCode != 127 || r.StartErr != "no such file or directory" {
				t.Errorf("%s %q: %+v %v", b, stage2, r, err)
			}
		}
	}
}
