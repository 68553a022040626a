package e2e_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/needtest"
	"github.com/seed-3ebc6b8a/gatehouse/test/gatetest"
)

// A host that takes rewritten input is given a command that runs the project's
// code in the sandbox: asked about once, then let through, and held. The command
// is good for one run: started again, the same launcher shows a second receipt
// for the call, which is refused before anything runs (attack 15).
func TestProjectCodeRunsConfined(t *testing.T) {
	t.Parallel()
	w := beginWith(t, "version = 1\n[hosts.claude]\nhost_ask = false\n")
	work := realDir(t)
	if out, err := exec.Command(gatetest.Binary(t), "--data", realDir(t), "run", "--", "true").CombinedOutput(); err != nil {
		needtest.Missing(t, "nothing on this machine can confine a process ("+strings.TrimSpace(string(out))+")")
	}
	outside := filepath.Join(realDir(t), "outside.txt")
	write(t, outside, "private\n")
	write(t, filepath.Join(work, "run.sh"), "echo made > made.txt\ncat "+outside+"\n")
	event, err := json.Marshal(map[string]any{
		"hook_event_name": "PreToolUse", "session_id": "s1", "cwd": work, "permission_mode": "default", "tool_name": "Bash",
		"tool_input": map[string]string{"command": "sh run.sh"}, "tool_use_id": "t1",
	})
	if err != nil {
		t.Fatal(err)
	}
	hook := func() (stdout, stderr string) {
		cmd := exec.Command(gatetest.Binary(t), "hook", "claude", "--socket", w.Socket(), "--owner", strconv.Itoa(os.Getuid()))
		var out, bad bytes.Buffer
		cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(event), &out, &bad
		_ = cmd.Run() // how it ends is part of the answer
		return out.String(), bad.String()
	}
	if out, bad := hook(); out != "" || !strings.Contains(bad, "Pending") {
		t.Fatalf("the hook says %q and %q", out, bad)
	}
	list := &api.ApprovalList{}
	w.do("GET", "/v1/approvals?state=pending", nil, list)
	if len(list.Requests) != 1 {
		t.Fatalf("%d requests wait", len(list.Requests))
	}
	offer := func(r *admin.Request) any { return &api.ApproveRequest{Digest: r.Digest, Offer: 1} }
	if err := w.answer(list.Requests[0].ID, "approve", offer); err != nil {
		t.Fatal(err)
	}
	for range 2 { // once granted, every time
		out, bad := hook()
		var reply struct {
			Output struct {
				Input struct {
					Command string `json:"command"`
				} `json:"updatedInput"`
			} `json:"hookSpecificOutput"`
		}
		if err := json.Unmarshal([]byte(out), &reply); err != nil || !strings.Contains(reply.Output.Input.Command, "'run' '--call'") {
			t.Fatalf("the hook says %q and %q (%v)", out, bad, err)
		}
		ran := exec.Command("bash", "-c", reply.Output.Input.Command)
		ran.Dir = work
		text, err := ran.CombinedOutput()
		if err == nil || strings.Contains(string(text), "private") {
			t.Errorf("code in the sandbox read a file elsewhere: %s", text)
		}
		if made, err := os.ReadFile(filepath.Join(work, "made.txt")); err != nil || string(made) != "made\n" {
			t.Errorf("code in the sandbox did not write in the workspace: %q, %v; it said %s", made, err, text)
		}
		if err := os.Remove(filepath.Join(work, "made.txt")); err != nil {
			t.Fatal(err)
		}
		again := exec.Command("bash", "-c", reply.Output.Input.Command)
		again.Dir = work
		if text, err = again.CombinedOutput(); err == nil || !strings.Contains(string(text), "of yours is open") {
			t.Errorf("a second receipt for one call was taken: %v\n%s", err, text)
		}
		if _, err := os.Stat(filepath.Join(work, "made.txt")); err == nil {
			t.Error("a run whose receipt was refused ran")
		}
	}
}
