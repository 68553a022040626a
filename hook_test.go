package gatehouse_test

import (
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The hook is started on every tool call of an agent, so its weight is paid all
// day long.
const (
	hook = "cmd/gatehouse-hook"
	// hookPackages is the reviewed list of what it links.
	hookPackages = "testdata/hook-packages.txt"
	// maxHookBytes is its size, stripped. A program of the standard library
	// with a unix socket and JSON has about 2.6 MB.
	maxHookBytes = 4 << 20
	// maxHookStart is its start-up, as a multiple of a program that does
	// nothing, both measured here and now.
	maxHookStart = 5.0
)

var update = flag.Bool("update", false, "rewrite the reviewed list of packages that the hook links")

// TestHookPackages compares what the hook links with the reviewed list: a new
// package in it is a decision, not an accident of some import far below.
func TestHookPackages(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("go", "list", "-deps", "./"+hook)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v%s", err, stderrOf(err))
	}
	var got []string
	for p := range strings.FieldsSeq(string(out)) {
		// What is inside the standard library differs from one release to the
		// next and is not ours to review.
		if !strings.Contains(p, "internal/") && !strings.HasPrefix(p, "vendor/") || strings.HasPrefix(p, module) {
			got = append(got, p)
		}
	}
	if *update {
		if err := os.MkdirAll(filepath.Dir(hookPackages), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(hookPackages, []byte(strings.Join(got, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(hookPackages)
	if err != nil {
		t.Fatalf("%v; review what it links and run go test -run TestHookPackages -update .", err)
	}
	if diff := cmp.Diff(strings.Fields(string(want)), got); diff != "" {
		t.Errorf("%s links other packages than %s says (-reviewed +linked):\n%s", hook, hookPackages, diff)
	}
}

// TestHookIsLight measures the built hook: its size, and its start-up without a
// daemon against a program that does nothing.
func TestHookIsLight(t *testing.T) {
	if testing.Short() {
		t.Skip("measures time, which a short run leaves out")
	}
	dir := t.TempDir()
	nothing := filepath.Join(dir, "nothing.go")
	if err := os.WriteFile(nothing, []byte("package main\n\nfunc main() { println(\"hello, world\") }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	hello, program := goBuild(t, dir, "hello", nothing), goBuild(t, dir, "hook", "./"+hook)
	info, err := os.Stat(program)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > maxHookBytes {
		t.Errorf("the hook has %d bytes, over %d", info.Size(), maxHookBytes)
	}
	base, took := time.Duration(1<<62), time.Duration(1<<62)
	for range 40 {
		base = min(base, start(dir, hello))
		took = min(took, start(dir, program))
	}
	ratio := float64(took) / float64(base)
	t.Logf("hello world %v, hook %v: %.1f times, %d bytes", base, took, ratio, info.Size())
	if ratio > maxHookStart {
		t.Errorf("the hook takes %.1f times as long as hello world to start, over %.1f", ratio, maxHookStart)
	}
}

func goBuild(t *testing.T, dir, name, what string) string {
	t.Helper()
	out := filepath.Join(dir, name)
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", out, what)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build %s: %v\n%s", what, err, said)
	}
	return out
}

// start runs a program to its end, with nothing on its standard input and no
// gate to be found, and returns how long that took. How it ends does not
// matter here.
func start(dir, program string) time.Duration {
	cmd := exec.Command(program)
	cmd.Dir = dir
	cmd.Env = []string{"HOME=" + dir, "GATEHOUSE_HOME=" + filepath.Join(dir, "none")}
	began := time.Now()
	_ = cmd.Run()
	return time.Since(began)
}

func stderrOf(err error) string {
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return "\n" + string(exit.Stderr)
	}
	return ""
}
