package shell

import (
	"path"
	"slices"
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/shell/knowledge"
	"mvdan.cc/sh/v3/syntax"
)

// call follows a simple command.
func (a *analyzer) call(s *syntax.Stmt, c *syntax.CallExpr) output {
	if a.seen++; a.seen > MaxCommands {
		a.limit("more than 256 simple commands", a.span(s))
	}
	if len(c.Args) == 0 {
		for _, as := range c.Assigns {
			a.assign(as, true)
		}
		a.redirects(s.Redirs, true)
		return output{}
	}
	outer := a.cur
	a.begin(a.span(c))
	for _, as := range c.Assigns {
		if as.Name != nil && as.Name.Value == "IFS" && c.Args[0].Lit() == "read" {
			a.one(as.Value) // splits what read reads, and nothing else
			continue
		}
		a.assign(as, false)
	}
	stack := len(a.words)
	for _, w := range c.Args {
		a.words = a.fields(a.words, w)
	}
	args := a.words[stack:len(a.words):len(a.words)]
	saved := a.stdin
	if len(s.Redirs) > 0 {
		if in, ok := a.redirects(s.Redirs, noOutput(args)); ok {
			a.stdin = in
		}
	}
	out := a.alternatives(args)
	a.stdin, a.cur, a.words = saved, outer, a.words[:stack]
	if redirectsStdout(s.Redirs) {
		return output{}
	}
	return out
}

// noOutput recognises ":" and "true": a redirection of theirs empties the file.
func noOutput(args []word) bool {
	if len(args) == 2 && args[0].text == "cat" {
		return args[1].known && args[1].text == "/dev/null"
	}
	return len(args) == 1 && args[0].known && (args[0].text == ":" || args[0].text == "true")
}

// begin starts a new command; effects go to it until the caller restores cur.
func (a *analyzer) begin(span Span) {
	cmds := a.out.Commands
	n := len(cmds)
	switch {
	case cmds == nil:
		cmds = make([]Command, 1, max(1, a.expected))
	case n < cap(cmds):
		cmds = cmds[:n+1] // never used before, so it is empty
	default:
		cmds = append(cmds, Command{})
	}
	c := &cmds[n]
	c.Span, c.Via, c.Remote = span, a.via, a.remote > 0
	a.out.Commands, a.cur = cmds, n
}

// alternatives runs a command once for every combination of the values its
// words may have.
func (a *analyzer) alternatives(args []word) output {
	total := 1
	for i := range args {
		if n := len(args[i].values()); n > 1 {
			total *= n
			if total > maxAlternatives {
				break
			}
		}
	}
	if total == 1 {
		return a.dispatch(args)
	}
	if total > maxAlternatives || !a.spend(total*len(args)*16) {
		for i := range args {
			if len(args[i].values()) > 1 {
				args[i].known, args[i].text, args[i].rare = false, "", nil
			}
		}
		return a.dispatch(args)
	}
	span := a.out.Commands[a.cur].Span
	for n := range total {
		if n > 0 {
			a.begin(span)
		}
		one := slices.Clone(args)
		rest := n
		for i := range one {
			if k := len(one[i].values()); k > 1 {
				one[i].text, one[i].rare = one[i].values()[rest%k], nil
				rest /= k
			}
		}
		a.dispatch(one)
	}
	return output{given: true}
}

// inner runs the command a wrapper was given.
func (a *analyzer) inner(wrapper string, args []word) output {
	if len(args) == 0 {
		return output{given: true}
	}
	if a.depth >= maxDepth || !a.spend(4*len(args)) {
		a.limit("wrappers are nested too deeply", args[0].span)
		return output{given: true}
	}
	cur, via := a.cur, a.via
	a.via = append(via[:len(via):len(via)], wrapper)
	a.begin(Span{args[0].span.Start, max(args[0].span.End, args[len(args)-1].span.End)})
	a.depth++
	out := a.alternatives(args)
	a.depth--
	a.cur, a.via = cur, via
	return out
}

// dispatch finds out what the first word runs, and applies its table.
func (a *analyzer) dispatch(args []word) output {
	if len(args) == 0 {
		return output{}
	}
	w := &args[0]
	cmd := &a.out.Commands[a.cur]
	if !w.known || w.glob {
		if a.inFunc != nil && !w.known {
			a.inFunc.runsArgs = true
		}
		a.unknown(w.span, "runs a program that is not known")
		a.fillArgs(args)
		return output{given: true}
	}
	cmd.Word = w.text
	cmd.Program = programName(w.text)
	a.fillArgs(args)
	if fn := a.st.funcs[w.text]; fn != nil {
		if fn == a.inFunc {
			a.recursion(w)
		}
		if fn.runsArgs && len(args) > 1 {
			return a.inner(w.text, args[1:])
		}
		return output{given: true}
	}
	name := cmd.Program
	prog := a.program(name)
	if prog == nil && strings.HasPrefix(name, "git-") {
		// git-lfs and git lfs are the same program.
		prog = a.kb.Program("git")
		sub := *w
		sub.text = name[len("git-"):]
		args = slices.Insert(slices.Clone(args), 1, sub)
	}
	if prog == nil {
		a.unknownProgram(w)
		if len(args) > 1 {
			a.verb(&args[1]) // what most programs mean by delete
		}
		a.pathsOfUnknown(args[1:])
		return output{given: true}
	}
	a.resolveProgram(prog, w)
	if len(args) == 2 && args[1].known && slices.Contains(prog.Info, args[1].text) {
		return output{given: true}
	}
	return a.handle(prog, args)
}

