package match

import (
	"slices"
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
	f.Text, f.Marks, f.steps = f.Text[:0], f.Marks[:0], f.steps[:0]
	f.Text = slices.Grow(f.Text, len(s))
	f.words.reset()
	for i := 0; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			i = slowASCII(f, s, i)
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 {
			f.mark(MarkInvalid, i, i+1)
			f.words.end(f, i)
			f.Text = append(f.Text, s[i])
			i++
			continue
		}
		in := infoOf(r)
		if in.mark != 0 {
			f.mark(in.mark, i, i+size)
		}
		switch {
		case in.word || in.mark.stripped():
			slowAdd(&f.words, in, s, i)
		default:
			f.words.end(f, i)
		}
		i += size
		if in.n == foldKeep {
			f.Text = append(f.Text, s[i-size:i]...)
			continue
		}
		f.Text = append(f.Text, in.fold[:in.n]...)
		f.steps = append(f.steps, foldStep{int32(len(f.Text)), int32(i)})
	}
	f.words.end(f, len(s))
	f.words.finish(f)
}

// slowASCII copies a run of ASCII from i on and returns where it ends. A word that began with other
// letters goes on in it; one that begins here is looked at only if other letters follow.
func slowASCII(f *Folded, s string, i int) int {
	from := i
	for f.words.start >= 0 && i < len(s) && s[i] < utf8.RuneSelf {
		switch asciiKind[s[i]] {
		case asciiLetter:
			f.words.scripts |= scrLatin
			f.words.letters++
			i++
		case asciiWord:
			i++
		default:
			f.words.end(f, i)
		}
	}
	for i < len(s) && s[i] < utf8.RuneSelf {
		if asciiKind[s[i]] == asciiControl {
			f.mark(MarkControl, i, i+1)
		}
		i++
	}
	f.Text = append(f.Text, s[from:i]...)
	return i
}

// slowAdd takes one more character into the word, by its script.
func slowAdd(w *wordState, in *runeInfo, s string, i int) {
	if w.start < 0 {
		w.begin(s, i)
	}
	if in.script == 0 {
		return
	}
	w.scripts |= in.script
	w.letters++
	if in.script&alike&^scrLatin != 0 {
		w.foreign++
		if in.n != foldKeep {
			w.folded++
		} else {
			w.honest |= in.script
		}
	}
}
