package shell

import (
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/shell/knowledge"
)

// handle applies a program's table, or the code that knows the program's own
// language where a table cannot express it.
func (a *analyzer) handle(p *knowledge.Program, args []word) output {
	switch p.Handler {
	case "":
		return a.generic(p, args)
	case "sh":
		a.handleShell(p, args)
	case "eval":
		a.handleEval(args)
	case "source":
		a.handleSource(args)
	case "cd":
		return a.handleCd(p, args)
	case "alias":
		a.handleAlias(args)
	case "trap":
		a.handleTrap(args)
	case "command":
		return a.handleCommand(p, args)
	case "exec":
		return a.handleExec(p, args)
	case "echo":
		return a.handleEcho(p, args)
	case "printf":
		return a.handlePrintf(args)
	case "pwd":
		return output{given: true, known: true, text: a.pwd(), at: -1}
	case "test":
		a.handleTest(args)
	case "read":
		a.handleRead(p, args)
	case "set":
		a.handleSet(args)
	case "find":
		return a.handleFind(p, args)
	case "xargs":
		a.handleXargs(p, args)
	case "env":
		return a.handleEnv(p, args)
	case "dd":
		a.handleDd(args)
	case "tar":
		a.handleTar(p, args)
	case "python":
		a.handlePython(p, args)
	case "run-script":
		a.handleRunScript(p, args)
	case "make":
		a.handleMake(p, args)
	case "patch":
		a.handlePatch(args)
	case "ps":
		return a.ps(p, args)
	case "busybox":
		a.handleBusybox(p, args)
	default:
		a.unknown(args[0].span, "has a handler that does not exist: "+p.Handler)
	}
	return output{given: true, at: -1}
}

// shellCode follows code for a shell of its own.
func (a *analyzer) shellCode(w *word, runner string) {
	if !w.known {
		a.add(Effect{Kind: KindExecute, Class: ClassUnknown, Span: w.span, Why: runner + " runs code that is not known"})
		if w.text != "" {
			a.quietly(w.text)
		}
		return
	}
	w.each(func(text string) {
		cur, via, stdin := a.cur, a.via, a.stdin
		mark, funcs, in := a.st.mark(), a.st.funcs, a.inFunc
		vars, loop := a.st.vars, a.st.loop
		a.cur, a.via, a.stdin = -1, append(via[:len(via):len(via)], runner), output{at: -1}
		// A new shell has its own variables and functions.
		a.st.vars, a.st.funcs, a.inFunc = nil, nil, nil
		a.nested(text, w.at, w.span)
		a.st.restore(mark)
		a.st.vars, a.st.funcs, a.inFunc, a.st.loop = vars, funcs, in, loop
		a.cur, a.via, a.stdin = cur, via, stdin
	})
}

// quietly follows the known beginning of code whose end is not known, to find
// what it destroys. That it may not parse is no news.
func (a *analyzer) quietly(text string) {
	notes, complete, class := len(a.out.Notes), a.out.Complete, a.out.Class
	w := word{text: text, known: true, at: -1, span: a.out.Commands[a.cur].Span}
	a.shellCode(&w, "sh")
	a.out.Notes, a.out.Complete, a.out.Class = a.out.Notes[:notes], complete, class
}

// programWord is a word that names a program to run.
func (a *analyzer) programWord(w *word, by string) {
	a.add(Effect{Kind: KindExecute, Class: ClassUnknown, Span: w.span, Why: by + " runs a program it is given: " + w.text})
	if w.known {
		if words, ok := splitWords(w.text); ok && len(words) > 0 {
			args := make([]word, len(words))
			for i, t := range words {
				args[i] = word{text: t, known: true, span: w.span, at: -1}
			}
			a.inner(by, args)
		}
	}
}

// scriptFile is a file whose contents run.
func (a *analyzer) scriptFile(w *word) {
	e := Effect{Kind: KindExecute, Class: ClassUnknown, Span: w.span, Why: "runs the script"}
	if w.stream {
		e.Why = "runs what other commands print"
	} else {
		e.Path = a.resolve(w, w.text).Path
		e.Bounded = w.known && !w.glob
	}
	a.add(e)
}

// enter changes the working directory of one command.
func (a *analyzer) enter(w *word) {
	if !w.known || w.glob || w.values() != nil {
		a.st.cwd = directory{lost: true}
		return
	}
	a.st.cwd = a.moved(w.text)
}

// maxPath is longer than any path the kernel takes.
const maxPath = 4096

// moved is where a relative or absolute path leads.
func (a *analyzer) moved(text string) directory {
	d := a.st.cwd
	to := cleanPath(d.join(text))
	switch {
	case len(to) > maxPath:
		return directory{lost: true}
	case strings.HasPrefix(to, "/"):
		return directory{abs: to}
	case strings.HasPrefix(to, "~"):
		return directory{rel: to}
	case d.lost:
		return directory{lost: true}
	case to == ".":
		return directory{}
	}
	return directory{rel: to}
}

