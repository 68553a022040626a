package facts

import (
	"errors"
	"path"
	"strconv"
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
	"github.com/seed-3ebc6b8a/gatehouse/internal/risk"
)

// extractor gathers the facts of one call.
type extractor struct {
	call  *call.Call
	world World
	opts  *Options
	base  match.Base
	root  string // the workspace
	facts *Facts
	seen  observed
	// untrusted says that the tool is one that nobody knows.
	untrusted bool
	loss      loss
	// ran are the simple commands of the call, each with what it needs.
	ran []ran
}

// Extract describes a normalised call. A nil world judges the words alone.
func Extract(c *call.Call, w World, opts *Options) *Facts {
	x := &extractor{call: c, world: w, opts: opts, facts: &Facts{}}
	x.base = match.Base{Dir: c.Dir, Home: opts.Home}
	x.root = opts.Workspace
	if x.root == "" {
		x.root = c.Dir
	}
	x.facts.Workspace = x.root
	if c.Dir != "" {
		x.look(c.Dir)
	}
	x.scan()
	strs := Strings(c.Args)
	x.mentions(strs)
	if c.Kind == call.External {
		x.external(strs)
		x.claims()
		x.holdDeclared()
		x.implied(strs)
		if x.operation() != call.OpShell {
			x.score(risk.Of(x.needEffects()), "args")
		}
	}
	if c.Kind == call.Dispatch {
		x.dispatch()
	}
	x.taint()
	if w != nil {
		x.unsaved()
		for _, file := range w.Read() {
			x.look(file)
		}
	}
	x.facts.World, x.facts.Observed = x.seen.digest()
	return x.facts
}

// path adds the need for one path and what else it implies, and returns the
// scope. A path that cannot be resolved counts as the widest.
func (x *extractor) path(c call.Capability, s String) string {
	evidence := call.Evidence{Where: s.Where, Text: s.Text}
	if scope, ok := x.relative(s.Text); ok {
		x.facts.Needs = append(x.facts.Needs, call.Need{Capability: c, Scope: scope, Inside: true, Below: c == call.FSDelete, Evidence: []call.Evidence{evidence}})
		x.tagged(c, scope, scope, evidence)
		return scope
	}
	if c == call.FSRead && x.climbs(s.Text) {
		// Reading is judged by what is read, and the words say what that is
		// wherever they lead from.
		x.need(c, "", evidence)
		x.tagged(c, path.Clean(s.Text), path.Clean(s.Text), evidence)
		return path.Clean(s.Text)
	}
	real, byWords, problem := x.resolve(s.Text)
	if problem != "" {
		evidence.Text = s.Text + ": " + problem
		x.need(c, "", evidence)
		x.doubt()
		return "a path that cannot be resolved"
	}
	if byWords != real {
		x.place(c, byWords, evidence)
	}
	return x.place(c, real, evidence)
}

// place adds the need for a path without links, and returns the scope.
func (x *extractor) place(c call.Capability, real string, evidence call.Evidence) string {
	x.look(real)
	x.guard(real, c != call.FSRead, evidence)
	x.changes(c, real)
	scope, inside := x.scope(real)
	n := call.Need{Capability: c, Scope: scope, Inside: inside, Below: c == call.FSDelete && x.holds(real), Evidence: []call.Evidence{evidence}}
	if inside {
		n.Root = x.rootID()
	}
	x.facts.Needs = append(x.facts.Needs, n)
	x.tagged(c, real, scope, evidence)
	for _, i := range x.opts.Implied {
		if _, ok := i.Paths.Match(real); ok {
			x.need(i.Capability, scope, evidence)
		}
	}
	return scope
}

// relative judges a relative path where the working directory is not known:
// by its words it lies in the workspace unless it climbs out.
func (x *extractor) relative(word string) (scope string, ok bool) {
	if x.base.Dir != "" || word == "" || strings.HasPrefix(word, "~") || strings.Contains(word, "://") || strings.ContainsRune(word, 0) {
		return "", false
	}
	clean := path.Clean(word)
	if path.IsAbs(clean) || x.climbs(word) {
		return "", false
	}
	if clean == "." {
		return ".", true
	}
	return "./" + clean, true
}

// holds says whether something may lie below a path: it is a directory, or
// nobody knows what it is.
func (x *extractor) holds(real string) bool {
	if x.world == nil {
		return true
	}
	info := x.world.Path(real)
	return !info.Known || !info.Exists || info.Dir
}

// climbs says whether a path leads out of a working directory that is not
// known.
func (x *extractor) climbs(word string) bool {
	clean := path.Clean(word)
	return x.base.Dir == "" && (clean == ".." || strings.HasPrefix(clean, "../"))
}

// doubt notes that something about the call cannot be told. What destroys
// still destroys.
func (x *extractor) doubt() {
	if x.facts.Class != "destructive" {
		x.facts.Class = "unknown"
	}
}

