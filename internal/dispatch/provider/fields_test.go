package provider_test

import (
	"bufio"
	"context"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch/provider"
	"github.com/seed-3ebc6b8a/gatehouse/internal/inrun"
)

// Where a field of a request is seen in a launch.
const (
	args    = "args: "    // on the command line
	env     = "env: "     // in the environment
	input   = "input: "   // on standard input, or in a private file
	says    = "says: "    // on the channel
	warns   = "warns: "   // noted, and not passed on
	posture = "posture: " // what holds the run
	refused = "refused: " // with these words
	gate    = "gate: "    // held before the CLI or around it; the test of that name shows it
)

// fields say for every field of a request and every CLI, gated and classic, what
// becomes of it. One entry stands for both ways, two for gated and classic.
var fields = []struct {
	name string
	task call.Task
	want map[string][]string
}{
	{"prompt", call.Task{Prompt: "the words"}, map[string][]string{
		"claude": {says + "the words", input + "the words"}, "codex": {says + "the words", input + "the words"}, "gemini": {says + "the words", input + "the words"},
		"grok": {says + "the words", input + "the words"}, "mistral": {input + "the words"},
	}},
	{"promptParts", call.Task{PromptParts: &call.PromptParts{Context: "c", System: "s", Tools: "u", Task: "t"}}, map[string][]string{
		"claude": {says + `s\n\nu\n\nc\n\nt`, input + "s\n\nu\n\nc\n\nt"}, "codex": {says + `s\n\nu\n\nc\n\nt`, input + "s\n\nu\n\nc\n\nt"},
		"gemini": {says + `s\n\nu\n\nc\n\nt`, input + "s\n\nu\n\nc\n\nt"}, "grok": {says + `s\n\nu\n\nc\n\nt`, input + "s\n\nu\n\nc\n\nt"},
		"mistral": {input + "s\n\nu\n\nc\n\nt"},
	}},
	{"model", call.Task{Model: "m1"}, map[string][]string{
		"claude": {args + "--model m1"}, "codex": {says + `"model":"m1"`, args + "--model m1"}, "gemini": {args + "-m m1"}, "grok": {args + "-m m1", args + "--model m1"},
		"mistral": {env + "VIBE_ACTIVE_MODEL=m1"},
	}},
	{"approvalStrategy", call.Task{ApprovalStrategy: "mcp_managed"}, map[string][]string{
		"claude": {posture + "gate", args + "--permission-mode bypassPermissions"}, "codex": {posture + "gate", args + "--sandbox read-only"},
		"gemini": {posture + "gate", args + "--approval-mode yolo"}, "grok": {posture + "gate", args + "--always-approve"}, "mistral": {args + "--agent auto-approve"},
	}},
	{"approvalPolicy", call.Task{ApprovalPolicy: "strict"}, everywhere(gate + "TestSeedTips")},
	{"mcpServers", call.Task{MCPServers: []string{"sqry", "exa"}}, map[string][]string{
		"claude": {args + "--mcp-config /t/mcp.json"}, "codex": {gate + "TestSeedExamples"}, "gemini": {args + "--allowed-mcp-server-names sqry --allowed-mcp-server-names exa"},
		"grok": {gate + "TestSeedExamples"}, "mistral": {gate + "TestSeedExamples"},
	}},
	{"strictMcpConfig", call.Task{StrictMCPConfig: true}, map[string][]string{
		"claude": {args + "--strict-mcp-config"}, "codex": {refused + "mcpServers is tracked for the score only: Codex uses its own MCP configuration"},
		"gemini": {args + "--allowed-mcp-server-names sqry"}, "grok": {refused + "mcpServers is tracked for the score only: Grok uses its own MCP configuration"},
		"mistral": {refused + "mcpServers is tracked for the score only: Vibe uses its own MCP configuration"},
	}},
	{"allowedTools", call.Task{AllowedTools: []string{"one", "two"}}, map[string][]string{
		"claude": {args + "--tools one two", args + "--allowed-tools one two"}, "codex": {refused + "it has no lists of tools"},
		"gemini": {input + "toolName = \"one\"\ndecision = \"ask_user\"", args + "--allowed-tools one --allowed-tools two"},
		"grok":   {gate + "TestOnlyTools", args + "--tools one,two"}, "mistral": {args + "--enabled-tools one --enabled-tools two"},
	}},
	{"allowedTools", call.Task{AllowedTools: []string{}}, map[string][]string{
		"claude": {args + `--tools ""`}, "codex": {refused + "it has no lists of tools"},
		"gemini":  {input + "toolName = \"*\"\ndecision = \"deny\"", refused + "an empty list cannot be told to it: it would have all of its tools"},
		"grok":    {gate + "TestOnlyTools", refused + "an empty list cannot be told to it: it would have all of its tools"},
		"mistral": {refused + "an empty list cannot be told to it: it would have all of its tools"},
	}},
	{"disallowedTools", call.Task{DisallowedTools: []string{"one", "two"}}, map[string][]string{
		"claude": {args + "--disallowed-tools one two"}, "codex": {refused + "it has no lists of tools"}, "gemini": {refused + "it has allowlists only; use allowedTools"},
		"grok": {gate + "TestOnlyTools", args + "--disallowed-tools one,two"}, "mistral": {refused + "this version of Vibe has no such flag; use allowedTools"},
	}},
	{"permissionMode", call.Task{PermissionMode: "plan"}, map[string][]string{
		"claude": {args + "--permission-mode plan"}, "codex": {refused + "use sandboxMode or fullAuto"}, "gemini": {refused + "use approvalMode"},
		"grok": {posture + "gate, in plan mode", args + "--permission-mode plan"}, "mistral": {args + "--agent plan"},
	}},
	{"permissionMode", call.Task{PermissionMode: "acceptEdits"}, map[string][]string{
		"claude": {warns + "permissionMode acceptEdits is not passed on", args + "--permission-mode acceptEdits"}, "codex": {refused + "use sandboxMode or fullAuto"},
		"gemini": {refused + "use approvalMode"}, "grok": {warns + "permissionMode acceptEdits is not passed on", args + "--permission-mode acceptEdits"},
		"mistral": {refused + `"acceptEdits" is none of default, plan, chat, explore, accept-edits, auto-approve`},
	}},
	{"approvalMode", call.Task{ApprovalMode: "auto_edit"}, map[string][]string{
		"claude": {refused + "it is a flag of Gemini CLI; use permissionMode"}, "codex": {refused + "it is a flag of Gemini CLI; use sandboxMode or fullAuto"},
		"gemini": {warns + "approvalMode auto_edit is not passed on", args + "--approval-mode auto_edit"}, "grok": {refused + "it is a flag of Gemini CLI; use permissionMode"},
		"mistral": {refused + "it is a flag of Gemini CLI; use permissionMode"},
	}},
	{"fullAuto", call.Task{FullAuto: true}, map[string][]string{
		"claude": {refused + "it is a flag of Codex"}, "codex": {says + `"sandbox":"workspace-write"`, args + "--sandbox workspace-write"}, "gemini": {refused + "it is a flag of Codex; use approvalMode"},
		"grok": {refused + "it is a flag of Codex"}, "mistral": {refused + "it is a flag of Codex; use permissionMode"},
	}},
	{"sandboxMode", call.Task{SandboxMode: "workspace-write"}, map[string][]string{
		"claude": {refused + "it is a flag of Codex"}, "codex": {says + `"sandbox":"workspace-write"`, args + "--sandbox workspace-write"}, "gemini": {refused + "it is a flag of Codex"},
		"grok": {refused + "it is a flag of Codex"}, "mistral": {refused + "it is a flag of Codex"},
	}},
	{"dangerouslySkipPermissions", call.Task{DangerouslySkipPermissions: true}, map[string][]string{
		"claude": {warns + "dangerouslySkipPermissions is not passed on", args + "--permission-mode bypassPermissions"},
		"codex":  {refused + "it is a flag of Claude Code; Codex's is dangerouslyBypassApprovalsAndSandbox"}, "gemini": {refused + "it is a flag of Claude Code; Gemini CLI's is approvalMode yolo"},
		"grok": {refused + "it is a flag of Claude Code; Grok's is alwaysApprove"}, "mistral": {refused + "it is a flag of Claude Code; Vibe's is permissionMode auto-approve"},
	}},
	{"dangerouslyBypassApprovalsAndSandbox", call.Task{DangerouslyBypassApprovalsAndSandbox: true}, map[string][]string{
		"claude": {refused + "it is a flag of Codex; Claude Code's is dangerouslySkipPermissions"},
		"codex":  {warns + "dangerouslyBypassApprovalsAndSandbox is not passed on", args + "--dangerously-bypass-approvals-and-sandbox"},
		"gemini": {refused + "it is a flag of Codex; Gemini CLI's is approvalMode yolo"}, "grok": {refused + "it is a flag of Codex; Grok's is alwaysApprove"},
		"mistral": {refused + "it is a flag of Codex; Vibe's is permissionMode auto-approve"},
	}},
	{"alwaysApprove", call.Task{AlwaysApprove: true}, map[string][]string{
		"claude": {refused + "it is a flag of Grok"}, "codex": {refused + "it is a flag of Grok"}, "gemini": {refused + "it is a flag of Grok"},
		"grok": {warns + "alwaysApprove is not passed on", args + "--always-approve"}, "mistral": {refused + "it is a flag of Grok; Vibe's is permissionMode auto-approve"},
	}},
	{"sessionId", call.Task{SessionID: uuid}, map[string][]string{
		"claude": {args + "--resume " + uuid}, "codex": {says + `"threadId":"` + uuid, args + "resume " + uuid}, "gemini": {says + `"sessionId":"` + uuid, args + "--resume " + uuid},
		"grok": {says + `"sessionId":"` + uuid, args + "--resume " + uuid}, "mistral": {args + "--resume " + uuid},
	}},
	{"forkSession", call.Task{SessionID: uuid, ForkSession: true}, map[string][]string{
		"claude": {args + "--resume " + uuid + " --fork-session"}, "codex": {says + "thread/fork", args + "fork " + uuid}, "gemini": {refused + "it cannot fork a session"},
		"grok": {refused + "its channel for tool calls cannot fork a session", args + "--resume " + uuid + " --fork-session"}, "mistral": {refused + "it cannot fork a session"},
	}},
	{"resumeLatest", call.Task{ResumeLatest: true}, everywhere(gate + "TestSessions")},
	{"correlationId", call.Task{CorrelationID: "c"}, everywhere(gate + "TestSeedTips")},
	{"idleTimeoutMs", call.Task{IdleTimeoutMs: 60000}, everywhere(gate + "TestSeedTips")},
	{"forceRefresh", call.Task{ForceRefresh: true}, everywhere(gate + "TestDeduplication")},
	{"workingDir", call.Task{WorkingDir: "/work/p"}, map[string][]string{
		"claude": {gate + "TestDispatch"}, "codex": {says + `"cwd":"/work/p"`, args + "-C /work/p"}, "gemini": {says + `"cwd":"/work/p"`, gate + "TestClassic"},
		"grok": {says + `"cwd":"/work/p"`, gate + "TestClassic"}, "mistral": {args + "--workdir /work/p"},
	}},
	{"worktree", call.Task{Worktree: true}, everywhere(gate + "TestWorktree")},
	{"budget", call.Task{Budget: &call.TaskBudget{ID: "b"}}, map[string][]string{
		"claude": {gate + "TestBudgetOfARun", refused + "only a run whose calls the gate decides draws from a budget"}, "codex": {gate + "TestBudgetOfARun", refused + "only a run whose calls the gate decides draws from a budget"},
		"gemini": {gate + "TestBudgetOfARun", refused + "only a run whose calls the gate decides draws from a budget"}, "grok": {gate + "TestBudgetOfARun", refused + "only a run whose calls the gate decides draws from a budget"},
		"mistral": {refused + "its hook does not say which run it is for"},
	}},
	{"sandbox", call.Task{Sandbox: true}, map[string][]string{
		"claude": {gate + "TestConfinedCLI"}, "codex": {gate + "TestConfinedCLI"}, "gemini": {gate + "TestConfinedCLI"}, "grok": {gate + "TestConfinedCLI"},
		"mistral": {refused + "its hook has to reach the gate, which nothing in a sandbox does", gate + "TestConfined"},
	}},
}

