package risk

import (
	"slices"
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
	"github.com/seed-3ebc6b8a/gatehouse/internal/shell"
)

// reading is what was found in a prompt.
type reading struct {
	keywords    []Quote
	review      []Quote
	suppression []Quote
	commands    []found
	// toolFold compares names of tools as hosts mean them.
	toolFold bool
}

// found is a command in a prompt.
type found struct {
	quote Quote
	class shell.Class
	risk  int
}

// maxQuotes bounds the evidence of one factor.
const maxQuotes = 16

// readClassic reads a prompt as the public reference does: whole words by
// ASCII boundaries, in any case, and nothing else.
func readClassic(prompt string) reading {
	t := dispatchTable()
	var r reading
	eachASCIIWord(prompt, func(start, end int) {
		w := strings.ToLower(prompt[start:end])
		if t.keywords[w] {
			r.keywords = quote(r.keywords, prompt, start, end)
		}
		if t.review[w] {
			r.review = quote(r.review, prompt, start, end)
		}
	})
	if start, end, ok := suppresses(prompt); ok {
		r.suppression = quote(nil, prompt, start, end)
	}
	return r
}

func quote(list []Quote, text string, start, end int) []Quote {
	q := Quote{Text: clip(text[start:end]), Start: start, End: end}
	if len(list) == maxQuotes || slices.Contains(list, q) {
		return list
	}
	return append(list, q)
}

// clip shortens a quote; its place says what it is in full.
func clip(s string) string {
	const most = 120
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + " …"
}

func asciiWordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
}

func eachASCIIWord(s string, f func(start, end int)) {
	for i := 0; i < len(s); {
		if !asciiWordByte(s[i]) {
			i++
			continue
		}
		start := i
		for i < len(s) && asciiWordByte(s[i]) {
			i++
		}
		f(start, i)
	}
}

// readHardened reads a prompt as a reader perceives it, looks for all forms of
// the words, for parts of names (secret_key, deleteAll), and for commands. What
// Classic finds it finds, too.
func readHardened(prompt string) reading {
	r := readClassic(prompt)
	t := dispatchTable()
	var folded match.Folded
	folded.Load(prompt)
	text := string(folded.Text)
	source := func(start, end int) (int, int) {
		from := min(folded.Source(start), len(prompt))
		to := len(prompt)
		if end < len(text) {
			to = min(folded.Source(end), len(prompt))
		}
		return from, max(from, to)
	}
	eachPart(text, func(start, end int) {
		w := strings.ToLower(text[start:end])
		if t.moreKeywords[w] {
			from, to := source(start, end)
			r.keywords = quote(r.keywords, prompt, from, to)
		}
		if t.moreReview[w] {
			from, to := source(start, end)
			r.review = quote(r.review, prompt, from, to)
		}
	})
	if len(r.suppression) == 0 {
		if start, end, ok := discourages(text); ok {
			from, to := source(start, end)
			r.suppression = quote(nil, prompt, from, to)
		}
	}
	eachCommand(text, func(start, end int) {
		from, to := source(start, end)
		if f, ok := analyse(text[start:end]); ok {
			f.quote = Quote{Text: clip(prompt[from:to]), Start: from, End: to}
			r.commands = append(r.commands, f)
		}
	})
	eachStatement(text, func(start, end int) {
		from, to := source(start, end)
		r.commands = append(r.commands, found{quote: Quote{Text: clip(prompt[from:to]), Start: from, End: to}, class: shell.ClassDestructive})
	})
	if len(r.commands) > maxQuotes {
		r.commands = worst(r.commands)
	}
	return r
}

// worst keeps the evidence short without losing what counts.
func worst(list []found) []found {
	var out []found
	for i := range list {
		if list[i].class == shell.ClassDestructive && len(out) < maxQuotes {
			out = append(out, list[i])
		}
	}
	for i := range list {
		if list[i].class != shell.ClassDestructive && len(out) < maxQuotes {
			out = append(out, list[i])
		}
	}
	return out
}

// eachPart calls f for every ASCII word, and for the parts of one that is put
// together with underscores or capitals.
func eachPart(s string, f func(start, end int)) {
	eachASCIIWord(s, func(start, end int) {
		f(start, end)
		from := start
		for i := start; i < end; i++ {
			switch {
			case s[i] == '_':
				if from < i && (from != start || i != end) {
					f(from, i)
				}
				from = i + 1
			case i > from && upper(s[i]) && !upper(s[i-1]):
				f(from, i)
				from = i
			}
		}
		if from > start && from < end {
			f(from, end)
		}
	})
}

func upper(c byte) bool { return c >= 'A' && c <= 'Z' }

// analyse reads a piece of a prompt as a command line. What does not parse is
// prose, and says nothing.
func analyse(text string) (found, bool) {
	a := shell.Analyze(text, shell.Options{})
	if !a.Complete && !a.Has(shell.KindBypass) && a.Class != shell.ClassDestructive {
		return found{}, false
	}
	var out found
	for i := range a.Commands {
		c := &a.Commands[i]
		if !dispatchTable().programs[c.Program] && c.Class != shell.ClassDestructive {
			continue // a word of a sentence is not a program
		}
		if c.Class > out.class {
			out.class = c.Class
		}
	}
	if out.class == 0 {
		return found{}, false
	}
	out.risk = Of(FromShell(a)).Value
	if a.Has(shell.KindExecute) && slices.ContainsFunc(a.Commands, fetches) {
		out.risk = max(out.risk, askAt) // code from the network
	}
	return out, true
}

func fetches(c shell.Command) bool {
	return c.Program == "curl" || c.Program == "wget" || c.Program == "nc"
}
