package content

import (
	"regexp"
	"slices"
	"strings"
)

// A rule says what to look for: keywords that lead to it, words of which one must follow nearby (if
// any are given), and a test around the place where the keyword stands. A keyword alone never makes
// a finding.
type rule struct {
	name  string
	cat   Category
	what  string // in words, for people
	keys  []string
	match confirm
	need  []string
}

// A confirm looks at the keyword text[s:e] and its surroundings, never further than a bounded
// number of bytes, and returns the span and severity of a finding; severity 0 means none.
type confirm func(text string, s, e int) (start, end int, sev Severity)

// with returns the rule bound to places that one of the words follows within phraseWindow. The
// automaton sees the words anyway, so this spares most of the tests.
func (r rule) with(words ...string) rule {
	r.need = words
	return r
}

// phraseWindow is how far a phrase may reach, in bytes.
const phraseWindow = 200

// An engine is a compiled set of rules.
type engine struct {
	rules []rule
	words *automaton
	wants []uint64 // per rule, its bit among the rules that need a word; 0 if it needs none
	near  []uint64 // per reporting state, the rules whose words end there
}

// isWord marks a hit on a needed word; the rest of the number is the rule's.
const isWord = 1 << 15

func newEngine(sets ...[]rule) *engine {
	e := &engine{rules: slices.Concat(sets...)}
	var words []keyword
	bit := uint64(1)
	for i, r := range e.rules {
		for _, k := range r.keys {
			words = append(words, keyword{k, i})
		}
		for _, w := range r.need {
			words = append(words, keyword{w, i | isWord})
		}
		e.wants = append(e.wants, 0)
		if len(r.need) > 0 {
			e.wants[i] = bit
			bit <<= 1
		}
	}
	e.words = newAutomaton(words)
	e.near = make([]uint64, len(e.words.outs))
	for i, out := range e.words.outs {
		keys := out[:0]
		for _, h := range out {
			if h.rule&isWord != 0 {
				e.near[i] |= e.wants[h.rule&^isWord]
			} else {
				keys = append(keys, h)
			}
		}
		e.words.outs[i] = keys
	}
	return e
}

// scratch is memory that one scan after the other uses.
type scratch struct {
	lanes laneBufs
	done  []int
}

// scan reports every confirmed rule. A place inside a span that the same rule reported already is
// not looked at again.
func (e *engine) scan(text string, mem *scratch, report func(r *rule, start, end int, sev Severity)) {
	mem.done = append(mem.done[:0], make([]int, len(e.rules))...)
	done := mem.done
	places := e.words.run(text, &mem.lanes)
	for i, at := range places {
		for _, h := range e.words.outs[at.out] {
			start, end := int(at.end)-int(h.size), int(at.end)
			if start < done[h.rule] || e.wants[h.rule] != 0 && !e.follows(places[i:], start+phraseWindow, e.wants[h.rule]) {
				continue
			}
			r := &e.rules[h.rule]
			if from, to, sev := r.match(text, start, end); sev != 0 {
				done[h.rule] = to
				report(r, from, to, sev)
			}
		}
	}
}

// follows reports whether one of the wanted words ends among places, up to offset to.
func (e *engine) follows(places []found, to int, want uint64) bool {
	for _, p := range places {
		if int(p.end) > to {
			return false
		}
		if e.near[p.out]&want != 0 {
			return true
		}
	}
	return false
}

// phrase compiles an expression over words. "~" stands for what separates words, at least one
// character that is neither letter nor digit; "<3>" for up to three words of any kind. The
// expression must match from the keyword on, which must start a word.
func phrase(sev Severity, expr string) confirm {
	const gap, filler = `[^a-zA-Z0-9]+`, `(?:[a-z0-9']+[^a-zA-Z0-9]+)`
	expr = strings.NewReplacer("~", gap, "<1>", filler+`?`, "<2>", filler+`{0,2}`, "<3>", filler+`{0,3}`,
		"<4>", filler+`{0,4}`, "<6>", filler+`{0,6}`).Replace(expr)
	return word(fromKey(sev, phraseWindow, `(?i:`+expr+`)`))
}

// fromKey compiles an expression that must match from the keyword on, within size bytes.
func fromKey(sev Severity, size int, expr string) confirm {
	re := regexp.MustCompile(`\A(?:` + expr + `)`)
	return func(text string, s, _ int) (int, int, Severity) {
		loc := re.FindStringIndex(text[s:min(len(text), s+size)])
		if loc == nil {
			return 0, 0, 0
		}
		return s, s + loc[1], sev
	}
}

// around compiles an expression that must match somewhere between before bytes ahead of the
// keyword and after bytes behind it, and must include the keyword.
func around(sev Severity, before, after int, expr string) confirm {
	re := regexp.MustCompile(expr)
	return func(text string, s, e int) (int, int, Severity) {
		from := max(0, s-before)
		loc := re.FindStringIndex(text[from:min(len(text), e+after)])
		if loc == nil || from+loc[0] > s || from+loc[1] < e {
			return 0, 0, 0
		}
		return from + loc[0], from + loc[1], sev
	}
}

// word demands that the keyword starts a word.
func word(c confirm) confirm {
	return func(text string, s, e int) (int, int, Severity) {
		if s > 0 && alnum(text[s-1]) {
			return 0, 0, 0
		}
		return c(text, s, e)
	}
}

func alnum(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// bare reports the keyword itself, if it is a word of its own.
func bare(sev Severity) confirm {
	return func(text string, s, e int) (int, int, Severity) {
		if s > 0 && alnum(text[s-1]) || e < len(text) && alnum(text[e]) {
			return 0, 0, 0
		}
		return s, e, sev
	}
}

// anywhere reports the keyword itself wherever it stands.
func anywhere(sev Severity) confirm {
	return func(_ string, s, e int) (int, int, Severity) { return s, e, sev }
}
