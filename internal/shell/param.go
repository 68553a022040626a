package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// splitParam expands an unquoted $x that is a whole word, which the shell
// splits into fields.
func (a *analyzer) splitParam(dst []word, p *syntax.ParamExp) ([]word, bool) {
	if !simpleParam(p) || a.st.ifs {
		return dst, false
	}
	v := a.lookup(p.Param.Value)
	if !v.known() || len(v.alts) != 1 || v.glob {
		return dst, false
	}
	s := v.alts[0]
	if !strings.ContainsAny(s, " \t\n*?[") {
		return dst, false
	}
	if !a.spend(len(s)) {
		return dst, false
	}
	span := a.span(p)
	for _, f := range strings.Fields(s) {
		dst = append(dst, word{text: f, known: true, span: span, at: -1, glob: strings.ContainsAny(f, "*?[")})
	}
	return dst, true
}

func simpleParam(p *syntax.ParamExp) bool {
	return p.Param != nil && p.Flags == nil && !p.Excl && !p.Length && !p.Width && !p.IsSet && p.NestedParam == nil &&
		p.Index == nil && len(p.Modifiers) == 0 && p.Slice == nil && p.Repl == nil && p.Names == 0 && p.Exp == nil
}

// param adds the value of a parameter expansion.
func (b *builder) param(p *syntax.ParamExp, quoted bool) {
	a := b.a
	quoted = quoted || b.whole
	if !quoted {
		b.empty = true
	}
	a.insideParam(p)
	if p.Param == nil {
		b.unknownParam(quoted)
		return
	}
	name := p.Param.Value
	if !p.Length && !b.tests(p) && a.kb.SecretVariable(name) {
		if _, set := a.st.vars[name]; !set {
			b.cur.setRare(func(r *rare) { r.secret = name })
		}
	}
	switch {
	case p.Length:
		b.numberUnknown()
	case p.Exp != nil:
		b.paramExp(p, quoted)
	case !simpleParam(p):
		b.unknownParam(quoted)
	default:
		b.variable(name, quoted)
	}
}

// tests says that an expansion only shows whether a variable is set.
func (b *builder) tests(p *syntax.ParamExp) bool {
	return p.Exp != nil && (p.Exp.Op == syntax.AlternateUnset || p.Exp.Op == syntax.AlternateUnsetOrNull)
}

func (b *builder) unknownParam(quoted bool) {
	if !quoted {
		b.cur.multi = true
	}
	b.unknown()
}

// variable adds the value of $name.
func (b *builder) variable(name string, quoted bool) {
	a := b.a
	switch name {
	case "?", "#", "$", "!", "-", "RANDOM", "SECONDS", "LINENO", "UID", "EUID", "PPID", "BASHPID", "EPOCHSECONDS":
		if _, set := a.st.vars[name]; !set && name != "-" {
			b.numberUnknown()
			return
		}
	case "HOME":
		b.write(a.home())
		return
	case "PWD":
		if _, set := a.st.vars[name]; !set {
			b.write(a.pwd())
			return
		}
	}
	v := a.lookup(name)
	_, set := a.st.vars[name]
	alone := !set && quoted && b.cur.known && b.text.Len() == 0 && b.alts == nil
	defer func() {
		if alone && !b.cur.known {
			b.cur.setRare(func(r *rare) { r.env = name })
		}
	}()
	if !set && a.kb.PlainVariable(name) {
		b.plainUnknown()
		return
	}
	if v != nil && v.secret != "" {
		b.cur.setRare(func(r *rare) { r.secret = v.secret })
	}
	switch {
	case v != nil && v.number:
		b.numberUnknown()
	case v != nil && v.plain:
		b.plainUnknown()
	case v != nil && v.listing:
		alone := b.cur.known && b.text.Len() == 0 && b.alts == nil
		b.unknown()
		b.cur.listing = alone
		b.cur.setRare(func(r *rare) { r.root = v.root })
	case !v.known():
		b.unknownParam(quoted)
	case quoted:
		b.writeValue(v)
	case a.st.ifs:
		b.unknownParam(quoted)
	default:
		for _, s := range v.alts {
			if strings.ContainsAny(s, " \t\n") || !v.glob && strings.ContainsAny(s, "*?[") {
				b.unknownParam(quoted)
				return
			}
		}
		b.writeValue(v)
	}
}