// recursion is a function that calls itself. In a pipeline or in the
// background each call makes more processes: a fork bomb.
func (a *analyzer) recursion(w *word) {
	if a.forks > 0 {
		a.add(Effect{Kind: KindOutside, Class: ClassDestructive, Irreversible: true, Span: w.span, Why: "starts itself again without end:"})
		return
	}
	a.unknown(w.span, "calls itself")
}

// pathsOfUnknown records the files a program of which nothing is known is
// told about, so that rules about files still see them.
func (a *analyzer) pathsOfUnknown(args []word) {
	for i := range args {
		w := &args[i]
		a.secretUse(w)
		if w.known && len(w.text) > 0 && w.text[0] != '-' && strings.ContainsAny(w.text, "/.~") {
			r := a.resolve(w, w.text)
			e := Effect{Kind: KindUnknown, Class: ClassUnknown, Path: r.Path, Span: w.span, Why: "is given", Bounded: true}
			e.Secret = r.tags.Name == knowledge.TagSecret || r.tags.Place == knowledge.TagSecret
			a.add(e)
		}
	}
}

// fillArgs copies the words into the facts.
func (a *analyzer) fillArgs(args []word) {
	n := len(args) - 1
	if cap(a.args)-len(a.args) < n {
		a.args = make([]Arg, 0, max(2*a.expected+2, n))
	}
	start := len(a.args)
	for i := range n {
		a.args = append(a.args, args[i+1].arg())
	}
	a.out.Commands[a.cur].Args = a.args[start : start+n : start+n]
}

func (a *analyzer) unknown(span Span, why string) {
	a.add(Effect{Kind: KindUnknown, Class: ClassUnknown, Span: span, Why: why})
}

// programName is the name a program is known by: the last component, without
// the suffix Windows gives it.
func programName(word string) string {
	name := word
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		name = name[i+1:]
	}
	if i := strings.LastIndexByte(name, '\\'); i >= 0 { // Windows
		name = name[i+1:]
	}
	if len(name) > 4 && name[len(name)-4] == '.' {
		switch strings.ToLower(name[len(name)-4:]) {
		case ".exe", ".cmd", ".bat":
			name = strings.ToLower(name[:len(name)-4])
		}
	}
	return name
}

// program finds the table of a name; python3.11 is python, gcc-12 is gcc.
func (a *analyzer) program(name string) *knowledge.Program {
	if p := a.kb.Program(name); p != nil {
		return p
	}
	short := strings.TrimRight(name, "0123456789.")
	short = strings.TrimSuffix(short, "-")
	if short != name && short != "" {
		return a.kb.Program(short)
	}
	return nil
}

// systemDirs are the directories whose programs are taken by their name when
// there is no World to ask.
var systemDirs = []string{"/bin", "/usr/bin", "/sbin", "/usr/sbin", "/usr/local/bin", "/opt/homebrew/bin"}

// unknownProgram notes a program that no table knows, and which file it is:
// whoever approves the command approves what is in it.
func (a *analyzer) unknownProgram(w *word) {
	e := Effect{Kind: KindUnknown, Class: ClassUnknown, Span: w.span, Why: "runs " + w.text + ", which is in no table", Bounded: true}
	if strings.Contains(w.text, "/") {
		e.Path = a.resolve(w, w.text).Path
	}
	if a.world != nil && a.remote == 0 {
		a.out.Commands[a.cur].Resolved = a.world.Program(w.text, a.st.cwd.abs).Path
	}
	a.add(e)
}

// resolveProgram checks that the word runs the program the table is about.
func (a *analyzer) resolveProgram(p *knowledge.Program, w *word) {
	if p.Builtin && !strings.Contains(w.text, "/") {
		return
	}
	if a.remote > 0 {
		return
	}
	if a.world == nil {
		if strings.IndexByte(w.text, '/') >= 0 || strings.IndexByte(w.text, '\\') >= 0 {
			dir := path.Dir(path.Clean(w.text))
			if !slices.Contains(systemDirs, dir) {
				a.add(Effect{Kind: KindExecute, Class: ClassUnknown, Span: w.span, Why: "runs a program by a path that is not the system's:",
					Path: a.resolve(w, w.text).Path, Bounded: true})
			}
		}
		return
	}
	pr := a.world.Program(w.text, a.st.cwd.abs)
	a.out.Commands[a.cur].Resolved = pr.Path
	switch pr.State {
	case ProgramTrusted:
	case ProgramWritable:
		a.add(Effect{Kind: KindExecute, Class: ClassUnknown, Span: w.span, Why: "runs a file the agent can write: " + pr.Path, Bounded: true})
	case ProgramMissing:
		if p.Handler == "patch" {
			return // the agent's host takes it for its own
		}
		a.unknown(w.span, "there is no program "+w.text)
	default:
		a.unknown(w.span, "the file "+w.text+" runs is not known")
	}
}
