package shell

import (
	"path"
	"slices"
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/shell/knowledge"
)

// how says in which way a file is written.
type how uint8

const (
	writeRedirect how = iota // the shell opens it for writing
	writeAppend              // something is added at its end
	writeTruncate            // emptied, with nothing put in
	writeFile                // created or overwritten by a program
	writeNew                 // created, nothing overwritten
	writeMutate              // changed in place
)

var howWords = [...]string{"writes", "appends to", "empties", "writes", "creates", "edits"}

// resolved is a path with what its tables say.
type resolved struct {
	Path
	tags  knowledge.Tags
	where Scope // where it would be on this machine
	info  PathInfo
}

// resolve finds out what is known of the file a word names.
func (a *analyzer) resolve(w *word, text string) resolved {
	text = strings.TrimPrefix(text, "file://")
	r := resolved{Path: Path{Raw: text, Known: w.known, Glob: w.glob}}
	joined := a.st.cwd.join(w.judged(text))
	if r.Value = cleanPath(joined); strings.Contains(joined, "/..") {
		r.Joined = joined
	}
	judged := r.Value
	if a.world != nil && a.remote == 0 && w.known && !w.glob && strings.HasPrefix(judged, "/") {
		r.info = a.world.Path(judged)
		if r.info.Known && r.info.Real != "" {
			judged = r.info.Real
		}
	}
	r.tags = a.kb.PathTags(judged)
	if strings.HasPrefix(judged, "../") && r.tags == (knowledge.Tags{}) {
		// Nobody knows how far up it leads; it may be all the way.
		r.tags.Name = a.kb.PathTags("/" + strings.TrimLeft(judged, "./")).Secret()
	}
	if judged != r.Value && r.tags.Name == knowledge.TagNone {
		r.tags.Name = a.kb.PathTags(r.Value).Name
	}
	r.where = a.scope(judged, r.tags)
	r.Scope = r.where
	if a.remote > 0 {
		r.Scope = ScopeRemote
	}
	return r
}

func (a *analyzer) scope(p string, tags knowledge.Tags) Scope {
	switch {
	case tags.Place == knowledge.TagNull:
		return ScopeNull
	case tags.Place == knowledge.TagDevice:
		return ScopeDevice
	case strings.HasPrefix(p, "/"):
		for _, root := range a.roots {
			if under(p, root) {
				return ScopeWorkspace
			}
		}
		if tags.Place == knowledge.TagTemp {
			return ScopeTemp
		}
		if tags.Place != knowledge.TagNone || p == "/" || wholeRoot(p) {
			return ScopeSystem
		}
		if a.opts.Home != "" && under(p, a.opts.Home) || strings.HasPrefix(p, "/home/") || strings.HasPrefix(p, "/Users/") {
			return ScopeHome
		}
		return ScopeElsewhere
	case strings.HasPrefix(p, "~"):
		return ScopeHome
	case a.st.cwd.lost || !inside(p):
		return ScopeUnknown
	}
	return ScopeWorkspace
}

// wholeRoot recognises a pattern for everything at the top: "/*".
func wholeRoot(p string) bool {
	first, _, _ := strings.Cut(p[1:], "/")
	return strings.ContainsAny(first, "*?[")
}

func under(p, root string) bool {
	return p == root || root == "/" || strings.HasPrefix(p, root) && p[len(root)] == '/'
}

// cleanPath is path.Clean without work for paths that are clean.
func cleanPath(p string) string {
	if strings.HasPrefix(p, "./") || strings.Contains(p, "//") || strings.Contains(p, "/.") || strings.HasSuffix(p, "/") && p != "/" {
		return path.Clean(p)
	}
	return p
}

// each calls f for every value a word may have.
func (w *word) each(f func(text string)) {
	if w.rare == nil || w.rare.alts == nil {
		f(w.text)
		return
	}
	for _, t := range w.rare.alts {
		f(t)
	}
}

// readPath records that a file is read; names only means that its contents are not.
func (a *analyzer) readPath(w *word, namesOnly bool) {
	if w.stream {
		return // what is read comes from the commands inside, which were followed
	}
	if w.listing {
		a.add(Effect{Kind: KindRead, Class: ClassSafe, Span: w.span, Why: "reads files below",
			Path: Path{Raw: w.listRoot(), Value: w.listRoot(), Known: true, Glob: true, Scope: a.scope(w.listRoot(), knowledge.Tags{})}})
		return
	}
	w.each(func(text string) {
		if i := strings.Index(text, "://"); i > 0 && !strings.HasPrefix(text, "file:") && !namesOnly {
			a.add(Effect{Kind: KindNetwork, Class: ClassNetwork, Host: hostOf(text), Span: w.span, Why: "contacts"})
			return
		}
		r := a.resolve(w, text)
		e := Effect{Kind: KindRead, Class: ClassSafe, Path: r.Path, Span: w.span, Why: "reads"}
		if namesOnly {
			e.Why, e.Names = "lists", true
		}
		switch {
		case r.where == ScopeNull:
			return
		case namesOnly && (w.known || w.plain):
		case r.tags.Name == knowledge.TagSecret || r.tags.Place == knowledge.TagSecret:
			e.Class, e.Secret, e.Why = ClassUnknown, true, "reads credentials in"
		case w.glob && a.kb.GlobMayBeSecret(r.Value):
			e.Class, e.Secret, e.Why = ClassUnknown, true, "reads files that may hold credentials:"
		case a.homeItself(r.Value):
			e.Class, e.Why = ClassUnknown, "reads the whole home directory"
		case r.where == ScopeDevice:
			e.Class, e.Why = ClassUnknown, "reads the device"
		case !w.known && !(w.plain && text != "") || w.strays():
			e.Class, e.Why = ClassUnknown, "reads a file that is not known"
		}
		if len(a.picks) == 0 || e.Class != ClassSafe || w.glob || namesOnly {
			a.add(e)
			return
		}
		for _, pick := range a.picks {
			e.Path.Value, e.Path.Glob = r.Value+"/**/"+pick, true
			a.add(e)
		}
	})
}

