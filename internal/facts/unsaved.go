package facts

import (
	"cmp"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/shell"
)

// WorkState says in which way work is not saved.
type WorkState string

// The states of work.
const (
	Changed   WorkState = "changed"   // differs from the last commit and from the index
	Staged    WorkState = "staged"    // is in the index and in no commit
	Untracked WorkState = "untracked" // git does not know it
	Unpushed  WorkState = "not on any remote"
	Stashed   WorkState = "stashed"
	Unknown   WorkState = "whether it is saved cannot be told"
)

// Work is something that somebody made and that is saved nowhere else.
type Work struct {
	Path  string
	State WorkState
	// ID says what exactly is there, so that an approval is one of that.
	ID string
	// File is where it lies, "" for what is no file.
	File string
}

// String writes the work for people.
func (w Work) String() string { return w.Path + " (" + string(w.State) + ")" }

// Compare orders work by its path.
func (w Work) Compare(o Work) int {
	return cmp.Or(cmp.Compare(w.Path, o.Path), cmp.Compare(w.State, o.State), cmp.Compare(w.ID, o.ID))
}

// loss collects what a call changes, and of that what it destroys.
type loss struct {
	changed   []string // paths that are written or deleted
	destroyed []string // paths whose content is gone afterwards
	// repositories are directories in whose repository a command destroys
	// something that its words do not name.
	repositories []string
	blind        bool // it destroys something, and where cannot be told
	writesBlind  bool // it changes something, and where cannot be told
}

// overwriters put something else in the place of what is there. A program that
// edits, and a redirection, are how work is done; what they replace is kept in
// a restore point.
var overwriters = map[string]bool{"mv": true, "cp": true, "install": true, "ln": true, "rsync": true, "dd": true, "truncate": true, "shred": true}

// loses notes what an effect of a command destroys.
func (x *extractor) loses(c *shell.Command, e *shell.Effect) {
	destroys := e.Kind == shell.KindDelete || e.Class == shell.ClassDestructive
	if !destroys && !(e.Kind == shell.KindWrite && overwriters[c.Program]) || c.Remote {
		return
	}
	switch {
	case e.Path.Scope == shell.ScopeNull || e.Path.Scope == shell.ScopeRemote:
	case e.Path.Known && e.Path.Value != "" && x.base.Dir != "":
		x.losesPath(c, e)
	case c.Program == "git" && destroys:
		x.loss.repositories = append(x.loss.repositories, x.gitDir(c))
	case destroys && (e.Kind == shell.KindDelete || e.Path.Raw != ""):
		x.loss.blind = true
	}
}

// losesPath notes the files at a path of an effect. What is put into a
// directory replaces what has its name there.
func (x *extractor) losesPath(c *shell.Command, e *shell.Effect) {
	if e.Path.Glob {
		dir := e.Path.Value
		if i := strings.IndexAny(dir, "*?["); i >= 0 {
			dir = dir[:strings.LastIndexByte(dir[:i], '/')+1]
		}
		x.loss.destroyed = append(x.loss.destroyed, path.Clean("/"+dir))
		return
	}
	real, byWords, problem := x.resolve(e.Path.Text())
	if problem != "" {
		x.loss.blind = true
		return
	}
	if e.Kind == shell.KindWrite && x.world != nil && x.world.Path(real).Dir && !e.Recursive {
		for _, a := range c.Args {
			if !a.Known || a.Glob {
				x.loss.destroyed = append(x.loss.destroyed, real)
				return
			}
			if !strings.HasPrefix(a.Text, "-") {
				x.loss.destroyed = append(x.loss.destroyed, filepath.Join(real, filepath.Base(a.Text)))
			}
		}
		return
	}
	x.loss.destroyed = append(x.loss.destroyed, real)
	if byWords != real {
		x.loss.destroyed = append(x.loss.destroyed, byWords)
	}
}

// gitDir is the directory that a git command works in: the last -C, if every
// one of them is known.
func (x *extractor) gitDir(c *shell.Command) string {
	dir := x.call.Dir
	for i := 0; i+1 < len(c.Args); i++ {
		if c.Args[i].Text != "-C" {
			continue
		}
		if next := c.Args[i+1]; !next.Known {
			x.loss.blind = true
		} else if path.IsAbs(next.Text) {
			dir = next.Text
		} else {
			dir = path.Join(dir, next.Text)
		}
	}
	return dir
}

// unsaved asks the world what of the work that a call touches is saved nowhere
// else, and what of that would be gone.
func (x *extractor) unsaved() {
	touched := x.world.Unsaved(x.loss.changed, false)
	lost := x.world.Unsaved(x.loss.destroyed, true)
	touches := slices.Concat(x.loss.changed, x.loss.destroyed)
	for _, dir := range x.loss.repositories {
		if dir == "" {
			x.loss.blind = true
			continue
		}
		works := x.world.UnsavedIn(dir)
		for _, w := range works {
			if w.File != "" {
				touches = append(touches, w.File)
			}
		}
		touches = append(touches, x.world.RefFiles(dir)...)
		lost = append(lost, works...)
	}
	if x.loss.blind {
		lost = append(lost, Work{Path: "what it destroys", State: Unknown})
	}
	x.facts.Uncommitted = x.names(append(touched, lost...))
	x.facts.Destroys = x.names(lost)
	slices.Sort(touches)
	x.facts.Touches = slices.Compact(touches)
	// What an MCP server changes is the server's; what its arguments name here
	// is known.
	_, _, tool, _ := call.SplitMCP(x.call.Operation)
	x.facts.TouchesMore = x.loss.blind || x.loss.writesBlind || x.facts.Class == "unknown" && tool == ""
}

// names lists work in words, each once, and makes it part of the world that
// an approval is bound to.
func (x *extractor) names(works []Work) (out []string) {
	seen := make(map[string]bool)
	for _, w := range works {
		s := w.String()
		if !seen[s] {
			seen[s] = true
			out = append(out, s)
			x.seen.note("unsaved "+s, w.ID)
		}
	}
	return out
}

// changes notes a path that a call writes or deletes.
func (x *extractor) changes(c call.Capability, real string) {
	if c != call.FSWrite && c != call.FSDelete {
		return
	}
	x.loss.changed = append(x.loss.changed, real)
	if c == call.FSDelete && x.call.Operation != call.OpShell {
		x.loss.destroyed = append(x.loss.destroyed, real)
	}
}
