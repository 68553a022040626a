package policy

import (
	"errors"
	"path"
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
)

// fit says how well a pattern that objects fits what a call touches.
type fit uint8

const (
	// misses: the pattern has nothing to do with it.
	misses fit = iota
	// mayFit: it cannot be told, because the call does not say what exactly it
	// touches, or touches a tree in which something may match.
	mayFit
	// fits: the pattern holds it under some reading.
	fits
)

// soften is the level of an objection that only may apply: what would be
// denied for certain is shown to a person instead.
func soften(level call.Level, f fit) call.Level {
	if f == mayFit && level == call.Deny {
		return call.ConfirmSingleUse
	}
	return level
}

// kind is what a pattern or a target is made of.
type kind uint8

const (
	kindText kind = iota
	kindPath
	kindHost
)

// scopeKind says what the scope of a capability is made of. Where the
// capability leaves it open, a scope that looks like a path is one.
func scopeKind(c call.Capability, scope string) kind {
	switch c {
	case call.FSRead, call.FSWrite, call.FSDelete:
		return kindPath
	case call.NetEgress:
		return kindHost
	case call.ProcExec:
		return kindText
	}
	if looksLikePath(scope) {
		return kindPath
	}
	return kindText
}

func looksLikePath(s string) bool {
	for _, prefix := range []string{"/", "./", "~/", "**/"} {
		if strings.HasPrefix(s, prefix) {
			return true
		}
	}
	return s == "." || s == "~" || s == "**"
}

// pattern is a compiled pattern over what a call touches. It is asked in two
// ways: covers is exact and is used to allow, meets is loose and is used to
// object.
type pattern struct {
	src  string
	kind kind
	// inside patterns are relative to the workspace, whichever it is.
	inside bool
	// root is where everything lies that a path pattern holds, tree the
	// directory whose whole tree it holds.
	root   string
	tree   string
	isTree bool

	glob match.Glob
	host match.HostPattern
	text match.OpGlob

	covers func(*target) bool
	meets  func(*target) fit
}

var (
	errPathStart  = errors.New(`start a path pattern with "./" for the workspace, "~/" for the home, "/" or "**/"`)
	errPathParent = errors.New(`a pattern in the workspace cannot leave it with ".."`)
)

