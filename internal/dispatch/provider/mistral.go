package provider

import (
	"fmt"
)

// mistral is Mistral Vibe. Its agent is always named: left out it would be the
// user's own choice. It has no channel on which it asks; its strict hook, which
// refuses when it fails, does that work.
var mistral = adapter{
	program: "vibe",
	fields:  []string{"allowedTools", "permissionMode"},
	refusals: map[string]string{
		"disallowedTools": "this version of Vibe has no such flag; use allowedTools", "approvalMode": "it is a flag of Gemini CLI; use permissionMode",
		"fullAuto": "it is a flag of Codex; use permissionMode", "sandboxMode": "it is a flag of Codex", "forkSession": "it cannot fork a session",
		"dangerouslySkipPermissions":           "it is a flag of Claude Code; Vibe's is permissionMode auto-approve",
		"dangerouslyBypassApprovalsAndSandbox": "it is a flag of Codex; Vibe's is permissionMode auto-approve",
		"alwaysApprove":                        "it is a flag of Grok; Vibe's is permissionMode auto-approve",
		"strictMcpConfig":                      "mcpServers is tracked for the score only: Vibe uses its own MCP configuration",
	},
	env:      []string{"MISTRAL_API_KEY", "MISTRAL_BASE_URL"},
	login:    [][2]string{{".vibe/.env", ".vibe/.env"}},
	hosts:    []string{"api.mistral.ai:443"},
	modelEnv: []string{"VIBE_ACTIVE_MODEL"},
	modelIn:  setting{".vibe/config.toml", "active_model"},
	channel:  "a strict hook",
	prepare:  prepareMistral,
}

func prepareMistral(b *builder) error {
	t := b.Task
	if err := b.oneOf("permissionMode", t.PermissionMode, "default", "plan", "chat", "explore", "accept-edits", "auto-approve"); err != nil {
		return err
	}
	if err := b.someTools(); err != nil {
		return err
	}
	home := b.Home + "/.vibe"
	b.setenv("VIBE_HOME", home)
	if t.Model != "" {
		b.setenv("VIBE_ACTIVE_MODEL", t.Model)
	}
	mode := t.PermissionMode
	if mode == "" {
		mode = "auto-approve"
	}
	b.Posture.Approval = mode
	if b.Gated {
		if b.Confined {
			return &RefusedError{Field: "sandbox", CLI: b.CLI, Why: "its hook has to reach the gate, which nothing in a sandbox does"}
		}
		if b.Hook == "" {
			return &RefusedError{Field: "cli", CLI: b.CLI, Why: "the gate's hook was not found, without which its tool calls cannot be decided"}
		}
		// The agent's own mode lets everything through; what runs is what the
		// hook lets through, and it is strict.
		b.Posture.Approval = "gate, by a strict hook; agent " + mode
		b.file(".vibe/hooks.toml", vibeHooks(b.Hook))
	}
	b.args("-p", "--output", "streaming", "--agent", mode)
	for _, name := range t.AllowedTools {
		b.args("--enabled-tools", name)
	}
	b.args("--workdir", b.Input.Dir)
	if b.Known {
		b.args("--resume", b.Session)
	} else {
		b.Session = ""
	}
	b.Stdin = []byte(t.Text())
	b.Parse = func(stdout []byte) Result { return parseVibe(stdout, home) }
	return nil
}

// vibeHooks is the file that has every tool call pass the gate's hook.
func vibeHooks(command string) string {
	text := ""
	for _, event := range []string{"before_tool", "after_tool"} {
		// Without a name Vibe leaves a hook out.
		text += fmt.Sprintf("[[hooks]]\nname = %q\ntype = %q\ncommand = %q\nmatch = \"*\"\ntimeout = 3600\nstrict = %t\n\n", "gatehouse "+event, event, command, event == "before_tool")
	}
	return text
}