// resolve makes a word an absolute path without links, in both ways in which
// programs do: as the kernel does, for which ".." after a link is the parent of
// where the link leads, and as shells and editors do, which first take ".." and
// the word before it away. Which of them a tool is nobody knows.
func (x *extractor) resolve(word string) (real, byWords, problem string) {
	p, err := match.CleanPath(x.base, word)
	if err != nil {
		x.nul(errors.Is(err, match.ErrNUL), word)
		return "", "", err.Error()
	}
	if p.Magic {
		return "", "", "which file it is only its process can tell"
	}
	if x.world == nil {
		return p.Clean, p.Clean, ""
	}
	r, err := match.Resolve(p.Raw, x.world)
	if err != nil {
		return "", "", err.Error()
	}
	clean, err := match.Resolve(p.Clean, x.world)
	if err != nil {
		return "", "", err.Error()
	}
	return r.Path, clean.Path, ""
}

// look notes what is at a path, for the world digest.
func (x *extractor) look(path string) {
	if x.world != nil {
		x.seen.note(path, x.world.Identify(path))
	}
}

// scope writes a path as policies and grants see it: relative to the
// workspace where it lies in it.
func (x *extractor) scope(real string) (scope string, inside bool) {
	if x.root != "" && match.Within(x.root, real) {
		return "." + strings.TrimPrefix(real, strings.TrimSuffix(x.root, "/")), true
	}
	return real, false
}

// rootID says which directory the workspace is: its path, and what is there.
func (x *extractor) rootID() string {
	if x.world == nil {
		return x.root
	}
	return x.root + " " + x.world.Identify(x.root)
}

// need adds a need that has no path.
func (x *extractor) need(c call.Capability, scope string, e call.Evidence) {
	x.facts.Needs = append(x.facts.Needs, call.Need{Capability: c, Scope: scope, Evidence: []call.Evidence{e}})
}

// host adds the need to reach a host.
func (x *extractor) host(word string, e call.Evidence) {
	h, err := match.ParseHost(word)
	if err != nil {
		e.Text += ": " + err.Error()
		x.need(call.NetEgress, "", e)
		x.doubt()
		return
	}
	x.addHost(h, e)
}

// addHost adds the need to reach a host that was read.
func (x *extractor) addHost(h match.Host, e call.Evidence) {
	port := h.Port
	if port == 0 {
		port = 443
	}
	scope := h.Name + ":" + strconv.Itoa(port)
	x.guardHost(h, e)
	if h.Class() == match.ClassMetadata {
		x.need(call.SecretsAccess, scope, e)
	}
	x.need(call.NetEgress, scope, e)
	x.facts.Words = "connects to " + scope
}

// needKinds says which kind of effect a capability stands for.
var needKinds = map[call.Capability]string{
	call.FSRead: "read", call.FSWrite: "write", call.FSDelete: "delete", call.NetEgress: "network", call.ProcExec: "execute",
}

// needEffects describes the needs of a call that is no command for scoring.
// The same file read scores the same whoever asks for it.
func (x *extractor) needEffects() []risk.Effect {
	var out []risk.Effect
	for _, n := range x.facts.Needs {
		kind, ok := needKinds[n.Capability]
		if !ok {
			continue
		}
		e := risk.Effect{Kind: kind, Class: x.facts.Class, Known: n.Scope != "", Why: n.String()}
		if kind == "network" {
			e.Host = n.Scope
		} else {
			e.Path, e.Secret = n.Scope, x.needs(call.SecretsAccess, n.Scope)
		}
		if n.Inside {
			e.Scope = "workspace"
		}
		out = append(out, e)
	}
	if len(out) == 0 && x.facts.Class == "unknown" {
		out = append(out, risk.Effect{Kind: "unknown", Class: "unknown", Why: x.facts.Words})
	}
	return out
}

// needs says whether the call needs a capability for a scope.
func (x *extractor) needs(c call.Capability, scope string) bool {
	for _, n := range x.facts.Needs {
		if n.Capability == c && n.Scope == scope {
			return true
		}
	}
	return false
}

// implied adds the capabilities that fields and tools imply.
func (x *extractor) implied(strs []String) {
	for _, i := range x.opts.Implied {
		for _, tool := range i.Tools {
			if tool.Match(x.call.Operation) {
				x.need(i.Capability, x.call.Operation, call.Evidence{Where: "operation", Text: x.call.Operation})
			}
		}
		for _, variable := range i.Variables {
			for _, name := range variables(x.facts.Script) {
				if variable.Match(name) {
					x.need(i.Capability, "$"+name, call.Evidence{Where: "command", Text: name})
				}
			}
		}
		for _, field := range i.Fields {
			for _, s := range strs {
				if !s.Key && field.Match(s.Name) {
					x.need(i.Capability, s.Name, call.Evidence{Where: s.Where, Text: s.Name})
				}
			}
		}
	}
}

// variables lists the names of the variables that a command line mentions, in
// quotes and out of them: more than it uses, never fewer.
func variables(script string) []string {
	var names []string
	for rest := script; ; {
		i := strings.IndexByte(rest, '$')
		if i < 0 {
			return names
		}
		rest = strings.TrimLeft(rest[i+1:], "{!#")
		end := 0
		for end < len(rest) && (rest[end] == '_' || '0' <= rest[end] && rest[end] <= '9' || 'a' <= rest[end]|0x20 && rest[end]|0x20 <= 'z') {
			end++
		}
		if end > 0 {
			names = append(names, rest[:end])
		}
	}
}
