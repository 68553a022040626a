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
	out     [utf8.UTFMax]byte // what it reads as: the ASCII text that it looks like, nothing, or itself
	n       uint8             // bytes of out
	changed uint8             // 1 if that is not itself
	mark    MarkKind
	word    bool  // letter, mark or digit: goes on with a word
	inner   bool  // … and is nothing else, so that it can be taken with others in one go
	letter  uint8 // 1 for a letter of any script
	traits  trait // what it adds to what is known of its word
}

type runePage [256]runeInfo

// pages caches runeInfo per block of 256 runes. A page depends on nothing but its number, so that
// two goroutines building the same one store the same thing.
var pages [(utf8.MaxRune + 1) / 256]atomic.Pointer[runePage]

func infoOf(r rune) *runeInfo {
	p := pages[r>>8].Load()
	if p == nil {
		p = makePage(r)
	}
	return &p[r&0xFF]
}

func makePage(r rune) *runePage {
	p := new(runePage)
	for i := range p {
		p[i] = look(r&^0xFF | rune(i))
	}
	pages[r>>8].Store(p)
	return p
}

// look is what a rune looks like.
func look(r rune) runeInfo {
	in := runeInfo{mark: markOf(r), changed: 1}
	in.word = unicode.In(r, unicode.L, unicode.M, unicode.Nd, unicode.Nl) || r == '_'
	in.inner = in.word && in.mark == 0
	if as, ok := reads(r, in.mark); ok {
		in.n = uint8(copy(in.out[:], as))
	} else {
		in.n, in.changed = uint8(utf8.EncodeRune(in.out[:], r)), 0
	}
	if script := scriptOf(r); script != 0 {
		in.letter, in.traits = 1, traitOf(script, in.changed != 0)
	}
	return in
}

// reads returns the ASCII text that a reader takes r for; without one it stands for itself.
func reads(r rune, mark MarkKind) (string, bool) {
	switch {
	case r < utf8.RuneSelf:
		return "", false
	case mark.stripped() || unicode.In(r, unicode.Mn, unicode.Me):
		return "", true
	case mark == MarkSpace || r == 0x85:
		return " ", true
	case unicode.Is(unicode.Pd, r):
		return "-", true
	}
	return asciiLook(r)
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
	f.Text, f.Marks, f.steps = slices.Grow(f.Text[:0], len(s)+utf8.UTFMax), f.Marks[:0], f.steps[:0]
	f.words.reset()
	for i := 0; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			if asciiKind[c] == asciiOther && i+1 < len(s) && s[i+1] >= utf8.RuneSelf { // between two words
				f.words.end(f, i)
				f.Text = append(f.Text, c)
				i++
				continue
			}
			end := f.ascii(s, i)
			f.Text = append(f.Text, s[i:end]...)
			i = end
			continue
		}
		if end := f.letters(s, i); end > i {
			i = end
			continue
		}
		r, size := decode(s, i)
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
		if in.word || in.mark.stripped() {
			f.words.add(in.traits, int(in.letter), s, i)
		} else {
			f.words.end(f, i)
		}
		i += size
		f.Text = append(f.Text, in.out[:in.n]...)
		if in.changed != 0 {
			f.steps = append(f.steps, foldStep{int32(len(f.Text)), int32(i)})
		}
	}
	f.words.end(f, len(s))
	f.words.finish(f)
}

// letters takes the letters of two and three bytes at s[i:], of which texts of other scripts are made,
// and returns where it stopped: at i if there is none.
//
// In most alphabets it is a toss whether a letter is folded, so nothing branches on it: each is
// written as what it reads as, and a step is written for each and kept for those that changed.
func (f *Folded) letters(s string, i int) int {
	from, at, kept := i, len(f.Text), len(f.steps)
	if cap(f.Text)-at < utf8.UTFMax || cap(f.steps) == kept {
		f.Text, f.steps = slices.Grow(f.Text, utf8.UTFMax), slices.Grow(f.steps, 1)
	}
	text, steps := f.Text[:cap(f.Text)], f.steps[:cap(f.steps)]
	traits, letters := trait(0), 0
	for i+2 < len(s) && kept < len(steps) && at <= len(text)-utf8.UTFMax {
		c, d, e := s[i], s[i+1], s[i+2]
		r, size := rune(c&0x1F)<<6|rune(d&0x3F), 2
		if c >= 0xE1 && c != 0xED && c <= 0xEF && e&0xC0 == 0x80 {
			r, size = rune(c&0x0F)<<12|rune(d&0x3F)<<6|rune(e&0x3F), 3
		} else if c < 0xC2 || c > 0xDF {
			break
		}
		if d&0xC0 != 0x80 {
			break
		}
		p := pages[r>>8].Load()
		if p == nil {
			p = makePage(r)
		}
		in := &p[r&0xFF]
		if !in.inner {
			break
		}
		i += size
		traits |= in.traits
		letters += int(in.letter)
		*(*[utf8.UTFMax]byte)(text[at:]) = in.out
		at += int(in.n)
		steps[kept] = foldStep{int32(at), int32(i)}
		kept += int(in.changed)
	}
	if i > from {
		f.words.add(traits, letters, s, from)
		f.Text, f.steps = text[:at], steps[:kept]
	}
	return i
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
			f.words.traits |= trait(scrLatin)
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
		case in.n == 0 || in.changed == 0 || asciiKind[in.out[0]] == asciiOther:
			continue
		case r < 0x250 || r >= 0x1E00 && r < 0x1F00:
			continue // Latin letters with accents
		default:
			return true
		}
	}
	return false
}
