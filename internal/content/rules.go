package content

import (
	"math"
	"math/bits"
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
	light bool // match is written by hand and costs next to nothing
}

// A confirm looks at the keyword t.text[s:e] and its surroundings, never further than a bounded
// number of bytes, and returns the span and severity of a finding; severity 0 means none.
type confirm func(t *target, s, e int) (start, end int, sev Severity)

// A target is a text whose keywords are looked at. Several phrases begin with the same keyword; the
// words behind it are read once for all of them.
type target struct {
	text  string
	words phraseText
}

// with returns the rule bound to places that one of the words follows within phraseWindow. The
// automaton sees the words anyway, so this spares most of the tests.
func (r rule) with(words ...string) rule {
	r.need = words
	return r
}

// cheap marks a rule whose test may be tried any number of times.
func (r rule) cheap() rule {
	r.light = true
	return r
}

// denseRule stands for a text with so many keywords that testing them all would take long. Nobody
// writes such a text in earnest; a person sees it instead.
var denseRule = rule{name: "limit.dense", cat: Limit}

// maxTries returns how often one rule may be tried in vain in a text.
func maxTries(size int) int { return 256 + size/64 }

// phraseWindow is how far a phrase may reach, in bytes.
const phraseWindow = 200

// An engine is a compiled set of rules.
type engine struct {
	rules []rule
	words *automaton
	bit   []uint8  // per rule, its number among those that need a word; noBit if it needs none
	wants []uint64 // per reporting state, the rules it leads to that need a word …
	near  []uint64 // … and the rules whose words end there
}

// isWord marks a hit on a needed word; the rest of the number is the rule's.
const isWord = 1 << 15

const noBit = 255

func newEngine(sets ...[]rule) *engine {
	e := &engine{rules: slices.Concat(sets...)}
	var words []keyword
	bits := uint8(0)
	for i, r := range e.rules {
		for _, k := range r.keys {
			words = r.spell(words, k, i)
		}
		for _, w := range r.need {
			words = r.spell(words, w, i|isWord)
		}
		e.bit = append(e.bit, noBit)
		if len(r.need) > 0 {
			e.bit[i] = bits
			bits++
		}
	}
	if bits > 64 {
		panic("content: more than 64 rules need a word") // a set is one machine word
	}
	e.words = newAutomaton(words)
	e.near, e.wants = make([]uint64, len(e.words.outs)), make([]uint64, len(e.words.outs))
	for i, out := range e.words.outs {
		keys := out[:0]
		for _, h := range out {
			r := h.rule &^ isWord
			switch {
			case h.rule&isWord != 0:
				e.near[i] |= 1 << e.bit[r]
				continue
			case e.bit[r] != noBit:
				e.wants[i] |= 1 << e.bit[r]
			}
			keys = append(keys, h)
		}
		e.words.outs[i] = keys
	}
	return e
}

// spell adds a keyword in all its spellings. Phrases do not care how their words are set apart.
func (r *rule) spell(words []keyword, key string, number int) []keyword {
	words = append(words, keyword{key, number})
	if r.cat == Injection {
		for _, wrapped := range wraps(key) {
			words = append(words, keyword{wrapped, number})
		}
	}
	return words
}

// wraps returns a keyword of several words as it stands in text that was wrapped or set wide: with a
// line end or two spaces between its words.
func wraps(key string) (out []string) {
	first, rest, ok := strings.Cut(key[1:], " ")
	if !ok || rest == "" {
		return nil
	}
	rests := append(wraps(rest), rest)
	for _, gap := range []string{" ", "\n", "  "} {
		for _, r := range rests {
			if gap != " " || r != rest {
				out = append(out, key[:1]+first+gap+r)
			}
		}
	}
	return out
}

// scratch is memory that one scan after the other uses.
type scratch struct {
	lanes  laneBufs
	done   []int
	tries  []int
	met    []uint64
	target target
}

// scan reports every confirmed rule. A place inside a span that the same rule reported already is
// not looked at again.
func (e *engine) scan(text string, mem *scratch, report func(r *rule, start, end int, sev Severity)) {
	places := e.words.run(text, &mem.lanes)
	if len(places) == 0 {
		return
	}
	mem.done = append(mem.done[:0], make([]int, len(e.rules))...)
	mem.tries = append(mem.tries[:0], make([]int, len(e.rules))...)
	done, met, most := mem.done, e.needsMet(places, mem), maxTries(len(text))
	t := &mem.target
	t.text, t.words.book = text, nil
	defer func() { t.text = "" }() // the memory outlives the scan; the text shall not
	for i, at := range places {
		for _, h := range e.words.outs[at.out] {
			start, end := int(at.end)-int(h.size), int(at.end)
			if start < done[h.rule] || e.bit[h.rule] != noBit && met[i]>>e.bit[h.rule]&1 == 0 {
				continue
			}
			r := &e.rules[h.rule]
			if from, to, sev := r.match(t, start, end); sev != 0 {
				done[h.rule] = to
				report(r, from, to, sev)
			} else if mem.tries[h.rule]++; mem.tries[h.rule] > most && !r.light {
				done[h.rule] = len(text) + 1
				report(&denseRule, 0, len(text), High)
			}
		}
	}
}

// needsMet says for each place which of the rules found there have one of their words at or behind
// it, within phraseWindow. It goes backwards, so that where a word was last seen is where it is next.
func (e *engine) needsMet(places []found, mem *scratch) []uint64 {
	mem.met = append(mem.met[:0], make([]uint64, len(places))...)
	var next [64]int32
	for i := range next {
		next[i] = math.MaxInt32
	}
	for i := len(places) - 1; i >= 0; i-- {
		at := places[i]
		for b := e.near[at.out]; b != 0; b &= b - 1 {
			next[bits.TrailingZeros64(b)] = at.end
		}
		for b := e.wants[at.out]; b != 0; b &= b - 1 {
			if k := bits.TrailingZeros64(b); next[k] <= at.end+phraseWindow {
				mem.met[i] |= 1 << k
			}
		}
	}
	return mem.met
}

// fromKey compiles an expression that must match from the keyword on, within size bytes.
func fromKey(sev Severity, size int, expr string) confirm {
	re := regexp.MustCompile(`\A(?:` + expr + `)`)
	return func(t *target, s, _ int) (int, int, Severity) {
		text := t.text
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
	return func(t *target, s, e int) (int, int, Severity) {
		text := t.text
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
	return func(t *target, s, e int) (int, int, Severity) {
		text := t.text
		if s > 0 && alnum(text[s-1]) && alnum(text[s]) {
			return 0, 0, 0
		}
		return c(t, s, e)
	}
}

func alnum(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// bare reports the keyword itself, if it is a word of its own.
func bare(sev Severity) confirm {
	return func(t *target, s, e int) (int, int, Severity) {
		text := t.text
		if s > 0 && alnum(text[s-1]) || e < len(text) && alnum(text[e]) {
			return 0, 0, 0
		}
		return s, e, sev
	}
}

// anywhere reports the keyword itself wherever it stands.
func anywhere(sev Severity) confirm {
	return func(_ *target, s, e int) (int, int, Severity) { return s, e, sev }
}
