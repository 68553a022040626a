package golangci_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestGolangciLint builds golangci-lint with the plugin and has it look at the
// example: the tools that do more than they declare are reported where the
// comments say so, and the one that does what it says is not.
func TestGolangciLint(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	// The versions are those of the module; whatever the go command would add to
	// the file stays out of the tree.
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		root, err := filepath.Abs("../../..")
		if err != nil {
			t.Fatal(err)
		}
		text = bytes.Replace(text, []byte("=> ../../.."), []byte("=> "+root), 1)
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	env := append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod -modfile="+filepath.Join(dir, "go.mod"), "GOLANGCI_LINT_CACHE="+filepath.Join(dir, "cache"))
	bin := filepath.Join(dir, "golangci-lint")
	build := exec.Command("go", "build", "-o", bin, "./lint")
	build.Env = env
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	lint := exec.Command(bin, "run", "--config", "example/.golangci.yml", "--output.json.path", "stdout", "--show-stats=false", "./example/...")
	lint.Env = env
	var stdout, stderr bytes.Buffer
	lint.Stdout, lint.Stderr = &stdout, &stderr
	if err := lint.Run(); err == nil || lint.ProcessState.ExitCode() != 1 {
		t.Fatalf("golangci-lint ended with %v\n%s%s", err, &stdout, &stderr)
	}
	var report struct {
		Issues []struct {
			FromLinter, Text string
			Pos              struct {
				Filename string
				Line     int
			}
		}
	}
	if err := json.Unmarshal(stdout.Bytes(), &report); err != nil {
		t.Fatalf("%v\n%s", err, &stdout)
	}
	got := map[string]string{}
	for _, i := range report.Issues {
		if i.FromLinter != "gatehouse" {
			t.Errorf("%s reports %s", i.FromLinter, i.Text)
		}
		got[fmt.Sprintf("%s:%d", filepath.Base(i.Pos.Filename), i.Pos.Line)] = i.Text
	}
	want := map[string]string{}
	for at, words := range expected(t) {
		if !strings.Contains(got[at], words) {
			t.Errorf("%s: %q does not say %q", at, got[at], words)
		}
		want[at] = got[at]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// expected reads the example's want comments.
func expected(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("example/tools.go")
	if err != nil {
		t.Fatal(err)
	}
	words := map[string]string{"exec": "can start programs (render → library.Render → exec.Command)", "policy": "declares no policy"}
	want := map[string]string{}
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		if _, code, ok := strings.Cut(line, "// want "); ok {
			want[fmt.Sprintf("tools.go:%d", n)] = words[strings.TrimSpace(code)]
		}
	}
	if len(want) == 0 {
		t.Fatal("the example wants nothing")
	}
	return want
}
