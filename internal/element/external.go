package element

import (
	"fmt"
	"path"
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/facts"
	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
)

// External is what an element says about calls to tools outside the gate. A
// pattern is "Tool:glob", or a glob over tools. It is held against the
// analysed call: Bash against every simple command, Read, Write and Edit
// against every path that is read or changed, by whichever tool, WebFetch
// against every host.
type External struct {
	Deny    []string `json:"deny,omitzero"`
	Confirm []string `json:"confirm,omitzero"`
	Allow   []string `json:"allow,omitzero"`
	// Only are the tools an agent's own list names; it uses no others.
	Only []string `json:"only,omitzero"`
	// Require are the classes that need an approval: moderate, dangerous.
	Require []string `json:"require,omitzero"`
}

// empty says that the element has nothing to say about external calls.
func (e *External) empty() bool {
	return len(e.Deny)+len(e.Confirm)+len(e.Allow)+len(e.Only)+len(e.Require) == 0
}

// extern is the compiled policy of one element.
type extern struct {
	element              *Element
	deny, confirm, allow []pattern
	only                 []pattern
}

// fit says how well a pattern fits a call.
type fit uint8

const (
	misses fit = iota
	mayFit     // the call does not say exactly what it touches
	fits
)

// pattern is a compiled pattern over external calls.
type pattern struct {
	src  string
	tool match.OpGlob
	// tools are the operations that hosts' tools of this name are folded into.
	tools map[string]bool
	// arg is the part behind the colon; none if there is no colon.
	arg     match.OpGlob
	hasArg  bool
	literal string // the arg up to its first wildcard
	about   []call.Capability
}

// abouts are the capabilities that a pattern of a tool is about, so that a
// deny of Write holds a shell command that writes too.
var abouts = map[string][]call.Capability{
	call.OpFileRead:   {call.FSRead},
	call.OpFileSearch: {call.FSRead},
	call.OpFileWrite:  {call.FSWrite, call.FSDelete},
	call.OpFileEdit:   {call.FSWrite, call.FSDelete},
	call.OpPatch:      {call.FSWrite, call.FSDelete},
	call.OpWebFetch:   {call.NetEgress},
	call.OpWebSearch:  {call.NetEgress},
}

// compilePattern compiles "Tool:glob" or "Tool".
func compilePattern(src string) (pattern, error) {
	p := pattern{src: src, tools: make(map[string]bool)}
	tool, arg, hasArg := strings.Cut(src, ":")
	var err error
	if p.tool, err = match.CompileOp(tool); err != nil {
		return p, err
	}
	for name, op := range call.HostTools() {
		if p.tool.Match(name) {
			p.tools[op] = true
		}
	}
	if p.hasArg = hasArg; hasArg {
		if p.arg, err = match.CompileOp(arg); err != nil {
			return p, err
		}
		p.literal = arg
		if i := strings.IndexAny(arg, "*?"); i >= 0 {
			p.literal = arg[:i]
		}
	}
	for op := range p.tools {
		p.about = append(p.about, abouts[op]...)
	}
	return p, nil
}

// named says whether the call is one of the pattern's tool.
func (p *pattern) named(c *call.Call) bool { return p.tools[c.Operation] || p.tool.Match(c.Operation) }

// objects says how well the pattern fits something that the call does.
func (p *pattern) objects(c *call.Call, f *facts.Facts) fit {
	named := p.named(c)
	if named && (!p.hasArg || p.arg.String() == "*") {
		return fits
	}
	if !p.hasArg {
		return misses
	}
	best := misses
	if p.tools[call.OpShell] {
		best = p.command(f)
	}
	for i := range f.Needs {
		if p.covers(f.Needs[i].Capability) {
			best = max(best, p.need(&f.Needs[i], f.Workspace))
		}
	}
	if named && best == misses && len(p.about) == 0 && !p.tools[call.OpShell] {
		return mayFit // a tool whose arguments the gate does not understand
	}
	return best
}

func (p *pattern) covers(c call.Capability) bool {
	for _, a := range p.about {
		if a == c {
			return true
		}
	}
	return false
}

// command looks for the simple command that the pattern fits best.
func (p *pattern) command(f *facts.Facts) fit {
	best := misses
	for i, raw := range f.Commands {
		s := facts.Simple{Text: raw, Whole: true}
		if i < len(f.Simple) {
			s = f.Simple[i]
		}
		switch {
		case p.arg.Match(raw), p.arg.Match(s.Text), s.Sub != "" && p.arg.Match(s.Sub):
			return fits
		case !s.Whole && (strings.HasPrefix(p.literal, s.Text) || strings.HasPrefix(s.Text, p.literal)):
			best = mayFit
		}
	}
	return best
}

// need holds the pattern against a path or host.
func (p *pattern) need(n *call.Need, workspace string) fit {
	if n.Scope == "" {
		return mayFit
	}
	scope, tree := strings.CutSuffix(n.Scope, "/**")
	for _, text := range spellings(scope, workspace) {
		if p.arg.Match(text) || tree && p.arg.Match(text+"/") {
			return fits
		}
		if tree && strings.HasPrefix(p.literal, text+"/") {
			return mayFit // something below may be meant
		}
	}
	return misses
}

// spellings are the ways in which an author may have written a path or host.
func spellings(scope, workspace string) []string {
	out := []string{scope}
	if rel, ok := strings.CutPrefix(scope, "./"); ok {
		out = append(out, rel)
		if workspace != "" {
			out = append(out, path.Join(workspace, rel))
		}
		return out
	}
	if host, _, ok := strings.Cut(scope, ":"); ok && !strings.HasPrefix(scope, "/") {
		out = append(out, host, "https://"+host, "https://"+host+"/", "http://"+host, "http://"+host+"/")
	}
	return out
}

