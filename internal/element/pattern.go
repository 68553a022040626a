package element

import (
	"slices"
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/facts"
	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
)

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
	// ops are the operations that hosts' tools of this name are folded into.
	ops []string
	// shell says that one of them runs commands, any that the pattern holds
	// whatever the arguments are.
	shell, any bool
	// arg is the part behind the colon; none if there is no colon.
	arg    match.OpGlob
	hasArg bool
	// prefix is the arg up to its first wildcard, core its longest part without
	// one. Most texts lack one of them, which spares them the matcher.
	prefix, core string
	about        []call.Capability
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
	p := pattern{src: src}
	tool, arg, hasArg := strings.Cut(src, ":")
	var err error
	if p.tool, err = match.CompileOp(tool); err != nil {
		return p, err
	}
	for name, op := range call.HostTools() {
		if p.tool.Match(name) && !slices.Contains(p.ops, op) {
			p.ops = append(p.ops, op)
		}
	}
	if p.hasArg = hasArg; hasArg {
		if p.arg, err = match.CompileOp(arg); err != nil {
			return p, err
		}
		parts := strings.FieldsFunc(arg, func(r rune) bool { return r == '*' || r == '?' })
		for i, part := range parts {
			if i == 0 && strings.HasPrefix(arg, part) {
				p.prefix = part
			}
			if len(part) > len(p.core) {
				p.core = part
			}
		}
	}
	p.any = !hasArg || arg == "*"
	p.shell = slices.Contains(p.ops, call.OpShell)
	for _, op := range p.ops {
		for _, c := range abouts[op] {
			if !slices.Contains(p.about, c) {
				p.about = append(p.about, c)
			}
		}
	}
	return p, nil
}

// named says whether the call is one of the pattern's tool.
func (p *pattern) named(c *call.Call) bool {
	return slices.Contains(p.ops, c.Operation) || p.tool.Match(c.Operation)
}

// matches holds the arg against a text.
func (p *pattern) matches(text string) bool {
	return strings.HasPrefix(text, p.prefix) && strings.Contains(text, p.core) && p.arg.Match(text)
}

// objects says how well the pattern fits something that the call does.
func (p *pattern) objects(c *call.Call, f *facts.Facts) fit {
	named := p.named(c)
	if named && p.any {
		return fits
	}
	if !p.hasArg {
		return misses
	}
	best := misses
	if p.shell {
		best = p.command(f)
		if named && best == misses && (f.Partial || len(f.Commands) == 0) {
			best = mayFit // the rest of it was not read
		}
	}
	for i := range f.Needs {
		if slices.Contains(p.about, f.Needs[i].Capability) {
			best = max(best, p.need(&f.Needs[i], f.Workspace))
		}
	}
	if named && best == misses && len(p.about) == 0 && !p.shell {
		return mayFit // a tool whose arguments the gate does not understand
	}
	return best
}

// command looks for the simple command that the pattern fits best.
func (p *pattern) command(f *facts.Facts) fit {
	best := misses
	for i, raw := range f.Commands {
		if p.matches(raw) {
			return fits
		}
		if i >= len(f.Simple) {
			continue
		}
		s := &f.Simple[i]
		switch {
		case s.Text != raw && p.matches(s.Text), s.Sub != "" && p.matches(s.Sub):
			return fits
		case !s.Whole && (strings.HasPrefix(p.prefix, s.Text) || strings.HasPrefix(s.Text, p.prefix)):
			best = mayFit
		}
	}
	return best
}

// need holds the pattern against a path or host, in the ways in which an
// author may have written it.
func (p *pattern) need(n *call.Need, workspace string) fit {
	if n.Scope == "" {
		return mayFit
	}
	scope, tree := strings.CutSuffix(n.Scope, "/**")
	tree = tree || n.Capability == call.FSDelete // what goes takes along what is in it
	best := p.place(scope, tree)
	if rel, ok := strings.CutPrefix(scope, "./"); ok {
		best = max(best, p.place(rel, tree))
		// Spelled out only where the pattern may mean it.
		if best != fits && workspace != "" && (strings.HasPrefix(workspace, p.prefix) || strings.HasPrefix(p.prefix, workspace)) {
			best = max(best, p.place(strings.TrimSuffix(workspace, "/")+"/"+rel, tree))
		}
		return best
	}
	if best == fits || n.Capability != call.NetEgress {
		return best
	}
	host, _, _ := strings.Cut(scope, ":")
	for _, form := range []string{"", "https://", "http://"} {
		if p.matches(form+host) || p.matches(form+host+"/") {
			return fits
		}
	}
	return best
}

// place holds the pattern against one spelling of a path.
func (p *pattern) place(text string, tree bool) fit {
	switch {
	case p.matches(text):
		return fits
	case tree && (strings.HasPrefix(text, p.prefix) || len(p.prefix) == len(text)+1 && below(text, p.prefix)) && p.matches(text+"/"):
		return fits
	case tree && below(text, p.prefix):
		return mayFit // something in it may be meant
	}
	return misses
}

// below says whether a path starts with a directory.
func below(dir, path string) bool {
	return len(path) > len(dir) && path[len(dir)] == '/' && path[:len(dir)] == dir
}

// admits says whether patterns together hold everything that the call does: a
// call of one of their tools, each of its simple commands, and each path or
// host that its tool is about.
func admits(list []pattern, c *call.Call, f *facts.Facts) bool {
	held := func(ok func(*pattern) bool) bool {
		for i := range list {
			if ok(&list[i]) {
				return true
			}
		}
		return false
	}
	if held(func(p *pattern) bool { return p.any && p.named(c) }) {
		return true
	}
	if c.Operation == call.OpShell {
		for i := range f.Simple {
			s := &f.Simple[i]
			if !s.Whole || !held(func(p *pattern) bool { return p.shell && p.hasArg && p.matches(s.Text) }) {
				return false
			}
		}
		return len(f.Simple) > 0 && !f.Partial
	}
	for i := range f.Needs {
		n := &f.Needs[i]
		if !held(func(p *pattern) bool {
			return p.named(c) && slices.Contains(p.about, n.Capability) && p.need(n, f.Workspace) == fits
		}) {
			return false
		}
	}
	return len(f.Needs) > 0
}
