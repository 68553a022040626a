package connect

import "path/filepath"

// claudeEvents are the events of Claude Code that the gate listens to.
var claudeEvents = []string{"PreToolUse", "PermissionRequest", "PostToolUse", "PostToolUseFailure", "PermissionDenied", "SessionStart", "SessionEnd"}

// ClaudePath is where Claude Code keeps its settings of a scope.
func ClaudePath(p Place) string {
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
	settings := func(o *object, was object) error { return claudeSettings(o, was, p.Scope, h) }
	return []edit{jsonFile(ClaudePath(p), "claude", claudeEvents, commonEntry(h, "claude", 1), settings)}, notes, nil
}

// claudeSettings puts in, with the hook, what keeps it from being gone
// around: no mode without questions, in which a hook that fails lets everything
// through; in a project's local file a word against the project's own
// disableAllHooks; in the administrator's file no hooks but the administrator's.
func claudeSettings(o *object, was object, scope Scope, h *Hook) error {
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
