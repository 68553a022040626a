package content

import (
	"regexp"
	"regexp/syntax"
	"strings"
)

// Phrases are expressions over words, not characters: "ignore <4> (previous | prior) <2>
// instructions" says what it means, and matching it looks at some thirty words instead of two
// hundred characters. Each word that occurs in any phrase becomes one character of the private use
// area, all others another one; the expression and the text are written in these and left to the
// standard library.

const (
	firstWord  = '\uE000'
	otherWord  = '\uF8FF'
	numberWord = '\uF8FE' // digits only; "#" in a phrase
	wordSize   = 3        // bytes of each of them in UTF-8
	maxWords   = 32       // looked at behind a keyword
)

// A phrasebook numbers the words of the phrases compiled with it. It is filled while rules are built
// and only read afterwards.
type phrasebook struct {
	n int
	// slots are the words by their hash, in a table with many more slots than
	// words: most words of a text are none of ours, and meet an empty one.
	slots [bookSize]bookSlot
}

// bookSlot is one word; without a text it is free.
type bookSlot struct {
	text string
	code rune
}

// bookSize is the number of slots, a power of two.
const bookSize = 1 << 12

func newPhrasebook() *phrasebook { return new(phrasebook) }

// hashByte takes one more byte into the hash of a word.
func hashByte(h uint32, c byte) uint32 { return (h ^ uint32(c)) * 0x01000193 }

func hashWord(word string) uint32 {
	h := uint32(0)
	for i := 0; i < len(word); i++ {
		h = hashByte(h, word[i])
	}
	return h
}

func (p *phrasebook) number(word string) rune {
	h := hashWord(word)
	if r, ok := p.find(h, word); ok {
		return r
	}
	if p.n++; p.n > bookSize/4 {
		panic("content: more words than a phrasebook has room for")
	}
	at := h % bookSize
	for p.slots[at].text != "" {
		at = (at + 1) % bookSize
	}
	p.slots[at] = bookSlot{word, firstWord + rune(p.n-1)}
	return p.slots[at].code
}

// find looks a word up by its hash, in any case.
func (p *phrasebook) find(h uint32, word string) (rune, bool) {
	for at := h % bookSize; ; at = (at + 1) % bookSize {
		slot := &p.slots[at]
		if slot.text == "" {
			return 0, false
		}
		if len(slot.text) == len(word) && sameWord(slot.text, word) {
			return slot.code, true
		}
	}
}

// sameWord compares a word of the book with one of a text, of the same length.
func sameWord(own, word string) bool {
	for i := 0; i < len(own) && i < len(word); i++ {
		if own[i] != wordByte[word[i]] {
			return false
		}
	}
	return true
}

// wordByte is what a byte is in a word: letters small, digits, 0 for all else.
var wordByte = func() (t [256]byte) {
	for c := range t {
		if alnum(byte(c)) {
			t[c] = lowerByte(byte(c))
		}
	}
	return t
}()

// phrase compiles an expression over words: words in small letters, "|", "( )" and "?" as in regular
// expressions, "<3>" for up to three words of any kind, "#" for a number. It must match from the
// keyword on, which must start a word. Everything that is neither letter nor digit separates words,
// so "don't" is "don t".
func (p *phrasebook) phrase(sev Severity, expr string) confirm {
	var b strings.Builder
	b.WriteString(`\A(?:`)
	for i := 0; i < len(expr); {
		switch c := expr[i]; {
		case c >= 'a' && c <= 'z':
			end := i
			for end < len(expr) && expr[end] >= 'a' && expr[end] <= 'z' {
				end++
			}
			b.WriteRune(p.number(expr[i:end]))
			i = end - 1
		case c == '<':
			b.WriteString(".{0," + expr[i+1:i+2] + "}")
			i += 2
		case c == '(':
			b.WriteString("(?:")
		case c == '#':
			b.WriteRune(numberWord)
		case c != ' ' && c != '\n' && c != '\t':
			b.WriteByte(c)
		}
		i++
	}
	b.WriteString(`)`)
	re := regexp.MustCompile(b.String())
	longest, groups := min(maxWords, p.longest(b.String())), needed(b.String())
	return word(func(t *target, s, _ int) (int, int, Severity) {
		ws := &t.words
		n := ws.read(p, t.text, s, longest)
		for i := range groups {
			if !ws.seen.meets(&groups[i]) {
				return 0, 0, 0 // a word is not there that every match has
			}
		}
		loc := re.FindIndex(ws.codes[:n*wordSize])
		if loc == nil || loc[1] == 0 {
			return 0, 0, 0
		}
		return s, int(ws.ends[loc[1]/wordSize-1]), sev
	})
}

