package rules

import (
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/seed-3ebc6b8a/gatehouse/internal/connect"
)

// lists are the lists of rules that Claude Code, Grok and Cursor have, and what
// they mean here.
type lists struct {
	Deny  []string `json:"deny" toml:"deny"`
	Ask   []string `json:"ask" toml:"ask"`
	Allow []string `json:"allow" toml:"allow"`
}

// each hands every rule on with its level, and as it stands in the settings.
func (l *lists) each(take func(from, level, rule string)) {
	for _, group := range []struct {
		name, level string
		rules       []string
	}{{"deny", deny, l.Deny}, {"ask", ask, l.Ask}, {"allow", allow, l.Allow}} {
		for _, rule := range group.rules {
			take(group.name+" "+rule, group.level, rule)
		}
	}
}

// split takes a rule such as Bash(npm test:*) apart.
func split(rule string) (tool, what string, narrowed, ok bool) {
	tool, rest, narrowed := strings.Cut(rule, "(")
	if !narrowed {
		return tool, "", false, tool != ""
	}
	what, closed := strings.CutSuffix(rest, ")")
	return tool, what, true, closed && what != "" && tool != ""
}

// readClaude reads the permissions of Claude Code.
func readClaude(f *Found, p connect.Place) error {
	text, err := readFile(connect.ClaudePath(p))
	if err != nil || text == nil {
		return err
	}
	var in struct {
		Permissions struct {
			lists `json:",inline"`
			Mode  string   `json:"defaultMode"`
			Dirs  []string `json:"additionalDirectories"`
		} `json:"permissions"`
	}
	if err := json.Unmarshal(text, &in); err != nil {
		return err
	}
	in.Permissions.each(func(from, level, rule string) { f.claude(from, level, rule) })
	if m := in.Permissions.Mode; m != "" && m != "default" {
		f.skip("defaultMode "+m, elsewhere)
	}
	for _, dir := range in.Permissions.Dirs {
		f.skip("additionalDirectories "+dir, "what lies outside the workspace is asked about by the profile")
	}
	return nil
}

// claude translates one rule of Claude Code. In Bash(x:*) a word ends after x.
func (f *Found) claude(from, level, rule string) {
	tool, what, narrowed, ok := split(rule)
	switch {
	case !ok:
		f.skip(from, notKnown)
	case !narrowed && strings.HasPrefix(tool, "mcp__") && !strings.Contains(strings.TrimPrefix(tool, "mcp__"), "__"):
		f.tool(from, level, tool+"__*") // a whole server
	case !narrowed:
		f.tool(from, level, tool)
	case tool == "Bash":
		if prefix, ok := strings.CutSuffix(what, ":*"); ok {
			f.prefix(from, level, prefix)
		} else {
			f.glob(from, level, what)
		}
	case tool == "WebFetch" && strings.HasPrefix(what, "domain:"):
		f.add(Rule{From: from, Level: level, Operation: tool, Host: strings.TrimPrefix(what, "domain:")})
	case tool == "Read" || tool == "Edit" || tool == "Write":
		f.path(from, level, tool, claudePattern(level, what))
	default:
		f.skip(from, notKnown)
	}
}

// claudePattern: // is the root, a single / the directory of the settings.
func claudePattern(level, path string) string {
	switch {
	case strings.HasPrefix(path, "//"):
		return path[1:]
	case strings.HasPrefix(path, "/"):
		return "." + path
	}
	return placePath(level, path)
}
