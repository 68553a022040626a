package call

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// CLIs lists the agent CLIs that a request can be handed to.
func CLIs() []string { return []string{"claude", "codex", "gemini", "grok", "mistral"} }

// requestSuffix follows the name of the CLI in the operation of a request.
const requestSuffix = "_request"

// RequestOperation is the operation of a request to a CLI.
func RequestOperation(cli string) string { return cli + requestSuffix }

// RequestCLI is the CLI that an operation hands a request to.
func RequestCLI(operation string) (cli string, ok bool) {
	cli, ok = strings.CutSuffix(operation, requestSuffix)
	return cli, ok && slices.Contains(CLIs(), cli)
}

// Task is what an agent CLI is asked to do: the arguments of a call of kind
// [Dispatch]. The names are those of the public skill.
type Task struct {
	Prompt      string       `json:"prompt,omitzero"`
	PromptParts *PromptParts `json:"promptParts,omitzero"`
	// Model is the CLI's own default where it is left out.
	Model string `json:"model,omitzero"`
	// ApprovalStrategy is legacy or mcp_managed. It changes the flags that the
	// CLI gets, and nothing about how the request is judged.
	ApprovalStrategy string `json:"approvalStrategy,omitzero"`
	// ApprovalPolicy is the threshold that the caller wants. It can be stricter
	// than the operator's and never looser.
	ApprovalPolicy  string   `json:"approvalPolicy,omitzero"`
	MCPServers      []string `json:"mcpServers,omitzero"`
	StrictMCPConfig bool     `json:"strictMcpConfig,omitzero"`
	// AllowedTools is nil where the request has no such list.
	AllowedTools    []string `json:"allowedTools,omitzero"`
	DisallowedTools []string `json:"disallowedTools,omitzero"`
	PermissionMode  string   `json:"permissionMode,omitzero"`
	ApprovalMode    string   `json:"approvalMode,omitzero"`
	FullAuto        bool     `json:"fullAuto,omitzero"`
	SandboxMode     string   `json:"sandboxMode,omitzero"`
	// The flags that switch a CLI's own checks off.
	DangerouslySkipPermissions           bool `json:"dangerouslySkipPermissions,omitzero"`
	DangerouslyBypassApprovalsAndSandbox bool `json:"dangerouslyBypassApprovalsAndSandbox,omitzero"`
	AlwaysApprove                        bool `json:"alwaysApprove,omitzero"`
	// SessionID is the session to begin or to go on with.
	SessionID    string `json:"sessionId,omitzero"`
	ResumeLatest bool   `json:"resumeLatest,omitzero"`
	ForkSession  bool   `json:"forkSession,omitzero"`
	// IdleTimeoutMs ends a CLI that prints nothing for so long.
	IdleTimeoutMs int    `json:"idleTimeoutMs,omitzero"`
	WorkingDir    string `json:"workingDir,omitzero"`
	// Worktree has the CLI work in a private clone of the repository.
	Worktree bool `json:"worktree,omitzero"`
	// Sandbox has the CLI run confined to its working directory.
	Sandbox bool `json:"sandbox,omitzero"`

	// Budget hands the run a part of a plan's budget.
	Budget *TaskBudget `json:"budget,omitzero"`

	// What follows has no effect on what is done, and is left out of the
	// arguments that are decided on.

	CorrelationID string `json:"correlationId,omitzero"`
	ForceRefresh  bool   `json:"forceRefresh,omitzero"`
}

// TaskBudget is the part of a budget of the caller's that a run may draw from.
// It is set aside while the run goes on, and what is left goes back.
type TaskBudget struct {
	ID    string      `json:"id"`
	Needs []TaskShare `json:"needs"`
}

// TaskShare is a need, such as fs.write:./src/**, and how often.
type TaskShare struct {
	Need string `json:"need"`
	Uses int    `json:"uses,omitzero"`
}

// PromptParts is a prompt in parts, of which all but the task stay the same
// between requests.
type PromptParts struct {
	System  string `json:"system,omitzero"`
	Tools   string `json:"tools,omitzero"`
	Context string `json:"context,omitzero"`
	Task    string `json:"task"`
}

// MaxPrompt is the length of a prompt in bytes. More is refused, never cut.
const MaxPrompt = 400_000

// The limits of an idle time-out, and what it is where nobody says.
const (
	MinIdleMs, MaxIdleMs, DefaultIdleMs = 30_000, 3_600_000, 600_000
)

// DefaultServers are the MCP servers of a request that names none.
func DefaultServers() []string { return []string{"sqry"} }

// ParseTask reads a request strictly and checks what can be checked without
// knowing the CLI.
func ParseTask(raw jsontext.Value) (*Task, error) {
	args, err := Canonical(raw)
	if err != nil {
		return nil, err
	}
	var t Task
	if err := json.Unmarshal(args, &t, json.RejectUnknownMembers(true)); err != nil {
		return nil, &InvalidError{Field: "request", Problem: fmt.Sprintf("is not one that this gate takes: %v", err)}
	}
	return &t, t.check()
}

// The words of the fields that have few.
var (
	strategies   = []string{"legacy", "mcp_managed"}
	taskPolicies = []string{"strict", "balanced", "permissive"}
)