// longest returns how many words an expression can match, so that no more have to be read.
func (p *phrasebook) longest(expr string) int {
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		panic(err)
	}
	return longest(re)
}

func longest(re *syntax.Regexp) int {
	n := 0
	switch re.Op {
	case syntax.OpLiteral:
		return len(re.Rune)
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return 1
	case syntax.OpAlternate:
		for _, sub := range re.Sub {
			n = max(n, longest(sub))
		}
	case syntax.OpRepeat:
		return re.Max * longest(re.Sub[0])
	default:
		for _, sub := range re.Sub {
			n += longest(sub)
		}
	}
	return n
}

// wordSet is a set of a phrasebook's words. Those beyond its size are in every
// set: a test that could not be made is not failed.
type wordSet [16]uint64

func (s *wordSet) add(r rune) {
	if at := int(r - firstWord); at < 64*len(s) {
		s[at/64] |= 1 << (at % 64)
	}
}

// meets says whether the sets have a word in common.
func (s *wordSet) meets(o *wordSet) bool {
	for i := range s {
		if s[i]&o[i] != 0 {
			return true
		}
	}
	return false
}

// needed lists sets of words of each of which one occurs in everything that an
// expression matches. Looking for them is much cheaper than the expression.
func needed(expr string) []wordSet {
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		panic(err)
	}
	var out []wordSet
	for _, group := range must(re) {
		var set wordSet
		known := true
		for _, r := range group {
			known = known && r >= firstWord && int(r-firstWord) < 64*len(set)
			set.add(max(r, firstWord))
		}
		if known {
			out = append(out, set)
		}
	}
	return out
}

// must lists groups of characters of each of which one occurs in every match.
func must(re *syntax.Regexp) (groups [][]rune) {
	switch re.Op {
	case syntax.OpLiteral:
		for _, r := range re.Rune {
			groups = append(groups, []rune{r})
		}
	case syntax.OpCharClass:
		var group []rune
		for i := 0; i < len(re.Rune); i += 2 {
			for r := re.Rune[i]; r <= re.Rune[i+1]; r++ {
				if group = append(group, r); len(group) > 256 {
					return nil // anything, or nearly
				}
			}
		}
		groups = [][]rune{group}
	case syntax.OpAlternate:
		var either []rune
		for _, sub := range re.Sub {
			of := must(sub)
			if len(of) == 0 {
				return nil
			}
			either = append(either, of[len(of)-1]...) // the last is the least common: keywords come first
		}
		groups = [][]rune{either}
	case syntax.OpConcat, syntax.OpCapture, syntax.OpPlus:
		for _, sub := range re.Sub {
			groups = append(groups, must(sub)...)
		}
	case syntax.OpRepeat:
		if re.Min > 0 {
			return must(re.Sub[0])
		}
	}
	return groups
}

// phraseText is the words behind a keyword, each as one character, as far as they have been read.
type phraseText struct {
	codes [maxWords * wordSize]byte
	ends  [maxWords]int32
	n     int
	seen  wordSet
	book  *phrasebook // whose words they are; nil: none
	start int         // of the keyword
	at    int         // where reading goes on
}

// read takes up to most words from text[s:], within phraseWindow bytes, and returns how many there
// are. What was read of the place before is not read again; seen may then hold words behind most,
// which costs a needless match at worst.
func (p *phraseText) read(book *phrasebook, text string, s, most int) int {
	if p.book != book || p.start != s {
		p.book, p.start, p.at, p.n, p.seen = book, s, s, 0, wordSet{}
	}
	i, end := p.at, min(len(text), s+phraseWindow)
	for i < end && p.n < most {
		c := wordByte[text[i]]
		if c == 0 {
			i++
			continue
		}
		from, h, digits := i, uint32(0), true
		for c != 0 {
			h, digits = hashByte(h, c), digits && c <= '9'
			if i++; i == end {
				break
			}
			c = wordByte[text[i]]
		}
		r, ok := book.find(h, text[from:i])
		switch {
		case ok:
			p.seen.add(r)
		case digits:
			r = numberWord
		default:
			r = otherWord
		}
		at := p.codes[p.n*wordSize:]
		at[0], at[1], at[2] = 0xE0|byte(r>>12), 0x80|byte(r>>6&0x3F), 0x80|byte(r&0x3F)
		p.ends[p.n] = int32(i)
		p.n++
	}
	p.at = i
	return min(p.n, most)
}

// colon demands a colon behind what c found.
func colon(c confirm) confirm {
	return func(t *target, s, e int) (int, int, Severity) {
		text := t.text
		from, to, sev := c(t, s, e)
		rest := strings.TrimLeft(text[to:min(len(text), to+4)], " ")
		if sev == 0 || !strings.HasPrefix(rest, ":") {
			return 0, 0, 0
		}
		return from, to, sev
	}
}
