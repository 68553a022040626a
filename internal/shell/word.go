package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// word is one field of a command after the expansions the analysis can do.
type word struct {
	// text is the value; if it is not known, the part in front of what is not.
	text string
	span Span
	// at is where text begins in the source if it stands there byte for byte, else -1.
	at    int
	known bool
	// glob says that text is a pattern the shell will expand.
	glob bool
	// multi says that the field may turn out to be several, or none.
	multi bool
	// plain says that the part that is not known is harmless text that does
	// not begin with a dash.
	plain bool
	// number says that what is not known is a number.
	number bool
	// listing says that the field is the name of a file below root.
	listing bool
	// stream says that the field is a process substitution.
	stream bool
	// quoted says that some of it was quoted.
	quoted bool
	*rare
}

// rare is what few words have; it is kept apart because words are copied a lot.
type rare struct {
	// root is where a listed file is.
	root string
	// secret names a variable in it whose value is likely a credential.
	secret string
	// env names the variable of the environment that the whole word is.
	env string
	// tail is the literal text behind what is not known, with an x for what
	// else is not; maxTail of it at most.
	tail string
	// alts are all the values the field may have, if there are several that
	// are known; text is the first.
	alts []string
}

// noneRare is the rare part of most words. It is never written to.
var noneRare = &rare{}

func (w *word) rareParts() *rare {
	if w.rare == nil {
		return noneRare
	}
	return w.rare
}

// setRare changes the rare part of this word alone.
func (w *word) setRare(f func(*rare)) {
	r := *w.rareParts()
	f(&r)
	w.rare = &r
}

func (w *word) values() []string   { return w.rareParts().alts }
func (w *word) listRoot() string   { return w.rareParts().root }
func (w *word) credential() string { return w.rareParts().secret }

// maxTail is how much is kept of what follows something that is not known.
const maxTail = 1 << 10

// judged is a word as its name is judged by: with an x for what is not known.
func (w *word) judged(text string) string {
	if tail := w.rareParts().tail; tail != "" {
		return text + "x" + tail
	}
	return text
}

// strays says that what follows something unknown may lead elsewhere.
func (w *word) strays() bool {
	tail := w.rareParts().tail
	return len(tail) >= maxTail || strings.Contains(tail, "..")
}

func (w *word) arg() Arg {
	return Arg{Text: w.text, Known: w.known, Glob: w.glob, Span: w.span}
}

// literal is the text if the whole field is known and no pattern.
func (w *word) literal() (string, bool) { return w.text, w.known && !w.glob }

// limits of what expansion may produce.
const (
	maxAlternatives = 16
	maxFields       = 256
)

// span translates the position of a node into the analysed text.
func (a *analyzer) span(n syntax.Node) Span {
	if a.fixed != nil {
		return *a.fixed
	}
	if w, ok := n.(*syntax.Word); ok && len(w.Parts) == 0 {
		return Span{a.base, a.base} // what a brace leaves may be nothing
	}
	return Span{a.base + int(n.Pos().Offset()), a.base + int(n.End().Offset())}
}

// fields expands a word the way the shell does before it runs a command.
func (a *analyzer) fields(dst []word, w *syntax.Word) []word {
	if len(w.Parts) == 1 {
		n := len(dst)
		dst = append(dst, word{})
		if a.plainPart(&dst[n], w.Parts[0]) {
			return dst
		}
		dst = dst[:n]
	}
	if hasBrace(w) {
		cp := *w
		if syntax.SplitBraces(&cp) {
			// A word that was split does not know where it begins: {,a} begins
			// with nothing.
			return a.braceFields(dst, &cp, a.span(w))
		}
	}
	return a.expandField(dst, w)
}

// plainPart is the short way for the most common words: a bare literal, or
// one in quotes without anything to expand. It fills in f, which is empty.
func (a *analyzer) plainPart(f *word, p syntax.WordPart) bool {
	switch p := p.(type) {
	case *syntax.Lit:
		return a.plainLiteral(f, p)
	case *syntax.SglQuoted:
		if p.Dollar {
			return false
		}
		f.text = p.Value
	case *syntax.DblQuoted:
		if p.Dollar || len(p.Parts) != 1 {
			return false
		}
		lit, ok := p.Parts[0].(*syntax.Lit)
		if !ok || strings.IndexByte(lit.Value, '\\') >= 0 {
			return false
		}
		f.text = lit.Value
	default:
		return false
	}
	f.known, f.quoted, f.span, f.at = true, true, a.span(p), -1
	if a.fixed == nil && f.span.End-f.span.Start == len(f.text)+2 {
		f.at = f.span.Start + 1
	}
	return true
}

