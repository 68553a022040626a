package shell

import (
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/shell/knowledge"
)

// handleFind follows find: starting points, then an expression whose actions
// may run commands, write and delete.
func (a *analyzer) handleFind(p *knowledge.Program, args []word) output {
	i := 1
	var roots []word
	for ; i < len(args); i++ {
		w := &args[i]
		if w.known && (w.text == "-H" || w.text == "-L" || w.text == "-P") {
			continue
		}
		if !w.known && !w.plain && w.text == "" {
			a.unknown(w.span, "a word that is not known could be an action of find")
		}
		if strings.HasPrefix(w.text, "-") || w.text == "!" || w.text == "(" || w.text == ")" || w.text == "," {
			break
		}
		roots = append(roots, *w)
		a.readPath(w, true)
	}
	root := "."
	if len(roots) > 0 && roots[0].known {
		root = roots[0].text
	}
	start := root
	root += a.found(args[i:])
	out := output{given: true, listing: len(roots) < 2, root: root, at: -1}
	for i < len(args) {
		i = a.findPrimary(p, args, i, roots, root, &out)
	}
	out.listing = out.listing && a.listable(start)
	return out
}

// found is the pattern of what an expression finds below a starting point, ""
// if that may be anything: one name that all of it must have.
func (a *analyzer) found(args []word) string {
	name := ""
	for i := range args {
		w := &args[i]
		switch {
		case !w.known, w.text == "!", w.text == "-not", w.text == "-o", w.text == "-or", w.text == ",":
			return ""
		case w.text == "-name" && i+1 < len(args) && args[i+1].known && !strings.Contains(args[i+1].text, "/"):
			name = "/**/" + args[i+1].text
		}
	}
	return name
}

// findPrimary follows one primary and returns the index behind it.
func (a *analyzer) findPrimary(p *knowledge.Program, args []word, i int, roots []word, root string, out *output) int {
	w := &args[i]
	if !w.known || w.glob && strings.HasPrefix(w.text, "-") {
		a.unknown(w.span, "a word that is not known could be an action of find")
		return i + 1
	}
	switch w.text {
	case "-exec", "-execdir", "-ok", "-okdir":
		return a.findExec(args, i, root)
	case "-delete":
		for j := range roots {
			a.deletePath(&roots[j], true)
		}
		if len(roots) == 0 {
			a.add(Effect{Kind: KindDelete, Class: ClassDestructive, Irreversible: true, Recursive: true, Span: w.span, Why: "deletes what it finds"})
		}
		return i + 1
	case "-fprint", "-fprint0", "-fls", "-fprintf":
		if i+1 < len(args) {
			a.writePath(&args[i+1], writeFile, w.span)
		}
		if w.text == "-fprintf" {
			return i + 3
		}
		return i + 2
	case "-files0-from":
		a.unknown(w.span, "takes its starting points from a file")
		return i + 2
	}
	if len(w.text) == 1 {
		return i + 1 // ! ( ) ,
	}
	n := 0
	opt := p.Options[w.text]
	if opt != nil && opt.Arg == knowledge.ArgRequired || opt == nil && strings.HasPrefix(w.text, "-newer") {
		n = 1
	} else if opt == nil {
		a.unknown(w.span, "the primary "+w.text+" is not in find's table")
		return i + 1
	}
	if w.text == "-printf" {
		out.listing = false // the names may be anything
	}
	if n == 1 && i+1 < len(args) {
		v := &args[i+1]
		a.secretUse(v)
		if strings.HasSuffix(w.text, "name") && a.secretName(v) {
			out.listing = false // what it finds is credentials
		}
	}
	return i + 1 + n
}

// findExec follows -exec command … ; or +. The braces stand for a file below
// the starting point.
func (a *analyzer) findExec(args []word, i int, root string) int {
	end := i + 1
	for end < len(args) && !(args[end].known && (args[end].text == ";" || args[end].text == "+" && args[end-1].text == "{}")) {
		end++
	}
	cmd := make([]word, 0, end-i)
	for _, w := range args[i+1 : end] {
		if w.known && strings.Contains(w.text, "{}") {
			if w.text != "{}" && len(cmd) > 0 {
				// Part of a longer word: a name that is not known.
				w.text, w.known, w.at = w.text[:strings.Index(w.text, "{}")], false, -1
			} else {
				w.text, w.glob, w.at = root, true, -1
				if !strings.Contains(root, "/**/") {
					w.text += "/**/*"
				}
				if secretPattern(a, args) {
					w.text, w.known = "", false
				}
			}
		}
		cmd = append(cmd, w)
	}
	if len(cmd) > 0 {
		a.inner("find", cmd)
	}
	if strings.HasPrefix(args[i].text, "-ok") {
		a.unknown(args[i].span, "asks on a terminal, which may be answered by a program")
	}
	return end + 1
}

// secretPattern says that find looks for names of credentials.
func secretPattern(a *analyzer, args []word) bool {
	for i := 0; i+1 < len(args); i++ {
		if strings.HasSuffix(args[i].text, "name") && a.secretName(&args[i+1]) {
			return true
		}
	}
	return false
}

// secretName says that a name or pattern may be that of credentials.
func (a *analyzer) secretName(w *word) bool {
	return a.kb.PathTags(w.text).Name == knowledge.TagSecret || a.kb.GlobMayBeSecret(w.text)
}

// handleXargs follows xargs: the command gets operands from its input.
func (a *analyzer) handleXargs(p *knowledge.Program, args []word) {
	ps := a.parse(knowledge.StylePOSIX, &p.Spec, nil, args, 1)
	a.applyHits(p, &ps)
	cmd := append([]word(nil), ps.operands()...)
	repl := ""
	if h := ps.find("-I", "-i", "--replace", "-J"); h != nil {
		repl = "{}"
		if h.has && h.val.text != "" {
			repl = h.val.text
		}
	}
	if ps.find("-a", "--arg-file") != nil {
		a.stdin = output{given: true, at: -1}
	}
	ps.release()
	if len(cmd) == 0 {
		return // it prints its input
	}
	more := a.moreOperands(args[0].span)
	if repl == "" {
		a.inner("xargs", append(cmd, more))
		return
	}
	for i := range cmd {
		if cmd[i].known && strings.Contains(cmd[i].text, repl) {
			if cmd[i].text == repl {
				w := more
				w.span = cmd[i].span
				w.multi = false
				cmd[i] = w
				continue
			}
			cmd[i].text, cmd[i].known, cmd[i].at = cmd[i].text[:strings.Index(cmd[i].text, repl)], false, -1
		}
	}
	a.inner("xargs", cmd)
}
