package rules

import (
	"fmt"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-3ebc6b8a/gatehouse/internal/connect"
)

// settings reads a settings file of an editor, which may have comments.
func settings(path string, into any) error {
	text, err := readFile(path)
	if err != nil || text == nil {
		return err
	}
	if err := json.Unmarshal(withoutComments(text), into, jsontext.AllowDuplicateNames(true)); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// editorSettings is where an editor of the family of VS Code keeps a person's
// settings, or a project's.
func editorSettings(p connect.Place, editor, project string) string {
	if p.Scope == connect.Project {
		return filepath.Join(p.Dir, project, "settings.json")
	}
	if runtime.GOOS == "darwin" {
		return filepath.Join(p.Home, "Library", "Application Support", editor, "User", "settings.json")
	}
	return filepath.Join(p.Home, ".config", editor, "User", "settings.json")
}

// readCursor reads the permissions of Cursor's command and the lists of the
// editor.
func readCursor(f *Found, p connect.Place) error {
	var cli struct {
		Permissions lists  `json:"permissions"`
		Approval    string `json:"approvalMode"`
	}
	name := "cli-config.json"
	if p.Scope == connect.Project {
		name = "cli.json"
	}
	if err := settings(within(p, ".cursor", name), &cli); err != nil {
		return err
	}
	cli.Permissions.each(f.cursor)
	if cli.Approval != "" {
		f.skip("approvalMode "+cli.Approval, elsewhere)
	}
	var editor struct {
		Terminal []string       `json:"terminalAllowlist"`
		MCP      []string       `json:"mcpAllowlist"`
		Auto     jsontext.Value `json:"autoRun"`
	}
	if err := settings(within(p, ".cursor", "permissions.json"), &editor); err != nil {
		return err
	}
	for _, rule := range editor.Terminal {
		f.cursorShell("terminalAllowlist "+rule, allow, rule)
	}
	for _, rule := range editor.MCP {
		f.cursorMCP("mcpAllowlist "+rule, allow, rule)
	}
	if editor.Auto != nil {
		f.skip("autoRun", "it is guidance in words for the agent's own classifier")
	}
	return nil
}

// cursor translates one rule of Cursor's command.
func (f *Found) cursor(from, level, rule string) {
	tool, what, narrowed, ok := split(rule)
	switch {
	case !ok || !narrowed:
		f.skip(from, notKnown)
	case tool == "Shell":
		f.cursorShell(from, level, what)
	case tool == "Mcp":
		f.cursorMCP(from, level, what)
	case tool == "Read" || tool == "Write":
		f.path(from, level, tool, placePath(level, what))
	case tool == "WebFetch" && what != "*":
		f.add(Rule{From: from, Level: level, Operation: tool, Host: what})
	case tool == "WebFetch":
		f.tool(from, level, tool)
	default:
		f.skip(from, notKnown)
	}
}

// cursorShell: the command, or the command and a pattern of its arguments.
func (f *Found) cursorShell(from, level, what string) {
	command, args, narrowed := strings.Cut(what, ":")
	switch {
	case !narrowed || args == "*":
		f.prefix(from, level, command)
	default:
		f.glob(from, level, command+" "+args)
	}
}

// cursorMCP: a server and a tool of it, either of them a star.
func (f *Found) cursorMCP(from, level, what string) {
	server, tool, ok := strings.Cut(what, ":")
	if !ok || server == "" || tool == "" {
		f.skip(from, notKnown)
		return
	}
	f.tool(from, level, "mcp__"+server+"__"+tool)
}

// readCopilot reads what VS Code runs without asking, and what the Copilot CLI
// was told to.
func readCopilot(f *Found, p connect.Place) error {
	var in struct {
		Terminal map[string]jsontext.Value `json:"chat.tools.terminal.autoApprove"`
		URLs     map[string]jsontext.Value `json:"chat.tools.urls.autoApprove"`
		Edits    map[string]jsontext.Value `json:"chat.tools.edits.autoApprove"`
		All      bool                      `json:"chat.tools.autoApprove"`
		Global   bool                      `json:"chat.tools.global.autoApprove"`
	}
	if err := settings(editorSettings(p, "Code", ".vscode"), &in); err != nil {
		return err
	}
	for _, command := range slices.Sorted(maps.Keys(in.Terminal)) {
		f.vscode(command, in.Terminal[command])
	}
	for _, url := range slices.Sorted(maps.Keys(in.URLs)) {
		f.skip("chat.tools.urls.autoApprove "+url, "an address with a path is more than the host that the gate knows")
	}
	for _, glob := range slices.Sorted(maps.Keys(in.Edits)) {
		from := "chat.tools.edits.autoApprove " + glob
		switch string(in.Edits[glob]) {
		case "true":
			f.path(from, allow, "Edit", placePath(allow, glob))
		case "false":
			f.path(from, ask, "Edit", placePath(ask, glob))
		default:
			f.skip(from, notKnown)
		}
	}
	if in.All || in.Global {
		f.skip("chat.tools.autoApprove", elsewhere)
	}
	return f.copilotCLI(p)
}

// vscode translates one command of VS Code. What may not run by itself there is
// asked about, not denied.
func (f *Found) vscode(command string, value jsontext.Value) {
	from := "chat.tools.terminal.autoApprove " + command
	level := ask
	switch string(value) {
	case "true":
		level = allow
	case "false":
	case "null":
		return // it takes a rule of a layer above out
	default:
		f.skip(from+" "+string(value), notKnown)
		return
	}
	if strings.HasPrefix(command, "/") && strings.LastIndex(command, "/") > 0 {
		f.skip(from, expression)
		return
	}
	f.prefix(from, level, command)
}

// copilotCLI reads the approvals that the Copilot CLI keeps by place. They are
// good for that place alone.
func (f *Found) copilotCLI(p connect.Place) error {
	var in struct {
		Locations map[string]struct {
			Approvals []struct {
				Kind     string   `json:"kind"`
				Commands []string `json:"commandIdentifiers"`
				Server   string   `json:"serverName"`
				Tool     *string  `json:"toolName"`
			} `json:"tool_approvals"`
			Dirs []string `json:"allowed_directories"`
		} `json:"locations"`
	}
	if err := settings(filepath.Join(p.Home, ".copilot", "permissions-config.json"), &in); err != nil {
		return err
	}
	for _, dir := range slices.Sorted(maps.Keys(in.Locations)) {
		here := p.Scope == connect.Project && dir == p.Dir
		for _, a := range in.Locations[dir].Approvals {
			from := dir + " " + strings.TrimSpace(a.Kind+" "+strings.Join(a.Commands, ", ")+a.Server)
			switch {
			case !here:
				f.skip(from, "it is good for that place alone; `gatehouse connect copilot --project` there takes it over")
			case a.Kind == "commands":
				for _, c := range a.Commands {
					f.prefix(dir+" command "+c, allow, c)
				}
			case a.Kind == "mcp" && a.Server != "" && a.Tool != nil:
				f.tool(from+" "+*a.Tool, allow, "mcp__"+a.Server+"__"+*a.Tool)
			case a.Kind == "mcp" && a.Server != "":
				f.tool(from, allow, "mcp__"+a.Server+"__*")
			default:
				f.skip(from, wholeTool)
			}
		}
		for _, d := range in.Locations[dir].Dirs {
			f.skip(dir+" allowed_directories "+d, "what lies outside the workspace is asked about by the profile")
		}
	}
	return nil
}

// readWindsurf reads the commands that Windsurf runs without asking, or never
// does: those it asks about.
func readWindsurf(f *Found, p connect.Place) error {
	var in struct {
		Allow []string `json:"windsurf.cascadeCommandsAllowList"`
		Deny  []string `json:"windsurf.cascadeCommandsDenyList"`
	}
	if err := settings(editorSettings(p, "Windsurf", ".vscode"), &in); err != nil {
		return err
	}
	for _, c := range in.Deny {
		f.prefix("cascadeCommandsDenyList "+c, ask, c)
	}
	for _, c := range in.Allow {
		f.prefix("cascadeCommandsAllowList "+c, allow, c)
	}
	return nil
}

// withoutComments makes JSON of JSON with comments and commas too many, which
// editors take. Texts stay as they are.
func withoutComments(text []byte) []byte {
	var out []byte
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '"':
			end := i + 1
			for end < len(text) && text[end] != '"' {
				if text[end] == '\\' {
					end++
				}
				end++
			}
			end = min(end, len(text)-1)
			out = append(out, text[i:end+1]...)
			i = end
		case c == '/' && i+1 < len(text) && text[i+1] == '/':
			for i < len(text) && text[i] != '\n' {
				i++
			}
			i--
		case c == '/' && i+1 < len(text) && text[i+1] == '*':
			_, rest, closed := strings.Cut(string(text[i+2:]), "*/")
			if !closed {
				return append(out, text[i:]...) // what cannot be read is left for the reader to say so
			}
			i = len(text) - len(rest) - 1
		case c == '}' || c == ']':
			trimmed := strings.TrimRight(string(out), " \t\r\n")
			if strings.HasSuffix(trimmed, ",") {
				out = out[:len(trimmed)-1]
			}
			out = append(out, c)
		default:
			out = append(out, c)
		}
	}
	return out
}
