package content

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
)

// unicodeRules are the rules on characters, in words.
var unicodeRules = map[string]string{
	"unicode.tag":           "text in tag characters, which nobody can see",
	"unicode.bidi":          "characters that show code in another order than it runs",
	"unicode.bidi-open":     "a change of direction that is not ended",
	"unicode.bidi-mark":     "direction controls",
	"unicode.selector-data": "data hidden in variation selectors",
	"unicode.zero-width":    "invisible characters",
	"unicode.hidden-bits":   "a message in invisible characters",
	"unicode.terminal":      "control characters that change what a terminal shows",
	"unicode.control":       "control characters",
	"unicode.mixed-script":  "a word of letters from scripts that look alike",
	"unicode.look-alike":    "a word of another script that reads as an English one",
	"unicode.invalid":       "bytes that are no text",
	"unicode.private":       "characters without agreed meaning",
}

const (
	hiddenBits = 24 // invisible characters in a row that can only be a message
	manyHidden = 8  // … and that have no honest use
	selectors  = 4  // variation selectors in a row that can only be data
)

func (s *state) mark(rule string, sev Severity, start, end int) {
	s.add(Finding{Category: Unicode, Severity: sev, Rule: rule, Start: start, End: end, Form: FormPlain})
}

// marks turns what was noticed while folding into findings.
func (s *state) marks(text string, marks []match.Mark) {
	for i, m := range marks {
		switch m.Kind {
		case match.MarkTag:
			s.tag(text, m)
		case match.MarkVariation:
			s.selector(text, m)
		case match.MarkZeroWidth:
			s.zeroWidth(text, m)
		case match.MarkControl:
			s.control(text, m.Start, m.End)
		case match.MarkBidiHint:
			s.mark("unicode.bidi-mark", Low, m.Start, m.End)
		case match.MarkMixedScript:
			s.mark("unicode.mixed-script", Medium, m.Start, m.End)
		case match.MarkLookAlike:
			s.mark("unicode.look-alike", Medium, m.Start, m.End)
		case match.MarkInvalid:
			s.mark("unicode.invalid", Medium, m.Start, m.End)
		case match.MarkPrivate, match.MarkNonChar:
			s.mark("unicode.private", Low, m.Start, m.End)
		case match.MarkBidiForce, match.MarkBidiRTL, match.MarkBidiLTR:
			if m.Start >= s.lines {
				s.bidi(text, marks[i:], lineStart(text, m.Start))
			}
		}
	}
}

// maxLine bounds how far a line is followed; bidi controls end at the paragraph anyway.
const maxLine = 4096

func lineStart(text string, at int) int {
	from := max(0, at-maxLine)
	return from + strings.LastIndexByte(text[from:at], '\n') + 1
}

// bidi judges the direction controls of one line, of which marks[0] is the first. Whoever writes Hebrew or Arabic has letters of
// that script there; controls that turn pure ASCII around are there to deceive.
func (s *state) bidi(text string, marks []match.Mark, from int) {
	to := min(len(text), marks[0].Start+maxLine)
	if i := strings.IndexByte(text[marks[0].Start:to], '\n'); i >= 0 {
		to = marks[0].Start + i
	}
	s.lines = to
	open, turned, end := 0, false, marks[0].End
	for _, m := range marks {
		if m.Start >= to {
			break
		}
		switch m.Kind {
		case match.MarkBidiForce, match.MarkBidiRTL:
			open, turned = open+m.Count, true
		case match.MarkBidiLTR:
			open += m.Count
		case match.MarkBidiPop:
			open -= m.Count
		default:
			continue
		}
		end = m.End
	}
	rtl, ascii := lineLetters(text[from:to])
	switch {
	case turned && ascii && !rtl:
		s.mark("unicode.bidi", Critical, marks[0].Start, end)
	case turned && open > 0:
		s.mark("unicode.bidi-open", High, marks[0].Start, end)
	case open > 0:
		s.mark("unicode.bidi-open", Medium, marks[0].Start, end)
	default:
		s.mark("unicode.bidi-mark", Low, marks[0].Start, end)
	}
}