func everywhere(what string) map[string][]string {
	out := map[string][]string{}
	for _, cli := range call.CLIs() {
		out[cli] = []string{what}
	}
	return out
}

// TestEveryField: every field of a request, on every CLI, gated and classic,
// works where the table says it is seen, or is refused with these words.
func TestEveryField(t *testing.T) {
	t.Parallel()
	named := map[string]bool{}
	for _, f := range fields {
		named[f.name] = true
		for _, cli := range call.CLIs() {
			want := f.want[cli]
			if len(want) == 0 {
				t.Errorf("%s on %s: the table says nothing", f.name, cli)
				continue
			}
			for _, gated := range []bool{true, false} {
				check(t, f.name, cli, gated, f.task, want[map[bool]int{true: 0, false: len(want) - 1}[gated]])
			}
		}
	}
	for i := range reflect.TypeFor[call.Task]().NumField() {
		name, _, _ := strings.Cut(reflect.TypeFor[call.Task]().Field(i).Tag.Get("json"), ",")
		if !named[name] {
			t.Errorf("the table leaves %s out", name)
		}
	}
}

func check(t *testing.T, field, cli string, gated bool, task call.Task, want string) {
	t.Helper()
	l, err := preparedIn(t, cli, gated, task.SessionID != "", task)
	kind, words, _ := strings.Cut(want, ": ")
	if kind+": " == refused {
		if err == nil || !strings.HasSuffix(err.Error(), " is refused for "+cli+": "+words) || !strings.HasPrefix(err.Error(), field) {
			t.Errorf("%s on %s (gated %t) is not refused as it should be: %v", field, cli, gated, err)
		}
		return
	}
	if err != nil {
		t.Errorf("%s on %s (gated %t): %v", field, cli, gated, err)
		return
	}
	seen := map[string]string{args: line(l.Args), env: strings.Join(l.Env, "\n"), warns: strings.Join(l.Warnings, "\n"), posture: l.Posture.Approval, input: string(l.Stdin)}
	for path, text := range l.Files {
		if strings.HasPrefix(path, "/t/") {
			seen[input] += text
		}
	}
	if kind+": " == says {
		seen[says] = spoken(t, l)
	}
	if kind+": " != gate && !strings.Contains(seen[kind+": "], words) {
		t.Errorf("%s on %s (gated %t): %q is not in %q", field, cli, gated, want, seen[kind+": "])
	}
}

