package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/argument"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/facts"
	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
	"github.com/seed-3ebc6b8a/gatehouse/tool/declare"
)

// declare takes over what files declare about tools. All of them hold, in
// whatever layer they stand: a declaration only adds to what stands against a
// call, so a lower layer needs no right to make one.
func (m *merger) declare() Problems {
	var problems Problems
	for _, f := range m.opts.Tools {
		for i := range f.Set.Tools {
			problems = append(problems, m.capabilityProblems(f.Source, &f.Set.Tools[i])...)
		}
	}
	m.s.declared = m.opts.Tools
	m.s.Declared = argument.NewSet(m.opts.Tools)
	return problems
}

// capabilityProblems reports capabilities that nobody defined: a need that no
// profile knows would stand for nothing.
func (m *merger) capabilityProblems(source string, t *declare.Tool) Problems {
	var problems Problems
	var known []string
	for _, c := range call.Capabilities() {
		known = append(known, string(c))
	}
	for c := range m.s.Settings.Capabilities {
		known = append(known, string(c))
	}
	for _, text := range t.Capabilities {
		name := string(call.ParseNeed(text).Capability)
		if slices.Contains(known, name) {
			continue
		}
		p := Problem{File: source, Message: fmt.Sprintf("tool %s: there is no capability %q", t.Name, name)}
		if near, ok := match.Nearest(name, known); ok {
			p.Hint = fmt.Sprintf("did you mean %q?", near)
		}
		problems = append(problems, p)
	}
	return problems
}

// Tools returns all that is declared, each file by itself.
func (s *Snapshot) Tools() []argument.File { return s.declared }

// toolsUseHome says whether a declared glob is about the home directory.
func (s *Snapshot) toolsUseHome() bool {
	home := func(g string) bool { return strings.HasPrefix(g, "~") }
	for _, t := range s.declarations().Tools {
		if t.Policy != nil && (slices.ContainsFunc(t.Policy.Filesystem.Read.Items(), home) || slices.ContainsFunc(t.Policy.Filesystem.Write.Items(), home)) {
			return true
		}
	}
	return false
}

// declarations puts all that is declared together.
func (s *Snapshot) declarations() *declare.Set {
	all := &declare.Set{}
	for _, f := range s.declared {
		all.Tools = append(all.Tools, f.Set.Tools...)
		all.Agents = append(all.Agents, f.Set.Agents...)
	}
	return all
}

// declaredLoosen compares what tools declare. An inert file holds its tools to
// nothing but their constraints.
func declaredLoosen(old, new *Snapshot) []Change {
	var changes []Change
	for _, words := range declare.Loosens(enforced(old), enforced(new)) {
		what, change, _ := strings.Cut(words, ": ")
		from, to, arrow := strings.Cut(change, " → ")
		if !arrow {
			from, to = "declared", change
		}
		changes = append(changes, Change{Setting: "tools.yaml " + what, Old: from, New: to})
	}
	return changes
}

// enforced is what is held against tools: an inert file has no policies.
func enforced(s *Snapshot) *declare.Set {
	all := s.declarations()
	at := 0
	for _, f := range s.declared {
		for range f.Set.Tools {
			if f.Set.Inert {
				all.Tools[at].Policy = nil
			}
			at++
		}
	}
	return all
}

// Uses is how the declared tools were used, by one agent in one workspace.
type Uses struct {
	// Now is the time that cooldowns are judged at.
	Now   time.Time
	Tools map[string]Use
	// Spent is what was let through of the agent, by the path of the sub-agent
	// that made the calls; its own are under "".
	Spent []Spent
	// Row is the tool of the last calls, and how many of them there were.
	Row   string
	InRow int
	// Purse is what the call would draw from.
	Purse Purse
}

// Spent is what one agent or sub-agent was let through.
type Spent struct {
	Path  string
	Calls int
	First time.Time
}

// Purse is the part of an agent's calls that a sub-agent draws from: a share
// that was set aside for it, or what was set aside for nobody.
type Purse struct {
	// Path is whose it is, and Calls what was set aside. For what was set
	// aside for nobody Calls is 0 and the declared budget counts.
	Path  string
	Calls int
	// Used was drawn, Reserved is set aside further down.
	Used, Reserved int
}

