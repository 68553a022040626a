package match

import (
	"unicode"
	"unicode/utf8"
)

// A MarkKind says what is unusual about a stretch of text.
type MarkKind uint8

// The kinds of marks. Which of them matter is for the caller to say: a joiner is right in Persian
// and in emoji, an isolate in Arabic.
const (
	_               MarkKind = iota
	MarkBidiForce            // override: letters show in another order than they are stored
	MarkBidiRTL              // right-to-left embedding or isolate
	MarkBidiLTR              // left-to-right or first-strong embedding or isolate
	MarkBidiPop              // end of an embedding, override or isolate
	MarkBidiHint             // left-to-right, right-to-left or Arabic letter mark
	MarkZeroWidth            // invisible: zero-width space, joiner, soft hyphen, filler …
	MarkTag                  // tag characters, which mirror ASCII and show nothing
	MarkVariation            // variation selectors
	MarkControl              // control characters other than tab and line ends
	MarkSpace                // a space that is not U+0020
	MarkPrivate              // private use
	MarkNonChar              // code points that are no characters
	MarkInvalid              // bytes that are not UTF-8
	MarkMixedScript          // one word of scripts that look alike, such as Latin and Cyrillic
	MarkLookAlike            // a word of another script that reads as an ASCII word
)

var markNames = [...]string{"", "bidi-override", "bidi-rtl", "bidi-ltr", "bidi-pop", "bidi-hint", "zero-width", "tag",
	"variation-selector", "control", "odd-space", "private-use", "non-character", "invalid-utf8", "mixed-script", "look-alike"}

// String returns the kind in words.
func (k MarkKind) String() string {
	if int(k) < len(markNames) {
		return markNames[k]
	}
	return "unknown"
}

// stripped reports whether a reader sees nothing of such a character.
func (k MarkKind) stripped() bool { return k >= MarkBidiForce && k <= MarkVariation }

// A Mark is a run of one kind: bytes Start to End of the text, Count characters.
type Mark struct {
	Kind       MarkKind
	Start, End int
	Count      int
}

// Inspect returns what is unusual about s, runs of characters in order and words after them.
func Inspect(s string) []Mark {
	var f Folded
	f.Load(s)
	return f.Marks
}

func (f *Folded) mark(k MarkKind, start, end int) {
	if n := len(f.Marks); n > 0 && f.Marks[n-1].Kind == k && f.Marks[n-1].End == start {
		f.Marks[n-1].End = end
		f.Marks[n-1].Count++
		return
	}
	f.Marks = append(f.Marks, Mark{k, start, end, 1})
}

func markOf(r rune) MarkKind {
	switch {
	case r == 0x202D || r == 0x202E:
		return MarkBidiForce
	case r == 0x202B || r == 0x2067:
		return MarkBidiRTL
	case r == 0x202A || r == 0x2066 || r == 0x2068:
		return MarkBidiLTR
	case r == 0x202C || r == 0x2069:
		return MarkBidiPop
	case r == 0x200E || r == 0x200F || r == 0x061C:
		return MarkBidiHint
	case r >= 0xE0000 && r <= 0xE007F:
		return MarkTag
	case unicode.Is(unicode.Variation_Selector, r):
		return MarkVariation
	case invisible(r):
		return MarkZeroWidth
	case unicode.Is(unicode.Cc, r) && r != '\t' && r != '\n' && r != '\r' && r != 0x85:
		return MarkControl
	case unicode.Is(unicode.Zs, r) && r != ' ' || r == 0x2028 || r == 0x2029 || r == 0x2800:
		return MarkSpace
	case unicode.Is(unicode.Co, r):
		return MarkPrivate
	case r&0xFFFE == 0xFFFE || r >= 0xFDD0 && r <= 0xFDEF || r >= 0xD800 && r <= 0xDFFF:
		return MarkNonChar
	}
	return 0
}

// invisible lists the characters that take no ink and are neither bidi controls nor selectors.
func invisible(r rune) bool {
	switch {
	case r == 0xAD, r == 0x34F, r == 0x115F, r == 0x1160, r == 0x17B4, r == 0x17B5, r == 0x3164, r == 0xFFA0, r == 0xFEFF:
		return true
	case r >= 0x200B && r <= 0x200D, r >= 0x2060 && r <= 0x2065, r >= 0x206A && r <= 0x206F:
		return true
	case r >= 0xFFF0 && r <= 0xFFFB, r >= 0x1BCA0 && r <= 0x1BCA3, r >= 0x1D173 && r <= 0x1D17A, r >= 0xE0080 && r <= 0xE0FFF:
		return true
	case r == 0x180E:
		return true
	}
	return r >= utf8.RuneSelf && unicode.Is(unicode.Cf, r) && !unicode.Is(unicode.Prepended_Concatenation_Mark, r)
}

