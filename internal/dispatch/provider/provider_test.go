package provider_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch/provider"
)

const uuid = "0b0c5a9e-6c1f-4a63-9d5c-0a2f3c9b7e11"

// prepared makes a launch in a place where nothing is.
func prepared(t *testing.T, cli string, gated, known bool, task call.Task) (*provider.Launch, error) {
	t.Helper()
	if task.Prompt == "" && task.PromptParts == nil {
		task.Prompt = "do it"
	}
	return preparedIn(t, cli, gated, known, task)
}

func preparedIn(t *testing.T, cli string, gated, known bool, task call.Task) (*provider.Launch, error) {
	t.Helper()
	env := map[string]string{"PATH": "/bin", "ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "o", "GEMINI_API_KEY": "g", "XAI_API_KEY": "x", "MISTRAL_API_KEY": "m", "CANARY": "secret"}
	return provider.Prepare(&provider.Input{
		CLI: cli, Task: &task, Gated: gated, Confined: task.Sandbox, Known: known, Binary: "/opt/" + cli, Dir: "/work/p", Home: "/h", Temp: "/t", Hook: "gatehouse-hook vibe",
		Env: func(n string) string { return env[n] }, Servers: map[string]string{"sqry": `{"command":"sqry-mcp"}`},
	})
}

func argv(t *testing.T, cli string, gated, known bool, task call.Task) string {
	t.Helper()
	l, err := prepared(t, cli, gated, known, task)
	if err != nil {
		t.Fatalf("%s: %v", cli, err)
	}
	return line(l.Args)
}

const (
	claudeChannel = `-p --input-format stream-json --output-format stream-json --verbose --permission-prompt-tool stdio --permission-mode default --setting-sources "" --strict-mcp-config`
	codexChannel  = `app-server -c web_search="disabled" -c projects={"/work/p"={trust_level="untrusted"}} --disable view_image --disable image_generation --disable multi_agent --disable apps --disable plugins --disable browser_use --disable computer_use --disable memories`
)

// TestArgv names the command line of every CLI, gated and classic: what the seed
// says happens under mcp_managed, and what the gate does instead by default.
func TestArgv(t *testing.T) {
	t.Parallel()
	managed := call.Task{ApprovalStrategy: "mcp_managed"}
	for _, c := range []struct {
		cli            string
		gated, classic string
		legacy         string // classic without mcp_managed
	}{
		{
			"claude", claudeChannel + " --mcp-config /t/mcp.json",
			`-p --output-format stream-json --verbose --setting-sources "" --strict-mcp-config --permission-mode bypassPermissions --mcp-config /t/mcp.json`,
			`-p --output-format stream-json --verbose --setting-sources "" --strict-mcp-config --permission-mode default --mcp-config /t/mcp.json`,
		},
		{
			"codex", codexChannel, "exec --json --skip-git-repo-check -C /work/p --sandbox read-only -",
			"exec --json --skip-git-repo-check -C /work/p --sandbox read-only -",
		},
		{
			"gemini", "--acp --admin-policy /t/policy.toml --allowed-mcp-server-names sqry",
			"-o json --approval-mode yolo --allowed-mcp-server-names sqry", "-o json --approval-mode default --allowed-mcp-server-names sqry",
		},
		{
			"grok", "agent --no-leader stdio", "--prompt-file /t/prompt.txt --output-format json --always-approve",
			"--prompt-file /t/prompt.txt --output-format json --permission-mode default",
		},
		{
			"mistral", "-p --output streaming --agent auto-approve --workdir /work/p", "-p --output streaming --agent auto-approve --workdir /work/p",
			"-p --output streaming --agent auto-approve --workdir /work/p",
		},
	} {
		if got := argv(t, c.cli, true, false, managed); got != c.gated {
			t.Errorf("%s gated:\n got %s\nwant %s", c.cli, got, c.gated)
		}
		if got := argv(t, c.cli, false, false, managed); got != c.classic {
			t.Errorf("%s classic:\n got %s\nwant %s", c.cli, got, c.classic)
		}
		if got := argv(t, c.cli, false, false, call.Task{}); got != c.legacy {
			t.Errorf("%s legacy:\n got %s\nwant %s", c.cli, got, c.legacy)
		}
	}
}

// TestSessions: a session is named first and resumed afterwards, with Codex's
// flags before the word resume.
func TestSessions(t *testing.T) {
	t.Parallel()
	session, fork := call.Task{SessionID: uuid}, call.Task{SessionID: uuid, ForkSession: true}
	for _, c := range []struct {
		cli          string
		gated, known bool
		task         call.Task
		want         string
	}{
		{"claude", true, false, session, "--session-id " + uuid},
		{"claude", true, true, session, "--resume " + uuid},
		{"claude", true, true, fork, "--resume " + uuid + " --fork-session"},
		{"claude", false, true, session, "--resume " + uuid},
		{"codex", false, true, call.Task{SessionID: uuid, FullAuto: true}, "--sandbox workspace-write resume " + uuid + " -"},
		{"codex", false, true, fork, "--sandbox read-only fork " + uuid + " -"},
		{"gemini", false, false, session, "--session-id " + uuid},
		{"gemini", false, true, session, "--resume " + uuid},
		{"grok", false, true, session, "--resume " + uuid},
		{"grok", false, true, fork, "--resume " + uuid + " --fork-session"},
		{"mistral", true, true, session, "--resume " + uuid},
	} {
		if got := argv(t, c.cli, c.gated, c.known, c.task); !strings.Contains(got, c.want) {
			t.Errorf("%s (gated %t, known %t): %s, want %s", c.cli, c.gated, c.known, got, c.want)
		}
	}
	l, err := prepared(t, "codex", true, true, call.Task{SessionID: uuid, FullAuto: true})
	if err != nil || l.Posture.Sandbox != "workspace-write" || !l.Posture.Resumed {
		t.Errorf("the posture on resume: %+v, %v", l.Posture, err)
	}
}

// TestStrictServers: a server that is not there is named.
func TestStrictServers(t *testing.T) {
	t.Parallel()
	if _, err := prepared(t, "claude", true, false, call.Task{MCPServers: []string{"exa"}, StrictMCPConfig: true}); err == nil || !strings.Contains(err.Error(), "exa") {
		t.Errorf("strictMcpConfig with a server that is not there: %v", err)
	}
}

// TestRawBypassIsNeverPassedOnSilently: in a gated run the flag does not reach
// the CLI, and the answer says so; in a classic one it does.
func TestRawBypassIsNeverPassedOnSilently(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cli  string
		task call.Task
		flag string
	}{
		{"claude", call.Task{DangerouslySkipPermissions: true}, "bypassPermissions"},
		{"claude", call.Task{PermissionMode: "bypassPermissions"}, "bypassPermissions"},
		{"codex", call.Task{DangerouslyBypassApprovalsAndSandbox: true}, "--dangerously-bypass-approvals-and-sandbox"},
		{"codex", call.Task{SandboxMode: "danger-full-access"}, "danger-full-access"},
		{"gemini", call.Task{ApprovalMode: "yolo"}, "yolo"},
		{"grok", call.Task{AlwaysApprove: true}, "--always-approve"},
		{"grok", call.Task{PermissionMode: "bypassPermissions"}, "bypassPermissions"},
	} {
		l, err := prepared(t, c.cli, true, false, c.task)
		if err != nil || strings.Contains(strings.Join(l.Args, " "), c.flag) || len(l.Warnings) == 0 {
			t.Errorf("%s gated: %v, warnings %v, %v", c.cli, l.Args, l.Warnings, err)
		}
		if l.Posture.Sandbox == "danger-full-access" {
			t.Errorf("%s gated: %+v", c.cli, l.Posture)
		}
		if got := argv(t, c.cli, false, false, c.task); !strings.Contains(got, c.flag) {
			t.Errorf("%s classic: %s", c.cli, got)
		}
	}
}

