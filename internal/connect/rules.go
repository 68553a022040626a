package connect

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
)

// Rule is a rule of an agent's settings as a rule of the gate.
type Rule struct {
	// From is the rule as it stands there.
	From string `json:"from"`
	// Level is what it asks for.
	Level string `json:"level"`
	// Operation, Command, Path and Host are what it is about.
	Operation string `json:"operation,omitzero"`
	Command   string `json:"command,omitzero"`
	Path      string `json:"path,omitzero"`
	Host      string `json:"host,omitzero"`
}

// claudeLevels are Claude Code's lists and what they mean here.
var claudeLevels = []struct{ list, level string }{
	{"deny", "DENY"}, {"ask", "CONFIRM_SINGLE_USE"}, {"allow", "AUTO_APPROVE"},
}

// Rules reads the rules that a person has in an agent's settings. Those that
// have no meaning here are returned as they are. Only Claude Code keeps rules in
// a form that can be taken over.
func Rules(name string, p Place) (rules []Rule, skipped []string, err error) {
	if name != "claude" {
		return nil, nil, nil
	}
	text, err := readFile(claudePath(p))
	if err != nil || text == nil {
		return nil, nil, err
	}
	o, err := parseObject(text)
	if err != nil {
		return nil, nil, err
	}
	permissions, err := parseObject(o.get("permissions"))
	if err != nil {
		return nil, nil, err
	}
	for _, l := range claudeLevels {
		var list []string
		if v := permissions.get(l.list); v != nil {
			if err := json.Unmarshal(v, &list); err != nil {
				return nil, nil, err
			}
		}
		for _, from := range list {
			if r, ok := claudeRule(from, l.level); ok {
				rules = append(rules, r)
			} else {
				skipped = append(skipped, l.list+" "+from)
			}
		}
	}
	return rules, skipped, nil
}

// claudeRule translates one rule, such as Bash(npm test:*).
func claudeRule(from, level string) (Rule, bool) {
	r := Rule{From: from, Level: level}
	tool, rest, narrowed := strings.Cut(from, "(")
	if !narrowed {
		// A whole tool: free hands for a shell is nothing that the gate gives.
		r.Operation = tool
		return r, tool != "" && (level != "AUTO_APPROVE" || strings.HasPrefix(tool, "mcp__"))
	}
	what, closed := strings.CutSuffix(rest, ")")
	if !closed || what == "" {
		return r, false
	}
	switch tool {
	case "Bash":
		if prefix, ok := strings.CutSuffix(what, ":*"); ok {
			what = prefix + "*"
		}
		r.Operation, r.Command = "Bash", what
		return r, what != "*"
	case "WebFetch":
		host, ok := strings.CutPrefix(what, "domain:")
		r.Operation, r.Host = "WebFetch", host
		return r, ok
	case "Read", "Edit", "Write":
		r.Operation, r.Path = tool, claudePattern(what)
		return r, true
	}
	return r, false
}

// claudePattern writes a path as the gate does: // is the root, ~/ the home, the
// rest lies in the workspace.
func claudePattern(path string) string {
	switch {
	case strings.HasPrefix(path, "//"):
		return path[1:]
	case strings.HasPrefix(path, "~/"), strings.HasPrefix(path, "./"), strings.HasPrefix(path, "**/"):
		return path
	}
	return "./" + strings.TrimPrefix(path, "/")
}

// WithRules puts rules into a policy file, in place of those that an earlier
// import put there. What they loosen waits there for an approver like any other
// change of the file.
func WithRules(old []byte, agent string, rules []Rule) ([]byte, error) {
	text := string(old)
	if strings.TrimSpace(text) == "" {
		text = "version = 1\n"
	}
	var block strings.Builder
	for i, r := range rules {
		if slices.ContainsFunc(rules[:i], func(other Rule) bool { return other == r }) {
			continue
		}
		fmt.Fprintf(&block, "[[rules]]\nname = %q\n", fmt.Sprintf("%s-%d", agent, i+1))
		for _, f := range []struct{ name, value string }{{"operation", r.Operation}, {"command", r.Command}, {"path", r.Path}, {"host", r.Host}} {
			if f.value != "" {
				fmt.Fprintf(&block, "%s = %s\n", f.name, strconv.Quote(f.value))
			}
		}
		fmt.Fprintf(&block, "level = %q\nreason = %s\n\n", r.Level, strconv.Quote("taken over from "+Title(agent)+": "+r.From))
	}
	made, err := withBlock(text, block.String())
	return []byte(made), err
}
