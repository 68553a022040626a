package shell

import "strings"

// sedScript reads a sed script as far as is needed to know whether it writes
// files or runs commands. What it does not understand is not safe.
func (a *analyzer) sedScript(w *word) {
	if !w.known {
		a.unknown(w.span, "a sed script that is not known")
		return
	}
	w.each(func(text string) {
		s := sedReader{text: text}
		for s.ok() {
			s.command(a, w)
		}
		if s.bad {
			a.unknown(w.span, "a sed script that is not understood")
		}
	})
}

type sedReader struct {
	text string
	pos  int
	bad  bool
}

func (s *sedReader) ok() bool {
	s.skip(" \t\n;}")
	return !s.bad && s.pos < len(s.text)
}

func (s *sedReader) skip(set string) {
	for s.pos < len(s.text) && strings.IndexByte(set, s.text[s.pos]) >= 0 {
		s.pos++
	}
}

func (s *sedReader) next() byte {
	if s.pos >= len(s.text) {
		s.bad = true
		return 0
	}
	s.pos++
	return s.text[s.pos-1]
}

// address skips line numbers, regular expressions and ranges.
func (s *sedReader) address() {
	for s.pos < len(s.text) && !s.bad {
		c := s.text[s.pos]
		switch {
		case c >= '0' && c <= '9', c == '$', c == ',', c == '+', c == '~', c == ' ', c == '!', c == '\t':
			s.pos++
		case c == '/':
			s.pos++
			s.until('/')
			s.skip("IM")
		case c == '\\':
			s.pos++
			s.until(s.next())
			s.skip("IM")
		default:
			return
		}
	}
}

// until moves behind the next delimiter that is not escaped.
func (s *sedReader) until(delim byte) {
	for s.pos < len(s.text) {
		c := s.text[s.pos]
		s.pos++
		if c == '\\' {
			s.pos++
			continue
		}
		if c == '[' && delim != '[' {
			s.bracket(delim)
			continue
		}
		if c == delim {
			return
		}
	}
	s.bad = true
}

// bracket skips a bracket expression, in which the delimiter may stand; sed
// versions differ there, so a delimiter inside is not understood.
func (s *sedReader) bracket(delim byte) {
	end := strings.IndexByte(s.text[s.pos:], ']')
	if end < 0 {
		return
	}
	if end == 0 || end == 1 && s.text[s.pos] == '^' {
		if more := strings.IndexByte(s.text[s.pos+end+1:], ']'); more >= 0 {
			end += more + 1
		}
	}
	if strings.IndexByte(s.text[s.pos:s.pos+end], delim) >= 0 {
		return
	}
	s.pos += end + 1
}

// rest is everything to the end of the line.
func (s *sedReader) rest() string {
	line := s.text[s.pos:]
	if i := strings.IndexByte(line, '\n'); i >= 0 {
		line = line[:i]
	}
	s.pos += len(line)
	return strings.TrimSpace(line)
}

func (s *sedReader) command(a *analyzer, w *word) {
	s.address()
	if s.pos >= len(s.text) {
		s.bad = true
		return
	}
	c := s.next()
	switch c {
	case '{', '}', '=', 'd', 'D', 'g', 'G', 'h', 'H', 'n', 'N', 'p', 'P', 'x', 'z', 'F':
	case 'q', 'Q', 'l', 'L':
		s.skip(" 0123456789")
	case 'b', 't', 'T', ':':
		for s.pos < len(s.text) && s.text[s.pos] != ';' && s.text[s.pos] != '\n' && s.text[s.pos] != '}' {
			s.pos++
		}
	case 'a', 'i', 'c':
		s.appendText()
	case '#':
		s.rest()
	case 'r', 'R':
		f := *w
		f.text, f.at = s.rest(), -1
		a.readPath(&f, false)
	case 'w', 'W':
		f := *w
		f.text, f.at = s.rest(), -1
		a.writePath(&f, writeFile, w.span)
	case 'e':
		code := *w
		code.text, code.at = s.rest(), -1
		a.add(Effect{Kind: KindExecute, Class: ClassUnknown, Span: w.span, Why: "sed runs a command"})
		if code.text != "" {
			a.shellCode(&code, "sed")
		}
	case 's', 'y':
		delim := s.next()
		s.until(delim)
		s.plainUntil(delim)
		if c == 's' {
			s.flags(a, w)
		}
	default:
		s.bad = true
	}
}

// plainUntil is until without bracket expressions: the replacement.
func (s *sedReader) plainUntil(delim byte) {
	for s.pos < len(s.text) {
		c := s.text[s.pos]
		s.pos++
		if c == '\\' {
			s.pos++
		} else if c == delim {
			return
		}
	}
	s.bad = true
}

// appendText skips the text of a, i and c; a line that ends in a backslash
// goes on.
func (s *sedReader) appendText() {
	for s.pos < len(s.text) {
		if s.text[s.pos] == '\\' {
			s.pos += 2
			continue
		}
		if s.text[s.pos] == '\n' {
			return
		}
		s.pos++
	}
	s.pos = min(s.pos, len(s.text))
}

// flags reads what follows s/…/…/.
func (s *sedReader) flags(a *analyzer, w *word) {
	for s.pos < len(s.text) {
		switch c := s.text[s.pos]; {
		case strings.IndexByte("gpiIMm0123456789", c) >= 0:
			s.pos++
		case c == 'e':
			s.pos++
			a.add(Effect{Kind: KindExecute, Class: ClassUnknown, Span: w.span, Why: "sed runs the result of a substitution"})
		case c == 'w':
			s.pos++
			f := *w
			f.text, f.at = s.rest(), -1
			a.writePath(&f, writeFile, w.span)
			return
		case strings.IndexByte(" \t\n;}#", c) >= 0:
			return
		default:
			s.bad = true
			return
		}
	}
}
