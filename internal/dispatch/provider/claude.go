package provider

import (
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/inrun"
)

// claude is Claude Code. Its session is named before it begins: --session-id
// the first time, --resume afterwards, and never by chance.
var claude = adapter{
	fields: []string{"strictMcpConfig", "allowedTools", "disallowedTools", "permissionMode", "dangerouslySkipPermissions", "forkSession"},
	refusals: map[string]string{
		"fullAuto": "it is a flag of Codex", "sandboxMode": "it is a flag of Codex", "approvalMode": "it is a flag of Gemini CLI; use permissionMode",
		"dangerouslyBypassApprovalsAndSandbox": "it is a flag of Codex; Claude Code's is dangerouslySkipPermissions", "alwaysApprove": "it is a flag of Grok",
	},
	env: []string{
		"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "ANTHROPIC_MODEL", "ANTHROPIC_SMALL_FAST_MODEL", "CLAUDE_CODE_OAUTH_TOKEN",
		"CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "IS_SANDBOX",
	},
	login:    [][2]string{{".claude/.credentials.json", ".claude/.credentials.json"}},
	hosts:    []string{"api.anthropic.com:443"},
	modelEnv: []string{"ANTHROPIC_MODEL"},
	modelIn:  setting{".claude/settings.json", "model"},
	channel:  "permission prompts over standard input and output",
	prepare:  prepareClaude,
}

func prepareClaude(b *builder) error {
	t := b.Task
	if err := b.oneOf("permissionMode", t.PermissionMode, "default", "acceptEdits", "auto", "bypassPermissions", "manual", "dontAsk", "plan"); err != nil {
		return err
	}
	b.setenv("CLAUDE_CONFIG_DIR", b.Home+"/.claude")
	for _, off := range []string{"DISABLE_TELEMETRY", "DISABLE_AUTOUPDATER", "DISABLE_ERROR_REPORTING", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"} {
		b.setenv(off, "1")
	}
	if b.Gated {
		claudeGated(b)
	} else {
		claudeClassic(b)
	}
	if t.Model != "" {
		b.args("--model", t.Model)
	}
	if len(b.Launch.Servers) > 0 {
		b.args("--mcp-config", b.private("mcp.json", b.mcpConfig()))
	}
	if len(t.DisallowedTools) > 0 {
		b.args(append([]string{"--disallowed-tools"}, t.DisallowedTools...)...)
	}
	b.Parse = parseClaude
	return claudeSession(b)
}

// claudeGated: the tools that are allowed are those that are there at all. To
// name them as allowed would have Claude Code run them unasked.
func claudeGated(b *builder) {
	t := b.Task
	b.args(inrun.ClaudeArgs()...)
	switch t.PermissionMode {
	case "", "default":
	case "plan":
		b.args("--permission-mode", "plan")
		b.Posture.Approval = "gate, in plan mode"
	default:
		b.held("permissionMode " + t.PermissionMode)
	}
	if t.DangerouslySkipPermissions {
		b.held("dangerouslySkipPermissions")
	}
	if t.AllowedTools != nil {
		b.args(append([]string{"--tools"}, baseNames(t.AllowedTools)...)...)
	}
	b.Channel = func(ask inrun.Ask) inrun.Drive { return inrun.Claude([]byte(t.Text()), ask) }
}

func claudeClassic(b *builder) {
	t := b.Task
	b.args("-p", "--output-format", "stream-json", "--verbose", "--setting-sources", "", "--strict-mcp-config")
	mode := t.PermissionMode
	if t.DangerouslySkipPermissions || b.managed() {
		mode = "bypassPermissions"
	}
	if mode == "" {
		mode = "default"
	}
	b.args("--permission-mode", mode)
	b.Posture.Approval = mode
	if t.AllowedTools != nil {
		b.args(append([]string{"--allowed-tools"}, t.AllowedTools...)...)
		if len(t.AllowedTools) == 0 {
			b.args("--tools", "")
		}
	}
	b.Stdin = []byte(t.Text())
}

func claudeSession(b *builder) error {
	switch {
	case b.Session == "":
	case !isUUID(b.Session):
		return &RefusedError{Field: "sessionId", CLI: b.CLI, Why: "it takes a UUID in small letters"}
	case b.Known:
		b.args("--resume", b.Session)
		if b.Task.ForkSession {
			b.args("--fork-session")
			b.Session = "" // the CLI tells the new one
		}
	default:
		b.args("--session-id", b.Session)
	}
	return nil
}

// baseNames are names of tools without their patterns; none are "".
func baseNames(tools []string) []string {
	if len(tools) == 0 {
		return []string{""}
	}
	var out []string
	for _, t := range tools {
		name, _, _ := strings.Cut(t, "(")
		out = append(out, strings.TrimSpace(name))
	}
	return out
}
