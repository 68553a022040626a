package knowledge

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// compileSpec turns the text of a table into what the engine reads.
func compileSpec(raw *rawSpec, groups map[string]string, style Style) (*Spec, error) {
	s := &Spec{
		AnyOption: raw.AnyOption, Benign: raw.Benign, Remote: raw.Remote, Append: raw.Append, Globals: raw.Globals,
		Lists: raw.Lists, ListsWith: strings.Fields(raw.ListsWith), Here: strings.Fields(raw.Here), Shows: strings.Fields(raw.Shows), Word: raw.Word, Number: raw.Number, Filter: raw.Filter, Default: raw.Default, Settings: raw.Settings, Why: raw.Why,
	}
	var err error
	if s.Does, err = parseDoesList(raw.Does); err != nil {
		return nil, err
	}
	if err := parseOptions(s, raw.Opts, groups, 0); err != nil {
		return nil, err
	}
	if s.Operands, err = parseOperands(raw.Operands); err != nil {
		return nil, err
	}
	if s.Stdin, err = optionalRole(raw.Stdin); err != nil {
		return nil, err
	}
	if s.Dashdash, err = optionalRole(raw.Dashdash); err != nil {
		return nil, err
	}
	if s.Benign {
		if err := checkBenign(s); err != nil {
			return nil, err
		}
	}
	for i := range raw.When {
		w, err := compileWhen(&raw.When[i])
		if err != nil {
			return nil, err
		}
		s.Whens = append(s.Whens, w)
	}
	for i := range raw.Sub {
		if err := compileSub(s, &raw.Sub[i], groups, style); err != nil {
			return nil, fmt.Errorf("sub %s: %w", raw.Sub[i].Name, err)
		}
	}
	return s, nil
}

// compileSub files one subcommand under all its names. A name of two words
// ("stash drop") makes the levels in between.
func compileSub(parent *Spec, raw *rawSub, groups map[string]string, style Style) error {
	spec, err := compileSpec(&raw.rawSpec, groups, style)
	if err != nil {
		return err
	}
	if strings.TrimSpace(raw.Name) == "" {
		return fmt.Errorf("no name")
	}
	for name := range strings.SplitSeq(raw.Name, "|") {
		at := parent
		words := strings.Fields(name)
		for _, w := range words[:len(words)-1] {
			at = at.level(w)
		}
		at.setSub(words[len(words)-1], spec)
	}
	return nil
}

// level is the spec of a subcommand that has subcommands itself. Names that
// were declared together share one spec, so this one gets its own copy.
func (s *Spec) level(name string) *Spec {
	next := &Spec{}
	if old := s.Subs[name]; old != nil {
		*next = *old
		next.Subs, next.Patterns = maps.Clone(old.Subs), slices.Clone(old.Patterns)
	}
	if s.Subs == nil {
		s.Subs = map[string]*Spec{}
	}
	s.Subs[name] = next
	return next
}

func (s *Spec) setSub(name string, sub *Spec) {
	if prefix, suffix, ok := strings.Cut(name, "*"); ok {
		s.Patterns = append(s.Patterns, Pattern{prefix, suffix, sub})
		return
	}
	if s.Subs == nil {
		s.Subs = map[string]*Spec{}
	}
	if old := s.Subs[name]; old != nil && len(old.Subs)+len(old.Patterns) > 0 && len(sub.Subs) == 0 {
		// "stash drop" came before "stash": keep the deeper level.
		merged := *sub
		merged.Subs, merged.Patterns = old.Subs, old.Patterns
		sub = &merged
	}
	s.Subs[name] = sub
}

func compileWhen(raw *rawWhen) (When, error) {
	w := When{
		Any: strings.Fields(raw.Any), All: strings.Fields(raw.All), None: strings.Fields(raw.None),
		Max: -1, HasDoes: raw.Does != nil, Why: raw.Why,
	}
	if raw.Min != nil {
		w.Min = *raw.Min
	}
	if raw.Max != nil {
		w.Max = *raw.Max
	}
	var err error
	if w.Does, err = parseDoesList(raw.Does); err != nil {
		return w, err
	}
	if raw.Operands != nil {
		ops, err := parseOperands(*raw.Operands)
		if err != nil {
			return w, err
		}
		w.Operands = &ops
	}
	return w, nil
}

func parseDoesList(names []string) ([]Does, error) {
	var out []Does
	for _, n := range names {
		d, err := parseDoes(n)
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, nil
}

func optionalRole(name string) (*Role, error) {
	if name == "" {
		return nil, nil
	}
	r, err := parseRole(name)
	return &r, err
}

// checkBenign refuses a table that calls itself benign and is not.
func checkBenign(s *Spec) error {
	for name, o := range s.Options {
		if !o.Role.Harmless() {
			return fmt.Errorf("benign, but %s takes a %s", name, o.Role)
		}
		for _, d := range o.Does {
			if d != DoesRead && d != DoesNothing {
				return fmt.Errorf("benign, but %s does %s", name, d)
			}
		}
	}
	for _, d := range s.Does {
		if d != DoesRead && d != DoesNothing {
			return fmt.Errorf("benign, but does %s", d)
		}
	}
	for _, r := range append(append([]Role{}, s.Operands.Head...), s.Operands.Tail...) {
		if !r.Harmless() {
			return fmt.Errorf("benign, but an operand is a %s", r)
		}
	}
	if r := s.Operands.Repeat; r != nil && !r.Harmless() {
		return fmt.Errorf("benign, but operands are %s", *r)
	}
	return nil
}

func compileProgram(raw *rawProgram, family string, groups map[string]string) (*Program, error) {
	if raw.Name == "" {
		return nil, fmt.Errorf("a program has no name")
	}
	style, err := parseStyle(raw.Style)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", raw.Name, err)
	}
	spec, err := compileSpec(&raw.rawSpec, groups, style)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", raw.Name, err)
	}
	p := &Program{Spec: *spec, Name: raw.Name, Family: family, Handler: raw.Handler, Style: style, Builtin: raw.Builtin}
	p.Info = []string{"--help", "--version"}
	if raw.Info != nil {
		p.Info = strings.Fields(*raw.Info)
	}
	for _, e := range raw.Examples {
		class, cmd, ok := strings.Cut(e, ": ")
		if !ok {
			return nil, fmt.Errorf("%s: example %q has no class", raw.Name, e)
		}
		p.Examples = append(p.Examples, Example{class, cmd})
	}
	return p, nil
}
