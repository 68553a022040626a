package shell

import (
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/shell/knowledge"
)

// handleEnv follows env: options, assignments, then a command.
func (a *analyzer) handleEnv(p *knowledge.Program, args []word) output {
	ps := a.parse(knowledge.StylePOSIX, &p.Spec, nil, args, 1)
	a.applyHits(p, &ps)
	ops := append([]word(nil), ps.operands()...)
	split := ps.find("-S", "--split-string")
	var text word
	if split != nil {
		text = split.val
	}
	ps.release()
	if split != nil {
		words, ok := splitWords(text.text)
		if !text.known || !ok {
			a.unknown(text.span, "splits a string that is not known into a command")
			return output{given: true}
		}
		front := make([]word, len(words))
		for i, t := range words {
			front[i] = word{text: t, known: true, span: text.span, at: -1}
		}
		ops = append(front, ops...)
	}
	for len(ops) > 0 {
		name, _, ok := strings.Cut(ops[0].text, "=")
		if !ok || strings.HasPrefix(name, "-") {
			break
		}
		a.assigns(name, ops[0].span)
		ops = ops[1:]
	}
	if len(ops) == 0 {
		a.does(knowledge.DoesSecret, a.out.Commands[a.cur].Span, "shows the environment")
		return output{given: true}
	}
	return a.inner(p.Name, ops)
}

// handleDd follows dd's key=value words.
func (a *analyzer) handleDd(args []word) {
	for i := 1; i < len(args); i++ {
		w := args[i]
		key, val, ok := strings.Cut(w.text, "=")
		v := w
		v.text = val
		switch {
		case !ok:
			a.unknown(w.span, "a word that is not known could be an output of dd")
		case key == "if":
			a.readPath(&v, false)
		case key == "of":
			a.writePath(&v, writeFile, w.span)
		}
	}
}

// handleTar follows tar: the mode decides whether the archive is read or
// written, and where files go.
func (a *analyzer) handleTar(p *knowledge.Program, args []word) {
	if len(args) > 1 && args[1].known && !strings.HasPrefix(args[1].text, "-") && args[1].text != "" {
		// The old style: a cluster without a dash, whose values follow in order.
		args = oldStyleTar(args)
	}
	ps := a.parse(knowledge.StyleGNU, &p.Spec, nil, args, 1)
	defer ps.release()
	create := ps.find("-c", "--create", "-r", "--append", "-u", "--update", "-A", "--catenate", "--concatenate") != nil
	extract := ps.find("-x", "--extract", "--get") != nil
	list := ps.find("-t", "--list", "-d", "--diff", "--compare") != nil
	stdout := ps.find("-O", "--to-stdout") != nil
	cwd := a.st.cwd
	a.applyHits(p, &ps)
	span := a.out.Commands[a.cur].Span
	into := word{text: ".", known: true, span: span, at: -1}
	inside := a.st.cwd
	a.st.cwd = cwd
	for _, h := range append([]hit(nil), ps.hits()...) {
		if h.opt.Name != "-f" && h.opt.Name != "--file" {
			continue
		}
		f := h.val
		if f.known && strings.Contains(f.text, ":") {
			a.does(knowledge.DoesNetwork, f.span, "reaches an archive on another machine")
		}
		if create {
			a.apply(knowledge.RoleWrite, &f, p)
		} else if f.text != "-" {
			a.readPath(&f, false)
		}
	}
	a.st.cwd = inside
	switch {
	case create:
		for _, w := range append([]word(nil), ps.operands()...) {
			a.readPath(&w, false)
		}
	case extract && !stdout:
		a.writePath(&into, writeFile, span)
		if ps.find("-P", "--absolute-names", "--recursive-unlink", "--unlink-first", "-U") != nil {
			a.unknown(span, "extracts outside its directory, or removes first")
		}
	case !list && !extract:
		a.unknown(span, "has no mode its table knows")
	}
	a.st.cwd = cwd
}

func oldStyleTar(args []word) []word {
	out := []word{args[0]}
	next := 2
	for i := 0; i < len(args[1].text); i++ {
		w := args[1]
		w.text, w.at = "-"+args[1].text[i:i+1], -1
		out = append(out, w)
		if strings.IndexByte("fbCTXIgHNLVK", args[1].text[i]) >= 0 && next < len(args) {
			out = append(out, args[next])
			next++
		}
	}
	return append(out, args[min(next, len(args)):]...)
}

