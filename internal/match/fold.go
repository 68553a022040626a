package match

import (
	"slices"
	"sort"
	"strings"
	"sync/atomic"
	"unicode"
	"unicode/utf8"

	"go.mau.fi/util/confusable"
	"golang.org/x/text/unicode/norm"
)

// NFC returns s in composed form.
func NFC(s string) string { return norm.NFC.String(s) }

// NFKC returns s in compatibility form: full-width, mathematical and circled letters become plain.
func NFKC(s string) string { return norm.NFKC.String(s) }

// Skeleton returns the UTS #39 skeleton of s: strings that look alike have the same one. It is for
// comparing, not for showing.
func Skeleton(s string) string { return confusable.Skeleton(s) }

// LookAlike reports whether two different strings look the same to a reader.
func LookAlike(a, b string) bool { return a != b && Skeleton(a) == Skeleton(b) }

// runeInfo is what the scanner needs to know about a rune, looked up once.
type runeInfo struct {
	fold [4]byte
	n    uint8 // bytes of fold; foldKeep means the rune stands for itself
	mark MarkKind
	word bool // letter, mark or digit: goes on with a word
	// What it adds to the counts of its word: 1 for a letter of any script, for
	// one of a script that looks like Latin, and for one of those that reads as
	// ASCII; and the script that a letter is used in honestly, if it does not.
	letter, foreign, folded uint8
	script, honest          script
}

const foldKeep = 0xFF

type runePage [256]runeInfo

// pages caches runeInfo per block of 256 runes. A page depends on nothing but its number, so that
// two goroutines building the same one store the same thing.
var pages [(utf8.MaxRune + 1) / 256]atomic.Pointer[runePage]

func infoOf(r rune) *runeInfo {
	if p := pages[r>>8].Load(); p != nil {
		return &p[r&0xFF]
	}
	return &makePage(r)[r&0xFF]
}

func makePage(r rune) *runePage {
	p := new(runePage)
	for i := range p {
		p[i] = makeInfo(r&^0xFF | rune(i))
	}
	pages[r>>8].Store(p)
	return p
}

func makeInfo(r rune) runeInfo {
	in := look(r)
	if in.script != 0 {
		in.letter = 1
	}
	if in.script&alike&^scrLatin != 0 {
		if in.foreign = 1; in.n != foldKeep {
			in.folded = 1
		} else {
			in.honest = in.script
		}
	}
	return in
}

// look is what a rune looks like.
func look(r rune) runeInfo {
	in := runeInfo{n: foldKeep, mark: markOf(r), script: scriptOf(r)}
	in.word = unicode.In(r, unicode.L, unicode.M, unicode.Nd, unicode.Nl) || r == '_'
	switch {
	case r < utf8.RuneSelf:
		return in
	case in.mark.stripped() || unicode.In(r, unicode.Mn, unicode.Me):
		in.n = 0
		return in
	case in.mark == MarkSpace || r == 0x85:
		in.fold[0], in.n = ' ', 1
		return in
	case unicode.Is(unicode.Pd, r):
		in.fold[0], in.n = '-', 1
		return in
	}
	if s, ok := asciiLook(r); ok {
		in.n = uint8(copy(in.fold[:], s))
	}
	return in
}

// asciiLook returns the ASCII text r looks like, if there is one of at most four bytes.
func asciiLook(r rune) (string, bool) {
	var b strings.Builder
	for _, d := range norm.NFKD.String(string(r)) {
		if d >= utf8.RuneSelf && unicode.In(d, unicode.Mn, unicode.Me) {
			continue
		}
		s, ok := oneLook(d)
		if !ok {
			return "", false
		}
		b.WriteString(s)
	}
	return b.String(), b.Len() > 0 && b.Len() <= 4
}

// oneLook also takes a small letter for what its capital looks like: people read к as k and м as m
// though UTS #39 does not list them.
func oneLook(r rune) (string, bool) {
	if r < utf8.RuneSelf {
		return string(r), true
	}
	if s, ok := replacement(r); ok {
		if s == "l" && unicode.IsUpper(r) {
			return "I", true // UTS #39 folds I, l and 1 together
		}
		return s, true
	}
	if up := unicode.ToUpper(r); up != r {
		if s, ok := replacement(up); ok {
			return strings.ToLower(s), true
		}
	}
	return "", false
}

func replacement(r rune) (string, bool) {
	var b strings.Builder
	for _, d := range norm.NFKD.String(confusable.GetReplacement(r)) {
		switch {
		case unicode.In(d, unicode.Mn, unicode.Me):
		case d >= utf8.RuneSelf:
			return "", false
		default:
			b.WriteRune(d)
		}
	}
	return b.String(), b.Len() > 0
}

// Folded is a text as a reader perceives it: invisible characters gone, look-alikes and
// compatibility forms as ASCII, accents dropped, everything else as it was. It remembers where each
// byte came from, and what was noticed on the way.
type Folded struct {
	Text  []byte
	Marks []Mark
	steps []foldStep
	words wordState
}

// A foldStep says that from Text[at] on, the source is at offset src.
type foldStep struct{ at, src int32 }