// compilePattern compiles a pattern. Paths that start with ~ are below home.
func compilePattern(k kind, src, home string) (*pattern, error) {
	p := &pattern{src: src, kind: k}
	var err error
	switch k {
	case kindPath:
		p.covers, p.meets = p.coversPath, p.meetsPath
		err = p.compilePath(home)
	case kindHost:
		p.covers = func(t *target) bool { return t.kind == kindHost && !t.wide && p.host.Match(t.host) }
		p.meets = p.meetsHost
		p.host, err = match.CompileHost(src)
	default:
		p.covers = func(t *target) bool { return t.kind == kindText && !t.wide && p.text.Match(t.text) }
		p.meets = p.meetsText
		p.text, err = match.CompileOp(src)
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

// compilePath binds patterns of the workspace to "/", and the paths they are
// compared with as well: one snapshot serves every workspace.
func (p *pattern) compilePath(home string) error {
	if !looksLikePath(p.src) {
		return errPathStart
	}
	src := p.src
	if src == "." || strings.HasPrefix(src, "./") {
		p.inside = true
		for el := range strings.SplitSeq(src, "/") {
			if el == ".." {
				return errPathParent
			}
		}
	}
	glob, err := match.CompileGlob(match.Base{Dir: "/", Home: home}, src)
	if err != nil {
		return err
	}
	p.glob, p.root = glob, glob.Root()
	p.tree, p.isTree = glob.Tree()
	if !p.isTree && p.root == "/" && match.Covers(match.NewPathSet(glob), everyPath) == match.Yes {
		p.tree, p.isTree = "/", true
	}
	return nil
}

// everyPath holds every path there is.
var everyPath = func() match.PathSet {
	set, err := match.CompileSet(match.Base{Dir: "/"}, "/**")
	if err != nil {
		panic(err) // the pattern is a constant
	}
	return set
}()

// pathOf picks the reading of a target that the pattern is about.
func (p *pattern) pathOf(t *target) (name string, known bool) {
	if p.inside {
		return t.rel, t.rel != ""
	}
	if t.abs == "" && t.rel != "" && t.workspace != "" {
		t.abs = path.Clean(t.workspace + t.rel)
	}
	return t.abs, t.abs != ""
}

// apart says that an absolute pattern and a path of the workspace cannot have
// anything to do with each other. It is cheap, and spares most paths being
// spelled out.
func (p *pattern) apart(t *target) bool {
	return !p.inside && t.abs == "" && t.rel != "" && t.workspace != "" && !mayNest(p.root, t.workspace)
}

// mayNest reports whether one of two directories may lie in the other, on a
// file system that ignores letter case. About other letters than ASCII it
// does not judge.
func mayNest(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	if a == "/" || !ascii(a) || !ascii(b) {
		return true
	}
	return strings.EqualFold(a, b[:len(a)]) && (len(a) == len(b) || b[len(a)] == '/')
}

func ascii(s string) bool { return match.FormOf(s) == match.FormASCII }

func (p *pattern) coversPath(t *target) bool {
	if t.kind != kindPath || t.wide || p.inside && !t.inside || p.apart(t) {
		return false
	}
	name, known := p.pathOf(t)
	if !known {
		return false
	}
	if t.tree {
		return p.isTree && match.Within(p.tree, name)
	}
	return p.glob.Match(name)
}

func (p *pattern) meetsPath(t *target) fit {
	if t.wide {
		return mayFit
	}
	if t.kind != kindPath || p.apart(t) {
		return misses
	}
	name, known := p.pathOf(t)
	switch {
	case !known && (t.inside || !p.inside):
		return mayFit
	case !known:
		return misses // a path outside the workspace
	case p.glob.MayMatch(name) || (t.tree || t.below) && match.Within(name, p.root):
		return fits
	case (t.tree || t.below) && match.Within(p.root, name):
		return mayFit
	}
	return misses
}

func (p *pattern) meetsHost(t *target) fit {
	switch {
	case t.wide:
		return mayFit
	case t.kind == kindHost && p.host.MayMatch(t.host):
		return fits
	}
	return misses
}

// meetsText also takes the bare name of a program for the program: an entry
// about git is about /usr/bin/git push too.
func (p *pattern) meetsText(t *target) fit {
	switch {
	case t.wide:
		return mayFit
	case t.kind != kindText:
		return misses
	case p.text.Match(t.text) || p.text.Match(t.program) || p.text.Match(path.Base(t.program)):
		return fits
	}
	return misses
}

// target is one thing that a call touches, prepared for comparing.
type target struct {
	kind kind
	// wide targets may be anything: the call does not say, or it says it in a
	// way that cannot be understood.
	wide bool
	// inside says that the path was observed to lie in the workspace.
	inside bool
	// tree says that everything below the path is touched; below that what is
	// there goes with it, whatever it is. An approval of a path is one of both.
	tree, below bool
	// abs is the clean absolute path, rel the same below the workspace, which
	// is "/" there; each is "" if it is not known or does not exist. Where only
	// rel is given, abs is spelled out when a pattern asks for it.
	abs, rel  string
	workspace string
	host      match.Host
	// text is the scope of what is neither path nor host, program its first
	// word.
	text, program string
}

// newTarget prepares a need of a call in a workspace.
func newTarget(n *call.Need, workspace string) target {
	t := target{kind: scopeKind(n.Capability, n.Scope), inside: n.Inside, below: n.Below}
	switch {
	case n.Scope == "":
		t.wide = true
	case t.kind == kindPath:
		t.setPath(n.Scope, workspace)
	case t.kind == kindHost:
		host, err := match.ParseHost(n.Scope)
		t.host, t.wide = host, err != nil
	default:
		t.text = n.Scope
		t.program, _, _ = strings.Cut(n.Scope, " ")
	}
	return t
}

func (t *target) setPath(scope, workspace string) {
	name, tree := strings.CutSuffix(scope, "/**")
	t.tree = tree
	if !clean(workspace) {
		workspace = ""
	}
	if name == "." || strings.HasPrefix(name, "./") {
		t.rel, t.workspace = orRoot(name[1:]), workspace
		t.wide = !clean(t.rel)
		return
	}
	if tree {
		name = orRoot(name)
	}
	if !clean(name) {
		t.wide = true
		return
	}
	t.abs = name
	switch {
	case workspace == "/":
		t.rel = t.abs
	case workspace != "" && match.Within(workspace, t.abs):
		t.rel = orRoot(t.abs[len(workspace):])
	}
}

// orRoot returns the rest of a path below a directory, "/" for the directory.
func orRoot(rest string) string {
	if rest == "" {
		return "/"
	}
	return rest
}

// clean reports whether a path is absolute and in its one spelling.
func clean(p string) bool { return path.IsAbs(p) && path.Clean(p) == p }
