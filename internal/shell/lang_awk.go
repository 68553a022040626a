package shell

import "strings"

// awkProgram looks for what makes an awk program more than a filter: system,
// pipes, redirections, getline from elsewhere, extensions. Strings, regular
// expressions and comments are skipped; a division that is taken for the
// start of a regular expression only hides text from the search if a second
// slash follows, so any of the words behind one counts, too.
func (a *analyzer) awkProgram(w *word) {
	if !w.known {
		a.add(Effect{Kind: KindExecute, Class: ClassUnknown, Span: w.span, Why: "an awk program that is not known"})
		return
	}
	w.each(func(text string) {
		if strings.Contains(text, "system") || strings.Contains(text, "getline") || strings.HasPrefix(text, "@") || strings.Contains(text, "@load") ||
			strings.Contains(text, "@include") || strings.Contains(text, "|&") || strings.Contains(text, "close(") {
			a.add(Effect{Kind: KindExecute, Class: ClassUnknown, Span: w.span, Why: "the awk program runs commands or reads other files"})
			a.codeStrings(text, w)
			return
		}
		a.awkRedirects(text, w)
	})
}

// awkRedirects finds ">" and "|" outside strings that follow print. A
// comparison stands in a pattern or in parentheses; after print without
// parentheses, ">" redirects.
func (a *analyzer) awkRedirects(text string, w *word) {
	printing, depth := false, 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			i = skipString(text, i)
		case c == '/' && regexStart(text, i):
			if end := regexEnd(text, i); end > i {
				i = end
			}
		case c == '#':
			if j := strings.IndexByte(text[i:], '\n'); j >= 0 {
				i += j
			} else {
				return
			}
			printing = false
		case strings.HasPrefix(text[i:], "print"):
			printing, depth = true, 0
			i += len("print") - 1
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == ';' || c == '}' || c == '\n' || c == '{':
			printing = false
		case c == '|' && strings.HasPrefix(text[i:], "||"):
			i++
		case c == '|':
			a.add(Effect{Kind: KindExecute, Class: ClassUnknown, Span: w.span, Why: "the awk program pipes to a command"})
			a.codeStrings(text, w)
			return
		case c == '>' && printing && depth <= 0:
			a.awkOutput(text[i+1:], w)
			return
		}
	}
}

// awkOutput is the target of a redirection: a string, or something computed.
func (a *analyzer) awkOutput(rest string, w *word) {
	rest = strings.TrimLeft(rest, "> \t")
	f := word{span: w.span, at: -1}
	if strings.HasPrefix(rest, "\"") {
		if end := skipString(rest, 0); end < len(rest) {
			f.text, f.known = rest[1:end], true
		}
	}
	a.writePath(&f, writeFile, w.span)
}

func skipString(text string, i int) int {
	for i++; i < len(text); i++ {
		if text[i] == '\\' {
			i++
		} else if text[i] == '"' {
			return i
		}
	}
	return i
}

// regexStart says that a slash begins a regular expression: nothing that
// could be divided stands before it.
func regexStart(text string, i int) bool {
	for i--; i >= 0; i-- {
		switch c := text[i]; {
		case c == ' ' || c == '\t':
		case strings.IndexByte("(,{;!~&|=\n}?:", c) >= 0:
			return true
		default:
			return false
		}
	}
	return true
}

func regexEnd(text string, i int) int {
	for i++; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '/':
			return i
		case '\n':
			return 0
		}
	}
	return 0
}