// lineLetters reports whether a line holds right-to-left letters, and ASCII ones.
func lineLetters(line string) (rtl, ascii bool) {
	for _, r := range line {
		switch {
		case r < utf8.RuneSelf:
			ascii = ascii || alnum(byte(r))
		case unicode.In(r, unicode.Hebrew, unicode.Arabic, unicode.Syriac, unicode.Thaana, unicode.Nko, unicode.Adlam):
			rtl = true
		}
	}
	return rtl, ascii
}

// flags are the only texts that Unicode spells with tag characters, each behind a black flag.
var flags = map[string]bool{"gbeng": true, "gbsct": true, "gbwls": true}

func (s *state) tag(text string, m match.Mark) {
	var b strings.Builder
	for _, r := range text[m.Start:m.End] {
		if r >= 0xE0020 && r < 0xE007F {
			b.WriteByte(byte(r - 0xE0000))
		}
	}
	if strings.HasSuffix(text[:m.Start], "\U0001F3F4") && flags[b.String()] {
		return
	}
	sev := Critical
	if m.Count < 3 {
		sev = High
	}
	s.mark("unicode.tag", sev, m.Start, m.End)
}

func (s *state) selector(text string, m match.Mark) {
	prev, _ := utf8.DecodeLastRuneInString(text[:m.Start])
	switch {
	case m.Count >= selectors:
		s.mark("unicode.selector-data", Critical, m.Start, m.End)
	case m.Count > 1 || prev < utf8.RuneSelf && (prev|0x20 >= 'a' && prev|0x20 <= 'z' || prev == ' '):
		s.mark("unicode.selector-data", Medium, m.Start, m.End)
	}
}

func (s *state) zeroWidth(text string, m match.Mark) {
	first, _ := utf8.DecodeRuneInString(text[m.Start:])
	prev, _ := utf8.DecodeLastRuneInString(text[:m.Start])
	next, _ := utf8.DecodeRuneInString(text[m.End:])
	switch {
	case m.Count >= hiddenBits:
		s.mark("unicode.hidden-bits", Critical, m.Start, m.End)
	case m.Count >= manyHidden:
		s.mark("unicode.hidden-bits", High, m.Start, m.End)
	case m.Start == 0 && first == 0xFEFF && m.Count == 1:
		// a byte order mark
	case m.Count == 1 && (first == 0x200C || first == 0x200D) && prev >= utf8.RuneSelf && prev != utf8.RuneError:
		// joiners belong to emoji and to Indic and Arabic spelling
	case prev < utf8.RuneSelf && next < utf8.RuneSelf && alnum(byte(prev)) && alnum(byte(next)) && first != 0xAD:
		s.mark("unicode.zero-width", Medium, m.Start, m.End)
	default:
		s.mark("unicode.zero-width", Low, m.Start, m.End)
	}
}

// controls finds the control characters that matter in a text known to be ASCII.
func (s *state) controls(text string) {
	for _, c := range []byte{0x1B, '\b', 0} {
		for at, n := 0, 0; n < maxPerRule; n++ {
			i := strings.IndexByte(text[at:], c)
			if i < 0 {
				break
			}
			s.control(text, at+i, at+i+1)
			at += i + 1
		}
	}
}

// control judges a run of control characters. Colours are harmless; what moves the cursor, erases,
// conceals or talks to the terminal makes it show something else than the text.
func (s *state) control(text string, start, end int) {
	rule, sev := "unicode.control", Low
	switch c := text[start]; {
	case c == '\b' || c == 0:
		rule, sev = "unicode.terminal", Medium
	case c == 0x1B && end < len(text):
		switch sev = terminalEffect(text[end:min(len(text), end+24)]); sev {
		case 0:
			sev = Low
		default:
			rule = "unicode.terminal"
		}
	}
	s.mark(rule, sev, start, end)
}

// terminalEffect looks at what follows an escape character.
func terminalEffect(s string) Severity {
	if s[0] == ']' || s[0] == 'P' || s[0] == '_' || s[0] == '^' {
		return Medium // operating system commands: titles, links, the clipboard
	}
	if s[0] != '[' {
		return 0
	}
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c >= '0' && c <= '?':
			continue
		case c == 'm':
			for arg := range strings.SplitSeq(s[1:i], ";") {
				if arg == "8" {
					return High // concealed text
				}
			}
			return 0
		case strings.IndexByte("ABCDEFGHJKSTfsu", c) >= 0:
			return Medium
		default:
			return 0
		}
	}
	return 0
}
