package shell

import (
	"encoding/json"
	"strings"
)

// Words says in one line what a command does: "deletes ./build recursively;
// runs an npm script". It names at most four things; the rest is counted.
func (a *Analysis) Words() string {
	var said []string
	seen := map[string]bool{}
	more := 0
	say := func(s string) {
		switch {
		case seen[s]:
			return
		case len(said) >= 4:
			more++
		default:
			said = append(said, s)
		}
		seen[s] = true
	}
	for _, class := range []Class{ClassDestructive, ClassUnknown, ClassNetwork, ClassMutating, ClassSafe} {
		a.Effects(func(c *Command, e *Effect) bool {
			if e.Class == class && (class != ClassSafe || a.Class == ClassSafe) {
				say(e.words(c))
			}
			return true
		})
	}
	for _, n := range a.Notes {
		say(n.Text)
	}
	if len(said) == 0 {
		return "reads nothing and changes nothing"
	}
	out := strings.Join(said, "; ")
	if more > 0 {
		out += "; and more"
	}
	return out
}

// words says one effect, with the program if that is not plain from the rest.
func (e *Effect) words(c *Command) string {
	var b strings.Builder
	b.WriteString(e.Why)
	switch {
	case e.Path.Raw != "":
		b.WriteByte(' ')
		b.WriteString(e.Path.Raw)
		if !e.Path.Known && !strings.HasSuffix(e.Path.Raw, "…") {
			b.WriteString("…")
		}
	case e.Host != "":
		b.WriteByte(' ')
		b.WriteString(e.Host)
	}
	if e.Recursive {
		b.WriteString(" recursively")
	}
	if c.Program != "" && e.Path.Raw == "" && e.Host == "" && !strings.Contains(e.Why, c.Program) {
		b.WriteString(" (")
		b.WriteString(c.Program)
		if c.Subcommand != "" {
			b.WriteByte(' ')
			b.WriteString(c.Subcommand)
		}
		b.WriteByte(')')
	}
	return b.String()
}

// Line is the analysis as one line of JSON, without level: levels come from
// policy.
func (a *Analysis) Line(cmd string) ([]byte, error) {
	return json.Marshal(struct {
		Cmd   string `json:"cmd"`
		Class string `json:"class"`
		Why   string `json:"why"`
	}{cmd, a.Class.String(), a.Words()})
}
