package observe_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/observe"
	"github.com/seed-3ebc6b8a/gatehouse/internal/policy"
)

// TestUncommittedWorkIsNamed makes a real repository and asks about calls that
// write or delete in it: what git would not get back is named, and only that.
func TestUncommittedWorkIsNamed(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	dir := observe.RealDir(t.TempDir())
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "core.autocrlf=false"}, args...)...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	git("init", "-q")
	write("saved.txt", "saved")
	write("src/saved.go", "saved")
	write("src/changed.go", "old")
	git("add", ".")
	git("commit", "-qm", "first")
	write("src/changed.go", "new, and nobody has it")
	write("src/new.go", "untracked")
	tests := []struct {
		name, op, args string
		want           []string
	}{
		{"saved file", "Write", `{"file_path":"saved.txt"}`, nil},
		{"changed file", "Write", `{"file_path":"src/changed.go"}`, []string{"src/changed.go (changed)"}},
		{"new file", "Edit", `{"file_path":"src/new.go"}`, []string{"src/new.go (untracked)"}},
		{"file that is not there", "Write", `{"file_path":"src/none.go"}`, nil},
		{"reading loses nothing", "Read", `{"file_path":"src/changed.go"}`, nil},
		{"whole tree", "Bash", `{"command":"rm -rf src"}`, []string{"src/changed.go (changed)", "src/new.go (untracked)"}},
	}
	for _, tt := range tests {
		c := &call.Call{Kind: call.External, Surface: "test", Operation: tt.op, Args: []byte(tt.args), Dir: dir}
		if err := c.Normalize(); err != nil {
			t.Fatal(err)
		}
		got := new(observe.Machine).Facts(context.Background(), c, policy.Default()).Uncommitted
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", tt.name, diff)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, ".git", "index"), []byte("DIRC\x00\x00\x00\x02\x00\x00\x00\x09cut off"), 0o644); err != nil {
		t.Fatal(err)
	}
	c := &call.Call{Kind: call.External, Surface: "test", Operation: "Write", Args: []byte(`{"file_path":"saved.txt"}`), Dir: dir}
	if err := c.Normalize(); err != nil {
		t.Fatal(err)
	}
	if got := new(observe.Machine).Facts(context.Background(), c, policy.Default()).Uncommitted; len(got) != 1 {
		t.Errorf("with a broken index: %v, want the path named as one that cannot be told", got)
	}
}