func (b *builder) writeValue(v *value) {
	if v.glob {
		b.cur.glob = true
	}
	b.writeAlts(v.alts)
}

// pwd is the working directory as a word: "." stands for it when it is not known.
func (a *analyzer) pwd() string {
	switch {
	case a.st.cwd.abs != "":
		return a.st.cwd.abs
	case a.st.cwd.lost:
		return "./../." // somewhere, not the workspace
	}
	return "."
}

// paramExp adds ${x:-y}, ${x%y} and their kind. Only the forms whose result
// is certain give a value.
func (b *builder) paramExp(p *syntax.ParamExp, quoted bool) {
	a := b.a
	v := a.lookup(p.Param.Value)
	single := v.known() && len(v.alts) == 1 && !v.glob
	switch p.Exp.Op {
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
		alt := a.one(p.Exp.Word)
		if lit, ok := alt.literal(); ok && !strings.ContainsAny(lit, " \t\n*?[-") {
			b.plainUnknown() // either nothing or a harmless literal
			return
		}
	case syntax.DefaultUnset, syntax.DefaultUnsetOrNull:
		if single && v.alts[0] != "" && (quoted || !strings.ContainsAny(v.alts[0], " \t\n*?[")) {
			b.writeAlts(v.alts)
			return
		}
	case syntax.AssignUnset, syntax.AssignUnsetOrNull:
		a.setVar(p.Param.Value, nil)
		a.assigns(p.Param.Value, a.span(p))
	case syntax.OtherParamOps:
		if p.Exp.Word != nil && strings.ContainsAny(p.Exp.Word.Lit(), "P") {
			a.add(Effect{Kind: KindExecute, Class: ClassUnknown, Span: a.span(p),
				Why: "expands a value as a prompt, which runs the substitutions in it"})
		}
	case syntax.RemSmallPrefix, syntax.RemLargePrefix, syntax.RemSmallSuffix, syntax.RemLargeSuffix:
		if v != nil && v.plain {
			b.plainUnknown()
			return
		}
	}
	b.unknownParam(quoted)
}

// insideParam looks at everything inside ${…} that the shell evaluates.
func (a *analyzer) insideParam(p *syntax.ParamExp) {
	if p.Short && p.Index == nil {
		return
	}
	if p.Excl && p.Names == 0 {
		// ${!x} evaluates the value of x as a name, subscripts included.
		v := a.lookup(paramName(p))
		if !v.known() || !validNames(v.alts) {
			a.add(Effect{Kind: KindUnknown, Class: ClassUnknown, Span: a.span(p), Why: "evaluates a value as the name of a variable"})
		}
	}
	if p.Flags != nil || p.NestedParam != nil {
		a.note(NoteDialect, "zsh expansion flags", a.span(p))
	}
	if p.Index != nil {
		a.arithmetic(p.Index)
	}
	if p.Slice != nil {
		a.arithmetic(p.Slice.Offset)
		a.arithmetic(p.Slice.Length)
	}
	if p.Repl != nil {
		a.one(p.Repl.Orig)
		a.one(p.Repl.With)
	}
	if p.Exp != nil && p.Exp.Word != nil {
		a.one(p.Exp.Word)
	}
}

func paramName(p *syntax.ParamExp) string {
	if p.Param == nil {
		return ""
	}
	return p.Param.Value
}

func validNames(names []string) bool {
	for _, n := range names {
		if !syntax.ValidName(n) {
			return false
		}
	}
	return true
}