// homeItself says that a path is a whole home directory, with all the
// credentials in it, and not the workspace.
func (a *analyzer) homeItself(p string) bool {
	if p == "~" || p == a.opts.Home && p != "" || p == "/root" {
		return !slices.Contains(a.roots, p)
	}
	for _, dir := range []string{"/home/", "/Users/"} {
		if strings.HasPrefix(p, dir) && strings.IndexByte(p[len(dir):], '/') < 0 {
			return !slices.Contains(a.roots, p)
		}
	}
	return false
}

// writePath records that a file is written.
func (a *analyzer) writePath(w *word, h how, span Span) {
	if w.stream {
		return
	}
	w.each(func(text string) {
		r := a.resolve(w, text)
		if r.where == ScopeNull && w.known {
			return
		}
		if strings.HasPrefix(r.Value, "/dev/tcp/") || strings.HasPrefix(r.Value, "/dev/udp/") {
			host := strings.Replace(r.Value[len("/dev/tcp/"):], "/", ":", 1)
			a.add(Effect{Kind: KindNetwork, Class: ClassNetwork, Host: host, Span: span, Why: "connects to"})
			return
		}
		e := Effect{Kind: KindWrite, Path: r.Path, Span: span, Why: howWords[h]}
		a.judgeWrite(&e, &r, w, h)
		a.add(e)
	})
}

// judgeWrite decides what writing a file makes of a command.
func (a *analyzer) judgeWrite(e *Effect, r *resolved, w *word, h how) {
	e.Class = ClassMutating
	missing := r.info.Known && !r.info.Exists
	switch {
	case r.where == ScopeDevice:
		e.Class, e.Irreversible, e.Why = ClassDestructive, true, "overwrites the device"
		return
	case r.tags.Name == knowledge.TagStartup || r.tags.Place == knowledge.TagStartup:
		e.Kind, e.Class, e.Why = KindExecute, ClassUnknown, "changes what runs later:"
	case r.where == ScopeSystem:
		e.Class, e.Irreversible, e.Why = ClassDestructive, true, "changes a system file:"
	case r.tags.Name == knowledge.TagHistory && h != writeAppend:
		e.Class, e.Irreversible, e.Why = ClassDestructive, true, "overwrites a record of what was done:"
	case !w.known && !(w.plain && r.Value != ""):
		e.Class, e.Why = ClassUnknown, howWords[h]+" a file that is not known"
	case r.where == ScopeUnknown && h != writeAppend:
		e.Class = ClassUnknown
	case r.where == ScopeHome && hidden(r.Value):
		e.Class = ClassUnknown
	case (r.where == ScopeHome || r.where == ScopeElsewhere) && len(a.roots) > 0 && h != writeAppend && h != writeNew && !missing:
		e.Class = ClassUnknown
		e.Why += " outside the workspace"
	}
	if h == writeTruncate && !missing {
		e.Class, e.Irreversible = ClassDestructive, true
	}
}

// hidden says that a path below the home directory goes through a dot file or
// a dot directory, where settings are.
func hidden(p string) bool { return strings.Contains(p, "/.") }

// deletePath records that a file or tree is deleted for good.
func (a *analyzer) deletePath(w *word, recursive bool) {
	w.each(func(text string) {
		r := a.resolve(w, text)
		e := Effect{Kind: KindDelete, Class: ClassDestructive, Irreversible: true, Path: r.Path, Recursive: recursive, Span: w.span}
		e.Why = "deletes"
		if !w.known {
			e.Why = "deletes files that are not known"
		}
		a.add(e)
	})
}

// movedPath records that a file goes away under its old name.
func (a *analyzer) movedPath(w *word) {
	w.each(func(text string) {
		r := a.resolve(w, text)
		e := Effect{Kind: KindWrite, Class: ClassMutating, Path: r.Path, Moved: true, Span: w.span, Why: "moves"}
		switch {
		case r.where == ScopeSystem || r.where == ScopeDevice:
			e.Class, e.Irreversible = ClassDestructive, true
		case r.tags.Name == knowledge.TagSecret:
			e.Class, e.Secret = ClassUnknown, true
		case !w.known && !w.listing, r.where == ScopeUnknown, r.where == ScopeHome && hidden(r.Value):
			e.Class = ClassUnknown
		case (r.where == ScopeHome || r.where == ScopeElsewhere) && len(a.roots) > 0:
			e.Class = ClassUnknown
		}
		a.add(e)
	})
}

// secretUse records that the value of a credential variable is used.
func (a *analyzer) secretUse(w *word) {
	if name := w.credential(); name != "" {
		a.add(Effect{Kind: KindRead, Class: ClassUnknown, Secret: true, Span: w.span, Why: "shows the variable " + name})
		w.setRare(func(r *rare) { r.secret = "" })
	}
}
