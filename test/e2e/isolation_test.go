package e2e_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
	"github.com/seed-3ebc6b8a/gatehouse/internal/manifest"
	"github.com/seed-3ebc6b8a/gatehouse/test/gatetest"
	"github.com/seed-3ebc6b8a/gatehouse/tool/declare"
)

// TestIsolationFromAManifest: what agents run in is said by the machine's
// policy, then on the command line, then by the manifest that the operator
// gives, then by nobody.
func TestIsolationFromAManifest(t *testing.T) {
	t.Parallel()
	m, err := manifest.New("work", &declare.Set{Isolation: "container"})
	if err != nil {
		t.Fatal(err)
	}
	text, err := m.JSON()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "permissions.json")
	write(t, file, string(text))
	for _, tt := range []struct {
		args    []string
		allowed bool
	}{
		{[]string{"--manifest", file}, true},
		{[]string{"--manifest", file, "--isolation", "none"}, false}, // the command line goes before it
	} {
		g := gatetest.New(t, tt.args...)
		write(t, filepath.Join(g.Home, "policy.toml"), "version = 1\nprofile = \"autonomous\"\n")
		g.Up()
		got := people(t, g).submit(in(t.TempDir(), tool("Write", "file_path", "notes.md")))
		if (got.Verdict == gate.Allowed) != tt.allowed {
			t.Errorf("%v: %s", tt.args, got.Message)
		}
	}
	write(t, file, strings.Replace(string(text), `"container"`, `"vm"`, 1))
	if out, err := exec.Command(gatetest.Binary(t), "--data", t.TempDir(), "up", "--listen", "127.0.0.1:0", "--manifest", file).CombinedOutput(); err == nil || !strings.Contains(string(out), "edited after") {
		t.Errorf("a manifest that was changed by hand counts: %v %s", err, out)
	}
}