// Left is how many calls can still be drawn, of a budget of so many.
func (p *Purse) Left(budget int64) int64 {
	if p.Calls > 0 {
		budget = int64(p.Calls)
	}
	return budget - int64(p.Used) - int64(p.Reserved)
}

// of is what an agent, or all sub-agents of a name, were let through.
func (u *Uses) of(p call.Principal, name string) (calls int, first time.Time) {
	for _, s := range u.Spent {
		if name != p.Agent && !slices.Contains(strings.Split(s.Path, "/"), name) {
			continue
		}
		calls += s.Calls
		if first.IsZero() || s.First.Before(first) {
			first = s.First
		}
	}
	return calls, first
}

// Use is how one tool was used.
type Use struct {
	// Runs were let through, Running of them have not ended.
	Runs, Running int
	// Ended is when the last of them ended.
	Ended time.Time
	// Completed says that one succeeded.
	Completed bool
	// Denials is how often it was denied in a row.
	Denials int
}

// Counts says which tools a call uses, if their uses are counted: those that
// are declared. Of an agent that is declared every call counts, so that no step
// and no budget is passed by with a tool that nobody declared.
func (s *Snapshot) Counts(c *call.Call, f *facts.Facts) []string {
	if s == nil || s.Declared == nil || !s.Declared.Constrained {
		return nil
	}
	var names []string
	for i := range f.Declared {
		if !f.Declared[i].Claimed {
			names = append(names, f.Declared[i].Name)
		}
	}
	if len(names) == 0 && c.Kind != call.Native && c.Operation != call.OpPlan && len(s.agents(c.Principal)) > 0 {
		names = append(names, c.Operation)
	}
	return names
}

// agents are the declarations that hold for an agent and its sub-agents.
func (s *Snapshot) agents(p call.Principal) []declare.Agent {
	var out []declare.Agent
	for _, name := range agentNames(p) {
		out = append(out, s.Declared.Agents(name)...)
	}
	return out
}

// CallBudget is how many calls an agent may make in all, if that is declared.
func (s *Snapshot) CallBudget(p call.Principal) (limit int64, declared bool) {
	if s == nil {
		return 0, false
	}
	for _, a := range s.Declared.Agents(p.Agent) {
		if n, ok := a.Budget[declare.MaxToolCalls]; ok && (!declared || n < limit) {
			limit, declared = n, true
		}
	}
	return limit, declared
}

// DeclaredAs lists the declarations of a tool by its name.
func (s *Snapshot) DeclaredAs(name string) []facts.DeclaredTool {
	var out []facts.DeclaredTool
	for _, d := range s.Declared.Tool(call.FoldTool(name)) {
		t := facts.DeclaredTool{Name: d.Name, Inert: d.Inert}
		if d.Policy != nil {
			t.Risk = d.Policy.Risk
		}
		out = append(out, t)
	}
	return out
}

// Constrain lists the usage constraints that a call would break, given how the
// tools were used before.
func (s *Snapshot) Constrain(c *call.Call, f *facts.Facts, u *Uses) []Violation {
	names := s.Counts(c, f)
	steps, _ := u.of(c.Principal, c.Principal.Agent)
	var out []Violation
	for i, d := range s.Declared.All() {
		if slices.Contains(names, d.Name) {
			out = append(out, constrained(&s.Declared.All()[i], u)...)
			continue
		}
		if at := d.Constraints.ForceAtStep; at > 0 && at == steps+1 && len(names) > 0 {
			out = append(out, Violation{Tool: d.Name, Rule: "forceAtStep", Level: call.Deny, Reason: fmt.Sprintf("call %d must be of %s", at, d.Name)})
		}
	}
	for _, a := range s.agents(c.Principal) {
		out = append(out, granted(&a, f)...)
		if len(names) > 0 {
			out = append(out, spent(&a, c.Principal, names, u)...)
		}
	}
	return out
}

// agentNames are the names that an agent and its sub-agents are declared by.
func agentNames(p call.Principal) []string {
	names := []string{p.Agent}
	for part := range strings.SplitSeq(p.Path, "/") {
		if part != "" && part != p.Agent {
			names = append(names, part)
		}
	}
	return names
}

