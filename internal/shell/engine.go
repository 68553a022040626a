package shell

import (
	"slices"

	"github.com/seed-3ebc6b8a/gatehouse/internal/shell/knowledge"
)

// generic applies a table to a command.
func (a *analyzer) generic(p *knowledge.Program, args []word) output {
	return a.applySpec(p, &p.Spec, nil, args, 1)
}

func (a *analyzer) applySpec(p *knowledge.Program, spec, parent *knowledge.Spec, args []word, from int) output {
	style := p.Style
	if style == knowledge.StyleGNU && (spec.HasSubs() || spec.Dashdash == nil && takesCommand(&spec.Operands)) {
		style = knowledge.StylePOSIX
	}
	ps := a.parse(style, spec, parent, args, from)
	defer ps.release()
	cwd := a.st.cwd
	defer func() { a.st.cwd = cwd }()
	if !spec.HasSubs() {
		return a.applyParsed(p, spec, parent, &ps)
	}
	a.applyHits(p, &ps)
	if ps.sub < 0 {
		if spec.Default != "" {
			return a.applySpec(p, spec.Sub(spec.Default), spec, args, len(args))
		}
		if hasOperands(spec) {
			return a.applyLeaf(p, spec, parent, args, from)
		}
		a.unknown(args[0].span, "runs "+p.Name+" without a subcommand its table knows")
		return output{given: true}
	}
	w := &args[ps.sub]
	name, ok := w.literal()
	sub := spec.Sub(name)
	if ok && sub == nil && hasOperands(spec) {
		return a.applyLeaf(p, spec, parent, args, from)
	}
	if !ok || sub == nil {
		a.unknown(w.span, "the subcommand "+w.text+" of "+p.Name+" is not in its table")
		a.destructiveWords(args[ps.sub:])
		return output{given: true}
	}
	cmd := &a.out.Commands[a.cur]
	if cmd.Subcommand == "" {
		cmd.Subcommand = name
	} else {
		cmd.Subcommand += " " + name
	}
	if rest := args[ps.next:]; len(rest) == 1 && rest[0].known && rest[0].text == "--help" {
		if help := spec.Sub("help"); help != nil {
			return a.applySpec(p, help, spec, args, len(args)) // git has its manual shown
		}
		return output{given: true}
	}
	if len(sub.Options) == 0 && !sub.HasSubs() && spec.HasSubs() && spec.Globals {
		return a.applySpec(p, sub, spec, args, ps.next)
	}
	up := spec
	if parent != nil && parent.Globals && !spec.Globals {
		up = parent
	}
	return a.applySpec(p, sub, up, args, ps.next)
}

// applyLeaf applies a spec that has subcommands, and operands as well, when
// none of the subcommands is meant (git bisect start).
func (a *analyzer) applyLeaf(p *knowledge.Program, spec, parent *knowledge.Spec, args []word, from int) output {
	leaf := *spec
	leaf.Subs, leaf.Patterns = nil, nil
	return a.applySpec(p, &leaf, parent, args, from)
}

func hasOperands(spec *knowledge.Spec) bool {
	return len(spec.Operands.Head) > 0 || spec.Operands.Repeat != nil
}

// takesCommand says that a command is among the operands: its options are its own.
func takesCommand(ops *knowledge.Operands) bool {
	for _, r := range ops.Head {
		if r == knowledge.RoleCommand || r == knowledge.RoleShellArg {
			return true
		}
	}
	return len(ops.Tail) > 0 && ops.Tail[0] == knowledge.RoleCommand
}

// destructiveWords looks for words that say in most programs' language that
// something is destroyed; it is all there is to go by when a subcommand is
// not known.
func (a *analyzer) destructiveWords(args []word) {
	for i := range args {
		a.verb(&args[i])
	}
}

func (a *analyzer) verb(w *word) {
	if a.kb.DestructiveVerb(w.text) {
		a.add(Effect{Kind: KindDelete, Class: ClassDestructive, Irreversible: true, Span: w.span, Why: "asks to " + w.text})
	}
	if a.kb.SecretVerb(w.text) {
		a.does(knowledge.DoesSecret, w.span, "shows credentials:")
	}
}

