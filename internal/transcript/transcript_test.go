package transcript_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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
	since := time.Now().Add(-time.Hour)
	want := map[string][]transcript.Session{
		"claude": {{Ref: "5f", File: filepath.Join(home, ".claude/projects/w/5f.jsonl"), Calls: []transcript.Call{{ID: "toolu_1", Tool: "Bash"}}}},
		"codex":  {{Ref: "01a", File: filepath.Join(home, ".codex/sessions/2026/11/15/rollout-a.jsonl"), Calls: []transcript.Call{{ID: "call_1", Tool: "exec_command"}}}},
		"gemini": nil,
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
