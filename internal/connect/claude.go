package connect

import (
	"path/filepath"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// claudeEvents are the events of Claude Code that the gate listens to.
var claudeEvents = []string{"PreToolUse", "PermissionRequest", "PostToolUse", "PostToolUseFailure", "PermissionDenied", "SessionStart", "SessionEnd"}

func claudePath(p Place) string {
	switch p.Scope {
	case Project:
		// The project's shared file is for everyone who clones it; paths of
		// this machine belong into the local one, which also counts before it.
		return filepath.Join(p.Dir, ".claude", "settings.local.json")
	case Machine:
		return filepath.Join(p.Root, "/etc/claude-code/managed-settings.json")
	}
	return filepath.Join(p.Home, ".claude", "settings.json")
}

func claudeFiles(p Place, h *Hook) ([]edit, []string, error) {
	var notes []string
	if h != nil && p.Scope == User {
		notes = append(notes, "a repository's settings can still say disableAllHooks; `gatehouse connect claude --machine`, as the administrator, rules that out")
	}
	return []edit{{claudePath(p), func(old, before []byte) ([]byte, error) {
		o, err := parseObject(old)
		if err != nil {
			return nil, err
		}
		was, err := parseObject(before)
		if err != nil {
			return nil, err
		}
		if err := claudeSettings(&o, was, p.Scope, h); err != nil {
			return nil, err
		}
		return o.format()
	}}}, notes, nil
}

// claudeSettings puts the hook in, and with it what keeps it from being gone
// around: no mode without questions, in which a hook that fails lets everything
// through; in a project's local file a word against the project's own
// disableAllHooks; in the administrator's file no hooks but the administrator's.
func claudeSettings(o *object, was object, scope Scope, h *Hook) error {
	if err := jsonHooks(o, "claude", claudeEvents, hookEntry(h, "claude", hostTimeout)); err != nil {
		return err
	}
	permissions, err := parseObject(o.get("permissions"))
	if err != nil {
		return err
	}
	allowed, err := parseObject(was.get("permissions"))
	if err != nil {
		return err
	}
	if err := permissions.put("disableBypassPermissionsMode", "disable", h != nil, allowed); err != nil {
		return err
	}
	if err := o.put("permissions", permissions, len(permissions) > 0, nil); err != nil {
		return err
	}
	switch scope {
	case Project:
		return o.put("disableAllHooks", false, h != nil, was)
	case Machine:
		return o.put("allowManagedHooksOnly", true, h != nil, was)
	}
	return nil
}

// put sets a member where it is wanted, and else puts it back to what it was.
func (o *object) put(name string, v any, wanted bool, was object) error {
	if wanted {
		return o.set(name, v)
	}
	if old := was.get(name); old != nil {
		return o.set(name, old)
	}
	o.drop(name)
	return nil
}

// hookEntry is one entry in the list of an event, in the form that Claude Code
// made common; nil without a hook.
func hookEntry(h *Hook, agent string, timeout int) any {
	if h == nil {
		return nil
	}
	return map[string]any{"matcher": "*", "hooks": []any{map[string]any{"type": "command", "command": h.command(agent), "timeout": timeout}}}
}

// jsonHooks puts an entry into the lists of events under "hooks", in place of
// what an earlier connect put there, or takes that out if there is no entry.
func jsonHooks(o *object, agent string, events []string, entry any) error {
	hooks, err := parseObject(o.get("hooks"))
	if err != nil {
		return err
	}
	for _, m := range hooks.clone() { // entries of earlier versions, wherever they are
		entries, err := list(m.value)
		if err != nil {
			return err
		}
		kept := withoutOurs(entries, agent)
		switch {
		case len(kept) == 0:
			hooks.drop(m.name)
		case len(kept) < len(entries):
			if err := hooks.set(m.name, kept); err != nil {
				return err
			}
		}
	}
	for _, event := range events {
		if entry == nil {
			break
		}
		entries, err := list(hooks.get(event))
		if err != nil {
			return err
		}
		value, err := encode(entry)
		if err != nil {
			return err
		}
		if err := hooks.set(event, append(entries, value)); err != nil {
			return err
		}
	}
	if len(hooks) == 0 {
		o.drop("hooks")
		return nil
	}
	return o.set("hooks", hooks)
}

func (o object) clone() object { return append(object(nil), o...) }

// withoutOurs leaves out the entries whose command is the gate's.
func withoutOurs(entries []jsontext.Value, agent string) []jsontext.Value {
	kept := []jsontext.Value{}
	for _, e := range entries {
		var entry struct {
			Command string `json:"command"`
			Bash    string `json:"bash"`
			Hooks   []struct {
				Command string `json:"command"`
			} `json:"hooks"`
		}
		mine := false
		if json.Unmarshal(e, &entry) == nil {
			mine = ours(entry.Command, agent) || ours(entry.Bash, agent)
			for _, h := range entry.Hooks {
				mine = mine || ours(h.Command, agent)
			}
		}
		if !mine {
			kept = append(kept, e)
		}
	}
	return kept
}
