package match

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"unicode/utf8"
)

// An Answer to a question about meaning. The zero value is Unknown.
type Answer uint8

// The answers.
const (
	Unknown Answer = iota // not decided within bounds; callers that guard count it as No
	No
	Yes
)

// String returns "yes", "no" or "unknown".
func (a Answer) String() string {
	switch a {
	case Yes:
		return "yes"
	case No:
		return "no"
	}
	return "unknown"
}

// subsetBudget bounds the work of one question: token visits, not time.
const subsetBudget = 4 << 20

// A domain is a small deterministic automaton over the texts that count. States are 0 (start) and
// up; next returns false for a dead end.
type domain struct {
	next   func(state uint8, r rune) (uint8, bool)
	accept func(state uint8) bool
}

// anyText counts every text.
var anyText = domain{
	next:   func(s uint8, _ rune) (uint8, bool) { return s, true },
	accept: func(uint8) bool { return true },
}

// cleanPaths counts absolute paths as CleanPath returns them: no empty, "." or ".." element and no
// slash at the end. Without it "/a/*" would not be inside "/a/?*".
var cleanPaths = domain{next: cleanNext, accept: func(s uint8) bool { return s == cpRoot || s == cpName }}

const (
	cpStart   uint8 = iota
	cpRoot          // "/" alone
	cpSlash         // after a later slash
	cpDot           // element so far "."
	cpDotDot        // element so far ".."
	cpName          // element that may stand
	cpNoState = 255
)

func cleanNext(s uint8, r rune) (uint8, bool) {
	switch {
	case r == 0:
		return cpNoState, false
	case r == '/':
		switch s {
		case cpStart:
			return cpRoot, true
		case cpName:
			return cpSlash, true
		}
		return cpNoState, false
	case s == cpStart:
		return cpNoState, false
	case r == '.' && (s == cpRoot || s == cpSlash):
		return cpDot, true
	case r == '.' && s == cpDot:
		return cpDotDot, true
	}
	return cpName, true
}

// subset decides whether every text of the domain that narrow accepts is accepted by wide. It walks
// the pairs of (one position of narrow, the set of positions wide can be in) that some text
// reaches. One representative per alphabet interval stands for all its runes, so the walk is exact.
func subset(wide, narrow *machine, d domain) Answer {
	syms := alphabet(wide, narrow)
	w := subsetWalk{wide: wide, narrow: narrow, d: d, budget: subsetBudget, seen: map[string]struct{}{}}
	for _, s := range narrow.starts {
		w.push(narrow.closure(s), wide.begin, 0)
	}
	next := make([]uint64, wide.words)
	for len(w.queue) > 0 {
		at := w.queue[len(w.queue)-1]
		w.queue = w.queue[:len(w.queue)-1]
		t := &narrow.toks[at.pos]
		if t.kind == tokAccept {
			if d.accept(at.dom) && !wide.accepts(at.set) {
				return No
			}
			continue
		}
		for _, r := range syms {
			if w.budget--; w.budget < 0 {
				return Unknown
			}
			if !t.takes(r, false) {
				continue
			}
			dom, ok := d.next(at.dom, r)
			if !ok {
				continue
			}
			to := at.pos + 1
			if t.kind == tokStar || t.kind == tokStarAll {
				to = at.pos
			}
			wide.step(at.set, next, r, false)
			w.budget -= 1 + countBits(at.set)
			w.push(narrow.closure(to), next, dom)
		}
	}
	return Yes
}

type subsetWalk struct {
	wide, narrow *machine
	d            domain
	budget       int
	seen         map[string]struct{}
	queue        []subsetPair
	key          []byte
}

type subsetPair struct {
	pos int
	dom uint8
	set []uint64
}

// push queues each position of the closure together with the set, once.
func (w *subsetWalk) push(positions, set []uint64, dom uint8) {
	if w.universal(set) {
		return
	}
	var own []uint64
	for i, b := range positions {
		for b != 0 {
			pos := i*64 + bits.TrailingZeros64(b)
			b &= b - 1
			if w.narrow.toks[pos].kind == tokSkip {
				continue // its closure is already among the positions
			}
			w.key = binary.AppendUvarint(w.key[:0], uint64(pos))
			w.key = append(w.key, dom)
			for _, x := range set {
				w.key = binary.LittleEndian.AppendUint64(w.key, x)
			}
			if _, dup := w.seen[string(w.key)]; dup {
				continue
			}
			w.seen[string(w.key)] = struct{}{}
			w.budget -= 8 + len(set)
			if own == nil {
				own = slices.Clone(set)
			}
			w.queue = append(w.queue, subsetPair{pos, dom, own})
		}
	}
}

// universal reports whether wide accepts whatever follows: nothing below can refute it.
func (w *subsetWalk) universal(set []uint64) bool {
	for i, b := range set {
		for b != 0 {
			pos := i*64 + bits.TrailingZeros64(b)
			b &= b - 1
			if w.wide.toks[pos].kind == tokStarAll && w.wide.toks[pos+1].kind == tokAccept {
				return true
			}
		}
	}
	return false
}

func countBits(set []uint64) int {
	n := 0
	for _, w := range set {
		n += bits.OnesCount64(w)
	}
	return n
}

// alphabet returns one rune of each interval that no token of either machine tells apart.
func alphabet(ms ...*machine) []rune {
	cuts := []rune{0, 1, '.', '.' + 1, '/', '/' + 1}
	for _, m := range ms {
		for _, t := range m.toks {
			switch t.kind {
			case tokLit:
				cuts = append(cuts, t.r, t.r+1)
			case tokClass:
				for _, g := range t.cls.ranges {
					cuts = append(cuts, g.lo, g.hi+1)
				}
			}
		}
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	var syms []rune
	for i, lo := range cuts {
		hi := rune(utf8.MaxRune)
		if i+1 < len(cuts) {
			hi = cuts[i+1] - 1
		}
		if lo >= 0xD800 && lo <= 0xDFFF {
			lo = 0xE000 // no text holds a surrogate
		}
		if lo <= hi && lo <= utf8.MaxRune {
			syms = append(syms, lo)
		}
	}
	return syms
}
