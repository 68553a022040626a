package policy

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/facts"
	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
)

func (c *checker) rules() {
	if len(c.f.Rules) > maxRules {
		c.add("rules", "", "the file has %d rules; the limit is %d", len(c.f.Rules), maxRules)
	}
	seen := make(map[string]bool)
	for i := range c.f.Rules {
		spec, path := &c.f.Rules[i], join("rules", strconv.Itoa(i))
		if strings.TrimSpace(spec.Name) == "" {
			c.add(join(path, "name"), "", "the rule has no name")
		} else if seen[spec.Name] {
			c.add(join(path, "name"), "", "there are two rules with the name %q", spec.Name)
		}
		seen[spec.Name] = true
		c.rule(path, spec)
	}
}

func (c *checker) rule(path string, spec *Rule) {
	if strings.TrimSpace(spec.Reason) == "" {
		c.add(join(path, "reason"), requiredHints["reason"], "the rule %q gives no reason", spec.Name)
	}
	if spec.Operation == "" && spec.Command == "" && spec.Path == "" && spec.Host == "" {
		c.add(path, "give at least one of operation, command, path, host", "the rule %q matches nothing in particular", spec.Name)
		return
	}
	if op, ok := call.LookupOperation(spec.Operation); ok {
		c.add(join(path, "operation"), "deny it under [operations]", "rules do not reach the native operation %s", op.Name)
	}
	r, errs := compileRule(*spec, "", checkHome)
	for _, field := range slices.Sorted(maps.Keys(errs)) {
		c.add(join(path, field), "", "%v", errs[field])
	}
	if len(errs) > 0 {
		return
	}
	for i, example := range spec.Matches {
		c.example(join(path, "matches", strconv.Itoa(i)), &r, example, true)
	}
	for i, example := range spec.Misses {
		c.example(join(path, "misses", strconv.Itoa(i)), &r, example, false)
	}
}

// example checks one example of a rule. It stands for the most telling of the
// rule's matchers; the others are left out of it.
func (c *checker) example(path string, r *rule, text string, want bool) {
	got, err := r.tries(text)
	switch {
	case err != nil:
		c.add(path, "", "the example cannot be read: %v", err)
	case got && !want:
		c.add(path, "", "the rule %q matches %q, which it should miss", r.spec.Name, text)
	case !got && want:
		c.add(path, "", "the rule %q misses %q, which it should match", r.spec.Name, text)
	}
}

// tries asks the rule about a call that does nothing but what an example
// says: a command, else a path, a host or an operation.
func (r *rule) tries(example string) (bool, error) {
	only := *r
	in := &Input{Call: &call.Call{Operation: call.FoldTool(example)}, Facts: &facts.Facts{Workspace: checkWorkspace}}
	if r.command != nil || r.path != nil || r.host != nil {
		only.operation = nil
	}
	switch {
	case r.command != nil:
		only.path, only.host = nil, nil
		in.Facts.Commands = []string{example}
	case r.path != nil:
		only.host = nil
		p, err := match.CleanPath(match.Base{Dir: checkWorkspace, Home: checkHome}, example)
		if err != nil {
			return false, err
		}
		in.Facts.Needs = []call.Need{{Capability: call.FSRead, Scope: p.Clean, Inside: match.Within(checkWorkspace, p.Clean)}}
	case r.host != nil:
		if _, err := match.ParseHost(example); err != nil {
			return false, err
		}
		in.Facts.Needs = []call.Need{{Capability: call.NetEgress, Scope: example}}
	}
	var buf Buffer
	buf.prepare(in)
	if r.spec.Level == call.AutoApprove {
		return only.allows(in, buf.targets), nil
	}
	return only.objects(in, buf.targets) == fits, nil
}

func (c *checker) tests() {
	for i := range c.f.Tests {
		t, path := &c.f.Tests[i], join("tests", strconv.Itoa(i))
		if t.Operation == "" && t.Command == "" {
			c.add(path, "give an operation or a command", "the test %q tests nothing", t.Name)
		}
		c.oneOf(join(path, "class"), t.Class, Classes())
		for j, need := range t.Needs {
			n := call.ParseNeed(need)
			if !c.f.known(n.Capability) {
				c.add(join(path, "needs", strconv.Itoa(j)), orList(string(n.Capability), c.f.capabilityNames()), "unknown capability %q", n.Capability)
			}
		}
	}
}
