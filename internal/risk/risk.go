package risk

import (
	"bytes"
	_ "embed"
	"fmt"
	"sync"

	"github.com/pelletier/go-toml/v2"

	"github.com/seed-3ebc6b8a/gatehouse/internal/shell"
	"github.com/seed-3ebc6b8a/gatehouse/internal/shell/knowledge"
)

//go:embed table.toml
var tableText []byte

// Effect is one thing a call does, as far as its risk is concerned. The names
// of kinds, classes and scopes are those of package shell.
type Effect struct {
	Kind         string
	Class        string
	Path         string
	Scope        string
	Host         string
	Irreversible bool
	Recursive    bool
	Secret       bool
	// Known says that Path or Host is complete.
	Known bool
	Span  shell.Span
	Why   string
}

// Evidence is one line of the table that applied.
type Evidence struct {
	// Rule names the line: "base.delete", "add.irreversible".
	Rule   string
	Points int
	Span   shell.Span
	Why    string
}

// Score is the risk of a call.
type Score struct {
	Value    int
	Evidence []Evidence
	// Irreversible says that something cannot be taken back.
	Irreversible bool
}

// table is table.toml.
type table struct {
	Base  map[string]int `toml:"base"`
	Class map[string]int `toml:"class"`
	Add   map[string]int `toml:"add"`
	Limit struct {
		Max int `toml:"max"`
	} `toml:"limit"`
}

// load reads the table on first use. A mistake in it is one of this
// repository, and the tests find it.
var load = sync.OnceValue(func() *table {
	var t table
	dec := toml.NewDecoder(bytes.NewReader(tableText))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&t); err != nil {
		panic(fmt.Sprintf("risk: table.toml: %v", err))
	}
	return &t
})

// Of scores a set of effects.
func Of(effects []Effect) Score {
	t := load()
	var s Score
	s.base(t, effects)
	for i := range effects {
		s.Irreversible = s.Irreversible || effects[i].Irreversible
	}
	for _, rule := range additions {
		for i := range effects {
			if rule.applies(&effects[i], effects) {
				s.add("add."+rule.name, t.Add[rule.name], &effects[i])
				break
			}
		}
	}
	s.Value = min(max(s.Value, 0), t.Limit.Max)
	return s
}

// base takes the worst effect: by its kind or by its class, whichever is more.
func (s *Score) base(t *table, effects []Effect) {
	best, rule, at := -1, "", 0
	for i := range effects {
		e := &effects[i]
		kind := t.Base[e.Kind]
		if _, ok := t.Base[e.Kind]; !ok {
			kind = t.Base["unknown"] // what has no line is not harmless
		}
		if e.Kind != "bypass" && e.Class == "safe" {
			kind = 0
		}
		if kind > best {
			best, rule, at = kind, "base."+e.Kind, i
		}
		class, ok := t.Class[e.Class]
		if !ok {
			class = t.Class["unknown"]
		}
		if class > best {
			best, rule, at = class, "class."+e.Class, i
		}
	}
	if best > 0 {
		s.add(rule, best, &effects[at])
	}
}

func (s *Score) add(rule string, points int, e *Effect) {
	if points == 0 {
		return
	}
	s.Value += points
	s.Evidence = append(s.Evidence, Evidence{Rule: rule, Points: points, Span: e.Span, Why: e.Why})
}

// addition is one line of the add table, with its condition.
type addition struct {
	name    string
	applies func(e *Effect, all []Effect) bool
}

var additions = []addition{
	{"irreversible", func(e *Effect, _ []Effect) bool { return e.Irreversible }},
	{"network", func(e *Effect, all []Effect) bool { return e.Kind == "network" && len(all) > 1 && anyOther(all) }},
	{"secret", func(e *Effect, _ []Effect) bool { return sensitive(e) }},
	{"secret_network", func(e *Effect, all []Effect) bool { return sensitive(e) && contacts(all) }},
	{"recursive", func(e *Effect, _ []Effect) bool { return e.Recursive }},
	{"outside_workspace", func(e *Effect, _ []Effect) bool {
		return e.Kind != "read" && (e.Scope == "elsewhere" || e.Scope == "system" || e.Scope == "device")
	}},
	{"system_path", func(e *Effect, _ []Effect) bool {
		return e.Kind != "read" && (e.Scope == "system" || e.Scope == "device")
	}},
	{"startup_path", func(e *Effect, _ []Effect) bool { return e.Kind != "read" && tagged(e, knowledge.TagStartup) }},
	{"home_path", func(e *Effect, _ []Effect) bool { return e.Kind != "read" && e.Scope == "home" }},
	{"not_known", func(e *Effect, _ []Effect) bool {
		return e.Kind != "read" && (e.Path != "" || e.Host != "") && !e.Known
	}},
}

// sensitive says that an effect concerns credentials: it says so itself, or
// its path is in the table of paths.
func sensitive(e *Effect) bool { return e.Secret || tagged(e, knowledge.TagSecret) }

func tagged(e *Effect, tag knowledge.Tag) bool {
	if e.Path == "" {
		return false
	}
	t := knowledge.Builtin().PathTags(e.Path)
	return t.Name == tag || t.Place == tag
}

func contacts(all []Effect) bool {
	for i := range all {
		if all[i].Kind == "network" {
			return true
		}
	}
	return false
}

func anyOther(all []Effect) bool {
	for i := range all {
		if k := all[i].Kind; k != "network" && k != "read" {
			return true
		}
	}
	return false
}

// FromShell describes the effects of a command line.
func FromShell(a *shell.Analysis) []Effect {
	var out []Effect
	a.Effects(func(_ *shell.Command, e *shell.Effect) bool {
		r := Effect{
			Kind: e.Kind.String(), Class: e.Class.String(), Path: e.Path.Value, Host: e.Host, Irreversible: e.Irreversible,
			Recursive: e.Recursive, Secret: e.Secret, Span: e.Span, Why: e.Why, Known: e.Host != "" || e.Path.Known,
		}
		if e.Path.Raw != "" {
			r.Scope = e.Path.Scope.String()
		}
		out = append(out, r)
		return true
	})
	if len(out) == 0 && a.Class != shell.ClassSafe {
		// Nothing could be read: that is not nothing.
		out = append(out, Effect{Kind: "unknown", Class: a.Class.String()})
	}
	return out
}
