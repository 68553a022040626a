package shell

import (
	"regexp"
	"strings"
	"sync"
)

// perlFilter recognises programs for perl -n and -p that print, match and
// replace and do nothing else. It is a grammar of its own, and not one of
// tokens: Perl runs code from within patterns and strings, so what may stand
// in them is said sign by sign. No brackets: subscripts are expressions.
var perlFilter = sync.OnceValue(func() *regexp.Regexp {
	const (
		str    = `"(?:[^"\\$@\[\]{}` + "`" + `>-]|\\[nt"\\]|\$(?:[0-9&]|_|\.))*"`
		item   = `(?:` + str + `|\$(?:[0-9&]|_|\.|F\[-?[0-9]+\])|[0-9]+)`
		inside = `(?:[^/\\$@{}` + "`" + `\n]|\\[^\n]|\{[0-9]+,?[0-9]*\}|\$[|)])*\$?`
		re     = `/` + inside + `/[imsxg]*`
		cond   = `!? ?(?:` + re + `|\$\. ?(?:==|<=|>=|<|>|%) ?[0-9]+(?: ?== ?[0-9]+)?|\$_ (?:eq|ne) ` + str + `)`
		when   = `(?: (?:if|unless) ` + cond + `(?: (?:&&|\|\||and|or) ` + cond + `)*)?`
		print  = `(?:print|say)(?: ?\(? ?` + item + `(?: ?[,.] ?` + item + `)* ?\)?)?`
		repl   = `(?:[^/\\$@\[\]{}` + "`" + `\n]|\\[^\n]|\$[0-9&])*`
		subst  = `s/` + inside + `/` + repl + `/[gimsx]*`
		trans  = `(?:tr|y)/[^/\\\n]*/[^/\\\n]*/[cdsr]*`
		stmt   = `(?:` + print + when + `|` + subst + when + `|` + trans + when + `|chomp|next` + when + `|` + cond + ` (?:&&|and) ` + print + `)`
	)
	return regexp.MustCompile(`^\s*` + stmt + `(?:\s*;\s*` + stmt + `)*\s*;?\s*$`)
})

// maxFilter bounds the programs that are looked at.
const maxFilter = 1 << 10

func pureFilter(code string) bool {
	return len(code) <= maxFilter && perlFilter().MatchString(code)
}

// perlFiles says whether perl -n and -p read the operands as files: "cmd |" is
// a command to them, and a pattern may stand for such a name.
func perlFiles(ops []word) bool {
	for i := range ops {
		w := &ops[i]
		if !w.known || w.glob || w.values() != nil || w.text == "" || w.text == "-" || strings.ContainsAny(w.text, "|<>&\x00\n") || strings.TrimSpace(w.text) != w.text {
			return false
		}
	}
	return true
}
