package provider

import (
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/inrun"
)

// grok is xAI's Grok. It reads the settings of other agents unless it is told
// not to.
var grok = adapter{
	fields: []string{"allowedTools", "disallowedTools", "permissionMode", "alwaysApprove", "forkSession"},
	refusals: map[string]string{
		"approvalMode": "it is a flag of Gemini CLI; use permissionMode", "fullAuto": "it is a flag of Codex", "sandboxMode": "it is a flag of Codex",
		"strictMcpConfig":                      "mcpServers is tracked for the score only: Grok uses its own MCP configuration",
		"dangerouslySkipPermissions":           "it is a flag of Claude Code; Grok's is alwaysApprove",
		"dangerouslyBypassApprovalsAndSandbox": "it is a flag of Codex; Grok's is alwaysApprove",
	},
	env:     []string{"XAI_API_KEY", "GROK_API_KEY", "XAI_BASE_URL"},
	login:   [][2]string{{".grok/auth.json", ".grok/auth.json"}},
	hosts:   []string{"api.x.ai:443", "cli-chat-proxy.grok.com:443", "auth.x.ai:443"},
	modelIn: setting{".grok/config.toml", "models.default"},
	channel: "permission requests of the Agent Client Protocol",
	prepare: prepareGrok,
}

func prepareGrok(b *builder) error {
	t := b.Task
	if err := b.oneOf("permissionMode", t.PermissionMode, "default", "acceptEdits", "auto", "dontAsk", "bypassPermissions", "plan"); err != nil {
		return err
	}
	b.setenv("GROK_HOME", b.Home+"/.grok")
	for _, agent := range []string{"CLAUDE", "CURSOR"} {
		for _, what := range []string{"HOOKS", "MCPS", "RULES", "SKILLS", "AGENTS"} {
			b.setenv("GROK_"+agent+"_"+what+"_ENABLED", "false")
		}
	}
	if b.Gated {
		return grokGated(b)
	}
	return grokClassic(b)
}

func grokGated(b *builder) error {
	t := b.Task
	if t.ForkSession {
		return &RefusedError{Field: "forkSession", CLI: b.CLI, Why: "its channel for tool calls cannot fork a session"}
	}
	if t.AlwaysApprove {
		b.held("alwaysApprove")
	}
	switch t.PermissionMode {
	case "", "default":
	case "plan": // the gate holds it to that
		b.Posture.Approval = "gate, in plan mode"
	default:
		b.held("permissionMode " + t.PermissionMode)
	}
	for name, with := range map[string]func(string) (string, error){".grok/config.toml": GrokConfig, ".grok/requirements.toml": GrokRequirements} {
		text, err := with(b.Template[name])
		if err != nil {
			return &RefusedError{Field: "cli", CLI: b.CLI, Why: err.Error()}
		}
		b.file(name, text)
	}
	b.args(inrun.GrokArgs(t.Model)...)
	start := inrun.ACPStart{Host: "grok", Prompt: t.Text(), Dir: b.Input.Dir}
	if b.Known {
		start.Session = b.Session
	} else {
		b.Session = ""
	}
	b.Channel = func(ask inrun.Ask) inrun.Drive { return inrun.ACP(start, ask) }
	b.Parse = parseLines
	return nil
}

func grokClassic(b *builder) error {
	t := b.Task
	if err := b.someTools(); err != nil {
		return err
	}
	b.args("--prompt-file", b.private("prompt.txt", t.Text()), "--output-format", "json")
	if t.Model != "" {
		b.args("--model", t.Model)
	}
	switch {
	case t.AlwaysApprove || b.managed():
		b.args("--always-approve")
		b.Posture.Approval = "always-approve"
	case t.PermissionMode != "":
		b.args("--permission-mode", t.PermissionMode)
		b.Posture.Approval = t.PermissionMode
	default:
		b.args("--permission-mode", "default")
		b.Posture.Approval = "default"
	}
	if len(t.AllowedTools) > 0 {
		b.args("--tools", strings.Join(t.AllowedTools, ","))
	}
	if len(t.DisallowedTools) > 0 {
		b.args("--disallowed-tools", strings.Join(t.DisallowedTools, ","))
	}
	if b.Known {
		b.args("--resume", b.Session)
		if t.ForkSession {
			b.args("--fork-session")
			b.Session = ""
		}
	} else if isUUID(b.Session) {
		b.args("--session-id", b.Session)
	} else {
		b.Session = ""
	}
	b.Parse = parseGrok
	return nil
}