type script uint8

// The scripts whose mixing is told apart; all others count as one.
const (
	scrLatin script = 1 << iota
	scrGreek
	scrCyrillic
	scrArmenian
	scrCherokee
	scrOther
)

// alike are the scripts that share letter shapes. Latin beside Thai or Han is how people write.
const alike = scrLatin | scrGreek | scrCyrillic | scrArmenian | scrCherokee

func scriptOf(r rune) script {
	switch {
	case unicode.Is(unicode.Latin, r):
		return scrLatin
	case unicode.Is(unicode.Greek, r):
		return scrGreek
	case unicode.Is(unicode.Cyrillic, r):
		return scrCyrillic
	case unicode.Is(unicode.Armenian, r):
		return scrArmenian
	case unicode.Is(unicode.Cherokee, r):
		return scrCherokee
	case unicode.IsLetter(r):
		return scrOther
	}
	return 0
}

// A trait is a set of what the letters of a word are: the scripts of all of them, whether one reads
// as an ASCII letter though its script is another, and the scripts of those that do not.
type trait uint32

const (
	traitFolded  trait = 1 << 8
	honestShift        = 16
	traitForeign       = trait(alike &^ scrLatin)
)

// traitOf returns the traits of a letter.
func traitOf(s script, folds bool) trait {
	t := trait(s)
	switch {
	case t&traitForeign == 0:
		return t
	case folds:
		return t | traitFolded
	}
	return t | t<<honestShift
}

func (t trait) scripts() script { return script(t & 0xFF) }
func (t trait) honest() script  { return script(t >> honestShift) }

// wordState follows one word, and over the whole text which scripts it uses honestly.
type wordState struct {
	start    int // of the current word, -1 outside words
	traits   trait
	letters  int
	honest   script
	suspects []Mark
	suspectS []script
}

// minLookAlike is how long a word must be to count as a look-alike: shorter ones are symbols.
const minLookAlike = 3

// maxWord is how far back a word is followed.
const maxWord = 64

// maxSuspects bounds what is kept per text; one is enough to report.
const maxSuspects = 16

func (w *wordState) reset() {
	*w = wordState{start: -1, suspects: w.suspects[:0], suspectS: w.suspectS[:0]}
}

// add takes more characters, from s[i] on, into the word. If they are the first, the ASCII letters
// right before them belong to the word too.
func (w *wordState) add(t trait, letters int, s string, i int) {
	if w.start < 0 {
		w.begin(s, i)
	}
	w.traits |= t
	w.letters += letters
}

// begin starts a word at s[i], or at the ASCII letters before it.
func (w *wordState) begin(s string, i int) {
	w.start = i
	for w.start > 0 && i-w.start < maxWord && s[w.start-1] < utf8.RuneSelf {
		k := asciiKind[s[w.start-1]]
		if k != asciiLetter && k != asciiWord {
			break
		}
		if k == asciiLetter {
			w.traits |= trait(scrLatin)
			w.letters++
		}
		w.start--
	}
}

// end closes the current word before offset i.
func (w *wordState) end(f *Folded, i int) {
	if w.start < 0 {
		return
	}
	start, traits, letters := w.start, w.traits, w.letters
	w.start, w.traits, w.letters = -1, 0, 0
	if traits&traitForeign == 0 {
		return
	}
	w.honest |= traits.honest()
	if traits&traitFolded == 0 || letters < minLookAlike {
		return
	}
	// "Δt" and "μm" mix scripts too, but nothing in them can be taken for another letter.
	if n := traits.scripts() & alike; n&(n-1) != 0 {
		f.Marks = append(f.Marks, Mark{MarkMixedScript, start, i, letters})
		return
	}
	if traits.honest() == 0 && traits.scripts()&^alike == 0 && len(w.suspects) < maxSuspects {
		w.suspects = append(w.suspects, Mark{MarkLookAlike, start, i, letters})
		w.suspectS = append(w.suspectS, traits.scripts())
	}
}

// finish marks the suspects of scripts the text never uses in earnest: "сор" in a Russian sentence
// is a word, alone among English ones it is a trap.
func (w *wordState) finish(f *Folded) {
	for i, m := range w.suspects {
		if w.suspectS[i]&w.honest == 0 {
			f.Marks = append(f.Marks, m)
		}
	}
}
