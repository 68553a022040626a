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
		if w.glob && !ps.patternValue(w) {
			a.unknown(w.span, "an option that is a pattern")
		}
		i = ps.option(i)
	}
	return ps.parsed
}

// patternValue recognises --include=*.go: whatever the shell makes of it, it
// is that option, and the value is only data.
func (ps *parser) patternValue(w *word) bool {
	name, _, ok := strings.Cut(w.text, "=")
	if !ok || strings.ContainsAny(name, "*?[") {
		return false
	}
	o := ps.lookup(name)
	return o != nil && o.Arg == knowledge.ArgRequired && o.Role == knowledge.RoleData && len(o.Does) == 0
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
	switch o.Arg {
	case knowledge.ArgRequired:
		return ps.following(i, o)
	case knowledge.ArgPair:
		if i+1 < len(ps.args) && ps.args[i+1].multi {
			ps.a.unknown(ps.args[i+1].span, "a value that may be several words")
		}
		return ps.following(i+1, o)
	}
	ps.add(o, word{span: w.span}, false)
	return i
}

// following takes the next word as the value.
func (ps *parser) following(i int, o *knowledge.Option) int {
	if i+1 >= len(ps.args) {
		ps.add(o, word{span: ps.args[len(ps.args)-1].span}, false)
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
