package provider

import "github.com/seed-3ebc6b8a/gatehouse/internal/inrun"

// codex is OpenAI's Codex. Its own sandbox is a flag of each run: a resumed
// session does not inherit the one it began with, so it is always stated, and
// stands before the word resume, behind which it is refused.
var codex = adapter{
	fields: []string{"fullAuto", "sandboxMode", "dangerouslyBypassApprovalsAndSandbox", "forkSession"},
	refusals: map[string]string{
		"allowedTools": "it has no lists of tools", "disallowedTools": "it has no lists of tools",
		"strictMcpConfig": "mcpServers is tracked for the score only: Codex uses its own MCP configuration",
		"permissionMode":  "use sandboxMode or fullAuto", "approvalMode": "it is a flag of Gemini CLI; use sandboxMode or fullAuto",
		"dangerouslySkipPermissions": "it is a flag of Claude Code; Codex's is dangerouslyBypassApprovalsAndSandbox", "alwaysApprove": "it is a flag of Grok",
	},
	env:     []string{"OPENAI_API_KEY", "OPENAI_BASE_URL", "CODEX_API_KEY", "CODEX_ACCESS_TOKEN"},
	login:   [][2]string{{".codex/auth.json", ".codex/auth.json"}},
	hosts:   []string{"api.openai.com:443", "chatgpt.com:443", "auth.openai.com:443"},
	modelIn: setting{".codex/config.toml", "model"},
	channel: "approvals of codex app-server",
	prepare: prepareCodex,
}

const readOnly, workspaceWrite, fullAccess = "read-only", "workspace-write", "danger-full-access"

func prepareCodex(b *builder) error {
	t := b.Task
	if err := b.oneOf("sandboxMode", t.SandboxMode, readOnly, workspaceWrite, fullAccess); err != nil {
		return err
	}
	b.setenv("CODEX_HOME", b.Home+"/.codex")
	b.file(".codex/config.toml", b.Template[".codex/config.toml"])
	sandbox := t.SandboxMode
	switch {
	case sandbox != "":
		if t.FullAuto && sandbox != workspaceWrite {
			b.warn("fullAuto is not passed on: sandboxMode says %s", sandbox)
		}
	case t.FullAuto:
		sandbox = workspaceWrite
	default:
		sandbox = readOnly
	}
	b.Parse = parseLines
	if b.Gated {
		codexGated(b, sandbox)
		return nil
	}
	codexClassic(b, sandbox)
	return nil
}

func codexGated(b *builder, sandbox string) {
	t := b.Task
	if t.DangerouslyBypassApprovalsAndSandbox {
		b.held("dangerouslyBypassApprovalsAndSandbox")
	}
	if sandbox == fullAccess {
		b.held("sandboxMode " + fullAccess)
		sandbox = workspaceWrite
	}
	b.Posture.Sandbox = sandbox
	if b.Confined {
		// The gate's sandbox holds it to the same, and none can be made inside.
		b.ReadOnly = sandbox == readOnly
		b.Posture.Sandbox = "the gate's, " + sandbox
		sandbox = fullAccess
	}
	b.args(inrun.CodexArgs(b.Input.Dir)...)
	start := inrun.CodexStart{Prompt: t.Text(), Dir: b.Input.Dir, Model: t.Model, Sandbox: sandbox}
	if b.Known {
		start.Session, start.Fork = b.Session, t.ForkSession
	}
	if !b.Known || t.ForkSession {
		b.Session = "" // the CLI names it
	}
	b.Channel = func(ask inrun.Ask) inrun.Drive { return inrun.Codex(start, ask) }
}

func codexClassic(b *builder, sandbox string) {
	t := b.Task
	b.args("exec", "--json", "--skip-git-repo-check", "-C", b.Input.Dir)
	if t.Model != "" {
		b.args("--model", t.Model)
	}
	b.Posture.Approval, b.Posture.Sandbox = "never", sandbox
	if b.Confined {
		b.ReadOnly = sandbox == readOnly && !t.DangerouslyBypassApprovalsAndSandbox
		b.Posture.Sandbox = "the gate's, " + sandbox
		sandbox = fullAccess
	}
	if t.DangerouslyBypassApprovalsAndSandbox {
		b.args("--dangerously-bypass-approvals-and-sandbox")
		b.Posture.Sandbox = fullAccess
	} else {
		b.args("--sandbox", sandbox)
	}
	switch {
	case b.Known && t.ForkSession:
		b.args("fork", b.Session)
		b.Session = ""
	case b.Known:
		b.args("resume", b.Session)
	default:
		b.Session = ""
	}
	b.args("-")
	b.Stdin = []byte(t.Text())
	b.Parse = parseCodex
}