// applyParsed applies conditions, effects, options and operands of a spec.
func (a *analyzer) applyParsed(p *knowledge.Program, spec, parent *knowledge.Spec, ps *parsed) output {
	does, operands, why := spec.Does, &spec.Operands, spec.Why
	for i := range spec.Whens {
		w := &spec.Whens[i]
		if !whenHolds(w, ps) {
			continue
		}
		if w.HasDoes {
			does = w.Does
		}
		if w.Operands != nil {
			operands = w.Operands
		}
		if w.Why != "" {
			why = w.Why
		}
		break
	}
	a.applyHits(p, ps)
	span := a.out.Commands[a.cur].Span
	for _, d := range does {
		a.does(d, span, why)
	}
	a.applySettings(p, spec, parent)
	if len(spec.Shows) > 0 && a.picks == nil && ps.find(spec.Shows...) == nil {
		a.picks = []string{"[!.]*"}
	}
	out := a.applyOperands(p, spec, operands, ps)
	a.readsHere(spec, operands, ps)
	a.picks = nil
	if spec.Stdin != nil && !codeGiven(operands, ps) {
		a.stdinRole(*spec.Stdin, p)
	}
	if ps.command != nil {
		a.commandOperand(p, spec, ps.command)
	}
	return out
}

// readsHere notes what a program reads that is given nothing to read and then
// looks below its directory.
func (a *analyzer) readsHere(spec *knowledge.Spec, ops *knowledge.Operands, ps *parsed) {
	always := slices.Contains(spec.Here, "*")
	if len(spec.Here) == 0 || ops.Repeat == nil || *ops.Repeat != knowledge.RoleRead || always && a.stdin.given || !always && ps.find(spec.Here...) == nil {
		return
	}
	head := len(ops.Head)
	for _, h := range ps.hits() {
		if h.opt.DropHead {
			head = 0
		}
	}
	if len(ps.operands()) <= head {
		a.readPath(&word{text: ".", known: true, span: a.out.Commands[a.cur].Span, at: -1}, false)
	}
}

// codeGiven says that the code is in the words, so that standard input is data.
func codeGiven(ops *knowledge.Operands, ps *parsed) bool {
	hits := ps.hits()
	for i := range hits {
		if isCode(hits[i].opt.Role) {
			return true
		}
	}
	n := len(ps.operands())
	for i := range n {
		if role, _ := operandRole(ops.Head, ops.Repeat, ops.Tail, i, n); isCode(role) {
			return true
		}
	}
	return false
}

func isCode(r knowledge.Role) bool {
	switch r {
	case knowledge.RoleSQL, knowledge.RoleShell, knowledge.RoleScript, knowledge.RoleCode, knowledge.RolePython:
		return true
	}
	return false
}

func whenHolds(w *knowledge.When, ps *parsed) bool {
	n := len(ps.operands())
	if n < w.Min || w.Max >= 0 && n > w.Max {
		return false
	}
	if len(w.Any) > 0 && ps.find(w.Any...) == nil {
		return false
	}
	for _, name := range w.All {
		if ps.find(name) == nil {
			return false
		}
	}
	return len(w.None) == 0 || ps.find(w.None...) == nil
}

// applyHits records what the options do. A change of directory comes first,
// because the other words are read from there.
func (a *analyzer) applyHits(p *knowledge.Program, ps *parsed) {
	hits := ps.hits()
	for i := range hits {
		if hits[i].opt.Role == knowledge.RoleCwd && hits[i].has {
			a.apply(knowledge.RoleCwd, &hits[i].val, p)
		}
	}
	for i := range hits {
		h := &hits[i]
		for _, d := range h.opt.Does {
			a.does(d, h.val.span, "by "+h.opt.Name)
		}
		if h.has && h.opt.Role != knowledge.RoleCwd {
			a.secretUse(&h.val)
			if h.opt.Role != knowledge.RoleData {
				v := h.val
				a.apply(h.opt.Role, &v, p)
				hits = ps.hits()
			}
		}
	}
}
