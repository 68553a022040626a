package shell

import (
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/shell/knowledge"
)

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
		if strings.Contains(text, "ENVIRON") {
			a.does(knowledge.DoesSecret, w.span, "the awk program shows the environment")
		}
		if strings.Contains(text, "ARGV") {
			a.unknown(w.span, "the awk program chooses the files it reads")
		}
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
		case c == '\n' && i > 0 && (text[i-1] == '\\' || text[i-1] == ','):
			// The statement goes on.
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

// jqProgram is a filter; the one thing more it can do is show the environment.
func (a *analyzer) jqProgram(w *word) {
	if !w.known {
		a.unknown(w.span, "a filter that is not known")
		return
	}
	text := w.text
	if strings.Contains(text, "load(") || strings.Contains(text, "load_") {
		a.unknown(w.span, "the filter loads a file")
	}
	for {
		i := strings.Index(strings.ToLower(text), "env")
		if i < 0 {
			return
		}
		before, after := i == 0 || !isNameByte(text[i-1]) && text[i-1] != '.', i+3 == len(text) || !isNameByte(text[i+3])
		if i > 0 && text[i-1] == '$' || before && after || strings.HasPrefix(text[i:], "env(") {
			a.does(knowledge.DoesSecret, w.span, "the filter shows the environment")
			return
		}
		text = text[i+3:]
	}
}

func isNameByte(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}