// handlePython follows an interpreter: -c code, -m module, a file, or code on
// standard input.
func (a *analyzer) handlePython(p *knowledge.Program, args []word) {
	if p.Name == "python" && a.pythonModule(p, args) {
		return
	}
	ps := a.parse(knowledge.StylePOSIX, &p.Spec, nil, args, 1)
	defer ps.release()
	a.plainCode, a.isolated = plainly(p.Name, &ps), ps.find("-I", "-P") != nil
	defer func() { a.plainCode, a.isolated = false, false }()
	a.applyHits(p, &ps)
	ops := append([]word(nil), ps.operands()...)
	if p.Name == "perl" && a.plainCode {
		for i := range ops {
			a.readPath(&ops[i], false)
		}
	}
	for _, h := range ps.hits() {
		switch {
		case h.opt.Role == knowledge.RolePython, h.opt.Role == knowledge.RoleCode, h.opt.Name == "-m" && p.Name == "python":
			return // the code is in the words
		case h.has && h.opt.Role == knowledge.RoleRead && len(ops) == 0 && !a.stdin.given:
			return // it is only checked
		}
	}
	switch {
	case len(ops) > 0 && ops[0].text != "-":
		a.scriptFile(&ops[0])
		if len(ops) > 1 {
			a.verb(&ops[1]) // manage.py flush
		}
		a.pathsOfUnknown(ops[1:])
	case a.stdin.given:
		w := word{text: a.stdin.text, known: a.stdin.known, span: a.stdin.span, at: a.stdin.at}
		if w.span == (Span{}) {
			w.span = args[0].span
		}
		a.code(p.Name, &w)
	default:
		a.add(Effect{Kind: KindExecute, Class: ClassUnknown, Span: args[0].span, Why: "starts an interpreter that takes further input"})
	}
}

// pythonModule follows python -m NAME for modules that are programs with a
// table, filed under "python:NAME". Python looks for the module in the working
// directory first, where anyone may have put one of that name, unless -I or -P
// says not to, or there is none.
func (a *analyzer) pythonModule(p *knowledge.Program, args []word) bool {
	isolated := false
	for i := 1; i+1 < len(args); i++ {
		t, ok := args[i].literal()
		if !ok || len(t) != 2 || t[0] != '-' {
			return false
		}
		if t != "-m" {
			if !strings.Contains("BIsSuEOqxP", t[1:]) {
				return false
			}
			isolated = isolated || t == "-I" || t == "-P"
			continue
		}
		module := args[i+1]
		name := "python:" + module.text
		if !module.known || a.kb.Program(name) == nil {
			return false
		}
		top, _, _ := strings.Cut(module.text, ".")
		if !isolated && !a.pythonModules(top) {
			a.add(Effect{Kind: KindExecute, Class: ClassUnknown, Span: module.span, Why: "runs a module that the working directory may replace:", Bounded: true})
		}
		prog := module
		prog.text = name
		a.inner(p.Name, append([]word{prog}, args[i+2:]...))
		return true
	}
	return false
}

// handleRunScript follows npm run NAME and its kind; a World may show the text.
func (a *analyzer) handleRunScript(p *knowledge.Program, args []word) {
	a.generic(p, args)
	if a.world == nil || a.remote > 0 {
		return
	}
	name := ""
	for i := 1; i < len(args); i++ {
		t, ok := args[i].literal()
		if !ok || strings.HasPrefix(t, "-") {
			continue
		}
		if t == "run" || t == "run-script" {
			continue
		}
		name = t
		break
	}
	if name == "" {
		return
	}
	if text, known := a.world.Script("npm", a.st.cwd.abs, name); known {
		w := word{text: text, known: true, span: args[0].span, at: -1}
		a.shellCode(&w, p.Name)
	}
}

// handleMake follows make: it runs the project's recipes.
func (a *analyzer) handleMake(p *knowledge.Program, args []word) {
	a.generic(p, args)
	if a.world == nil || a.remote > 0 {
		return
	}
	target := ""
	for i := 1; i < len(args); i++ {
		if t, ok := args[i].literal(); ok && !strings.HasPrefix(t, "-") && !strings.Contains(t, "=") {
			target = t
			break
		}
	}
	if text, known := a.world.Script("make", a.st.cwd.abs, target); known {
		w := word{text: text, known: true, span: args[0].span, at: -1}
		a.shellCode(&w, p.Name)
	}
}

// handleBusybox follows a multi-call binary: the next word is the program.
func (a *analyzer) handleBusybox(p *knowledge.Program, args []word) {
	if len(args) > 1 {
		a.inner(p.Name, args[1:])
	}
}
