package shell

import (
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/shell/knowledge"
	"mvdan.cc/sh/v3/syntax"
)

// assign follows one assignment. With lasting false it is in the environment
// of one command only.
func (a *analyzer) assign(as *syntax.Assign, lasting bool) {
	if as.Index != nil {
		a.arithmetic(as.Index)
	}
	if as.Name == nil {
		if as.Value != nil {
			w := a.one(as.Value)
			a.varName(&w)
		}
		return
	}
	name := as.Name.Value
	if as.Naked {
		return
	}
	var v *value
	switch {
	case as.Array != nil:
		for _, e := range as.Array.Elems {
			if e.Index != nil {
				a.arithmetic(e.Index)
			}
			if e.Value != nil {
				a.fields(nil, e.Value)
			}
		}
	case as.Value != nil:
		w := a.one(as.Value)
		v = a.wordValue(&w)
	default:
		v = &value{alts: []string{""}}
	}
	if as.Append {
		v = a.appended(name, v)
	}
	if as.Index != nil {
		v = nil
	}
	a.assigns(name, a.span(as))
	if lasting {
		a.setVar(name, v)
	}
}

func (a *analyzer) wordValue(w *word) *value {
	switch {
	case w.credential() != "":
		return &value{secret: w.credential()}
	case w.known && w.values() != nil:
		return &value{alts: w.values()}
	case w.known:
		return &value{alts: []string{w.text}}
	case w.listing:
		return &value{listing: true, root: w.listRoot()}
	case w.plain && w.text == "":
		return &value{plain: true, number: w.number}
	}
	return nil
}

func (a *analyzer) appended(name string, v *value) *value {
	old := a.lookup(name)
	if !v.known() || !old.known() || len(v.alts) != 1 || len(old.alts) != 1 {
		return nil
	}
	s := old.alts[0] + v.alts[0]
	if !a.spend(len(s)) {
		return nil
	}
	return &value{alts: []string{s}}
}

// assigns records that a variable is set, if that matters.
func (a *analyzer) assigns(name string, span Span) {
	if name == "IFS" {
		a.st.ifs = true
	}
	switch a.kb.Variable(name) {
	case knowledge.VariableBypass:
		a.add(Effect{Kind: KindBypass, Class: ClassUnknown, Span: span, Why: "gives an agent another configuration by " + name})
	case knowledge.VariableDangerous:
		a.add(Effect{Kind: KindExecute, Class: ClassUnknown, Span: span, Why: "sets " + name + ", which decides what runs", Bounded: true})
	}
}

// declClause follows export, declare, local, readonly, typeset and nameref.
func (a *analyzer) declClause(d *syntax.DeclClause) {
	outer := a.cur
	a.begin(a.span(d))
	defer func() { a.cur = outer }()
	a.out.Commands[a.cur].Program = d.Variant.Value
	a.out.Commands[a.cur].Word = d.Variant.Value
	names, evaluated := 0, false
	for _, as := range d.Args {
		if as.Name == nil && as.Value != nil {
			w := a.one(as.Value)
			if w.known && strings.HasPrefix(w.text, "-") || w.known && strings.HasPrefix(w.text, "+") {
				evaluated = evaluated || strings.ContainsAny(w.text[1:], "in")
				names += countFunctionFlags(w.text)
				continue
			}
			names++
			a.declWord(&w)
			continue
		}
		names++
		a.assign(as, true)
		if evaluated && as.Name != nil {
			a.setVar(as.Name.Value, nil)
		}
	}
	if evaluated || d.Variant.Value == "nameref" {
		a.unknown(a.span(d), "declares a variable whose value the shell evaluates")
	}
	if names == 0 {
		a.add(Effect{Kind: KindRead, Class: ClassUnknown, Secret: true, Span: a.span(d), Why: "shows the variables of the shell"})
	}
}

// countFunctionFlags makes "declare -f" count as showing functions, not variables.
func countFunctionFlags(flags string) int {
	if strings.ContainsAny(flags, "fF") {
		return 1
	}
	return 0
}

// declWord is a name given to declare as a computed word.
func (a *analyzer) declWord(w *word) {
	name, val, ok := strings.Cut(w.text, "=")
	n := *w
	n.text = strings.TrimSuffix(name, "+")
	a.varName(&n)
	if !w.known {
		return
	}
	a.assigns(n.text, w.span)
	if ok && syntax.ValidName(n.text) {
		a.setVar(n.text, &value{alts: []string{val}})
	}
}