// allows says whether the pattern holds one simple command, path or host.
func allows(list []pattern, ok func(*pattern) bool) bool {
	for i := range list {
		if ok(&list[i]) {
			return true
		}
	}
	return false
}

// admits says whether the patterns together hold everything that the call
// does: a call of one of their tools, each of its simple commands, and each
// path or host that its tool is about.
func admits(list []pattern, c *call.Call, f *facts.Facts) bool {
	if !allows(list, func(p *pattern) bool { return p.named(c) }) {
		return false
	}
	if allows(list, func(p *pattern) bool { return p.named(c) && (!p.hasArg || p.arg.String() == "*") }) {
		return true
	}
	if c.Operation == call.OpShell {
		if len(f.Simple) == 0 {
			return false
		}
		for i := range f.Simple {
			s := &f.Simple[i]
			if !s.Whole || !allows(list, func(p *pattern) bool { return p.tools[call.OpShell] && p.hasArg && p.arg.Match(s.Text) }) {
				return false
			}
		}
		return true
	}
	some := false
	for i := range f.Needs {
		n := &f.Needs[i]
		held := allows(list, func(p *pattern) bool { return p.named(c) && p.covers(n.Capability) && p.need(n, f.Workspace) == fits })
		if !held {
			return false
		}
		some = true
	}
	return some
}

// compileExternal compiles what elements say about external calls. A pattern
// that does not compile quarantines its element.
func (s *Set) compileExternal(elements []Element) {
	for i := range elements {
		e := &elements[i]
		if e.External.empty() && e.Quarantine == "" {
			continue
		}
		x := extern{element: e}
		for _, l := range []struct {
			from []string
			to   *[]pattern
		}{{e.External.Deny, &x.deny}, {e.External.Confirm, &x.confirm}, {e.External.Allow, &x.allow}, {e.External.Only, &x.only}} {
			for _, src := range l.from {
				p, err := compilePattern(src)
				if err != nil && e.Quarantine == "" {
					e.Quarantine = err.Error()
				}
				*l.to = append(*l.to, p)
			}
		}
		s.externs = append(s.externs, x)
		if len(x.allow) > 0 {
			s.lists = append(s.lists, e.ID())
		}
		if e.Quarantine == "" {
			s.allowed = append(s.allowed, x.allow...)
		}
	}
}

// External answers what the active elements say about an external call. It
// allocates nothing where none of them says anything.
func (s *Set) External(c *call.Call, f *facts.Facts, reads bool) (votes []call.Vote) {
	if s == nil || len(s.externs) == 0 {
		return nil
	}
	for i := range s.externs {
		votes = s.externs[i].objections(votes, c, f, reads)
	}
	if rule, ok := s.outsideLists(c, f); ok && !reads {
		votes = append(votes, rule)
	}
	return votes
}

// AllowsExternal says whether elements' allow patterns hold everything that an
// external call does, and none of them objects to it.
func (s *Set) AllowsExternal(c *call.Call, f *facts.Facts) bool {
	if s == nil || len(s.externs) == 0 {
		return false
	}
	return admits(s.allowed, c, f) && len(s.External(c, f, false)) == 0
}

// outsideLists votes against a call that no element's allow patterns hold,
// where an element has such: what is not on the list was not meant.
func (s *Set) outsideLists(c *call.Call, f *facts.Facts) (call.Vote, bool) {
	if len(s.lists) == 0 || admits(s.allowed, c, f) {
		return call.Vote{}, false
	}
	return call.Vote{
		Stage: call.StageElement, Source: s.lists[0], Rule: "allowPatterns", Level: call.Deny,
		Reason: "it is on no active element's list of what may be used (" + strings.Join(s.lists, ", ") + ")",
	}, true
}

// objections are the votes of one element against an external call.
func (x *extern) objections(votes []call.Vote, c *call.Call, f *facts.Facts, reads bool) []call.Vote {
	e := x.element
	if e.Quarantine != "" && !reads {
		votes = append(votes, e.quarantined())
	}
	object := func(list []pattern, key string, level call.Level, says string) {
		for i := range list {
			switch list[i].objects(c, f) {
			case fits:
				votes = append(votes, vote(e, key+": "+list[i].src, level, says))
			case mayFit:
				votes = append(votes, vote(e, key+": "+list[i].src, call.ConfirmSingleUse, "may mean it, which cannot be told from the call"))
			}
		}
	}
	object(x.deny, "denyPatterns", call.Deny, "denies it")
	object(x.confirm, "confirmPatterns", call.ConfirmSingleUse, "wants it confirmed")
	if len(x.only) > 0 && !reads && !admits(x.only, c, f) {
		votes = append(votes, vote(e, "tools", call.Deny, "lists its tools, and this is none of them"))
	}
	for _, class := range e.External.Require {
		if risky(class, f) && !reads {
			votes = append(votes, vote(e, "approvalPolicy: "+class, call.ConfirmSingleUse, fmt.Sprintf("wants %s calls approved", class)))
		}
	}
	return votes
}

// risky says whether a call is of a class that an approval policy names.
// Whatever goes beyond a read is at least moderate.
func risky(class string, f *facts.Facts) bool {
	if class == "moderate" {
		return true
	}
	return f.Irreversible || f.Risk >= dangerousFrom || f.Class == "destructive" || f.Class == "unknown"
}

// dangerousFrom is the risk from which on a call is dangerous.
const dangerousFrom = 61
