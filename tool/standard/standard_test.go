package standard_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/needtest"
	"github.com/seed-3ebc6b8a/gatehouse/sandbox"
	"github.com/seed-3ebc6b8a/gatehouse/tool"
	"github.com/seed-3ebc6b8a/gatehouse/tool/standard"
)

func TestMain(m *testing.M) {
	sandbox.MaybeLaunch()
	os.Exit(m.Run())
}

// repository is a module with a test, under git, with one change.
func repository(t *testing.T) string {
	t.Helper()
	if !sandbox.Supported().Any(sandbox.WriteRoots) {
		needtest.Missing(t, "no sandbox works here, and without one process tools refuse to run")
	}
	needtest.Programs(t, "git", "go")
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module example.com/m\n\ngo 1.24\n")
	write("m_test.go", "package m\n\nimport \"testing\"\n\nfunc TestOne(t *testing.T) {}\nfunc TestTwo(t *testing.T) { t.Error(\"two\") }\n")
	write("a.txt", "one\n")
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-qm", "x"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	write("a.txt", "two\n")
	return dir
}

// call runs one of the tools in a workspace.
func call(t *testing.T, dir string, of *tool.Tool, args string) tool.Result {
	t.Helper()
	a, err := tool.NewAgent(tool.AgentSpec{Name: "t", Tools: []*tool.Tool{of}, Workspace: dir})
	if err != nil {
		t.Fatal(err)
	}
	out := a.Invoke().Call(t.Context(), of.Name(), json.RawMessage(args))
	if out.Denied || out.Err != nil {
		t.Fatalf("%s: %+v", of.Name(), out)
	}
	var res tool.Result
	if err := json.Unmarshal(out.Output, &res); err != nil {
		t.Fatal(err)
	}
	return res
}

// TestGitTools: they tell what changed, and run nothing that the repository
// configures.
func TestGitTools(t *testing.T) {
	t.Parallel()
	dir := repository(t)
	if res := call(t, dir, standard.GitStatus, `{}`); res.ExitCode != 0 || !strings.Contains(res.Stdout, " M a.txt") {
		t.Errorf("git_status: %+v", res)
	}
	if res := call(t, dir, standard.GitDiff, `{"path":"a.txt"}`); res.ExitCode != 0 || !strings.Contains(res.Stdout, "+two") {
		t.Errorf("git_diff: %+v", res)
	}
	// A filter that the repository brings along is a program of the agent's.
	ran := filepath.Join(t.TempDir(), "ran")
	config := "[filter \"x\"]\n\tclean = touch " + ran + "; cat\n[diff \"x\"]\n\tcommand = touch " + ran + "\n"
	f, err := os.OpenFile(filepath.Join(dir, ".git", "config"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(config); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".gitattributes"), []byte("* filter=x diff=x\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	call(t, dir, standard.GitStatus, `{}`)
	call(t, dir, standard.GitDiff, `{}`)
	if _, err := os.Stat(ran); err == nil {
		t.Error("a program that the repository configures ran")
	}
}

// TestRunTests: the tests of the workspace run, those that are asked for, and
// an option in place of a package does not.
func TestRunTests(t *testing.T) {
	t.Parallel()
	dir := repository(t)
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(home, ".cache", "go-build"), 0o755); err != nil {
		t.Fatal(err)
	}
	if res := call(t, dir, standard.RunTests, `{"run":"One"}`); res.ExitCode != 0 || !strings.Contains(res.Stdout, "ok") {
		t.Errorf("run_tests One: %+v", res)
	}
	if res := call(t, dir, standard.RunTests, `{}`); res.ExitCode == 0 || !strings.Contains(res.Stdout, "TestTwo") {
		t.Errorf("run_tests: %+v", res)
	}
	a, err := tool.NewAgent(tool.AgentSpec{Name: "t", Tools: []*tool.Tool{standard.RunTests}, Workspace: dir})
	if err != nil {
		t.Fatal(err)
	}
	if out := a.Invoke().Call(t.Context(), "run_tests", json.RawMessage(`{"package":"-exec=sh"}`)); out.Err == nil {
		t.Errorf("an option was taken for a package: %+v", out)
	}
}