func (a *analyzer) plainLiteral(f *word, lit *syntax.Lit) bool {
	v := lit.Value
	for i := 0; i < len(v); i++ {
		switch v[i] {
		case '\\', '*', '?', '[', '{', '~':
			return false
		}
	}
	f.text, f.known, f.span, f.at = v, true, a.span(lit), -1
	if a.fixed == nil && f.span.End-f.span.Start == len(v) {
		f.at = f.span.Start
	}
	return true
}

func hasBrace(w *syntax.Word) bool {
	for _, p := range w.Parts {
		if lit, ok := p.(*syntax.Lit); ok && strings.IndexByte(lit.Value, '{') >= 0 {
			return true
		}
	}
	return false
}

// expandField expands a word without braces.
func (a *analyzer) expandField(dst []word, w *syntax.Word) []word {
	if len(w.Parts) == 1 {
		if p, ok := w.Parts[0].(*syntax.ParamExp); ok {
			if got, ok := a.splitParam(dst, p); ok {
				return got
			}
		}
	}
	b := builder{a: a}
	b.cur = word{known: true, span: a.span(w), at: -1}
	for i, p := range w.Parts {
		b.part(p, i == 0, false)
	}
	return b.finish(dst)
}

// builder collects the alternatives of one word.
type builder struct {
	a     *analyzer
	cur   word
	alts  []string // more than one value: the whole text of each
	text  strings.Builder
	empty bool // an unquoted expansion that may vanish, and nothing else so far
	any   bool
	whole bool // no splitting into fields
}

func (b *builder) finish(dst []word) []word {
	if b.alts == nil {
		b.cur.text = b.text.String()
		if b.cur.known && !b.any && b.empty && !b.cur.quoted {
			return dst // an empty unquoted expansion is no word at all
		}
		return append(dst, b.cur)
	}
	b.cur.text = b.alts[0]
	b.cur.setRare(func(r *rare) { r.alts = b.alts })
	return append(dst, b.cur)
}

func (b *builder) write(s string) {
	if !b.cur.known {
		b.behind(s)
		return // only the known beginning is the word's text
	}
	if s != "" {
		b.any = true
	}
	if b.alts != nil {
		for i := range b.alts {
			b.alts[i] += s
		}
		if !b.a.spend(len(s) * len(b.alts)) {
			b.unknown()
		}
		return
	}
	b.text.WriteString(s)
}

func (b *builder) writeAlts(alts []string) {
	if !b.cur.known {
		return
	}
	if len(alts) == 1 {
		if b.a.spend(len(alts[0])) {
			b.write(alts[0])
		} else {
			b.unknown()
		}
		return
	}
	old := b.alts
	if old == nil {
		old = []string{b.text.String()}
	}
	if len(old)*len(alts) > maxAlternatives {
		b.unknown()
		return
	}
	var out []string
	for _, o := range old {
		for _, n := range alts {
			if !b.a.spend(len(o) + len(n)) {
				b.unknown()
				return
			}
			out = append(out, o+n)
		}
	}
	b.alts, b.any = out, true
}

// unknown marks that what follows is not known.
func (b *builder) unknown() {
	b.cur.number = false
	if b.alts != nil {
		// The common beginning of several is not worth keeping.
		b.alts = nil
		b.text.Reset()
	}
	if b.cur.known {
		b.cur.plain = false
	} else {
		b.cur.noEnv()
		b.behind("x")
	}
	b.cur.known = false
}

// behind notes text that follows something that is not known.
func (b *builder) behind(s string) {
	if s == "" {
		return
	}
	b.cur.noEnv()
	if room := maxTail - len(b.cur.rareParts().tail); room > 0 {
		b.cur.setRare(func(r *rare) { r.tail += s[:min(len(s), room)] })
	}
}

// noEnv notes that there is more in a word than one variable.
func (w *word) noEnv() {
	if w.rareParts().env != "" {
		w.setRare(func(r *rare) { r.env = "" })
	}
}

// plainUnknown marks that what follows is not known, but harmless.
func (b *builder) plainUnknown() {
	was := b.cur.known || b.cur.plain
	b.unknown()
	b.cur.plain = was
}

// numberUnknown marks that what follows is a number that is not known.
func (b *builder) numberUnknown() {
	was := b.cur.known && isEmptyOrNumber(b.text.String()) || b.cur.number
	b.plainUnknown()
	b.cur.number = was
}

func isEmptyOrNumber(s string) bool { return s == "" || isNumber(s) }

