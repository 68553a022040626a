package rules

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/connect"
	"github.com/seed-3ebc6b8a/gatehouse/internal/policy"
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

// The levels that rules ask for, as the policy writes them.
const (
	deny  = "DENY"
	ask   = "CONFIRM_SINGLE_USE"
	allow = "AUTO_APPROVE"
)

// Objects says whether the rule denies or asks, which tightens a policy.
func (r *Rule) Objects() bool { return r.Level != allow }

// Skipped is something that is not taken over, with the reason.
type Skipped struct {
	From string `json:"from"`
	Why  string `json:"why"`
}

// Found is what a person has in an agent's settings.
type Found struct {
	Rules   []Rule    `json:"rules,omitzero"`
	Skipped []Skipped `json:"skipped,omitzero"`
}

// readers read the settings of one agent each.
var readers = map[string]func(*Found, connect.Place) error{
	"claude": readClaude, "codex": readCodex, "gemini": readGemini, "grok": readGrok,
	"vibe": readVibe, "cursor": readCursor, "copilot": readCopilot, "windsurf": readWindsurf,
}

// Read reads the rules that a person has in an agent's settings, those that
// deny first.
func Read(agent string, p connect.Place) (*Found, error) {
	f := &Found{}
	if read := readers[agent]; read != nil {
		if err := read(f, p); err != nil {
			return nil, err
		}
	}
	order := []string{deny, ask, allow}
	slices.SortStableFunc(f.Rules, func(a, b Rule) int {
		return cmp.Compare(slices.Index(order, a.Level), slices.Index(order, b.Level))
	})
	return f, nil
}

// skip lists something that is not taken over.
func (f *Found) skip(from, why string) { f.Skipped = append(f.Skipped, Skipped{from, why}) }

// The reasons that several agents share.
const (
	wholeTool  = "a tool that may do everything is nothing that the gate gives; the profile decides"
	notKnown   = "it has no meaning here"
	expression = "a regular expression cannot be compared with the gate's patterns"
	wildcard   = "it has characters that are wildcards here"
	elsewhere  = "it is about the agent's own questions; the gate's profile takes their place"
)

// add takes rules over. One that the policy would not read is listed.
func (f *Found) add(rules ...Rule) {
	for _, r := range rules {
		if _, err := policy.Parse("rule", []byte("version = 1\n"+r.text("rule", "x"))); err != nil {
			f.skip(r.From, "the policy does not take it: "+strings.TrimPrefix(err.Error(), "rule:"))
			continue
		}
		if !slices.Contains(f.Rules, r) {
			f.Rules = append(f.Rules, r)
		}
	}
}

// prefix takes over a rule about every command that begins with some words.
func (f *Found) prefix(from, level, words string) {
	words = strings.TrimSpace(words)
	switch {
	case words == "":
		f.tool(from, level, "Bash")
	case level == allow && strings.ContainsAny(words, "*?"):
		f.skip(from, wildcard)
	default:
		f.add(Rule{From: from, Level: level, Operation: "Bash", Command: words}, Rule{From: from, Level: level, Operation: "Bash", Command: words + " *"})
	}
}

// glob takes over a rule about commands with a star for any text.
func (f *Found) glob(from, level, pattern string) {
	switch {
	case strings.Trim(pattern, "* ") == "":
		f.tool(from, level, "Bash")
	case level == allow && strings.Contains(pattern, "?"):
		f.skip(from, wildcard)
	default:
		f.add(Rule{From: from, Level: level, Operation: "Bash", Command: pattern})
	}
}

// tool takes over a rule about everything that a tool does.
func (f *Found) tool(from, level, name string) {
	if level == allow && !strings.HasPrefix(name, "mcp__") {
		f.skip(from, wholeTool)
		return
	}
	f.add(Rule{From: from, Level: level, Operation: name})
}

// path takes over a rule about the files that a tool touches.
func (f *Found) path(from, level, tool, pattern string) {
	f.add(Rule{From: from, Level: level, Operation: tool, Path: pattern})
}

// place writes a path as the gate does. A name without a slash is meant at any
// depth, which matters for what is denied.
func placePath(level, path string) string {
	switch {
	case strings.HasPrefix(path, "~/"), strings.HasPrefix(path, "./"), strings.HasPrefix(path, "**/"), strings.HasPrefix(path, "/"):
		return path
	case level != allow && !strings.Contains(path, "/"):
		return "**/" + path
	}
	return "./" + path
}

// text is the rule as a table of a policy file.
func (r *Rule) text(name, agent string) string {
	var out strings.Builder
	fmt.Fprintf(&out, "[[rules]]\nname = %q\n", name)
	for _, f := range []struct{ name, value string }{{"operation", r.Operation}, {"command", r.Command}, {"path", r.Path}, {"host", r.Host}} {
		if f.value != "" {
			fmt.Fprintf(&out, "%s = %s\n", f.name, strconv.Quote(f.value))
		}
	}
	fmt.Fprintf(&out, "level = %q\nreason = %s\n\n", r.Level, strconv.Quote("taken over from "+agent+": "+r.From))
	return out.String()
}

// Write puts rules into a policy file, in place of those that an earlier import
// from the same agent put there. What they loosen waits there for an approver
// like any other change of the file.
func Write(old []byte, agent string, rules []Rule) ([]byte, error) {
	text := string(old)
	if strings.TrimSpace(text) == "" {
		text = "version = 1\n"
	}
	var block strings.Builder
	for i := range rules {
		block.WriteString(rules[i].text(fmt.Sprintf("%s-%d", agent, i+1), connect.Title(agent)))
	}
	made, err := connect.WithBlock(text, " rules of "+agent, block.String())
	return []byte(made), err
}

// readFile reads a file, nil where there is none.
func readFile(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, err
}

// within joins the settings' directory of a scope and a path in it.
func within(p connect.Place, dir string, rest ...string) string {
	base := p.Home
	if p.Scope == connect.Project {
		base = p.Dir
	}
	return filepath.Join(append([]string{base, dir}, rest...)...)
}
