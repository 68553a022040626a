package e2e_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/go-json-experiment/json"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/seed-3ebc6b8a/gatehouse/internal/needtest"
	"github.com/seed-3ebc6b8a/gatehouse/test/gatetest"
)

// noWriting denies an agent's host a tool.
var noWriting = persona("reader", "gatekeeper:\n  externalRestrictions:\n    description: test\n    denyPatterns: [\"Write:*\"]\n")

// hooked is what the hook says about a host's call in a directory.
func (w *world) hooked(dir string) string {
	w.t.Helper()
	event, err := json.Marshal(map[string]any{
		"hook_event_name": "PreToolUse", "session_id": filepath.Base(dir), "cwd": dir, "permission_mode": "default", "tool_name": "Write",
		"tool_input": map[string]string{"file_path": "a", "content": "x"}, "tool_use_id": "t1",
	})
	if err != nil {
		w.t.Fatal(err)
	}
	cmd := exec.Command(gatetest.Binary(w.t), "hook", "claude", "--socket", w.Socket(), "--owner", strconv.Itoa(os.Getuid()))
	cmd.Stdin = bytes.NewReader(event)
	out, _ := cmd.CombinedOutput() // how it ends is part of the answer
	return string(out)
}

// stdio is an MCP client of the same host, which shows no token, in a directory.
func (k *keeper) stdio(dir string) *keeper {
	k.t.Helper()
	cmd := exec.Command(gatetest.Binary(k.t), "mcp", "--data", k.Home)
	cmd.Dir, cmd.SysProcAttr = dir, &syscall.SysProcAttr{Setsid: true}
	s, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(k.t.Context(), &sdk.CommandTransport{Command: cmd}, nil)
	if err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(func() { _ = s.Close() })
	return &keeper{world: k.world, session: s}
}

// TestHookAndMCPShareElements: without a token, what an agent's MCP client puts in force is in force for
// the calls of the same agent's hook, in the same place, whichever of the two was there first. The
// client does not notice, nor that the gate was started anew.
func TestHookAndMCPShareElements(t *testing.T) {
	t.Parallel()
	k := beginKeeper(t, map[string]string{"personas/reader.md": noWriting})
	dir, other := realDir(t), realDir(t)
	first := k.stdio(dir) // before the gate knows of the hook
	first.ok("get_active_elements", "", nil)
	if got := k.hooked(dir); strings.Contains(got, "reader") || !strings.Contains(got, `"permissionDecision":"ask"`) {
		t.Fatalf("before anything is in force: %s", got)
	}
	first.ok("activate_element", "persona", named("reader"))
	if got := k.hooked(dir); !strings.Contains(got, "Denied") || !strings.Contains(got, "reader") {
		t.Errorf("the hook does not see what the MCP client put in force: %s", got)
	}
	if got := k.hooked(other); strings.Contains(got, "reader") {
		t.Errorf("in force elsewhere: %s", got)
	}
	if got := k.stdio(dir).ok("get_active_elements", "", nil); !strings.Contains(got.Text, "reader") {
		t.Errorf("another client of the same agent: %s", got.Text)
	}
	k.Kill()
	k.Up()
	if got := first.ok("get_active_elements", "", nil); !strings.Contains(got.Text, "reader") {
		t.Errorf("after a restart of the gate: %s", got.Text)
	}
}

// TestAttackForeignElements: a process of the same user that is no part of the agent's tree puts elements
// in force for itself, and changes nothing for the agent.
func TestAttackForeignElements(t *testing.T) {
	t.Parallel()
	needtest.Programs(t, "setsid", "flock")
	k := beginKeeper(t, map[string]string{"personas/reader.md": noWriting})
	dir := realDir(t)
	k.hooked(dir) // the agent's session is there
	said := filepath.Join(t.TempDir(), "said")
	write(t, said+".in", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"mcp_aql_update","arguments":{"operation":"activate_element","element_type":"persona","params":{"name":"reader"}}}}
`)
	// Forked off twice: its parent is not of our tree any more. Below flock it is an agent like any.
	script := fmt.Sprintf(`cd %q; sleep 0.3; { cat "$1.in"; until grep -q '"id":2' "$1.part"; do sleep 0.1; done; } | %q mcp --data %q > "$1.part"; mv "$1.part" "$1"`,
		dir, gatetest.Binary(t), k.Home)
	write(t, said+".part", "")
	if out, err := exec.Command("setsid", "-f", "flock", said+".lock", "sh", "-c", script, "sh", said).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	eventually(t, "the foreign process was answered", func() bool {
		_, err := os.Stat(said)
		return err == nil
	})
	text, err := os.ReadFile(said)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "reader") || strings.Contains(string(text), `"isError":true`) {
		t.Fatalf("the attack was not carried out: %s", text)
	}
	if got := k.hooked(dir); strings.Contains(got, "reader") || !strings.Contains(got, `"permissionDecision":"ask"`) {
		t.Errorf("a foreign process put an element in force for the agent: %s", got)
	}
	if got := k.stdio(dir).ok("get_active_elements", "", nil); strings.Contains(got.Text, "reader") {
		t.Errorf("the agent's own client sees it: %s", got.Text)
	}
}
