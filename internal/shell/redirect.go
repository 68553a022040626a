package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// redirects accounts for the redirections of a command and says what they
// put on its standard input. A redirection without a command truncates.
func (a *analyzer) redirects(list []*syntax.Redirect, bare bool) (in output, ok bool) {
	for _, r := range list {
		switch r.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			in, ok = a.heredoc(r), true
		case syntax.WordHdoc:
			w := a.one(r.Word)
			a.secretUse(&w)
			in, ok = output{given: true, known: w.known && w.values() == nil, text: w.text, span: w.span, at: w.at}, true
		case syntax.RdrIn:
			w := a.one(r.Word)
			a.readPath(&w, false)
			in, ok = output{given: true, span: w.span, at: -1}, true
		case syntax.DplIn:
			a.one(r.Word)
		case syntax.DplOut:
			w := a.one(r.Word)
			if w.known && isDescriptor(w.text) {
				continue
			}
			a.writePath(&w, writeRedirect, a.span(r))
		case syntax.AppOut, syntax.AppAll, syntax.AppAllClob, syntax.AppClob:
			w := a.one(r.Word)
			a.writePath(&w, writeAppend, a.span(r))
		default: // >, >|, &>, <> and what is like them
			w := a.one(r.Word)
			how := writeRedirect
			if bare && r.Op != syntax.RdrInOut {
				how = writeTruncate
			}
			a.writePath(&w, how, a.span(r))
		}
	}
	return in, ok
}

// heredoc gives the body of a here-document. The delimiter's quotes decide
// whether the shell expands it; the parser has split it accordingly.
func (a *analyzer) heredoc(r *syntax.Redirect) output {
	out := output{given: true, at: -1}
	if r.Hdoc == nil {
		return output{given: true, known: true, at: -1}
	}
	out.span = a.span(r.Hdoc)
	quoted := false
	for _, p := range r.Word.Parts {
		if lit, ok := p.(*syntax.Lit); !ok || strings.IndexByte(lit.Value, '\\') >= 0 {
			quoted = true
		}
	}
	if quoted {
		out.known, out.text = true, r.Hdoc.Lit()
		if a.fixed == nil && r.Op == syntax.Hdoc {
			out.at = out.span.Start
		}
		return out
	}
	b := builder{a: a, whole: true}
	b.cur = word{known: true, at: -1}
	for _, p := range r.Hdoc.Parts {
		b.part(p, false, true)
	}
	out.known = b.cur.known && b.alts == nil
	out.text = b.text.String()
	b.cur.span = out.span
	a.secretUse(&b.cur)
	return out
}

func isDescriptor(s string) bool {
	s = strings.TrimSuffix(s, "-")
	return s == "" || isNumber(s)
}

// redirectsStdout says whether a command's output goes elsewhere.
func redirectsStdout(list []*syntax.Redirect) bool {
	for _, r := range list {
		switch r.Op {
		case syntax.RdrOut, syntax.AppOut, syntax.RdrClob, syntax.RdrAll, syntax.AppAll:
			if r.N == nil || r.N.Value == "1" {
				return true
			}
		}
	}
	return false
}
