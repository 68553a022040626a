package facts

import (
	"crypto/sha256"
	"slices"
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/argument"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
	"github.com/seed-3ebc6b8a/gatehouse/internal/risk"
	"github.com/seed-3ebc6b8a/gatehouse/internal/shell"
	"github.com/seed-3ebc6b8a/gatehouse/internal/shell/knowledge"
)

// World answers what cannot be known from the words of a call. The same
// question gets the same answer while one call is described.
type World interface {
	match.Linker
	shell.World
	// Identify says what is at a path, so precisely that a change shows: kind,
	// device and inode, and for a file the hash of what is in it. It is "" for
	// what is not there.
	Identify(path string) string
	// Below lists what lies below a directory, directories included. It is not
	// whole if that is too much.
	Below(dir string) (entries []Entry, whole bool)
	// Read lists the files whose content an answer rested on.
	Read() []string
	// Unsaved lists work at or below the paths that no commit holds, and if
	// they are to be gone what goes with them. What it cannot tell it lists as
	// Unknown.
	Unsaved(paths []string, gone bool) []Work
	// UnsavedIn lists all such work in the repository that a directory is in,
	// commits that no remote has and stashes included.
	UnsavedIn(dir string) []Work
	// RefFiles lists the files in which that repository keeps what its
	// branches, its stash and its index stand for.
	RefFiles(dir string) []string
}

// Entry is something below a directory.
type Entry struct {
	Path string
	// Real is what a link leads to, "" for everything else.
	Real string
}

// Options is what is known around a call besides the call itself.
type Options struct {
	// Home is the agent's home directory.
	Home string
	// Workspace is the real root of the work; the working directory if "".
	Workspace string
	// Own is the gate itself, which no call may reach.
	Own Own
	// Tools says which operation a tool is that the gate would not know.
	Tools map[string]string
	// Declared is what tools say about themselves; nil if none does.
	Declared *argument.Set
	// Watched says that rules of the policy are about a path, which is named as
	// needs name it; nil if there are none.
	Watched func(scope, workspace string, inside bool) bool
	// Implied says which paths, fields and tools imply further capabilities.
	Implied []Implied
	// Knowledge is what is known about programs; nil is what is built in.
	Knowledge *knowledge.Base
	// ScoreProfile and Weights say how a request to an agent CLI is scored;
	// nothing is the strictest profile and the points of the table.
	ScoreProfile string
	Weights      *risk.Weights
}

// Own is where the gate lives.
type Own struct {
	// Paths are the gate's own files and directories, as real paths.
	Paths []string
	// Settings are the files in which agents' hooks are written, relative to a
	// home or a project; no agent changes them, wherever they lie.
	Settings []string
	// Listeners are the gate's addresses, as host:port.
	Listeners []string
	// PID is the gate's own process.
	PID int
	// ProjectFiles are the names of projects' policy files, which no agent
	// writes, wherever they lie.
	ProjectFiles []string
}

// Implied is a capability that follows from what a call touches.
type Implied struct {
	Capability call.Capability
	Paths      match.PathSet
	Fields     []match.OpGlob
	Variables  []match.OpGlob
	Tools      []match.OpGlob
}

// observed collects what the world digest covers.
type observed struct {
	seen map[string]string
}

func (o *observed) note(path, identity string) {
	if o.seen == nil {
		o.seen = make(map[string]string)
	}
	o.seen[path] = identity
}

// digest identifies what was seen. The order in which it was seen is not part
// of it.
func (o *observed) digest() (call.Digest, []call.Evidence) {
	paths := make([]string, 0, len(o.seen))
	for p := range o.seen {
		paths = append(paths, p)
	}
	slices.Sort(paths)
	var b strings.Builder
	evidence := make([]call.Evidence, 0, len(paths))
	for _, p := range paths {
		b.WriteString(p + "\x00" + o.seen[p] + "\x00")
		evidence = append(evidence, call.Evidence{Where: p, Text: o.seen[p]})
	}
	return sha256.Sum256([]byte("gatehouse/world/1\x00" + b.String())), evidence
}
