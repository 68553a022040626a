package risk

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// gap is how many characters may stand between the parts of a phrase.
const gap = 40

// part says what a word is in a phrase that forbids tools.
type part uint8

const (
	partNegation part = 1 << iota // do not, don't, never
	partVerb                      // use, run, rely on
	partNoun                      // tool, shell, command
	partWithout                   // without
	partAvoid                     // avoid, refrain from: hardened
)

var nouns = map[string]bool{"tool": true, "tools": true, "shell": true, "bash": true, "command": true, "commands": true}

// moreNouns are what hardened takes for tools besides.
var moreNouns = map[string]bool{"shells": true, "tooling": true, "terminal": true, "terminals": true}

// twoWordVerbs are verbs with the word that must follow.
var twoWordVerbs = map[string]string{"rely": "on", "relying": "on", "resort": "to", "resorting": "to"}

var passives = map[string]bool{
	"use": true, "used": true, "run": true, "called": true, "invoked": true, "executed": true, "allowed": true, "permitted": true, "needed": true,
}

// verbs is every verb with the form that ends in -ing.
var verbs = setOf(strings.Fields(`use using call calling invoke invoking run running execute executing access accessing touch touching
	issue issuing employ employing utilise utilising utilize utilizing leverage leveraging`))

// term is a word of a sentence that may belong to a phrase, and where it
// stands.
type term struct {
	text        string
	from, to    int  // in characters of the text
	start, end  int  // in bytes of the text
	spaceBefore bool // nothing but space stands between this word and the term before
}

// suppresses finds the first phrase that forbids the use of tools, as the
// public reference reads it: a negation, a verb and a noun at most 40
// characters apart within one sentence, or "without" and a noun.
func suppresses(text string) (start, end int, ok bool) {
	return inSentences(text, func(terms []term) (int, int, bool) { return phrase(terms, false) })
}

// discourages finds further ways to say it: avoid, refrain from, no tools, must
// not be used.
func discourages(text string) (start, end int, ok bool) {
	return inSentences(text, func(terms []term) (int, int, bool) {
		if s, e, ok := phrase(terms, true); ok {
			return s, e, ok
		}
		return passive(terms)
	})
}

// phrase looks for negation, verb, noun. The nearest earlier part is the best
// one, so that one pass is enough.
func phrase(terms []term, more bool) (start, end int, ok bool) {
	negation, verb, without := -1, -1, -1 // index of the last word of each
	negationStart, verbNegation, withoutStart := 0, 0, 0
	for i := range terms {
		t := &terms[i]
		switch last, what := partAt(terms, i, more); what {
		case partNegation:
			negation, negationStart = last, t.start
		case partAvoid, partWithout:
			without, withoutStart = last, t.start
		case partVerb:
			if negation >= 0 && i > negation && t.from-terms[negation].to <= gap {
				verb, verbNegation = last, negationStart
			}
		case partNoun:
			if verb >= 0 && i > verb && t.from-terms[verb].to <= gap {
				return verbNegation, t.end, true
			}
			if without >= 0 && t.from-terms[without].to <= gap {
				return withoutStart, t.end, true
			}
		}
	}
	return 0, 0, false
}

// partAt says what begins at a word, and with which word it ends.
func partAt(terms []term, i int, more bool) (last int, what part) {
	w := terms[i].text
	next := func(words ...string) bool {
		for k, n := range words {
			if i+k+1 >= len(terms) || terms[i+k+1].text != n || !terms[i+k+1].spaceBefore {
				return false
			}
		}
		return true
	}
	switch {
	case w == "do" && next("not"):
		return i + 1, partNegation
	case w == "donot", w == "don't", w == "never":
		return i, partNegation
	case w == "without":
		return i, partWithout
	case nouns[w], more && moreNouns[w]:
		return i, partNoun
	case twoWordVerbs[w] != "" && next(twoWordVerbs[w]):
		return i + 1, partVerb
	case verbs[w]:
		return i, partVerb
	}
	if !more {
		return i, 0
	}
	switch {
	case w == "avoid", w == "avoiding", w == "forgo", w == "skip":
		return i, partAvoid
	case w == "refrain" && next("from"):
		return i + 1, partAvoid
	case (w == "may" || w == "must" || w == "should" || w == "shall" || w == "can") && next("not"):
		return i + 1, partNegation
	case w == "cannot", w == "mustn't", w == "shouldn't", w == "can't", w == "mayn't":
		return i, partNegation
	}
	return i, 0
}