// TestIsolation: a CLI gets what it needs of the gate's environment, its own
// home, and no prompt on its command line.
func TestIsolation(t *testing.T) {
	t.Parallel()
	homes := map[string]string{"claude": "CLAUDE_CONFIG_DIR=/h/.claude", "codex": "CODEX_HOME=/h/.codex", "gemini": "GEMINI_CLI_HOME=/h", "grok": "GROK_HOME=/h/.grok", "mistral": "VIBE_HOME=/h/.vibe"}
	keys := map[string]string{"claude": "ANTHROPIC_API_KEY=a", "codex": "OPENAI_API_KEY=o", "gemini": "GEMINI_API_KEY=g", "grok": "XAI_API_KEY=x", "mistral": "MISTRAL_API_KEY=m"}
	for _, cli := range call.CLIs() {
		for _, gated := range []bool{true, false} {
			l, err := prepared(t, cli, gated, false, call.Task{Prompt: "the secret prompt"})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Contains(l.Env, homes[cli]) || !slices.Contains(l.Env, "HOME=/h") || !slices.Contains(l.Env, keys[cli]) {
				t.Errorf("%s: %v", cli, l.Env)
			}
			all := strings.Join(l.Env, "\n")
			if strings.Contains(all, "CANARY") {
				t.Errorf("%s gets what it does not need", cli)
			}
			for other, key := range keys {
				if other != cli && strings.Contains(all, key) {
					t.Errorf("%s gets the key of %s", cli, other)
				}
			}
			if strings.Contains(strings.Join(l.Args, " "), "secret") {
				t.Errorf("%s has the prompt on its command line: %v", cli, l.Args)
			}
			if gated == (l.Channel == nil) && cli != "mistral" {
				t.Errorf("%s gated %t has channel %t", cli, gated, l.Channel != nil)
			}
		}
	}
	l, err := prepared(t, "mistral", true, false, call.Task{})
	if err != nil || !strings.Contains(l.Files["/h/.vibe/hooks.toml"], "strict = true") || !strings.Contains(l.Files["/h/.vibe/hooks.toml"], "gatehouse-hook vibe") {
		t.Errorf("Vibe's hook: %v, %v", l.Files, err)
	}
}

