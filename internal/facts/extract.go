package facts

import (
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
	loss  loss
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
		x.implied(strs)
		if c.Operation != call.OpShell {
			x.score(risk.Of(x.needEffects()), "args")
		}
	}
	if w != nil {
		x.unsaved()
		for _, file := range w.Read() {
			x.look(file)
		}
	}
	x.facts.World, x.facts.Observed = x.seen.digest()
	return x.facts
}

// external describes a call by the family of its tool.
func (x *extractor) external(strs []String) {
	switch x.call.Operation {
	case call.OpShell:
		x.command(strs)
	case call.OpInput:
		x.input(strs)
	case call.OpFileRead, call.OpFileSearch:
		x.files(strs, call.FSRead, "reads")
	case call.OpFileWrite, call.OpFileEdit:
		x.files(strs, call.FSWrite, "writes")
	case call.OpPatch:
		x.unknown("applies a patch", false)
	case call.OpWebFetch:
		x.urls(strs)
	case call.OpWebSearch:
		x.need(call.NetEgress, "web search", call.Evidence{Where: "operation", Text: x.call.Operation})
		x.facts.Words = "searches the web"
	case call.OpRun:
		x.run()
	case call.OpConnect:
		x.connect()
	case call.OpNote:
		x.facts.Class, x.facts.Words = "safe", "keeps notes for itself"
	case call.OpTask:
		x.unknown("starts a sub-agent, whose own calls come to the gate", false)
	default:
		x.unknown("uses a tool that the gate does not know: "+x.call.Operation, takesCode(strs))
	}
}

// unknown describes a call whose effect cannot be told from its words.
func (x *extractor) unknown(words string, code bool) {
	x.facts.Class, x.facts.Words, x.facts.TakesCode = "unknown", words, code
}

// codeFields are the names of arguments that hold code to be run.
var codeFields = map[string]bool{"code": true, "script": true, "command": true, "cmd": true, "expression": true, "query": true, "sql": true}

func takesCode(strs []String) bool {
	for _, s := range strs {
		if codeFields[s.Name] {
			return true
		}
	}
	return false
}

// pathFields are the names of arguments that hold a path.
var pathFields = map[string]bool{
	"path": true, "file_path": true, "filePath": true, "file": true, "filename": true, "notebook_path": true,
	"absolute_path": true, "target_file": true, "dir_path": true, "directory": true, "dir": true, "paths": true,
}

// files describes a file tool by its path arguments.
func (x *extractor) files(strs []String, c call.Capability, verb string) {
	var words []string
	for _, s := range strs {
		if s.Key || !pathFields[s.Name] {
			continue
		}
		scope := x.path(c, s)
		words = append(words, verb+" "+scope)
	}
	if len(words) == 0 && c == call.FSRead && x.call.Operation == call.OpFileSearch {
		// A search without a path is a search of the working directory.
		words = append(words, verb+" "+x.path(c, String{Text: ".", Where: "dir"}))
	}
	if len(words) == 0 {
		x.unknown("names no file", false)
		return
	}
	x.facts.Words = strings.Join(words, ", ")
}

// path adds the need for one path and what else it implies, and returns the
// scope. A path that cannot be resolved counts as the widest.
func (x *extractor) path(c call.Capability, s String) string {
	evidence := call.Evidence{Where: s.Where, Text: s.Text}
	if scope, ok := x.relative(s.Text); ok {
		x.facts.Needs = append(x.facts.Needs, call.Need{Capability: c, Scope: scope, Inside: true, Evidence: []call.Evidence{evidence}})
		if sensitive(scope, "") {
			x.need(call.SecretsAccess, scope, evidence)
		}
		return scope
	}
	real, byWords, problem := x.resolve(s.Text)
	if problem != "" {
		evidence.Text = s.Text + ": " + problem
		x.need(c, "", evidence)
		x.facts.Class = "unknown"
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
	x.facts.Needs = append(x.facts.Needs, call.Need{Capability: c, Scope: scope, Inside: inside, Evidence: []call.Evidence{evidence}})
	if sensitive(real, x.base.Home) {
		x.need(call.SecretsAccess, scope, evidence)
	}
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
	if path.IsAbs(clean) || clean == ".." || strings.HasPrefix(clean, "../") {
		return "", false
	}
	if clean == "." {
		return ".", true
	}
	return "./" + clean, true
}

// resolve makes a word an absolute path without links, in both ways in which
// programs do: as the kernel does, for which ".." after a link is the parent of
// where the link leads, and as shells and editors do, which first take ".." and
// the word before it away. Which of them a tool is nobody knows.
func (x *extractor) resolve(word string) (real, byWords, problem string) {
	p, err := match.CleanPath(x.base, word)
	if err != nil {
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

// need adds a need that has no path.
func (x *extractor) need(c call.Capability, scope string, e call.Evidence) {
	x.facts.Needs = append(x.facts.Needs, call.Need{Capability: c, Scope: scope, Evidence: []call.Evidence{e}})
}

// urls describes a fetch.
func (x *extractor) urls(strs []String) {
	found := false
	for _, s := range strs {
		if s.Key || s.Name != "url" && s.Name != "uri" && !strings.Contains(s.Text, "://") {
			continue
		}
		found = true
		x.host(s.Text, call.Evidence{Where: s.Where, Text: s.Text})
	}
	if !found {
		x.unknown("names no address", false)
	}
}

// host adds the need to reach a host.
func (x *extractor) host(word string, e call.Evidence) {
	h, err := match.ParseHost(word)
	if err != nil {
		e.Text += ": " + err.Error()
		x.need(call.NetEgress, "", e)
		x.facts.Class = "unknown"
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
		for _, field := range i.Fields {
			for _, s := range strs {
				if !s.Key && field.Match(s.Name) {
					x.need(i.Capability, s.Name, call.Evidence{Where: s.Where, Text: s.Name})
				}
			}
		}
	}
}
