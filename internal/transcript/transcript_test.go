package transcript_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/transcript"
)

// TestSessions reads transcripts as the agents write them: calls that ran count,
// those that were refused or have no result do not, and old files are left out.
func TestSessions(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	write := func(path, text string, age time.Duration) {
		t.Helper()
		path = filepath.Join(home, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(-age)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	claude := `{"type":"user","sessionId":"5f","message":{"role":"user","content":"go"}}
{"type":"assistant","sessionId":"5f","message":{"content":[{"type":"text","text":"x"},{"type":"tool_use","id":"toolu_1","name":"Bash","input":{}}]}}
{"type":"user","sessionId":"5f","message":{"content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"ok"}]}}
{"type":"assistant","sessionId":"5f","message":{"content":[{"type":"tool_use","id":"toolu_2","name":"Bash","input":{}}]}}
{"type":"user","sessionId":"5f","message":{"content":[{"type":"tool_result","tool_use_id":"toolu_2","is_error":true,"content":"no"}]}}
{"type":"assistant","sessionId":"5f","message":{"content":[{"type":"tool_use","id":"toolu_3","name":"Write","input":{}}]}}
not JSON
`
	write(".claude/projects/w/5f.jsonl", claude, 0)
	write(".claude/projects/w/old.jsonl", claude, 48*time.Hour)
	write(".codex/sessions/2026/11/15/rollout-a.jsonl", `{"type":"session_meta","payload":{"id":"01a"}}
{"type":"response_item","payload":{"type":"function_call","id":"fc_1","call_id":"call_1","name":"exec_command","arguments":"{}"}}
{"type":"response_item","payload":{"type":"function_call_output","call_id":"call_1","output":"x"}}
`, 0)
	write(".gemini/tmp/w/chats/session-2026-11-15T12-37-7a.jsonl", `{"sessionId":"7a","kind":"main"}
{"id":"m1","type":"gemini","toolCalls":[{"id":"x1","name":"run_shell_command","args":{"command":"ls"},"status":"success"}]}
{"id":"m1","type":"gemini","toolCalls":[{"id":"x1","name":"run_shell_command","args":{"command":"ls"},"status":"success"},{"id":"x2","name":"run_shell_command","args":{"command":"rm x"},"status":"error"}]}
{"id":"m2","type":"gemini","toolCalls":[{"id":"x3","name":"run_shell_command","args":{ "command":"ls" },"status":"success"}]}
`, 0)
	write(".grok/sessions/%2Fw/01b/updates.jsonl", `{"method":"session/update","params":{"sessionId":"01b","update":{"sessionUpdate":"tool_call","toolCallId":"toolu_1","title":"run_terminal_command"}}}
{"method":"session/update","params":{"sessionId":"01b","update":{"sessionUpdate":"tool_call_update","toolCallId":"toolu_1","title":"Execute ls"}}}
{"method":"session/update","params":{"sessionId":"01b","update":{"sessionUpdate":"tool_call_update","toolCallId":"toolu_1","status":"completed"}}}
{"method":"session/update","params":{"sessionId":"01b","update":{"sessionUpdate":"tool_call","toolCallId":"toolu_2","title":"write"}}}
{"method":"session/update","params":{"sessionId":"01b","update":{"sessionUpdate":"tool_call_update","toolCallId":"toolu_2","status":"failed"}}}
`, 0)
	write(".grok/sessions/%2Fw/01b/chat_history.jsonl", `{"type":"assistant"}`, 0)
	write(".copilot/session-state/33/events.jsonl", `{"type":"session.start","data":{"sessionId":"33"}}
{"type":"tool.execution_start","data":{"toolCallId":"t1","toolName":"bash","arguments":{"command":"ls"}}}
{"type":"tool.execution_start","data":{"toolCallId":"t2","toolName":"bash","arguments":{"command":"rm x"}}}
{"type":"tool.execution_complete","data":{"toolCallId":"t1","success":true}}
{"type":"tool.execution_complete","data":{"toolCallId":"t2","success":false}}
`, 0)
	ls := call.HostUse("7a", "run_shell_command", []byte(`{"command":"ls"}`))
	since := time.Now().Add(-time.Hour)
	want := map[string][]transcript.Session{
		"claude": {{Ref: "5f", File: filepath.Join(home, ".claude/projects/w/5f.jsonl"), Calls: []transcript.Call{{ID: "toolu_1", Tool: "Bash"}}}},
		"codex":  {{Ref: "01a", File: filepath.Join(home, ".codex/sessions/2026/11/15/rollout-a.jsonl"), Calls: []transcript.Call{{ID: "call_1", Tool: "exec_command"}}}},
		"gemini": {{Ref: "7a", File: filepath.Join(home, ".gemini/tmp/w/chats/session-2026-11-15T12-37-7a.jsonl"), Calls: []transcript.Call{
			{ID: call.NthUse(ls, 1), Tool: "run_shell_command"}, {ID: call.NthUse(ls, 2), Tool: "run_shell_command"},
		}}},
		"grok": {{Ref: "01b", File: filepath.Join(home, ".grok/sessions/%2Fw/01b/updates.jsonl"), Calls: []transcript.Call{{ID: "toolu_1", Tool: "run_terminal_command"}}}},
		"copilot": {{Ref: "33", File: filepath.Join(home, ".copilot/session-state/33/events.jsonl"), Calls: []transcript.Call{
			{ID: call.NthUse(call.HostUse("33", "bash", []byte(`{"command":"ls"}`)), 1), Tool: "bash"},
		}}},
		"vibe": nil,
	}
	for name, sessions := range want {
		got, err := transcript.Sessions(name, home, since)
		if diff := cmp.Diff(sessions, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got)\n%s", name, err, diff)
		}
	}
	if got, err := transcript.Sessions("claude", t.TempDir(), since); err != nil || got != nil {
		t.Errorf("without transcripts: %v %v", got, err)
	}
}