// spoken is what a launch says on its channel before its turn begins.
func spoken(t *testing.T, l *provider.Launch) string {
	t.Helper()
	if l.Channel == nil {
		t.Error("there is no channel")
		return ""
	}
	fromGate, in := io.Pipe()
	out, toGate := io.Pipe()
	var said strings.Builder
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer toGate.Close()
		lines := bufio.NewScanner(fromGate)
		for lines.Scan() {
			said.WriteString(lines.Text() + "\n")
			var m struct {
				ID     *int   `json:"id"`
				Type   string `json:"type"`
				Method string `json:"method"`
			}
			if json.Unmarshal(lines.Bytes(), &m) != nil || m.Type == "user" || m.Method == "turn/start" || m.Method == "session/prompt" {
				return
			}
			if m.ID != nil {
				reply, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": *m.ID, "result": map[string]any{
					"agentCapabilities": map[string]any{"loadSession": true}, "sessionId": "s", "thread": map[string]any{"id": "s"}, "approvalPolicy": "untrusted", "approvalsReviewer": "user",
				}})
				if err != nil {
					t.Error(err)
				}
				if _, err := toGate.Write(append(reply, '\n')); err != nil {
					return
				}
			}
		}
	}()
	// It ends when nobody answers any more.
	_ = l.Channel(func(context.Context, inrun.Tool) inrun.Verdict { return inrun.Verdict{} })(context.Background(), in, out, io.Discard)
	fromGate.Close()
	<-done
	return said.String()
}

func line(words []string) string {
	words = slices.Clone(words)
	for i, w := range words {
		if w == "" {
			words[i] = `""`
		}
	}
	return strings.Join(words, " ")
}
