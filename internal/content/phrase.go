package content

import (
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
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
type phrasebook map[string]rune

func (p phrasebook) number(word string) rune {
	r, ok := p[word]
	if !ok {
		r = firstWord + rune(len(p))
		p[word] = r
	}
	return r
}

// phrase compiles an expression over words: words in small letters, "|", "( )" and "?" as in regular
// expressions, "<3>" for up to three words of any kind, "#" for a number. It must match from the
// keyword on, which must start a word. Everything that is neither letter nor digit separates words,
// so "don't" is "don t".
func (p phrasebook) phrase(sev Severity, expr string) confirm {
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
	longest := min(maxWords, p.longest(b.String()))
	return word(func(text string, s, _ int) (int, int, Severity) {
		var ws phraseText
		ws.read(p, text, s, longest)
		loc := re.FindIndex(ws.codes[:ws.n*wordSize])
		if loc == nil || loc[1] == 0 {
			return 0, 0, 0
		}
		return s, int(ws.ends[loc[1]/wordSize-1]), sev
	})
}

// longest returns how many words an expression can match, so that no more have to be read.
func (p phrasebook) longest(expr string) int {
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

// phraseText is the words behind a keyword, each as one character.
type phraseText struct {
	codes [maxWords * wordSize]byte
	ends  [maxWords]int32
	n     int
}

// read takes up to most words from text[s:], within phraseWindow bytes.
func (p *phraseText) read(book phrasebook, text string, s, most int) {
	var low [phraseWindow]byte
	end := min(len(text), s+phraseWindow)
	for i := s; i < end && p.n < most; {
		if !alnum(text[i]) {
			i++
			continue
		}
		n, digits := 0, 0
		for i < end && alnum(text[i]) {
			low[n] = lowerByte(text[i])
			if low[n] <= '9' {
				digits++
			}
			n++
			i++
		}
		r, ok := book[string(low[:n])]
		switch {
		case ok:
		case digits == n:
			r = numberWord
		default:
			r = otherWord
		}
		utf8.EncodeRune(p.codes[p.n*wordSize:], r)
		p.ends[p.n] = int32(i)
		p.n++
	}
}

// colon demands a colon behind what c found.
func colon(c confirm) confirm {
	return func(text string, s, e int) (int, int, Severity) {
		from, to, sev := c(text, s, e)
		rest := strings.TrimLeft(text[to:min(len(text), to+4)], " ")
		if sev == 0 || !strings.HasPrefix(rest, ":") {
			return 0, 0, 0
		}
		return from, to, sev
	}
}
