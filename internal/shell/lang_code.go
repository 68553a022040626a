package shell

import "strings"

// code is inline code of an interpreter. Unless it is proved to read only it is
// not safe; words in it tell
// whether it destroys, contacts or writes, and strings it hands to a shell
// are followed.
func (a *analyzer) code(language string, w *word) {
	if a.pureCode(language, w) {
		return
	}
	first := len(a.out.Commands)
	a.add(Effect{Kind: KindExecute, Class: ClassUnknown, Span: w.span, Why: "runs " + language + " code", Bounded: w.known})
	destructive, network, write, shell := a.kb.CodeWords(language)
	if destructive == nil {
		destructive, network, write, shell = a.kb.CodeWords("any")
	}
	if word := firstWord(w.text, destructive); word != "" {
		a.add(Effect{Kind: KindDelete, Class: ClassDestructive, Irreversible: true, Span: w.span, Why: "deletes in code: " + word})
	}
	if word := firstWord(w.text, network); word != "" {
		a.add(Effect{Kind: KindNetwork, Class: ClassNetwork, Span: w.span, Why: "uses the network in code: " + word})
	}
	if word := firstWord(w.text, write); word != "" {
		a.add(Effect{Kind: KindWrite, Class: ClassMutating, Span: w.span, Why: "writes in code: " + word, Bounded: w.known})
	}
	if firstWord(w.text, shell) != "" {
		a.codeStrings(w.text, w)
	}
	if w.known {
		a.bound(first)
	}
}

// bound notes that commands were found in code: what they do happens where the
// code runs, so what holds the code holds them.
func (a *analyzer) bound(first int) {
	for i := first; i < len(a.out.Commands); i++ {
		effects := a.out.Commands[i].Effects
		for j := range effects {
			if e := &effects[j]; e.Class == ClassUnknown || e.Kind == KindWrite {
				e.Bounded = true
			}
		}
	}
}

func firstWord(text string, words []string) string {
	for _, x := range words {
		if strings.Contains(text, x) {
			return x
		}
	}
	return ""
}

// codeStrings follows the string literals of code that starts a shell: one of
// them is the command.
func (a *analyzer) codeStrings(text string, w *word) {
	notes, complete, class := len(a.out.Notes), a.out.Complete, a.out.Class
	for i := 0; i < len(text); i++ {
		q := text[i]
		if q != '"' && q != '\'' && q != '`' {
			continue
		}
		end := i + 1
		for end < len(text) && text[end] != q {
			if text[end] == '\\' {
				end++
			}
			end++
		}
		if end >= len(text) {
			break
		}
		if s := text[i+1 : end]; strings.ContainsAny(s, " /") || len(s) > 3 {
			f := word{text: s, known: true, span: w.span, at: -1}
			a.shellCode(&f, "code")
		}
		i = end
	}
	// Strings that are no commands do not parse; that says nothing.
	a.out.Notes, a.out.Complete, a.out.Class = a.out.Notes[:notes], complete, class
}