func (b *builder) part(p syntax.WordPart, first, quoted bool) {
	switch p := p.(type) {
	case *syntax.Lit:
		if quoted {
			b.write(unescapeDouble(p.Value))
		} else {
			b.literal(p.Value, first)
		}
	case *syntax.SglQuoted:
		b.cur.quoted = true
		if p.Dollar {
			b.write(ansiC(p.Value))
			return
		}
		if first && b.a.fixed == nil {
			b.cur.at = b.a.base + int(p.Left.Offset()) + 1
		}
		b.write(p.Value)
	case *syntax.DblQuoted:
		b.cur.quoted = true
		if p.Dollar {
			b.unknown() // translated by the locale's catalogue
		}
		if first && b.a.fixed == nil && len(p.Parts) == 1 {
			if lit, ok := p.Parts[0].(*syntax.Lit); ok && strings.IndexByte(lit.Value, '\\') < 0 {
				b.cur.at = b.a.base + int(lit.Pos().Offset())
			}
		}
		for _, q := range p.Parts {
			b.part(q, false, true)
		}
	case *syntax.ParamExp:
		b.param(p, quoted)
	case *syntax.CmdSubst:
		b.substitution(p, quoted)
	case *syntax.ArithmExp:
		b.a.arithmetic(p.X)
		b.numberUnknown()
	case *syntax.ProcSubst:
		b.a.processSubstitution(p)
		b.cur.stream = true
		b.unknown()
	case *syntax.ExtGlob:
		b.cur.glob = true
		b.write(p.Op.String() + p.Pattern.Value + ")")
		if strings.ContainsAny(p.Pattern.Value, ":+{'\"$`") {
			// In zsh the brackets behind a pattern can hold code.
			b.unknown()
			b.a.unknown(b.a.span(p), "a pattern that another shell runs as code")
		}
	default:
		b.unknown()
	}
}

// literal adds unquoted text: backslashes are removed, pattern characters and
// a leading tilde are noticed.
func (b *builder) literal(v string, first bool) {
	if first && strings.HasPrefix(v, "~") {
		v = b.tilde(v)
	}
	if strings.IndexByte(v, '\\') < 0 {
		if strings.ContainsAny(v, "*?[") && v != "[" {
			b.cur.glob = true
		}
		b.write(v)
		return
	}
	var out strings.Builder
	for i := 0; i < len(v); i++ {
		switch v[i] {
		case '\\':
			b.cur.quoted = true
			if i++; i < len(v) && v[i] != '\n' {
				out.WriteByte(v[i])
			}
		case '*', '?', '[':
			b.cur.glob = true
			out.WriteByte(v[i])
		default:
			out.WriteByte(v[i])
		}
	}
	b.write(out.String())
}

// tilde replaces the home directory if it is known; otherwise "~" stays, and
// stands for it.
func (b *builder) tilde(v string) string {
	if v != "~" && !strings.HasPrefix(v, "~/") {
		if strings.HasPrefix(v, "~+") || strings.HasPrefix(v, "~-") {
			b.unknown()
		}
		return v
	}
	return b.a.home() + v[1:]
}

// home is the home directory, or "~".
func (a *analyzer) home() string {
	if v, ok := a.st.vars["HOME"]; ok {
		if v.known() && len(v.alts) == 1 {
			return v.alts[0]
		}
	}
	if a.opts.Home != "" {
		return a.opts.Home
	}
	return "~"
}

// substitution adds the output of $(…).
func (b *builder) substitution(p *syntax.CmdSubst, quoted bool) {
	out := b.a.subshell(p.Stmts)
	quoted = quoted || b.whole
	if !quoted {
		b.cur.multi = true
	}
	switch {
	case out.known && (quoted || !strings.ContainsAny(out.text, " \t\n*?[")):
		b.writeAlts([]string{strings.TrimRight(out.text, "\n")})
	case out.number:
		b.numberUnknown()
	case out.plain:
		b.plainUnknown()
	case out.listing:
		alone := b.cur.known && b.text.Len() == 0 && b.alts == nil
		b.unknown()
		b.cur.listing = alone
		b.cur.setRare(func(r *rare) { r.root = out.root })
	default:
		b.unknown()
	}
}

// one evaluates a word that is not split into fields: the value of an
// assignment, the target of a redirection, the subject of case.
func (a *analyzer) one(w *syntax.Word) word {
	if w == nil {
		return word{known: true, at: -1}
	}
	if len(w.Parts) == 1 {
		var f word
		if a.plainPart(&f, w.Parts[0]) {
			return f
		}
	}
	b := builder{a: a, whole: true}
	b.cur = word{known: true, span: a.span(w), at: -1}
	for i, p := range w.Parts {
		b.part(p, i == 0, false)
	}
	b.cur.text = b.text.String()
	if b.alts != nil {
		b.cur.text = b.alts[0]
		b.cur.setRare(func(r *rare) { r.alts = b.alts })
	}
	return b.cur
}
