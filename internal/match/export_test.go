package match

import (
	"unicode"
	"unicode/utf8"
)

// SlowFold folds a text by the plain way that the quick one must agree with,
// and says where each byte came from.
func SlowFold(s string) (text string, marks []Mark, source []int) {
	var f Folded
	slowLoad(&f, s)
	return f.all()
}

// QuickFold is the same by [Folded.Load].
func QuickFold(s string) (text string, marks []Mark, source []int) {
	var f Folded
	f.Load(s)
	return f.all()
}

func (f *Folded) all() (text string, marks []Mark, source []int) {
	for at := range len(f.Text) + 1 {
		source = append(source, f.Source(at))
	}
	return string(f.Text), f.Marks, source
}

// slowLoad is folding character by character, as plainly as it can be said.
func slowLoad(f *Folded, s string) {
	w := slowWords{f: f, start: -1}
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 {
			f.mark(MarkInvalid, i, i+1)
			w.end(i)
			f.Text = append(f.Text, s[i])
			i++
			continue
		}
		in := look(r)
		if r < utf8.RuneSelf && !in.word {
			w.end(i)
		}
		if in.mark != 0 {
			f.mark(in.mark, i, i+size)
		}
		switch {
		case r < utf8.RuneSelf && w.start < 0:
			// A word of ASCII letters is looked at only once others follow.
		case in.word || in.mark.stripped():
			w.add(r, in.changed != 0, s, i)
		default:
			w.end(i)
		}
		i += size
		if in.changed == 0 {
			f.Text = append(f.Text, s[i-size:i]...)
			continue
		}
		f.Text = append(f.Text, in.out[:in.n]...)
		f.steps = append(f.steps, foldStep{int32(len(f.Text)), int32(i)})
	}
	w.end(len(s))
	for i, m := range w.suspects {
		if w.scriptsOf[i]&w.honest == 0 {
			f.Marks = append(f.Marks, m)
		}
	}
}

// slowWords counts the letters of a word where [wordState] keeps sets of what they are.
type slowWords struct {
	f                        *Folded
	start                    int
	scripts, honest          script
	letters, foreign, folded int
	suspects                 []Mark
	scriptsOf                []script
}

// add takes one more character into the word, by its script.
func (w *slowWords) add(r rune, folds bool, s string, i int) {
	if w.start < 0 {
		w.start = i
		for w.start > 0 && i-w.start < maxWord && slowASCIIWord(s[w.start-1]) {
			w.start--
			w.letter(rune(s[w.start]), false)
		}
	}
	w.letter(r, folds)
}

func slowASCIIWord(c byte) bool {
	return c == '_' || c < utf8.RuneSelf && (unicode.IsLetter(rune(c)) || unicode.IsDigit(rune(c)))
}

func (w *slowWords) letter(r rune, folds bool) {
	s := scriptOf(r)
	if s == 0 {
		return
	}
	w.scripts |= s
	w.letters++
	if s&alike&^scrLatin == 0 {
		return
	}
	w.foreign++
	if folds {
		w.folded++
	} else {
		w.honest |= s
	}
}

func (w *slowWords) end(i int) {
	if w.start < 0 {
		return
	}
	m := Mark{Start: w.start, End: i, Count: w.letters}
	switch n := w.scripts & alike; {
	case w.letters < minLookAlike || w.folded == 0:
	case n&(n-1) != 0:
		m.Kind = MarkMixedScript
		w.f.Marks = append(w.f.Marks, m)
	case w.folded == w.foreign && w.foreign == w.letters && len(w.suspects) < maxSuspects:
		m.Kind = MarkLookAlike
		w.suspects, w.scriptsOf = append(w.suspects, m), append(w.scriptsOf, w.scripts)
	}
	w.start, w.scripts, w.letters, w.foreign, w.folded = -1, 0, 0, 0, 0
}
