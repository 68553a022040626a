package shell

import (
	"strconv"

	"mvdan.cc/sh/v3/syntax"
)

// braceFields expands {a,b} and {1..3}. Past a bound the word counts as not
// known, so that a short text cannot make a long list.
func (a *analyzer) braceFields(dst []word, w *syntax.Word, span Span) []word {
	words, ok := expandBraces(w, maxFields)
	if !ok || !a.spend(len(words)*8) {
		// Substitutions inside still run: look at them once.
		f := a.expandUnsplit(w, span)
		f.known, f.multi, f.text = false, true, ""
		return append(dst, f)
	}
	for _, x := range words {
		n := len(dst)
		dst = a.expandField(dst, x)
		for i := n; i < len(dst); i++ {
			dst[i].span = span
			dst[i].at = -1
		}
	}
	return dst
}

func (a *analyzer) expandUnsplit(w *syntax.Word, span Span) word {
	f := word{span: span, at: -1}
	var visit func(w *syntax.Word)
	visit = func(w *syntax.Word) {
		for _, p := range w.Parts {
			if be, ok := p.(*syntax.BraceExp); ok {
				for _, e := range be.Elems {
					visit(e)
				}
				continue
			}
			b := builder{a: a}
			b.cur = word{known: true, at: -1}
			b.part(p, false, false)
		}
	}
	visit(w)
	return f
}

// expandBraces gives the words a brace expansion stands for, at most max.
func expandBraces(w *syntax.Word, max int) ([]*syntax.Word, bool) {
	out := []*syntax.Word{{}}
	for _, p := range w.Parts {
		be, ok := p.(*syntax.BraceExp)
		if !ok {
			for _, o := range out {
				o.Parts = append(o.Parts, p)
			}
			continue
		}
		var alts []*syntax.Word
		if be.Sequence {
			seq, ok := sequence(be, max)
			if !ok {
				return nil, false
			}
			alts = seq
		} else {
			for _, e := range be.Elems {
				sub, ok := expandBraces(e, max-len(alts))
				if !ok {
					return nil, false
				}
				alts = append(alts, sub...)
				if len(alts) > max {
					return nil, false
				}
			}
		}
		if len(out)*len(alts) > max {
			return nil, false
		}
		next := make([]*syntax.Word, 0, len(out)*len(alts))
		for _, o := range out {
			for _, x := range alts {
				parts := make([]syntax.WordPart, 0, len(o.Parts)+len(x.Parts))
				parts = append(append(parts, o.Parts...), x.Parts...)
				next = append(next, &syntax.Word{Parts: parts})
			}
		}
		out = next
	}
	return out, true
}

// sequence expands {1..5}, {a..e} and {1..9..2}.
func sequence(be *syntax.BraceExp, max int) ([]*syntax.Word, bool) {
	if len(be.Elems) < 2 {
		return nil, false
	}
	from, to := be.Elems[0].Lit(), be.Elems[1].Lit()
	step := 1
	if len(be.Elems) > 2 {
		n, err := strconv.Atoi(be.Elems[2].Lit())
		if err != nil || n == 0 {
			return nil, false
		}
		step = n
	}
	lo, err1 := strconv.Atoi(from)
	hi, err2 := strconv.Atoi(to)
	letters := false
	if err1 != nil || err2 != nil {
		if len(from) != 1 || len(to) != 1 {
			return nil, false
		}
		lo, hi, letters = int(from[0]), int(to[0]), true
	}
	if step < 0 {
		step = -step
	}
	if lo > hi {
		step = -step
	}
	var out []*syntax.Word
	pos := be.Elems[0].Pos()
	for n := lo; (step > 0 && n <= hi) || (step < 0 && n >= hi); n += step {
		if len(out) >= max {
			return nil, false
		}
		text := strconv.Itoa(n)
		if letters {
			text = string(rune(n))
		}
		out = append(out, &syntax.Word{Parts: []syntax.WordPart{&syntax.Lit{ValuePos: pos, ValueEnd: pos, Value: text}}})
	}
	return out, true
}