// passive finds "no tools should be used" and "tools must not be used".
func passive(terms []term) (start, end int, ok bool) {
	for i := range terms {
		if !nouns[terms[i].text] && !moreNouns[terms[i].text] {
			continue
		}
		denied := i > 0 && terms[i-1].text == "no" && terms[i].from-terms[i-1].to <= gap/2
		for k := i + 1; k < len(terms) && k <= i+8 && terms[k].from-terms[i].to <= gap; k++ {
			switch w := terms[k].text; {
			case w == "not", strings.HasSuffix(w, "n't"), w == "never", w == "cannot":
				denied = true
			case denied && passives[w]:
				return terms[max(i-1, 0)].start, terms[k].end, true
			}
		}
	}
	return 0, 0, false
}

// A sentence is looked at in pieces of maxTerms words; phraseTerms is more than
// a phrase can have, given its gaps, and so much of each piece is looked at
// again with the next.
const maxTerms, phraseTerms = 512, 64

// inSentences cuts a text into sentences and calls f for the words of each
// until it finds something.
func inSentences(text string, f func([]term) (int, int, bool)) (start, end int, ok bool) {
	n := neutral(text)
	var terms []term
	flush := func() bool {
		start, end, ok = f(terms)
		terms = terms[:0]
		return ok
	}
	for i := 0; i < len(n); {
		switch {
		case n[i].r == ' ':
		case wordRune(n[i].r):
			i = addTerm(&terms, n, i, text)
			if len(terms) == maxTerms {
				if start, end, ok = f(terms); ok {
					return start, end, ok
				}
				terms = terms[:copy(terms, terms[maxTerms-phraseTerms:])]
			}
			continue
		case ends(n, i):
			if flush() {
				return start, end, ok
			}
		}
		i++
	}
	if flush() {
		return start, end, ok
	}
	return 0, 0, false
}

// addTerm takes the word that begins at i and returns where it ends. An
// apostrophe before a t belongs to the word: don't.
func addTerm(terms *[]term, n []mark, i int, text string) int {
	from := i
	for i < len(n) && (wordRune(n[i].r) || apostrophe(n, i)) {
		i++
	}
	end := len(text)
	if i < len(n) {
		end = int(n[i].at)
	}
	w := known(n[from:i])
	if w == "" {
		return i
	}
	k := from
	for k > 0 && unicode.IsSpace(n[k-1].r) {
		k--
	}
	last := len(*terms) - 1
	*terms = append(*terms, term{text: w, from: from, to: i, start: int(n[from].at), end: end, spaceBefore: last >= 0 && (*terms)[last].to == k && k < from})
	return i
}

// words are those that a phrase may consist of; all others are "".
var words = func() map[string]string {
	all := map[string]string{}
	for _, list := range []map[string]bool{nouns, moreNouns, verbs, passives, setOf(strings.Fields(
		`do not donot don't never without on to rely relying resort resorting no avoid avoiding forgo skip refrain from
		may must should shall can cannot mustn't shouldn't can't mayn't isn't aren't won't needn't`))} {
		for w := range list {
			all[w] = w
		}
	}
	return all
}()

// known is a word in small letters if it may belong to a phrase.
func known(n []mark) string {
	var b [16]byte
	if len(n) > len(b) {
		return ""
	}
	for i, m := range n {
		switch {
		case m.r == '’':
			b[i] = '\''
		case m.r < utf8.RuneSelf:
			b[i] = byte(unicode.ToLower(m.r))
		default:
			return ""
		}
	}
	return words[string(b[:len(n)])]
}

