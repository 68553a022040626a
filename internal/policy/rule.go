package policy

import (
	"slices"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
)

// rule is a compiled pattern rule. Of its matchers those that are nil match
// anything; a rule has at least one.
type rule struct {
	spec      Rule
	source    string
	mayReason string
	// tool is the pattern over operations, folded if it names one tool.
	tool      string
	operation func(string) bool
	command   func(string) bool
	path      *pattern
	host      *pattern
	// literal says that the command has no wildcard, named that the operation
	// has none.
	literal bool
	named   bool
}

// compileRule compiles a rule; path problems name the field that is wrong.
func compileRule(spec Rule, source, home string) (rule, map[string]error) {
	r := rule{
		spec: spec, source: source,
		mayReason: "it cannot be told whether this applies: " + spec.Reason,
	}
	errs := make(map[string]error)
	text := func(field, src string) (func(string) bool, bool) {
		if src == "" {
			return nil, false
		}
		g, err := match.CompileOp(src)
		if err != nil {
			errs[field] = err
		}
		return g.Match, g.Exact()
	}
	scope := func(field string, k kind, src string) *pattern {
		if src == "" {
			return nil
		}
		p, err := compilePattern(k, src, home)
		if err != nil {
			errs[field] = err
		}
		return p
	}
	r.tool = call.FoldTool(spec.Operation)
	r.operation, r.named = text("operation", r.tool)
	if r.operation != nil && !r.named && spec.Level != call.AutoApprove {
		r.operation = matchTools(r.operation)
	}
	r.command, r.literal = text("command", spec.Command)
	r.path = scope("path", kindPath, spec.Path)
	r.host = scope("host", kindHost, spec.Host)
	return r, errs
}

// matchTools makes a glob of a rule that objects match an operation by the
// name of any host's tool that is folded into it: a call no longer knows by
// which of them it came, and "Web*" is meant to hold WebFetch.
func matchTools(glob func(string) bool) func(string) bool {
	folded := make(map[string]bool)
	for tool, op := range call.HostTools() {
		if glob(tool) {
			folded[op] = true
		}
	}
	return func(operation string) bool { return folded[operation] || glob(operation) }
}

// objects says how well a rule that denies or asks fits a call: each of its
// matchers must fit something the call does.
func (r *rule) objects(in *Input, targets []target) fit {
	if r.operation != nil && !r.operation(in.Call.Operation) {
		return misses
	}
	if r.command != nil && !slices.ContainsFunc(in.Facts.Commands, r.command) {
		return misses
	}
	f := fits
	if r.path != nil {
		f = min(f, bestFit(r.path, in, targets))
	}
	if r.host != nil {
		f = min(f, bestFit(r.host, in, targets))
	}
	return f
}

// bestFit looks for the target that a pattern fits best.
func bestFit(p *pattern, in *Input, targets []target) fit {
	best := misses
	for i := range targets {
		if targets[i].kind == p.kind && ruled(in.Facts.Needs[i].Capability) {
			best = max(best, p.meets(&targets[i]))
		}
	}
	return best
}

// ruled says whether the scope of a need is something the call touches, and
// not the program that does it.
func ruled(c call.Capability) bool { return c != call.ProcExec }

// allows says whether a rule that approves fits a call: each of its matchers
// must hold everything of its kind that the call does, and something.
func (r *rule) allows(in *Input, targets []target) bool {
	if r.operation != nil && !r.operation(in.Call.Operation) {
		return false
	}
	if r.command != nil {
		if len(in.Facts.Commands) == 0 {
			return false
		}
		for _, c := range in.Facts.Commands {
			if !r.command(c) {
				return false
			}
		}
	}
	return (r.path == nil || coversAll(r.path, in, targets)) && (r.host == nil || coversAll(r.host, in, targets))
}

func coversAll(p *pattern, in *Input, targets []target) bool {
	some := false
	for i := range targets {
		if targets[i].kind != p.kind || !ruled(in.Facts.Needs[i].Capability) {
			continue
		}
		if !p.covers(&targets[i]) {
			return false
		}
		some = true
	}
	return some
}

// lowersNeed says whether an approving rule that fits the call speaks for one
// of its needs. A rule over commands speaks for changes inside the workspace
// and not for what the command reaches elsewhere: an option such as --output
// must not carry a write out of the workspace along. Secrets are left to the
// profile.
func (r *rule) lowersNeed(n *call.Need, t *target) bool {
	switch n.Capability {
	case call.SecretsAccess:
		return false
	case call.NetEgress:
		return r.host != nil
	case call.ProcExec:
		return r.command != nil || r.named
	}
	if t.kind == kindPath {
		return r.path != nil || t.inside && (r.command != nil || r.operation != nil)
	}
	return r.named
}

// lowersClass says whether an approving rule that fits the call speaks for
// its class. What the analysis does not understand must be named word for
// word; what destroys is not lowered at all.
func (r *rule) lowersClass(in *Input, class string) bool {
	switch class {
	case classSafe:
		return r.command != nil
	case classMutating, classNetwork:
		return r.literal // the class votes by itself only if no need says what is changed or reached
	case classUnknown:
		return r.literal || in.Facts.Class == "" && r.named
	}
	return false
}
