package connect

import (
	"path/filepath"
)

// under is a settings file by scope; "" where the agent has none of it.
func under(p Place, user, project, machine string) (string, error) {
	switch {
	case p.Scope == User && user != "":
		return filepath.Join(p.Home, user), nil
	case p.Scope == Project && project != "":
		return filepath.Join(p.Dir, project), nil
	case p.Scope == Machine && machine != "":
		return filepath.Join(p.Root, machine), nil
	}
	return "", ErrScope
}

// geminiEvents are the events of the Gemini CLI that the gate listens to.
var geminiEvents = []string{"BeforeTool", "AfterTool", "SessionStart", "SessionEnd"}

// geminiFiles connects the Gemini CLI, whose time-outs are in milliseconds. The
// machine's settings count before a project's, which could switch hooks off.
func geminiFiles(p Place, h *Hook) ([]edit, []string, error) {
	path, err := under(p, ".gemini/settings.json", ".gemini/settings.json", "/etc/gemini-cli/settings.json")
	if err != nil {
		return nil, nil, err
	}
	var notes []string
	if h != nil && p.Scope != Machine {
		notes = append(notes, "a repository's .gemini/settings.json can switch hooks off; `gatehouse connect gemini --machine`, as the administrator, rules that out")
	}
	return []edit{jsonFile(path, "gemini", geminiEvents, commonEntry(h, "gemini", 1000), func(o *object, was object) error {
		if p.Scope != Machine {
			return nil
		}
		return o.put("hooksConfig", map[string]any{"enabled": true}, h != nil, was)
	})}, notes, nil
}

// grokFiles connects Grok by a file of our own in its folder of hooks.
func grokFiles(p Place, h *Hook) ([]edit, []string, error) {
	path, err := under(p, ".grok/hooks/gatehouse.json", "", "")
	if err != nil {
		return nil, nil, err
	}
	events := []string{"PreToolUse", "PostToolUse", "PostToolUseFailure", "SessionStart", "SessionEnd"}
	return []edit{jsonFile(path, "grok", events, commonEntry(h, "grok", 1), nil)}, nil, nil
}

// cursorFiles connects Cursor, which can be told to block when a hook fails.
func cursorFiles(p Place, h *Hook) ([]edit, []string, error) {
	path, err := under(p, ".cursor/hooks.json", ".cursor/hooks.json", "/etc/cursor/hooks.json")
	if err != nil {
		return nil, nil, err
	}
	events := []string{"preToolUse", "postToolUse", "postToolUseFailure", "sessionStart", "sessionEnd"}
	return []edit{jsonFile(path, "cursor", events, plainEntry(h, "cursor", func(e map[string]any, timeout int) {
		e["timeout"], e["failClosed"] = timeout, true
	}), version1(h))}, nil, nil
}

// copilotFiles connects Copilot by a file of our own, which VS Code reads too.
func copilotFiles(p Place, h *Hook) ([]edit, []string, error) {
	path, err := under(p, ".copilot/hooks/gatehouse.json", ".github/hooks/gatehouse.json", "")
	if err != nil {
		return nil, nil, err
	}
	events := []string{"preToolUse", "postToolUse", "sessionStart", "sessionEnd"}
	return []edit{jsonFile(path, "copilot", events, plainEntry(h, "copilot", func(e map[string]any, timeout int) {
		e["type"], e["bash"], e["timeoutSec"] = "command", e["command"], timeout
		delete(e, "command")
	}), version1(h))}, nil, nil
}

// windsurfFiles connects Windsurf.
func windsurfFiles(p Place, h *Hook) ([]edit, []string, error) {
	path, err := under(p, ".codeium/windsurf/hooks.json", ".windsurf/hooks.json", "/etc/windsurf/hooks.json")
	if err != nil {
		return nil, nil, err
	}
	events := []string{
		"pre_run_command", "pre_write_code", "pre_read_code", "pre_mcp_tool_use",
		"post_run_command", "post_write_code", "post_read_code", "post_mcp_tool_use",
	}
	return []edit{jsonFile(path, "windsurf", events, plainEntry(h, "windsurf", func(e map[string]any, _ int) { e["show_output"] = true }), nil)}, nil, nil
}

// plainEntry is an entry that holds its command itself.
func plainEntry(h *Hook, agent string, finish func(e map[string]any, timeout int)) entry {
	if h == nil {
		return nil
	}
	return func(event string) any {
		timeout, deadline := times(event)
		e := map[string]any{"command": h.command(agent, deadline)}
		finish(e, timeout)
		return e
	}
}

// version1 sees to the version that some formats want, and takes it out with
// the last hook.
func version1(h *Hook) func(*object, object) error {
	return func(o *object, was object) error {
		return o.put("version", 1, h != nil || o.get("hooks") != nil, was)
	}
}
