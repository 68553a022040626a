package shell

import (
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/shell/knowledge"
	"mvdan.cc/sh/v3/syntax"
)

// handleShell follows bash -c CODE, bash FILE and code on standard input.
func (a *analyzer) handleShell(p *knowledge.Program, args []word) {
	ps := a.parse(knowledge.StylePOSIX, &p.Spec, nil, args, 1)
	defer ps.release()
	a.applyHits(p, &ps)
	ops := append([]word(nil), ps.operands()...)
	switch {
	case ps.find("-c") != nil && len(ops) > 0:
		a.shellCode(&ops[0], p.Name)
	case ps.find("-c") != nil:
	case len(ops) > 0 && ps.find("-s") == nil:
		a.scriptFile(&ops[0])
	case a.stdin.given:
		w := word{text: a.stdin.text, known: a.stdin.known, span: a.stdin.span, at: a.stdin.at}
		if a.stdin.network {
			a.add(Effect{Kind: KindExecute, Class: ClassUnknown, Span: args[0].span, Why: "runs code from the network"})
			return
		}
		if w.span == (Span{}) {
			w.span = args[0].span
		}
		a.shellCode(&w, p.Name)
	default:
		a.add(Effect{Kind: KindExecute, Class: ClassUnknown, Span: args[0].span, Why: "starts a shell that takes further input"})
	}
}

// handleEval follows eval: the words joined are code in this very shell.
func (a *analyzer) handleEval(args []word) {
	parts := make([]string, 0, len(args))
	w := word{known: true, at: -1, span: args[0].span}
	for i := 1; i < len(args); i++ {
		w.known = w.known && args[i].known
		w.span.End = args[i].span.End
		parts = append(parts, args[i].text)
	}
	if len(parts) == 1 {
		w.at = args[1].at
	}
	w.text = strings.Join(parts, " ")
	if !w.known {
		a.add(Effect{Kind: KindExecute, Class: ClassUnknown, Span: w.span, Why: "runs code that is not known"})
		a.quietly(w.text)
		return
	}
	mark, cur, via := a.st.mark(), a.cur, a.via
	a.cur, a.via = -1, append(via[:len(via):len(via)], "eval")
	a.nested(w.text, w.at, w.span)
	a.cur, a.via = cur, via
	if a.st.loop != 0 {
		a.st.forget(mark) // the next turn of the loop starts with what this one assigned
	}
}

// handleSource follows source FILE. What it assigns is not known.
func (a *analyzer) handleSource(args []word) {
	if len(args) < 2 {
		return
	}
	a.scriptFile(&args[1])
	for name := range a.st.vars {
		a.setVar(name, nil)
	}
	a.st.cwd = directory{lost: true}
}

func (a *analyzer) handleCd(p *knowledge.Program, args []word) output {
	ps := a.parse(p.Style, &p.Spec, nil, args, 1)
	defer ps.release()
	a.applyHits(p, &ps)
	ops := ps.operands()
	switch {
	case len(ops) == 0 && p.Name == "cd":
		home := a.home()
		a.st.chdir(directory{abs: home})
		if home == "~" {
			a.st.cwd = directory{rel: home}
		}
	case len(ops) == 0, ops[0].text == "-", strings.HasPrefix(ops[0].text, "+"):
		a.st.chdir(directory{lost: true})
	default:
		w := ops[0]
		if physical(args) && strings.Contains(w.text, "..") {
			// With -P the parent is that of what a link points to, which the
			// words do not tell.
			a.add(Effect{Kind: KindUnknown, Class: ClassUnknown, Span: w.span, Why: "goes up from what a link points to"})
		}
		if w.known {
			// Whoever judges paths must see where the commands after this one
			// run: a listing names no path of its own.
			a.add(Effect{Kind: KindRead, Class: ClassSafe, Path: a.resolve(&w, w.text).Path, Span: w.span, Why: "goes to"})
		}
		before := a.st.cwd
		a.enter(&w)
		after := a.st.cwd
		a.st.cwd = before
		a.st.chdir(after)
		if !w.known {
			a.add(Effect{Kind: KindRead, Class: ClassSafe, Span: w.span, Why: "goes to a directory that is not known"})
		}
	}
	return output{}
}

// physical says whether cd was told to follow links.
func physical(args []word) bool {
	for _, w := range args[1:] {
		if !strings.HasPrefix(w.text, "-") || w.text == "--" {
			return false
		}
		if strings.Contains(w.text, "P") {
			return true
		}
	}
	return false
}

// handleAlias follows definitions: the value runs whenever the name is used.
func (a *analyzer) handleAlias(args []word) {
	for i := 1; i < len(args); i++ {
		w := args[i]
		name, val, ok := strings.Cut(w.text, "=")
		if !ok && w.known {
			continue
		}
		a.add(Effect{Kind: KindExecute, Class: ClassUnknown, Span: w.span, Why: "makes " + name + " run something else"})
		a.note(NoteDeferred, "the alias "+name+" runs later", w.span)
		code := word{text: val, known: w.known, span: w.span, at: -1}
		a.shellCode(&code, "alias")
	}
}

func (a *analyzer) handleTrap(args []word) {
	i := 1
	for i < len(args) && args[i].known && (args[i].text == "--" || args[i].text == "-p" || args[i].text == "-l" || args[i].text == "-P") {
		if args[i].text != "--" {
			return
		}
		i++
	}
	if i >= len(args) || len(args) == i+1 {
		return
	}
	w := args[i]
	if w.known && (w.text == "-" || w.text == "") {
		return
	}
	a.note(NoteDeferred, "a trap runs later", w.span)
	in := a.inFunc
	a.inFunc = &function{}
	a.shellCode(&w, "trap")
	a.inFunc = in
}

