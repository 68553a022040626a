package argument

import (
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
	"github.com/seed-3ebc6b8a/gatehouse/internal/shell"
	"github.com/seed-3ebc6b8a/gatehouse/tool/declare"
)

// Declared is a declaration with where it was made.
type Declared struct {
	*declare.Tool
	Source string
	// Inert says that the file it stands in switches the argument gate off.
	Inert bool

	words []word // of the command line
	fixed int    // how many of them stand before the first argument
}

// word is one word of a declared command line: a fixed one, or an argument
// with what stands around it.
type word struct {
	before, name, after string
}

// Set finds the declarations that hold for a call. All that fit hold: one
// declaration never takes away what another says. Nil holds nothing.
type Set struct {
	tools    []Declared
	byName   map[string][]*Declared
	programs map[string][]*Declared
	// Constrained says that a usage constraint or an agent is declared, so
	// that uses must be counted.
	Constrained bool
	agents      []declare.Agent
	compiled    gates
}

// File is a file of declarations.
type File struct {
	Source string
	Set    *declare.Set
}

// NewSet compiles files of declarations; nil if they declare nothing.
func NewSet(files []File) *Set {
	s := &Set{byName: make(map[string][]*Declared), programs: make(map[string][]*Declared)}
	for _, f := range files {
		for i := range f.Set.Tools {
			t := &f.Set.Tools[i]
			d := Declared{Tool: t, Source: f.Source, Inert: f.Set.Inert}
			d.template()
			s.tools = append(s.tools, d)
			s.Constrained = s.Constrained || !t.Constraints.IsZero()
		}
		for i := range f.Set.Agents {
			a := f.Set.Agents[i]
			s.agents = append(s.agents, a)
			s.Constrained = true // its calls are counted
		}
	}
	if len(s.tools)+len(s.agents) == 0 {
		return nil
	}
	for i := range s.tools {
		d := &s.tools[i]
		name := call.FoldTool(d.Name)
		s.byName[name] = append(s.byName[name], d)
		if len(d.words) > 0 {
			program := path.Base(d.words[0].before)
			s.programs[program] = append(s.programs[program], d)
		}
	}
	return s
}

// template takes the command line apart.
func (d *Declared) template() {
	for _, w := range d.Command {
		var t word
		before, rest, open := strings.Cut(w, "{")
		name, after, closed := strings.Cut(rest, "}")
		if t.before = w; open && closed && name != "" {
			t = word{before: before, name: name, after: after}
		}
		d.words = append(d.words, t)
	}
	for d.fixed < len(d.words) && d.words[d.fixed].name == "" {
		d.fixed++
	}
}

// All yields the declarations in the order of their files.
func (s *Set) All() []Declared {
	if s == nil {
		return nil
	}
	return s.tools
}

// Tool returns the declarations of a tool by its canonical name. A tool that
// is a command line is known by that.
func (s *Set) Tool(operation string) []*Declared {
	if s == nil {
		return nil
	}
	return s.byName[operation]
}

// Agents returns what is declared about an agent.
func (s *Set) Agents(name string) []declare.Agent {
	if s == nil {
		return nil
	}
	var out []declare.Agent
	for _, a := range s.agents {
		if a.Name == name {
			out = append(out, a)
		}
	}
	return out
}

// Fit is a declared command line that a command is an instance of.
type Fit struct {
	*Declared
	// Args are the words that stand where the declaration has arguments.
	Args map[string]string
}

// Command returns the declared command lines that a command is. Beginning like
// one means to be one: a command that begins so and fits none of them is odd,
// because nobody said what its words mean.
func (s *Set) Command(c *shell.Command) (fits []Fit, odd []*Declared) {
	if s == nil {
		return nil, nil
	}
	for _, d := range s.programs[c.Program] {
		if !d.begins(c) {
			continue
		}
		if args, ok := d.fit(c); ok {
			fits = append(fits, Fit{d, args})
		} else {
			odd = append(odd, d)
		}
	}
	if len(fits) > 0 {
		return fits, nil
	}
	return nil, odd
}

// begins says whether a command is of the kind of a declared one, or may be:
// it has the words that stand before the first argument or option, in their
// order. Options in between do not make it another, and a word that is not
// known may be any. Where the program's table knows subcommands, they decide.
func (d *Declared) begins(c *shell.Command) bool {
	var fixed []string
	for _, w := range d.words[1:max(d.fixed, 1)] {
		if strings.HasPrefix(w.before, "-") {
			break
		}
		fixed = append(fixed, w.before)
	}
	if sub := strings.Fields(c.Subcommand); len(sub) > 0 && len(fixed) > 0 {
		return sub[0] == fixed[0]
	}
	for _, a := range c.Args {
		if len(fixed) > 0 && (a.Text == fixed[0] || !a.Known || a.Glob) {
			fixed = fixed[1:]
		}
	}
	return len(fixed) == 0
}

// fit puts the words of a command in the places of the arguments. All words
// must be known, and there must be as many.
func (d *Declared) fit(c *shell.Command) (map[string]string, bool) {
	if len(c.Args) != len(d.words)-1 || slices.ContainsFunc(c.Args, func(a shell.Arg) bool { return !a.Known || a.Glob }) {
		return nil, false
	}
	args := make(map[string]string)
	for i, w := range d.words[1:] {
		text := c.Args[i].Text
		if w.name == "" {
			if text != w.before {
				return nil, false
			}
			continue
		}
		text, before := strings.CutPrefix(text, w.before)
		text, after := strings.CutSuffix(text, w.after)
		if !before || !after {
			return nil, false
		}
		args[w.name] = text
	}
	return args, true
}

// maxGates bounds the workspaces that a declaration is kept compiled for.
const maxGates = 64

// gates keeps declarations compiled; a workspace is used for many calls.
type gates struct {
	mu   sync.Mutex
	kept map[gateKey]*Gate
}

type gateKey struct {
	tool *Declared
	base match.Base
}

// Gate returns the declaration compiled for a workspace.
func (s *Set) Gate(d *Declared, base match.Base) (*Gate, error) {
	key := gateKey{d, base}
	s.compiled.mu.Lock()
	defer s.compiled.mu.Unlock()
	if g := s.compiled.kept[key]; g != nil {
		return g, nil
	}
	g, err := New(d.Tool, base)
	if err != nil {
		return nil, err
	}
	if s.compiled.kept == nil || len(s.compiled.kept) >= maxGates*len(s.tools) {
		s.compiled.kept = make(map[gateKey]*Gate)
	}
	s.compiled.kept[key] = g
	return g, nil
}