func apostrophe(n []mark, i int) bool {
	return (n[i].r == '\'' || n[i].r == '’') && i+1 < len(n) && (n[i+1].r == 't' || n[i+1].r == 'T') && (i+2 == len(n) || !wordRune(n[i+2].r))
}

func wordRune(r rune) bool {
	if r < utf8.RuneSelf {
		return asciiWordByte(byte(r))
	}
	return unicode.In(r, unicode.L, unicode.N, unicode.M, unicode.Cf)
}

// softEnd stands for punctuation at the end of a piece of code: it ends a
// sentence only before a capital.
const softEnd = '\uE010'

// ends says whether a sentence ends at a character.
func ends(n []mark, i int) bool {
	switch n[i].r {
	case '．', '。', '！', '？':
		return true
	case softEnd:
		return capitalAfter(n, i+1)
	case '\n':
		k := i + 1
		for k < len(n) && n[k].r != '\n' && unicode.IsSpace(n[k].r) {
			k++
		}
		return k < len(n) && n[k].r == '\n' || capitalAfter(n, i+1)
	case '.', '!', '?':
		k := i + 1
		if k < len(n) && strings.ContainsRune(".!?", n[k].r) {
			return false // the last one of them says
		}
		for k < len(n) && strings.ContainsRune(`"')]}’”»`, n[k].r) {
			k++
		}
		return k == len(n) || unicode.IsSpace(n[k].r)
	}
	return false
}

// capitalAfter says whether the next character beyond spaces is a capital. It
// looks no further than a few characters, so that it stays linear.
func capitalAfter(n []mark, i int) bool {
	for k := i; k < len(n) && k < i+16; k++ {
		if !unicode.IsSpace(n[k].r) {
			return unicode.IsUpper(n[k].r)
		}
	}
	return false
}

// mark is a character of the neutral text and where it came from.
type mark struct {
	r  rune
	at int32
}

// neutral takes the markup out of a text, one character for one: code spans
// keep their words and lose their punctuation, emphasis becomes spaces.
func neutral(text string) []mark {
	n := make([]mark, 0, len(text))
	for i, r := range text {
		if r == softEnd {
			r = ' '
		}
		n = append(n, mark{r, int32(i)})
	}
	codeSpans(n)
	for i := range n {
		switch n[i].r {
		case '*', '~', '`':
			n[i].r = ' '
		case '_':
			if i == 0 || i == len(n)-1 || !alnum(n[i-1].r) || !alnum(n[i+1].r) {
				n[i].r = ' '
			}
		}
	}
	return n
}

func alnum(r rune) bool { return r == '_' || wordRune(r) }

// codeSpans finds runs of backticks that close with a run of the same length,
// and blanks the punctuation between them.
func codeSpans(n []mark) {
	type run struct{ from, to, next int }
	var runs []run
	for i := 0; i < len(n); {
		if n[i].r != '`' || escaped(n, i) {
			i++
			continue
		}
		from := i
		for i < len(n) && n[i].r == '`' {
			i++
		}
		runs = append(runs, run{from, i, -1})
	}
	last := map[int]int{}
	for k := len(runs) - 1; k >= 0; k-- {
		length := runs[k].to - runs[k].from
		if next, ok := last[length]; ok {
			runs[k].next = next
		}
		last[length] = k
	}
	for k := 0; k < len(runs); k++ {
		if runs[k].next < 0 {
			continue
		}
		closing := runs[runs[k].next]
		blank(n[runs[k].to:closing.from])
		k = runs[k].next
	}
}

// escaped says whether an odd number of backslashes stands before i. Each run
// of backslashes is looked at once, from the backtick that follows it.
func escaped(n []mark, i int) bool {
	odd := false
	for k := i - 1; k >= 0 && n[k].r == '\\'; k-- {
		odd = !odd
	}
	return odd
}

// blank takes what could end a sentence out of a piece of code.
func blank(code []mark) {
	last := len(code) - 1
	for last >= 0 && unicode.IsSpace(code[last].r) {
		last--
	}
	for i := range code {
		if strings.ContainsRune(".!?．。！？", code[i].r) {
			code[i].r = ' '
			if i == last {
				code[i].r = softEnd
			}
		}
	}
}