func (t *Task) check() error {
	switch prompt := t.Text(); {
	case (strings.TrimSpace(t.Prompt) == "") == (t.PromptParts == nil):
		return &InvalidError{Field: "prompt", Problem: "or promptParts must be given, and not both"}
	case t.PromptParts != nil && strings.TrimSpace(t.PromptParts.Task) == "":
		return &InvalidError{Field: "promptParts.task", Problem: "is missing"}
	case len(prompt) > MaxPrompt:
		return &InvalidError{Field: "prompt", Problem: fmt.Sprintf("is %d bytes; the limit is %d", len(prompt), MaxPrompt)}
	case strings.ContainsRune(prompt, 0):
		return &InvalidError{Field: "prompt", Problem: "holds a NUL byte"}
	}
	for _, f := range []struct {
		name, value string
		right       []string
	}{{"approvalStrategy", t.ApprovalStrategy, strategies}, {"approvalPolicy", t.ApprovalPolicy, taskPolicies}} {
		if f.value != "" && !slices.Contains(f.right, f.value) {
			return &InvalidError{Field: f.name, Problem: fmt.Sprintf("cannot be %q: use one of %s", f.value, strings.Join(f.right, ", "))}
		}
	}
	if t.IdleTimeoutMs != 0 && (t.IdleTimeoutMs < MinIdleMs || t.IdleTimeoutMs > MaxIdleMs) {
		return &InvalidError{Field: "idleTimeoutMs", Problem: fmt.Sprintf("must be from %d to %d", MinIdleMs, MaxIdleMs)}
	}
	if b := t.Budget; b != nil && (b.ID == "" || len(b.Needs) == 0) {
		return &InvalidError{Field: "budget", Problem: "names a budget and what the run gets of it"}
	}
	if t.SessionID != "" && t.ResumeLatest {
		return &InvalidError{Field: "sessionId", Problem: "and resumeLatest exclude each other"}
	}
	return t.checkWords()
}

// checkWords refuses what could be read as another word on a command line.
func (t *Task) checkWords() error {
	words := []Field{
		{"model", t.Model}, {"sessionId", t.SessionID}, {"correlationId", t.CorrelationID}, {"permissionMode", t.PermissionMode},
		{"approvalMode", t.ApprovalMode}, {"sandboxMode", t.SandboxMode},
	}
	for name, list := range map[string][]string{"allowedTools": t.AllowedTools, "disallowedTools": t.DisallowedTools, "mcpServers": t.MCPServers} {
		for _, v := range list {
			if v == "" {
				return &InvalidError{Field: name, Problem: "holds an empty name"}
			}
			words = append(words, Field{name, v})
		}
	}
	for _, w := range words {
		if strings.HasPrefix(w.Value, "-") || len(w.Value) > maxName || strings.ContainsFunc(w.Value, isControl) {
			return &InvalidError{Field: w.Name, Problem: "begins with a dash, is too long or holds control characters"}
		}
	}
	return nil
}

// Args is the request as it is decided on, in canonical form.
func (t *Task) Args() (jsontext.Value, error) {
	d := *t
	d.CorrelationID, d.ForceRefresh = "", false
	raw, err := json.Marshal(&d)
	if err != nil {
		return nil, err
	}
	return Canonical(raw)
}

// Servers are the MCP servers that the request wants.
func (t *Task) Servers() []string {
	if t.MCPServers == nil {
		return DefaultServers()
	}
	return t.MCPServers
}

// Text is the prompt as the CLI gets it: the parts in their one order.
func (t *Task) Text() string {
	if t.PromptParts == nil {
		return t.Prompt
	}
	if stable := t.PromptParts.stable(); stable != "" {
		return stable + "\n\n" + t.PromptParts.Task
	}
	return t.PromptParts.Task
}

// stable joins the parts that stay the same between requests.
func (p *PromptParts) stable() string {
	var parts []string
	for _, s := range []string{p.System, p.Tools, p.Context} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, "\n\n")
}

// PrefixHash identifies the stable part of a prompt, "" where the prompt has no
// parts.
func (t *Task) PrefixHash() (hash string, bytes int) {
	if t.PromptParts == nil {
		return "", 0
	}
	stable := t.PromptParts.stable()
	sum := sha256.Sum256([]byte(stable))
	return hex.EncodeToString(sum[:]), len(stable)
}

// Plans says that the run may look and change nothing.
func (t *Task) Plans() bool { return t.PermissionMode == "plan" || t.ApprovalMode == "plan" }

// Bypass names the fields with which the caller switches the CLI's own checks
// off. That approvalStrategy is mcp_managed is none of them: what follows from
// it the gate does, and not the caller.
func (t *Task) Bypass() []string {
	var out []string
	add := func(set bool, name string) {
		if set {
			out = append(out, name)
		}
	}
	add(t.DangerouslySkipPermissions, "dangerouslySkipPermissions")
	add(t.DangerouslyBypassApprovalsAndSandbox, "dangerouslyBypassApprovalsAndSandbox")
	add(t.AlwaysApprove, "alwaysApprove")
	add(slices.Contains([]string{"bypassPermissions", "auto-approve"}, t.PermissionMode), "permissionMode: "+t.PermissionMode)
	add(t.ApprovalMode == "yolo", "approvalMode: yolo")
	add(t.SandboxMode == "danger-full-access", "sandboxMode: danger-full-access")
	return out
}
