package match

import (
	"math/bits"
	"unicode"
)

// A machine is a union of glob programs, simulated as a nondeterministic automaton. Positions are
// token indexes; a set of positions is a bit set. Because programs only move forward or stay, the
// closure over empty moves can be computed once per position, and a match costs at most
// (length of text) × (positions that are active).
type machine struct {
	toks   []token
	starts []int
	words  int      // of one bit set
	clo    []uint64 // closure of each position, words apart
	begin  []uint64 // closure of all starts
}

type tokenKind uint8

const (
	tokAccept  tokenKind = iota // end of one program
	tokLit                      // one given rune
	tokOne                      // one rune, not a slash
	tokOneAll                   // one rune
	tokClass                    // one rune of a class, never a slash
	tokStar                     // any number of runes, none a slash
	tokStarAll                  // any number of runes
	tokSkip                     // empty move to the next token and to skip
)

type token struct {
	kind tokenKind
	r    rune
	cls  *class
	skip int // relative to this token
}

// A class is a bracket expression.
type class struct {
	neg    bool
	ranges []runeRange
}

type runeRange struct{ lo, hi rune }

func (c *class) has(r rune) bool {
	in := false
	for _, g := range c.ranges {
		if g.lo <= r && r <= g.hi {
			in = true
			break
		}
	}
	return in != c.neg && r != '/'
}

// hasFold is has for any letter that differs from r in case only.
func (c *class) hasFold(r rune) bool {
	if c.has(r) {
		return true
	}
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		if c.has(f) {
			return true
		}
	}
	return false
}

func (t *token) takes(r rune, fold bool) bool {
	switch t.kind {
	case tokLit:
		return t.r == r || fold && equalFold(t.r, r)
	case tokOne, tokStar:
		return r != '/'
	case tokOneAll, tokStarAll:
		return true
	case tokClass:
		return t.cls.has(r) || fold && t.cls.hasFold(r)
	default:
		return false
	}
}

func equalFold(a, b rune) bool {
	for f := unicode.SimpleFold(a); f != a; f = unicode.SimpleFold(f) {
		if f == b {
			return true
		}
	}
	return false
}

// newMachine joins programs, each ending in tokAccept, into one machine.
func newMachine(programs ...[]token) *machine {
	m := &machine{}
	for _, p := range programs {
		m.starts = append(m.starts, len(m.toks))
		m.toks = append(m.toks, p...)
	}
	n := len(m.toks)
	m.words = (n + 63) / 64
	m.clo = make([]uint64, n*m.words)
	for i := n - 1; i >= 0; i-- {
		own := m.closure(i)
		own[i/64] |= 1 << (i % 64)
		switch m.toks[i].kind {
		case tokStar, tokStarAll:
			or(own, m.closure(i+1))
		case tokSkip:
			or(own, m.closure(i+1))
			or(own, m.closure(i+m.toks[i].skip))
		}
	}
	m.begin = make([]uint64, m.words)
	for _, s := range m.starts {
		or(m.begin, m.closure(s))
	}
	return m
}

func (m *machine) closure(i int) []uint64 { return m.clo[i*m.words : (i+1)*m.words] }

func or(dst, src []uint64) {
	for i, w := range src {
		dst[i] |= w
	}
}

// step puts into next what cur becomes after r and reports whether anything is left.
func (m *machine) step(cur, next []uint64, r rune, fold bool) bool {
	clear(next)
	for w, set := range cur {
		for set != 0 {
			i := w*64 + bits.TrailingZeros64(set)
			set &= set - 1
			t := &m.toks[i]
			if !t.takes(r, fold) {
				continue
			}
			if t.kind == tokStar || t.kind == tokStarAll {
				or(next, m.closure(i))
			} else {
				or(next, m.closure(i+1))
			}
		}
	}
	for _, w := range next {
		if w != 0 {
			return true
		}
	}
	return false
}

func (m *machine) accepts(set []uint64) bool {
	for w, b := range set {
		for b != 0 {
			i := w*64 + bits.TrailingZeros64(b)
			b &= b - 1
			if m.toks[i].kind == tokAccept {
				return true
			}
		}
	}
	return false
}

// run reports whether the machine accepts the whole of s.
func (m *machine) run(s string, fold bool) bool {
	var small [2][4]uint64 // most globs have fewer than 256 tokens; spare them the allocation
	cur, next := small[0][:min(m.words, 4)], small[1][:min(m.words, 4)]
	if m.words > 4 {
		cur, next = make([]uint64, m.words), make([]uint64, m.words)
	}
	copy(cur, m.begin)
	for _, r := range s {
		if !m.step(cur, next, r, fold) {
			return false
		}
		cur, next = next, cur
	}
	return m.accepts(cur)
}
