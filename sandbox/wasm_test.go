//go:build linux

package sandbox_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/sandbox"
)

var wasmModule = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "gh-wasm-")
	if err != nil {
		return "", err
	}
	cleanups = append(cleanups, func() { _ = os.RemoveAll(dir) })
	out := filepath.Join(dir, "tool.wasm")
	cmd := exec.Command("go", "build", "-o", out, "./testdata/wasmtool")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	text, err := cmd.CombinedOutput()
	if err != nil {
		return "", &os.PathError{Op: string(text), Path: out, Err: err}
	}
	return out, nil
})

// A module reaches what is declared and nothing else, links included.
func TestWasm(t *testing.T) {
	notRaced(t, "reading a module of a few megabytes takes it most of a minute, once per run")
	module, err := wasmModule()
	if err != nil {
		t.Fatal(err)
	}
	dir := work(t)
	put(t, dir, map[string]string{"w/in": "declared", "w/.git/hooks/x": "hook", "r/in": "readable", "outside": secret})
	if err := os.Symlink("../outside", dir+"/w/link"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dir, dir+"/r/up"); err != nil {
		t.Fatal(err)
	}
	base := sandbox.Spec{
		Dir: dir + "/w", Write: []string{dir + "/w"}, Read: []string{dir + "/r"},
		Env: sandbox.Env{Pass: []string{}, Set: map[string]string{"GIVEN": "yes"}},
	}
	for _, c := range []struct {
		args string
		out  string
		fine bool
	}{
		{"read w/in", "declared", true}, {"read r/in", "readable", true}, {"write w/new", "", true}, {"env GIVEN", "yes", true}, {"env HOME", "", true},
		{"write r/new", "", false}, {"read outside", "", false}, {"read w/link", "", false}, {"write w/link", "", false}, {"read r/up/outside", "", false},
		{"read w/../outside", "", false}, {"write w/.git/hooks/x", "", false}, {"write w/.mcp.json", "", false}, {"link w/evil", "", false},
		{"rename w/.git w/g2", "", false}, {"dial 127.0.0.1:80", "", false}, {"exec now", "", false}, {"exit now", "", false},
	} {
		t.Run(c.args, func(t *testing.T) {
			s := base
			s.Command = []string{module}
			for i, a := range strings.Fields(c.args) {
				if i > 0 && strings.Contains(a, "/") || a == "outside" {
					a = dir + "/" + a
				}
				s.Command = append(s.Command, a)
			}
			r := run(t, s)
			if (r.ExitCode == 0) != c.fine || !strings.Contains(string(r.Stdout), c.out) || strings.Contains(string(r.Stdout), secret) {
				t.Errorf("exit %d %q %q", r.ExitCode, r.Stdout, r.Stderr)
			}
			if r.Backend != sandbox.Wasm {
				t.Errorf("ran under %s", r.Backend)
			}
		})
	}
	s := base
	s.Command, s.Limits.Wall = []string{module, "spin"}, 3*time.Second
	if r := run(t, s); r.Ended != sandbox.EndWall {
		t.Errorf("ended by %s", r.Ended)
	}
}