// arithmetic looks at an arithmetic expression. The shell evaluates the value
// of a variable in it as an expression again, and subscripts in that may hold
// substitutions; so a variable is harmless only if its value is a number.
func (a *analyzer) arithmetic(x syntax.ArithmExpr) {
	switch x := x.(type) {
	case nil:
	case *syntax.BinaryArithm:
		target := assignedName(x)
		if target == "" || x.Op != syntax.Assgn {
			a.arithmetic(x.X) // a plain assignment does not look at the old value
		}
		a.arithmetic(x.Y)
		if target != "" {
			a.setVar(target, &value{plain: true, number: true})
			a.assigns(target, a.span(x))
		}
	case *syntax.UnaryArithm:
		a.arithmetic(x.X)
	case *syntax.ParenArithm:
		a.arithmetic(x.X)
	case *syntax.FlagsArithm:
		a.note(NoteDialect, "zsh arithmetic flags", a.span(x))
	case *syntax.Word:
		a.arithmeticWord(x)
	}
}

// assignedName is the variable an arithmetic assignment sets: always a number.
func assignedName(x *syntax.BinaryArithm) string {
	if w, ok := x.X.(*syntax.Word); ok && assignOps[x.Op] && syntax.ValidName(w.Lit()) {
		return w.Lit()
	}
	return ""
}

var assignOps = map[syntax.BinAritOperator]bool{
	syntax.Assgn: true, syntax.AddAssgn: true, syntax.SubAssgn: true, syntax.MulAssgn: true, syntax.QuoAssgn: true,
	syntax.RemAssgn: true, syntax.AndAssgn: true, syntax.OrAssgn: true, syntax.XorAssgn: true, syntax.ShlAssgn: true,
	syntax.ShrAssgn: true,
}

func (a *analyzer) arithmeticWord(w *syntax.Word) {
	if w == nil {
		return
	}
	if lit := w.Lit(); lit == "@" || lit == "*" {
		return // ${a[@]}
	}
	f := a.one(w)
	switch {
	case f.number:
		return
	case f.known && isNumber(f.text):
		return
	case f.known && syntax.ValidName(f.text):
		v := a.lookup(f.text)
		if v != nil && (v.number || allNumbers(v.alts)) {
			return
		}
	}
	a.add(Effect{Kind: KindUnknown, Class: ClassUnknown, Span: f.span, Why: "evaluates a value that is not known to be a number"})
}

func isNumber(s string) bool {
	if s == "" {
		return false
	}
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return i == 1 && s[0] == '0' && (s[1] == 'x' || s[1] == 'X') && len(s) > 2 && isHex(s[2:])
		}
	}
	return true
}

func isHex(s string) bool {
	for i := 0; i < len(s); i++ {
		if !strings.ContainsRune("0123456789abcdefABCDEF", rune(s[i])) {
			return false
		}
	}
	return true
}

func allNumbers(list []string) bool {
	for _, s := range list {
		if !isNumber(strings.TrimPrefix(s, "-")) {
			return false
		}
	}
	return len(list) > 0
}

// test looks at [[ … ]].
func (a *analyzer) test(x syntax.TestExpr) {
	switch x := x.(type) {
	case *syntax.BinaryTest:
		switch x.Op {
		case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
			// Numeric operators evaluate both sides as expressions.
			for _, side := range []syntax.TestExpr{x.X, x.Y} {
				if w, ok := side.(*syntax.Word); ok {
					a.arithmeticWord(w)
				}
			}
		default:
			a.test(x.X)
			a.test(x.Y)
		}
	case *syntax.UnaryTest:
		if w, ok := x.X.(*syntax.Word); ok {
			f := a.one(w)
			if x.Op == syntax.TsVarSet || x.Op == syntax.TsRefVar {
				a.varName(&f)
			}
			return
		}
		a.test(x.X)
	case *syntax.ParenTest:
		a.test(x.X)
	case *syntax.Word:
		a.one(x)
	}
}

// varName checks a word that the shell takes as the name of a variable: a
// subscript in it is evaluated, whatever quotes are around it.
func (a *analyzer) varName(f *word) {
	if f.known && !strings.Contains(f.text, "[") {
		return
	}
	if f.known {
		if open := strings.IndexByte(f.text, '['); isNumber(strings.TrimSuffix(f.text[open+1:], "]")) {
			return
		}
	}
	a.add(Effect{Kind: KindUnknown, Class: ClassUnknown, Span: f.span, Why: "evaluates a word as the name of a variable"})
}
