package shell

import (
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/shell/knowledge"
)

// upload is a file that is read and sent out: a grant for the host, which may
// have been given for a look, is not one for that.
func (a *analyzer) upload(w *word) {
	if !w.known || w.text != "-" {
		a.readPath(w, false) // what comes in was accounted for where it came from
	}
	a.does(knowledge.DoesPublish, w.span, "sends a file out")
}

// sent is text that is sent out, or the name of a file that is: @FILE,
// NAME=@FILE, NAME=<FILE, NAME@FILE.
func (a *analyzer) sent(w *word) {
	if w.known && w.text == "DELETE" {
		a.method(w) // of a program that takes method and fields alike
		return
	}
	w.each(func(text string) {
		if file := sentFile(text); file != "" {
			f := word{text: file, known: w.known, span: w.span, at: -1}
			a.upload(&f)
		}
	})
}

// sentFile is the file that a field names, "" if it names none.
func sentFile(field string) string {
	at := strings.IndexByte(field, '@')
	name, rest, assigned := strings.Cut(field, "=")
	switch {
	case strings.Contains(field, "://"):
		return ""
	case at == 0:
		return field[1:]
	case assigned && (strings.HasPrefix(rest, "@") || strings.HasPrefix(rest, "<")):
		file, _, _ := strings.Cut(rest[1:], ";")
		return strings.Trim(file, `"`)
	case at > 0 && at < len(name) && isFieldName(field[:at]):
		return field[at+1:]
	}
	return ""
}

func isFieldName(s string) bool {
	for i := range len(s) {
		if !isNameStart(s[i]) && !isDigit(s[i]) && s[i] != '-' && s[i] != '.' && s[i] != ':' {
			return false
		}
	}
	return true
}

// setting is the name of a setting that is shown. One that says so is a
// credential, and one that is not known may be.
func (a *analyzer) setting(w *word) {
	shows := !w.known && !w.plain
	w.each(func(text string) {
		name := strings.Map(func(r rune) rune {
			if strings.ContainsRune("-.:/", r) {
				return '_'
			}
			return r
		}, strings.ToUpper(text))
		shows = shows || a.kb.SecretVariable(name) && name != "CREDENTIAL_HELPER"
	})
	if shows {
		a.does(knowledge.DoesSecret, w.span, "shows credentials:")
	}
}

// ps shows the environment of processes if an e is among its letters without
// a dash, which are options as well.
func (a *analyzer) ps(p *knowledge.Program, args []word) output {
	for i := 1; i < len(args); i++ {
		w := &args[i]
		switch {
		case w.known && strings.HasPrefix(w.text, "-"):
			if strings.ContainsAny(w.text[len(w.text)-1:], "oOCpuUtgGs") {
				i++ // the next word is its value
			}
		case !w.known || strings.Contains(w.text, "e") && strings.Trim(w.text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == "":
			a.does(knowledge.DoesSecret, w.span, "shows the environment of processes")
		}
	}
	return a.generic(p, args)
}
