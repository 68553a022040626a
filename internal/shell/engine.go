package shell

import (
	"maps"
	"slices"
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/shell/knowledge"
)

// hit is an option found among the words.
type hit struct {
	opt *knowledge.Option
	val word // the value, if the option takes one
	has bool
}

// parsed are the words of a command sorted by its table. It lives on the
// analyser's stacks and must be released.
type parsed struct {
	a         *analyzer
	hit0, op0 int
	next      int // first word after the subcommand's name, or the number of words
	sub       int // index of the subcommand's name, or -1
	dashes    int // index among the operands of what follows "--", or -1
	command   []word
}

func (p *parsed) hits() []hit      { return p.a.hits[p.hit0:] }
func (p *parsed) operands() []word { return p.a.operands[p.op0:] }

func (p *parsed) release() {
	p.a.hits, p.a.operands = p.a.hits[:p.hit0], p.a.operands[:p.op0]
}

// find gives the first hit of one of the options.
func (p *parsed) find(names ...string) *hit {
	hits := p.hits()
	for i := range hits {
		for _, n := range names {
			if hits[i].opt.Name == n {
				return &hits[i]
			}
		}
	}
	return nil
}

// parser sorts words into options and operands.
type parser struct {
	parsed
	style  knowledge.Style
	spec   *knowledge.Spec
	parent *knowledge.Spec // whose options count, too
	args   []word
}

// parse sorts the words from index from on. If the spec has subcommands it
// stops at the first operand.
func (a *analyzer) parse(style knowledge.Style, spec, parent *knowledge.Spec, args []word, from int) parsed {
	ps := parser{style: style, spec: spec, parent: parent, args: args}
	ps.parsed = parsed{a: a, hit0: len(a.hits), op0: len(a.operands), sub: -1, dashes: -1, next: len(args)}
	subs := spec.HasSubs()
	if style == knowledge.StyleNone && !subs {
		a.operands = append(a.operands, args[from:]...)
		return ps.parsed
	}
	for i := from; i < len(args); i++ {
		w := &args[i]
		if !w.known && !ps.certain(w) && !spec.Benign {
			a.unknown(w.span, "a word that is not known could be an option")
		}
		if !isOption(w, spec) || style == knowledge.StyleNone {
			if subs {
				ps.sub, ps.next = i, i+1
				return ps.parsed
			}
			a.operands = append(a.operands, *w)
			if style == knowledge.StylePOSIX {
				a.operands = append(a.operands, args[i+1:]...)
				return ps.parsed
			}
			continue
		}
		if w.known && w.text == "--" {
			ps.dashes = len(a.operands) - ps.op0
			a.operands = append(a.operands, args[i+1:]...)
			return ps.parsed
		}
		if w.glob {
			a.unknown(w.span, "an option that is a pattern")
		}
		i = ps.option(i)
	}
	return ps.parsed
}

// certain says that a word that is not known is no option.
func (ps *parser) certain(w *word) bool {
	if w.text != "" {
		return w.text[0] != '-' || strings.IndexByte(w.text, '=') > 0
	}
	return w.plain || w.stream
}

func isOption(w *word, spec *knowledge.Spec) bool {
	t := w.text
	if len(t) < 2 {
		return false
	}
	if t[0] == '-' {
		return true
	}
	return t[0] == '+' && spec.Options[t] != nil
}

func (ps *parser) lookup(name string) *knowledge.Option {
	if o := ps.spec.Options[name]; o != nil {
		return o
	}
	if ps.parent != nil && ps.parent.Globals {
		return ps.parent.Options[name]
	}
	return nil
}

// option reads the option at index i, and its value; it returns the index of
// the last word it took.
func (ps *parser) option(i int) int {
	w := &ps.args[i]
	t := w.text
	if ps.style == knowledge.StyleSingle || strings.HasPrefix(t, "--") {
		name, val, attached := strings.Cut(t, "=")
		if ps.style == knowledge.StyleSingle && strings.HasPrefix(name, "--") && ps.lookup(name) == nil {
			name = name[1:]
		}
		o := ps.lookup(name)
		if o == nil {
			return ps.strange(i, name, attached)
		}
		return ps.take(i, o, val, attached)
	}
	words := ps.spec.Words || ps.parent != nil && ps.parent.Words
	if len(t) > 2 && words {
		if o := ps.lookup(t); o != nil {
			return ps.take(i, o, "", false)
		}
		// -name=value, for tables that list -name in one piece.
		if name, val, ok := strings.Cut(t, "="); ok && len(name) > 2 {
			if o := ps.lookup(name); o != nil {
				return ps.take(i, o, val, true)
			}
		}
	}
	return ps.cluster(i)
}

