package tool_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/needtest"
	"github.com/seed-3ebc6b8a/gatehouse/tool"
)

type argv struct {
	Argv []string `json:"argv" gate:"text"`
}

// confined runs a command line as a tool with a policy, in a workspace with a
// file that holds a secret.
func confined(t *testing.T, p tool.Policy, line ...string) (*tool.Result, error) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "secret.txt"), []byte("the secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	var res *tool.Result
	var failed error
	probe := tool.New(tool.Spec{Name: "probe", Policy: &p}, func(ctx context.Context, env *tool.Env, in argv) (string, error) {
		res, failed = env.Run(ctx, in.Argv[0], in.Argv[1:]...)
		return "", nil
	})
	a, err := tool.NewAgent(tool.AgentSpec{Name: "t", Tools: []*tool.Tool{probe}, Workspace: dir})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(argv{line})
	if err != nil {
		t.Fatal(err)
	}
	if out := a.Invoke().Call(t.Context(), "probe", raw); out.Denied || out.Err != nil {
		t.Fatalf("%+v", out)
	}
	if failed != nil && strings.Contains(failed.Error(), "no sandbox") {
		needtest.Missing(t, failed.Error())
	}
	return res, failed
}

// TestNoneMeansNoneForProcesses: a process of a tool that reads nothing does
// not read the workspace.
func TestNoneMeansNoneForProcesses(t *testing.T) {
	t.Parallel()
	for name, read := range map[string]tool.Stance{"none": tool.None, "unspecified": {}} {
		res, err := confined(t, tool.Policy{Filesystem: tool.Filesystem{Read: read}, Exec: tool.Only("cat")}, "cat", "secret.txt")
		if err == nil && strings.Contains(res.Stdout, "the secret") {
			t.Errorf("read %s: the process read the workspace", name)
		}
	}
	res, err := confined(t, tool.Policy{Filesystem: tool.Filesystem{Read: tool.Only("./**")}, Exec: tool.Only("cat")}, "cat", "secret.txt")
	if err != nil || res.Stdout != "the secret" {
		t.Errorf("what was declared is not there: %+v, %v", res, err)
	}
}

// TestListedProgramsStartNoOthers: a list of programs is what runs. One of them
// that runs others is not a way around the list.
func TestListedProgramsStartNoOthers(t *testing.T) {
	t.Parallel()
	reads := tool.Filesystem{Read: tool.Only("./**")}
	for _, line := range [][]string{
		{"find", ".", "-name", "secret.txt", "-exec", "cat", "{}", ";"},
		{"env", "cat", "secret.txt"},
		{"sh", "-c", "cat secret.txt; true"},
	} {
		res, err := confined(t, tool.Policy{Filesystem: reads, Exec: tool.Only(line[0])}, line...)
		if err == nil && strings.Contains(res.Stdout, "the secret") {
			t.Errorf("%q ran a program that was not declared", line)
		}
		res, err = confined(t, tool.Policy{Filesystem: reads, Exec: tool.All}, line...)
		if err != nil || !strings.Contains(res.Stdout, "the secret") {
			t.Errorf("%q with all programs declared: %+v, %v", line, res, err)
		}
	}
}

// TestHomeAndPrefixes: "~/" is the home and a variable with a star is all that
// begin so, for processes as for everything else.
func TestHomeAndPrefixes(t *testing.T) {
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "note"), []byte("at home"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	t.Setenv("PROBE_ONE", "1")
	res, err := confined(t, tool.Policy{Filesystem: tool.Filesystem{Read: tool.Only("~/note")}, Exec: tool.Only("cat")}, "cat", filepath.Join(home, "note"))
	if err != nil || res.Stdout != "at home" {
		t.Errorf("a file of the home: %+v, %v", res, err)
	}
	res, err = confined(t, tool.Policy{Environment: tool.Only("PATH", "PROBE_*"), Exec: tool.Only("printenv")}, "printenv", "PROBE_ONE")
	if err != nil || strings.TrimSpace(res.Stdout) != "1" {
		t.Errorf("a variable by its prefix: %+v, %v", res, err)
	}
}