// TestParsers reads what the real CLIs print.
func TestParsers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, cli string
		gated     bool
		out       string
		want      provider.Result
	}{
		{
			"claude", "claude", false,
			`{"type":"system","subtype":"init","session_id":"s1","model":"claude-x"}
{"type":"assistant","session_id":"s1","message":{"model":"claude-x","content":[{"type":"text","text":"half"}]}}
{"type":"result","subtype":"success","is_error":false,"num_turns":2,"result":"done","stop_reason":"end_turn","session_id":"s1","total_cost_usd":0.25,"usage":{"input_tokens":10,"output_tokens":5,"cache_read_input_tokens":7,"cache_creation_input_tokens":3},"permission_denials":[{"tool_name":"Bash","tool_use_id":"t","tool_input":{}}]}`,
			provider.Result{Text: "done", Session: "s1", Model: "claude-x", Stop: "end_turn", Turns: 2, Cost: 0.25, CostKnown: true,
				Usage: provider.Usage{Input: 10, Output: 5, CacheRead: 7, CacheWrite: 3}, Denials: []provider.Denial{{Tool: "Bash"}}},
		},
		{"claude cut short", "claude", false, `{"type":"system","session_id":"s1"}`, provider.Result{Session: "s1", Failed: true, Error: "it ended without a result"}},
		{
			"codex", "codex", false,
			`{"type":"thread.started","thread_id":"t1"}
{"type":"item.completed","item":{"type":"command_execution","command":"rm x","status":"declined"}}
{"type":"item.completed","item":{"type":"agent_message","text":"done"}}
{"type":"turn.completed","usage":{"input_tokens":10,"cached_input_tokens":4,"cache_write_input_tokens":1,"output_tokens":5,"reasoning_output_tokens":2}}`,
			provider.Result{Text: "done", Session: "t1", Stop: "end_turn", Turns: 1, Usage: provider.Usage{Input: 6, Output: 5, CacheRead: 4, CacheWrite: 1, Reasoning: 2},
				Denials: []provider.Denial{{Tool: "command_execution", Why: "rm x"}}},
		},
		{
			"gemini", "gemini", false,
			"Loaded cached credentials.\n" + `{"session_id":"g1","response":"done","stats":{"models":{"gemini-x":{"api":{"totalRequests":2},"tokens":{"input":6,"prompt":10,"candidates":5,"cached":4,"thoughts":2,"tool":0}}},"tools":{"totalDecisions":{"reject":1}},"files":{}}}`,
			provider.Result{Text: "done", Session: "g1", Model: "gemini-x", Stop: "end_turn", Turns: 2, Usage: provider.Usage{Input: 6, Output: 5, CacheRead: 4, Reasoning: 2},
				Denials: []provider.Denial{{Tool: "tool"}}},
		},
		{
			"grok", "grok", false,
			`{"text":"done","stopReason":"end_turn","sessionId":"k1","requestId":"r","num_turns":1,"usage":{"input_tokens":10,"cache_read_input_tokens":4,"cache_creation_input_tokens":0,"output_tokens":5,"reasoning_tokens":2,"total_tokens":21},"modelUsage":{"grok-x":{}}}`,
			provider.Result{Text: "done", Session: "k1", Model: "grok-x", Stop: "end_turn", Turns: 1, Usage: provider.Usage{Input: 10, Output: 5, CacheRead: 4, Reasoning: 2}},
		},
		{
			"grok cancelled with exit code 0", "grok", false, `{"text":"","stopReason":"cancelled","sessionId":"k1"}`,
			provider.Result{Session: "k1", Stop: "cancelled", Failed: true, Error: "it stopped because a tool call was refused", Denials: []provider.Denial{{Tool: "tool"}}},
		},
		{
			"a channel", "codex", true,
			`{"type":"session","session":"t1","model":"m","sandbox":"read-only","approval":"untrusted"}
{"type":"denied","id":"1","name":"shell","text":"no"}
{"type":"text","text":"done"}
{"type":"usage","usage":{"input_tokens":10,"cached_input_tokens":4,"cache_write_input_tokens":1,"output_tokens":5,"reasoning_output_tokens":2}}
{"type":"end","stop":"end_turn"}`,
			provider.Result{Text: "done", Session: "t1", Model: "m", Sandbox: "read-only", Approval: "untrusted", Stop: "end_turn",
				Usage: provider.Usage{Input: 6, Output: 5, CacheRead: 4, CacheWrite: 1, Reasoning: 2}, Denials: []provider.Denial{{Tool: "shell", Why: "no"}}},
		},
		{
			"vibe", "mistral", true,
			`{"role":"user","content":"x"}
{"role":"assistant","content":""}
{"role":"tool","content":"<tool_error>bash was denied: no</tool_error>"}
{"role":"assistant","content":"done"}`,
			provider.Result{Text: "done", Denials: []provider.Denial{{Tool: "bash", Why: "no"}}},
		},
	} {
		l, err := prepared(t, c.cli, c.gated, false, call.Task{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, l.Parse([]byte(c.out))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// FuzzParse: whatever a CLI prints is read without trouble, and silence is a
// failure.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"type":"result","result":"x"}`))
	f.Add([]byte(`{"text":"x","stopReason":"cancelled"}`))
	f.Fuzz(func(t *testing.T, out []byte) {
		for _, cli := range call.CLIs() {
			l, err := prepared(t, cli, false, false, call.Task{})
			if err != nil {
				t.Fatal(err)
			}
			l.Parse(out)
			if r := l.Parse(nil); !r.Failed {
				t.Fatalf("%s: nothing at all is a success", cli)
			}
		}
	})
}