// handleCommand follows command and builtin; -v and -V only ask.
func (a *analyzer) handleCommand(p *knowledge.Program, args []word) output {
	i := 1
	for ; i < len(args) && args[i].known && strings.HasPrefix(args[i].text, "-") && args[i].text != "-"; i++ {
		if args[i].text == "--" {
			i++
			break
		}
		if strings.ContainsAny(args[i].text, "vV") {
			return output{given: true, plain: true}
		}
		if args[i].text != "-p" {
			a.unknown(args[i].span, "the option "+args[i].text+" is not in its table")
		}
	}
	if i < len(args) && args[i].known {
		// A function of this name is passed over.
		if fn := a.st.funcs[args[i].text]; fn != nil {
			saved := a.st.funcs
			a.st.funcs = nil
			out := a.inner(p.Name, args[i:])
			a.st.funcs = saved
			return out
		}
	}
	return a.inner(p.Name, args[min(i, len(args)):])
}

func (a *analyzer) handleExec(p *knowledge.Program, args []word) output {
	ps := a.parse(knowledge.StylePOSIX, &p.Spec, nil, args, 1)
	ops := append([]word(nil), ps.operands()...)
	ps.release()
	return a.inner(p.Name, ops)
}

// handleEcho prints its words: they are data, and known to what reads them.
func (a *analyzer) handleEcho(p *knowledge.Program, args []word) output {
	out := output{given: true, known: p.Name == "echo", at: -1, span: a.out.Commands[a.cur].Span}
	var text strings.Builder
	for i := 1; i < len(args); i++ {
		w := &args[i]
		a.secretUse(w)
		if !w.known || w.glob {
			out.known = false
		}
		if i == 1 && strings.HasPrefix(w.text, "-") && strings.Trim(w.text[1:], "neE") == "" {
			if strings.Contains(w.text, "e") {
				out.known = false
			}
			continue
		}
		if out.known {
			if text.Len() > 0 {
				text.WriteByte(' ')
			}
			text.WriteString(w.text)
		}
	}
	if out.known && a.spend(text.Len()) {
		out.text = text.String()
	} else {
		out.known = false
	}
	return out
}

// handlePrintf is echo with a format; -v assigns.
func (a *analyzer) handlePrintf(args []word) output {
	out := output{given: true, at: -1, span: a.out.Commands[a.cur].Span}
	i := 1
	if i < len(args) && !args[i].known && !strings.HasPrefix(args[i].text, "%") && !args[i].plain && args[i].text == "" {
		a.unknown(args[i].span, "a word that is not known could be an option")
	}
	if len(args) > 2 && args[1].known && strings.HasPrefix(args[1].text, "-v") {
		name := args[2]
		if args[1].text != "-v" {
			name = args[1]
			name.text = name.text[2:]
		} else {
			i = 2
		}
		i++
		a.varName(&name)
		if name.known && syntax.ValidName(name.text) {
			a.assigns(name.text, name.span)
			a.setVar(name.text, nil)
		}
		out.given = false
	}
	for ; i < len(args); i++ {
		a.secretUse(&args[i])
	}
	if len(args) == 2 && args[1].known && !strings.ContainsAny(args[1].text, "%") {
		out.known, out.text = true, strings.ReplaceAll(args[1].text, `\n`, "\n")
	}
	if len(args) == 3 && args[1].known && args[2].known && (args[1].text == "%s" || args[1].text == `%s\n`) {
		out.known, out.text = true, args[2].text
	}
	return out
}

// handleTest follows test and [: words are data, except where a variable's
// name is evaluated.
func (a *analyzer) handleTest(args []word) {
	for i := 1; i < len(args); i++ {
		w := &args[i]
		if w.known && (w.text == "-v" || w.text == "-R") && i+1 < len(args) {
			a.varName(&args[i+1])
		}
		if !w.known && !w.quoted && !w.plain && !w.listing {
			// It may become "-v name".
			a.unknown(w.span, "an unquoted word that is not known becomes part of a test")
		}
	}
}

// handleRead assigns what it reads.
func (a *analyzer) handleRead(p *knowledge.Program, args []word) {
	ps := a.parse(knowledge.StyleGNU, &p.Spec, nil, args, 1)
	defer ps.release()
	a.applyHits(p, &ps)
	for _, w := range ps.operands() {
		a.varName(&w)
		if w.known && syntax.ValidName(w.text) {
			a.assigns(w.text, w.span)
			v := (*value)(nil)
			if a.stdin.listing {
				v = &value{listing: true, root: a.stdin.root}
			}
			a.setVar(w.text, v)
		}
	}
}

// handleSet follows set and shopt: most options are harmless.
func (a *analyzer) handleSet(args []word) {
	if len(args) == 1 {
		a.add(Effect{Kind: KindRead, Class: ClassUnknown, Secret: true, Span: args[0].span, Why: "shows the variables of the shell"})
		return
	}
	for i := 1; i < len(args); i++ {
		w := &args[i]
		if !w.known {
			a.unknown(w.span, "an option of the shell that is not known")
			continue
		}
		if w.text == "--" {
			return
		}
		if strings.HasPrefix(w.text, "-") && strings.ContainsAny(w.text[1:], "ak") && w.text != "-o" {
			a.unknown(w.span, "changes how the shell treats assignments")
		}
		switch w.text {
		case "expand_aliases", "allexport", "keyword", "posix", "extglob", "lastpipe", "sourcepath":
			if w.text != "extglob" {
				a.unknown(w.span, "changes how the shell reads commands")
			}
		}
	}
}
