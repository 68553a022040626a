package provider

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/seed-3ebc6b8a/gatehouse/internal/inrun"
)

// gemini is Google's Gemini CLI.
var gemini = adapter{
	fields: []string{"allowedTools", "approvalMode", "strictMcpConfig"},
	refusals: map[string]string{
		"disallowedTools": "it has allowlists only; use allowedTools", "permissionMode": "use approvalMode",
		"fullAuto": "it is a flag of Codex; use approvalMode", "sandboxMode": "it is a flag of Codex", "forkSession": "it cannot fork a session",
		"dangerouslySkipPermissions": "it is a flag of Claude Code; Gemini CLI's is approvalMode yolo", "alwaysApprove": "it is a flag of Grok",
		"dangerouslyBypassApprovalsAndSandbox": "it is a flag of Codex; Gemini CLI's is approvalMode yolo",
	},
	env:      []string{"GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL", "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION"},
	login:    [][2]string{{".gemini/oauth_creds.json", ".gemini/oauth_creds.json"}},
	hosts:    []string{"generativelanguage.googleapis.com:443", "cloudcode-pa.googleapis.com:443", "oauth2.googleapis.com:443"},
	modelEnv: []string{"GEMINI_MODEL"},
	modelIn:  setting{".gemini/settings.json", "model.name"},
	channel:  "permission requests of the Agent Client Protocol",
	prepare:  prepareGemini,
}

func prepareGemini(b *builder) error {
	t := b.Task
	if err := b.oneOf("approvalMode", t.ApprovalMode, "default", "auto_edit", "yolo", "plan"); err != nil {
		return err
	}
	b.setenv("GEMINI_CLI_HOME", b.Home)
	b.setenv("GEMINI_CLI_TRUST_WORKSPACE", "true")
	if err := geminiSettings(b); err != nil {
		return err
	}
	if b.Gated {
		geminiGated(b)
	} else if err := geminiClassic(b); err != nil {
		return err
	}
	if t.Model != "" {
		b.args("-m", t.Model)
	}
	for _, name := range t.Servers() {
		b.args("--allowed-mcp-server-names", name)
	}
	return nil
}

// geminiSettings adds to the operator's settings what a run stands on. Its own
// way of throwing old sessions away takes those along that are gone on with,
// because it goes by a part of their names.
func geminiSettings(b *builder) error {
	const name = ".gemini/settings.json"
	settings := map[string]any{}
	if text := b.Template[name]; text != "" {
		if err := json.Unmarshal([]byte(text), &settings); err != nil {
			return &RefusedError{Field: "cli", CLI: b.CLI, Why: "the operator's " + name + " cannot be read"}
		}
	}
	below := func(at map[string]any, key string) map[string]any {
		next, ok := at[key].(map[string]any)
		if !ok {
			next = map[string]any{}
			at[key] = next
		}
		return next
	}
	below(below(settings, "general"), "sessionRetention")["enabled"] = false
	if auth := below(below(settings, "security"), "auth"); auth["selectedType"] == nil && b.Input.Env("GEMINI_API_KEY") != "" {
		auth["selectedType"] = "gemini-api-key"
	}
	text, err := json.Marshal(settings, json.Deterministic(true))
	b.file(name, string(text))
	return err
}

func geminiGated(b *builder) {
	t := b.Task
	b.args(inrun.GeminiArgs(b.private("policy.toml", geminiPolicy(t.AllowedTools)))...)
	switch t.ApprovalMode {
	case "", "default":
	case "plan":
		b.args("--approval-mode", "plan")
		b.Posture.Approval = "gate, in plan mode"
	default:
		b.held("approvalMode " + t.ApprovalMode)
	}
	start := inrun.ACPStart{Host: "gemini", Prompt: t.Text(), Dir: b.Input.Dir}
	if b.Known {
		start.Session = b.Session
		b.Before = func() error { return inrun.GeminiKeep(b.Home, start.Session) }
	} else {
		b.Session = ""
	}
	b.Channel = func(ask inrun.Ask) inrun.Drive { return inrun.ACP(start, ask) }
	b.Parse = parseLines
}

// geminiPolicy has Gemini CLI ask about everything, and leaves out the tools
// that are not allowed where there is a list.
func geminiPolicy(allowed []string) string {
	if allowed == nil {
		return inrun.GeminiPolicy
	}
	var s strings.Builder
	s.WriteString("[[rule]]\ntoolName = \"*\"\ndecision = \"deny\"\npriority = 996\n")
	for _, name := range allowed {
		fmt.Fprintf(&s, "\n[[rule]]\ntoolName = %q\ndecision = \"ask_user\"\npriority = 997\n", name)
		if name == "run_shell_command" {
			s.WriteString("\n[[rule]]\ntoolName = \"run_shell_command\"\nargsPattern = \".\"\ndecision = \"ask_user\"\npriority = 998\n")
		}
	}
	s.WriteString("\n[[rule]]\ntoolName = \"invoke_agent\"\ndecision = \"deny\"\npriority = 999\n")
	return s.String()
}

func geminiClassic(b *builder) error {
	t := b.Task
	if err := b.someTools(); err != nil {
		return err
	}
	mode := t.ApprovalMode
	if b.managed() {
		mode = "yolo"
	}
	if mode == "" {
		mode = "default"
	}
	b.args("-o", "json", "--approval-mode", mode)
	b.Posture.Approval = mode
	for _, name := range t.AllowedTools {
		b.args("--allowed-tools", name)
	}
	switch {
	case b.Known:
		b.args("--resume", b.Session)
	case isUUID(b.Session):
		b.args("--session-id", b.Session)
	default:
		b.Session = ""
	}
	b.Stdin = []byte(t.Text())
	b.Parse = parseGemini
	return nil
}