// contact records that a host is contacted.
func (a *analyzer) contact(w *word, p *knowledge.Program) {
	e := Effect{Kind: KindNetwork, Class: ClassNetwork, Span: w.span, Why: "contacts"}
	if !w.known {
		e.Why = "contacts a host that is not known"
		a.add(e)
		return
	}
	w.each(func(text string) {
		e := e
		if p.Name == "git" {
			if code, ok := strings.CutPrefix(text, "ext::"); ok {
				a.add(Effect{Kind: KindExecute, Class: ClassUnknown, Span: w.span, Why: "git runs a program as its transport"})
				c := word{text: code, known: true, span: w.span, at: -1}
				a.shellCode(&c, p.Name)
				return
			}
			if !strings.ContainsAny(text, ":/") {
				return // the name of a remote
			}
		}
		if strings.HasPrefix(text, "file:") {
			f := *w
			f.text, f.rare = strings.TrimPrefix(text, "file://"), nil
			a.readPath(&f, false)
			return
		}
		e.Host = hostOf(text)
		if metadataHost(e.Host) {
			e.Class, e.Secret, e.Why = ClassUnknown, true, "asks the metadata service"
		}
		if p.Name == "ssh" && localHost(e.Host) {
			e.Kind, e.Class, e.Why = KindOutside, ClassUnknown, "logs in to this machine again:"
		}
		a.add(e)
	})
}

// method is an HTTP method.
func (a *analyzer) method(w *word) {
	switch strings.ToUpper(w.text) {
	case "GET", "HEAD", "OPTIONS":
		if w.known {
			return
		}
		a.unknown(w.span, "an HTTP method that is not known")
	case "DELETE":
		a.does(knowledge.DoesDestroy, w.span, "deletes something on a server")
	default:
		a.does(knowledge.DoesPublish, w.span, "sends something to a server")
	}
}

// hostOf is the host, with port if one is given, of a URL or of host:path.
func hostOf(s string) string {
	if i := strings.Index(s, "://"); i >= 0 {
		s = s[i+3:]
	}
	if i := strings.IndexAny(s, "/?#\\"); i >= 0 {
		s = s[:i]
	}
	if i := strings.LastIndexByte(s, '@'); i >= 0 {
		s = s[i+1:]
	}
	return strings.TrimSuffix(s, ":")
}

func metadataHost(h string) bool {
	h = strings.ToLower(h)
	for _, m := range []string{
		"169.254.169.254", "169.254.170.2", "metadata.google.internal", "100.100.100.200", "[fd00:ec2::254]",
		"2852039166", "0xa9fea9fe", "0251.0376.0251.0376",
	} {
		if h == m || strings.HasPrefix(h, m+":") {
			return true
		}
	}
	return false
}

func localHost(h string) bool {
	h, _, _ = strings.Cut(h, ":")
	return h == "localhost" || strings.HasPrefix(h, "127.") || h == "0.0.0.0" || h == "[" || h == "0"
}

// hostPath is host:path, a URL, or a local file.
func (a *analyzer) hostPath(w *word, written bool) {
	colon := strings.IndexByte(w.text, ':')
	slash := strings.IndexByte(w.text, '/')
	if w.known && colon > 0 && (slash < 0 || colon < slash) {
		e := Effect{Kind: KindNetwork, Class: ClassNetwork, Host: hostOf(strings.Replace(w.text, ":", "/", 1)), Span: w.span}
		if strings.Contains(w.text, "://") {
			e.Host = hostOf(w.text)
		}
		e.Why = "copies from"
		if written {
			// As with what is uploaded in other ways, a grant for the host is
			// not one for sending it files.
			e.Why, e.Irreversible = "copies to", true
		}
		a.add(e)
		return
	}
	if written {
		a.writePath(w, writeFile, w.span)
	} else {
		a.readPath(w, false)
	}
}

// mount is a container mount: what of this machine the container gets.
func (a *analyzer) mount(w *word) {
	src := w.text
	if i := strings.Index(src, "source="); i >= 0 {
		src, _, _ = strings.Cut(src[i+len("source="):], ",")
	} else if i := strings.Index(src, "src="); i >= 0 {
		src, _, _ = strings.Cut(src[i+len("src="):], ",")
	}
	src, _, _ = strings.Cut(src, ":")
	if w.known && src != "" && !strings.ContainsAny(src[:1], "/.~") {
		return // a named volume
	}
	r := a.resolve(w, src)
	if w.known && r.where == ScopeWorkspace || !w.known && w.plain {
		a.add(Effect{Kind: KindWrite, Class: ClassMutating, Path: r.Path, Span: w.span, Why: "gives a container"})
		return
	}
	a.add(Effect{Kind: KindOutside, Class: ClassUnknown, Path: r.Path, Span: w.span, Why: "gives a container a part of this machine:"})
}