// cluster reads -abc, or -ovalue.
func (ps *parser) cluster(i int) int {
	w := &ps.args[i]
	t := w.text
	if isNumber(t[1:]) && ps.lookup("-#") != nil {
		ps.add(ps.lookup("-#"), word{}, false)
		return i
	}
	for j := 1; j < len(t); j++ {
		o := ps.spec.Short(t[j])
		if o == nil && ps.parent != nil && ps.parent.Globals {
			o = ps.parent.Short(t[j])
		}
		if o == nil {
			if j > 1 && isNumber(t[j:]) && ps.lookup("-#") != nil {
				return i
			}
			return ps.strange(i, t, false)
		}
		rest := t[j+1:]
		switch o.Arg {
		case knowledge.ArgNone:
			ps.add(o, word{span: w.span}, false)
			continue
		case knowledge.ArgOptional:
			ps.add(o, ps.attached(w, rest, len(t)-len(rest)), rest != "" || !w.known)
			return i
		}
		if rest != "" || !w.known {
			ps.add(o, ps.attached(w, rest, len(t)-len(rest)), true)
			return i
		}
		return ps.following(i, o)
	}
	if !w.known {
		ps.a.unknown(w.span, "an option that is not known")
	}
	return i
}

// take records an option that was found by its whole name.
func (ps *parser) take(i int, o *knowledge.Option, val string, attached bool) int {
	w := &ps.args[i]
	if attached {
		if o.Arg == knowledge.ArgNone {
			ps.a.unknown(w.span, "an option with a value its table does not know")
		}
		ps.add(o, ps.attached(w, val, len(w.text)-len(val)), true)
		return i
	}
	if !w.known {
		ps.a.unknown(w.span, "an option that is not known")
	}
	if o.Arg == knowledge.ArgRequired {
		return ps.following(i, o)
	}
	ps.add(o, word{span: w.span}, false)
	return i
}

// following takes the next word as the value.
func (ps *parser) following(i int, o *knowledge.Option) int {
	if i+1 >= len(ps.args) {
		ps.add(o, word{span: ps.args[i].span}, false)
		return i
	}
	if o.Role == knowledge.RoleCommand {
		// The rest is a command (fd -x).
		ps.add(o, word{span: ps.args[i].span}, false)
		ps.command = ps.args[i+1:]
		return len(ps.args)
	}
	v := ps.args[i+1]
	if v.multi && !ps.spec.Benign && !v.plain {
		ps.a.unknown(v.span, "a value that may be several words")
	}
	ps.add(o, v, true)
	return i + 1
}

func (ps *parser) attached(w *word, val string, off int) word {
	v := *w
	v.text = val
	if v.at >= 0 {
		v.at += off
	}
	return v
}

func (ps *parser) add(o *knowledge.Option, v word, has bool) {
	ps.a.hits = append(ps.a.hits, hit{o, v, has})
}

// strange handles an option the table does not name. Programs that accept
// shortened long options may take it for one they do have; the effects of
// every option it could mean are counted, and it is never safe.
func (ps *parser) strange(i int, name string, attached bool) int {
	w := &ps.args[i]
	if ps.spec.AnyOption {
		ps.any(w, name)
		return i
	}
	ps.a.unknown(w.span, "the option "+name+" is not in its table")
	if strings.HasPrefix(name, "--") && len(name) > 3 {
		_, val, _ := strings.Cut(w.text, "=")
		for _, full := range slices.Sorted(maps.Keys(ps.spec.Options)) {
			o := ps.spec.Options[full]
			if strings.HasPrefix(full, name) && (len(o.Does) > 0 || !o.Role.Harmless()) {
				v := ps.attached(w, val, len(w.text)-len(val))
				if o.Arg == knowledge.ArgRequired && !attached && i+1 < len(ps.args) {
					v = ps.args[i+1]
				}
				ps.add(o, v, o.Arg != knowledge.ArgNone)
			}
		}
		return i
	}
	if strings.HasPrefix(name, "--") || len(name) < 2 {
		return i
	}
	// Letters of a cluster behind the strange one still count.
	for j := 1; j < len(name); j++ {
		if o := ps.spec.Short(name[j]); o != nil && len(o.Does) > 0 {
			ps.add(o, word{span: w.span}, false)
		}
	}
	return i
}

// any records options the table accepts without knowing them, so that its
// conditions can ask for them.
func (ps *parser) any(w *word, name string) {
	if ps.style == knowledge.StyleSingle || strings.HasPrefix(name, "--") {
		ps.add(&knowledge.Option{Name: name}, word{span: w.span}, false)
		return
	}
	for j := 1; j < len(name); j++ {
		o := ps.spec.Short(name[j])
		if o == nil {
			o = knowledge.Unlisted(name[j])
		}
		ps.add(o, word{span: w.span}, false)
	}
}

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
		a.unknown(args[0].span, "runs "+p.Name+" without a subcommand its table knows")
		return output{given: true}
	}
	w := &args[ps.sub]
	name, ok := w.literal()
	sub := spec.Sub(name)
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
	if rest := args[ps.next:]; len(rest) == 1 && rest[0].known && rest[0].text == "--help" && p.Name != "git" {
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
	out := a.applyOperands(p, spec, operands, ps)
	if spec.Stdin != nil && !codeGiven(operands, ps) {
		a.stdinRole(*spec.Stdin, p)
	}
	if ps.command != nil {
		a.commandOperand(p, spec, ps.command)
	}
	return out
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