// spent holds one more call against an agent's budget.
func spent(a *declare.Agent, p call.Principal, names []string, u *Uses) []Violation {
	var out []Violation
	over := func(limit, format string, args ...any) {
		out = append(out, Violation{Tool: names[0], Rule: "budget", Level: call.Deny, Reason: fmt.Sprintf("%s: %s", limit, fmt.Sprintf(format, args...))})
	}
	calls, first := u.of(p, a.Name)
	if limit, ok := a.Budget[declare.MaxToolCalls]; ok {
		switch {
		case int64(calls) >= limit:
			over(declare.MaxToolCalls, "%s has used its %d calls", a.Name, limit)
		case a.Name == p.Agent && u.Purse.Left(limit) <= 0 && u.Purse.Calls > 0:
			over(declare.MaxToolCalls, "the %d calls that were set aside for %s are used", u.Purse.Calls, u.Purse.Path)
		case a.Name == p.Agent && u.Purse.Left(limit) <= 0:
			over(declare.MaxToolCalls, "what is left of the %d calls of %s is set aside for sub-agents", limit, a.Name)
		}
	}
	if limit, ok := a.Budget[declare.MaxConsecutiveSameTool]; ok && slices.Contains(names, u.Row) && int64(u.InRow) >= limit {
		over(declare.MaxConsecutiveSameTool, "%s was used %d times in a row: use another tool first", u.Row, u.InRow)
	}
	if limit, ok := a.Budget[declare.MaxDurationMillis]; ok && calls > 0 && u.Now.Sub(first) >= time.Duration(limit)*time.Millisecond {
		over(declare.MaxDurationMillis, "%s began %v ago and may work for %v", a.Name, u.Now.Sub(first).Round(time.Second), time.Duration(limit)*time.Millisecond)
	}
	return out
}

// granted holds the uses of declared tools against what an agent was granted.
func granted(a *declare.Agent, f *facts.Facts) []Violation {
	var out []Violation
	for i := range f.Declared {
		n := f.Declared[i].Name
		switch {
		case f.Declared[i].Claimed:
		case slices.Contains(a.Approvals, n), a.Grants != nil && slices.Contains(a.Grants.Confirm, n):
			out = append(out, Violation{Tool: n, Rule: "approval", Level: call.ConfirmSingleUse, Reason: fmt.Sprintf("%s needs a person's yes each time %s uses it", n, a.Name)})
		case a.Grants != nil && !slices.Contains(a.Grants.Allow, n):
			out = append(out, Violation{Tool: n, Rule: "grants", Level: call.Deny, Reason: fmt.Sprintf("%s was not granted to %s", n, a.Name)})
		}
	}
	return out
}

// constrained holds one more use of a tool against its constraints.
func constrained(d *argument.Declared, u *Uses) []Violation {
	var out []Violation
	c, use := &d.Constraints, u.Tools[d.Name]
	add := func(rule string, level call.Level, format string, args ...any) {
		out = append(out, Violation{Tool: d.Name, Rule: rule, Level: level, Reason: fmt.Sprintf(format, args...)})
	}
	if c.Forbidden {
		add("forbidden", call.Deny, "%s is forbidden by its constraints", d.Name)
	}
	if c.ConsecutiveDenials > 0 && use.Denials >= c.ConsecutiveDenials {
		add("consecutiveDenials", call.Deny, "%s was denied %d times in a row and is closed", d.Name, c.ConsecutiveDenials)
	}
	if c.MaxInvocations > 0 && use.Runs >= c.MaxInvocations {
		add("maxInvocations", call.Deny, "%s may run %d times, and has", d.Name, c.MaxInvocations)
	}
	var missing []string
	for _, before := range c.OnlyAfter {
		if !u.Tools[before].Completed {
			missing = append(missing, before)
		}
	}
	if len(missing) > 0 {
		add("onlyAfter", call.Deny, "%s may only run after %s, which has not completed successfully", d.Name, strings.Join(missing, ", "))
	}
	if cool := time.Duration(c.Cooldown); cool > 0 {
		switch left := cool - u.Now.Sub(use.Ended); {
		case use.Running > 0:
			add("cooldown", call.Deny, "%s is still running, and has a cooldown between runs", d.Name)
		case use.Runs > 0 && left > 0:
			add("cooldown", call.Deny, "%s has a cooldown of %v: try again in %v", d.Name, cool, left.Round(time.Second)+time.Second)
		}
	}
	if c.RequiresApproval {
		add("requiresApproval", call.ConfirmSingleUse, "%s has a person asked before every run", d.Name)
	}
	return out
}