// Load folds s, reusing the buffers of f. s must be shorter than 2 GiB.
func (f *Folded) Load(s string) {
	f.Text, f.Marks, f.steps = f.Text[:0], f.Marks[:0], f.steps[:0]
	f.Text = slices.Grow(f.Text, len(s))
	f.words.reset()
	same := 0 // from here on s is as it was, and not copied yet
	for i := 0; i < len(s); {
		if s[i] < utf8.RuneSelf {
			i = f.ascii(s, i)
			continue
		}
		r, size := twoBytes(s, i)
		if size == 0 {
			if r, size = decode(s, i); r == utf8.RuneError && size == 1 {
				f.mark(MarkInvalid, i, i+1)
				f.words.end(f, i)
				i++
				continue
			}
		}
		in := infoOf(r)
		if in.mark != 0 {
			f.mark(in.mark, i, i+size)
		}
		switch {
		case in.word && f.words.start >= 0:
			f.words.letter(in)
		case in.word || in.mark.stripped():
			f.words.add(in, s, i)
		default:
			f.words.end(f, i)
		}
		i += size
		if in.n == foldKeep {
			continue
		}
		if same < i-size {
			f.Text = append(f.Text, s[same:i-size]...)
		}
		same = i
		if in.n == 1 {
			f.Text = append(f.Text, in.fold[0])
		} else {
			f.Text = append(f.Text, in.fold[:in.n]...)
		}
		f.steps = append(f.steps, foldStep{int32(len(f.Text)), int32(i)})
	}
	f.Text = append(f.Text, s[same:]...)
	f.words.end(f, len(s))
	f.words.finish(f)
}

// twoBytes decodes a character of two bytes at s[i:]; size 0 means that there
// is none. Most texts of other alphabets are made of these.
func twoBytes(s string, i int) (r rune, size int) {
	if c := s[i]; c-0xC2 <= 0xDF-0xC2 && i+1 < len(s) && s[i+1]&0xC0 == 0x80 {
		return rune(c&0x1F)<<6 | rune(s[i+1]&0x3F), 2
	}
	return 0, 0
}

// decode is [utf8.DecodeRuneInString] of s[i:], quick for the characters of
// three bytes that most other texts are made of.
func decode(s string, i int) (rune, int) {
	if c := s[i]; c >= 0xE1 && c <= 0xEF && c != 0xED && i+2 < len(s) && s[i+1]&0xC0 == 0x80 && s[i+2]&0xC0 == 0x80 {
		return rune(c&0x0F)<<12 | rune(s[i+1]&0x3F)<<6 | rune(s[i+2]&0x3F), 3
	}
	return utf8.DecodeRuneInString(s[i:])
}

// ascii goes over a run of ASCII from i on and returns where it ends. A word that began with other
// letters goes on in it; one that begins here is looked at only if other letters follow.
func (f *Folded) ascii(s string, i int) int {
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
	return i
}

// Changed returns the parts of Text that differ from the loaded text, each with up to before bytes
// ahead of it and after bytes behind it; parts that touch are joined. Elsewhere the two are equal.
func (f *Folded) Changed(before, after int) [][2]int {
	var out [][2]int
	for _, st := range f.steps {
		from, to := max(0, int(st.at)-before), min(len(f.Text), int(st.at)+after)
		if n := len(out); n > 0 && from <= out[n-1][1] {
			out[n-1][1] = to
			continue
		}
		out = append(out, [2]int{from, to})
	}
	return out
}

// Source returns the offset in the loaded text that Text[at] came from.
func (f *Folded) Source(at int) int {
	k := sort.Search(len(f.steps), func(i int) bool { return int(f.steps[i].at) > at })
	src := at
	if k > 0 {
		src = int(f.steps[k-1].src) + at - int(f.steps[k-1].at)
	}
	if k < len(f.steps) {
		src = min(src, int(f.steps[k].src)) // inside one rune that became several bytes
	}
	return src
}

// Fold returns s as a reader perceives it; see [Folded].
func Fold(s string) string {
	if FormOf(s) == FormASCII {
		return s
	}
	var f Folded
	f.Load(s)
	return string(f.Text)
}

const (
	asciiOther uint8 = iota
	asciiLetter
	asciiWord
	asciiControl
)

var asciiKind = func() (t [utf8.RuneSelf]uint8) {
	for c := range t {
		switch {
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
			t[c] = asciiLetter
		case c >= '0' && c <= '9' || c == '_':
			t[c] = asciiWord
		case c < ' ' && c != '\t' && c != '\n' && c != '\r' || c == 0x7F:
			t[c] = asciiControl
		}
	}
	return t
}()

// Disguised reports whether s holds characters that hide from a reader or dress up as ASCII ones:
// invisible characters, letters of other scripts or mathematical and full-width forms that read as
// ASCII. Letters with accents are no disguise.
func Disguised(s string) bool {
	for i, r := range s {
		if r < utf8.RuneSelf {
			continue
		}
		if r == utf8.RuneError && s[i] != 0xEF {
			continue
		}
		in := infoOf(r)
		switch {
		case in.mark.stripped():
			return true
		case in.n == 0 || in.n == foldKeep || asciiKind[in.fold[0]] == asciiOther:
			continue
		case r < 0x250 || r >= 0x1E00 && r < 0x1F00:
			continue // Latin letters with accents
		default:
			return true
		}
	}
	return false
}
