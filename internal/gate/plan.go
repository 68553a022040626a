package gate

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/facts"
	"github.com/seed-3ebc6b8a/gatehouse/internal/grant"
	"github.com/seed-3ebc6b8a/gatehouse/internal/policy"
)

// Plan is what a composite tool is going to do: calls that it knows already,
// and needs of calls that it does not.
type Plan struct {
	// Name is the composite tool, whose uses are counted like those of others.
	Name  string
	Calls []*call.Call
	Needs []PlannedNeed
}

// PlannedNeed is a need with how many calls will have it.
type PlannedNeed struct {
	Need call.Need
	Uses int
}

// The limits of a plan. What is longer nobody reads.
const (
	maxSteps = 50
	maxUses  = 200
)

// Step is what one call of a plan would be decided to by itself.
type Step struct {
	Call     *call.Call
	Facts    *facts.Facts
	Decision call.Decision
}

// Check refuses a plan that is no plan, and brings its calls into their normal
// form.
func (p *Plan) Check() error {
	if len(p.Calls) == 0 && len(p.Needs) == 0 {
		return &call.InvalidError{Field: "plan", Problem: "is empty: list the calls it will make, or what they need"}
	}
	if len(p.Calls) > maxSteps || len(p.Needs) > maxSteps {
		return &call.InvalidError{Field: "plan", Problem: fmt.Sprintf("has more than %d steps: nobody would read it", maxSteps)}
	}
	for _, n := range p.Needs {
		if n.Uses < 1 || n.Uses > maxUses {
			return &call.InvalidError{Field: "uses", Problem: fmt.Sprintf("of %s is not between 1 and %d", n.Need, maxUses)}
		}
		if n.Need.Scope == "" {
			return &call.InvalidError{Field: "need", Problem: fmt.Sprintf("%s has no scope: say where", n.Need)}
		}
	}
	for _, c := range p.Calls {
		if err := c.Normalize(); err != nil {
			return err
		}
	}
	return nil
}

// Union describes a plan as a whole: what all its steps need together, the
// worst of their classes and risks. A step that would be denied by itself, or
// whose kind has no capabilities to plan for, denies the plan.
func (p *Plan) Union(steps []Step) *facts.Facts {
	u := &facts.Facts{Class: "safe"}
	var words []string
	world := sha256.New()
	for i := range steps {
		s := &steps[i]
		f := s.Facts
		if u.Workspace == "" {
			u.Workspace = f.Workspace
		}
		for _, n := range f.Needs {
			u.Needs = addNeed(u.Needs, n)
		}
		u.Class = worse(u.Class, f.Class)
		if f.Risk > u.Risk {
			u.Risk, u.RiskEvidence = f.Risk, f.RiskEvidence
		}
		u.Irreversible = u.Irreversible || f.Irreversible
		u.Outside = u.Outside || f.Outside
		u.Findings = append(u.Findings, f.Findings...)
		u.Self = append(u.Self, f.Self...)
		u.Commands = append(u.Commands, f.Commands...)
		u.Uncommitted = append(u.Uncommitted, f.Uncommitted...)
		u.Destroys = append(u.Destroys, f.Destroys...)
		u.Observed = append(u.Observed, f.Observed...)
		world.Write(f.World[:])
		u.ToolViolations = append(u.ToolViolations, s.refused(i)...)
		words = append(words, s.words(i))
	}
	for _, n := range p.Needs {
		u.Needs = addNeed(u.Needs, n.Need)
		words = append(words, fmt.Sprintf("%s, up to %d times", n.Need, n.Uses))
	}
	if len(p.Needs) > 0 && len(steps) == 0 {
		u.Class = "" // its needs are all there is to judge
	}
	u.World = call.Digest(world.Sum(nil))
	u.Words = fmt.Sprintf("plans %d steps: %s", len(words), strings.Join(words, "; "))
	return u
}

// refused says why a step cannot be part of a plan.
func (s *Step) refused(i int) []call.Evidence {
	where := fmt.Sprintf("/calls/%d", i)
	switch {
	case s.Call.Kind != call.External:
		return []call.Evidence{{Where: where, Text: fmt.Sprintf("step %d (%s) has no capabilities to plan for: submit it by itself", i+1, s.Call.Operation)}}
	case s.Decision.Level == call.Deny:
		return []call.Evidence{{Where: where, Text: fmt.Sprintf("step %d (%s) would be denied: %s", i+1, s.Call.Operation, s.Decision.Why())}}
	}
	return nil
}

// words say what a step does, and whether the plan's approval is enough for it.
func (s *Step) words(i int) string {
	text := fmt.Sprintf("%d. %s", i+1, s.Facts.Words)
	if s.Facts.Words == "" {
		text = fmt.Sprintf("%d. %s", i+1, s.Call.Operation)
	}
	if s.Decision.Level == call.ConfirmSingleUse || s.Decision.Level == call.ConfirmSession && s.Decision.TakesCode {
		text += " (asks again when it comes)"
	}
	return text
}

// classOrder ranks the classes of commands.
var classOrder = []string{"", "safe", "mutating", "network", "unknown", "destructive"}

func worse(a, b string) string {
	if slices.Index(classOrder, b) > slices.Index(classOrder, a) {
		return b
	}
	return a
}

func addNeed(list []call.Need, n call.Need) []call.Need {
	if slices.ContainsFunc(list, func(m call.Need) bool { return m.String() == n.String() }) {
		return list
	}
	return append(list, n)
}

// lines are what an approval of the plan covers: of the needs whose votes ask
// once per session, as many as the plan says.
func (p *Plan) lines(steps []Step, d *call.Decision) []grant.Line {
	var lines []grant.Line
	for _, v := range d.Confirmations() {
		if v.Stage != call.StageSession || v.Level != call.ConfirmSession || v.Need == nil || v.Need.Scope == "" {
			continue
		}
		uses := 0
		for i := range steps {
			for _, n := range steps[i].Facts.Needs {
				if n.String() == v.Need.String() {
					uses++
				}
			}
		}
		for _, n := range p.Needs {
			if n.Need.String() == v.Need.String() {
				uses += n.Uses
			}
		}
		need := *v.Need
		need.Evidence = nil
		if uses > 0 && !slices.ContainsFunc(lines, func(l grant.Line) bool { return l.Need.String() == need.String() }) {
			lines = append(lines, grant.Line{Need: need, Total: uses})
		}
	}
	return lines
}

// steps describes and decides every call of a plan by itself.
func (g *Gate) steps(ctx context.Context, p *Plan, snap *policy.Snapshot, like *policy.Input) []Step {
	steps := make([]Step, len(p.Calls))
	for i, c := range p.Calls {
		f, _ := g.opts.Observer.Facts(ctx, c, snap) // only native calls change elements
		d := snap.Decide(&policy.Input{Call: c, Facts: f, Digest: c.Digest(), Elements: like.Elements, Switches: like.Switches, Plan: like.Plan}, nil)
		steps[i] = Step{Call: c, Facts: f, Decision: d}
	}
	return steps
}

// DecidePlan tells what a plan would be decided to, as a whole and step by
// step. Nothing is recorded and nothing is let through.
func (g *Gate) DecidePlan(ctx context.Context, c *call.Call, p *Plan) (call.Decision, *facts.Facts, []Step, error) {
	if err := p.Check(); err != nil {
		return call.Decision{}, nil, nil, err
	}
	if err := c.Normalize(); err != nil {
		return call.Decision{}, nil, nil, err
	}
	snap, _ := g.opts.Policy(c)
	in, _, err := g.describe(ctx, c, snap, g.opts.State.Current)
	if err != nil {
		return call.Decision{}, nil, nil, err
	}
	steps := g.steps(ctx, p, snap, in)
	in.Facts = p.Union(steps)
	return snap.Decide(in, nil), in.Facts, steps, nil
}

// union describes the plan of a composite tool by its steps.
func (t *trial) union(ctx context.Context) {
	if t.sub.Composite != nil {
		t.steps = t.gate.steps(ctx, t.sub.Composite, t.snap, t.in)
		t.in.Facts = t.sub.Composite.Union(t.steps)
		if t.snap != nil {
			t.in.Facts.Declared = t.snap.DeclaredAs(t.sub.Composite.Name)
		}
	}
}

// Delegate cuts a budget for a sub-agent of the principal's; Return ends one
// that was cut from a budget of the principal's and takes back what is left.
func (g *Gate) Delegate(ctx context.Context, id string, p call.Principal, path string, lines []grant.Line) (sub *grant.Budget, err error) {
	if id == Declared {
		return g.setAside(ctx, p, path, lines)
	}
	err = g.opts.State.Commit(ctx, func(tx Tx) (err error) {
		if sub, err = tx.Delegate(id, p, path, lines, g.opts.Scope); err != nil {
			return err
		}
		return tx.Append(&Event{Kind: "budget", Call: &call.Call{ID: sub.Call, Principal: p}, Budget: sub})
	})
	return sub, err
}

// Return ends a budget that was cut from one of the principal's.
func (g *Gate) Return(ctx context.Context, id string, p call.Principal) error {
	return g.opts.State.Commit(ctx, func(tx Tx) error {
		if isShare(id) {
			return tx.TakeBack(id, p)
		}
		return tx.ReturnBudget(id, p)
	})
}

// Budget tells a principal what is left of its own budget.
func (g *Gate) Budget(ctx context.Context, id string, p call.Principal) (*grant.Budget, error) {
	if id == Declared {
		return g.declaredBudget(ctx, p)
	}
	return g.opts.State.Budget(ctx, id, p)
}

// grantBudget makes the budget of a plan that goes ahead, in the transaction
// that records the allow.
func (t *trial) grantBudget(tx Tx, used []grant.Grant) error {
	lines := t.sub.Composite.lines(t.steps, &t.decision)
	if len(lines) == 0 {
		return nil // nothing in it asks, or all of it asks again
	}
	b := &grant.Budget{Principal: t.sub.Call.Principal, Call: t.sub.Call.ID, Votes: grant.Keys(&t.decision), Lines: lines, By: "policy", Channel: "policy"}
	if len(used) > 0 {
		b.By, b.Channel = used[0].By, used[0].Channel
	}
	if err := tx.AddBudget(b, terms(t.in).Bound(t.snap.Settings.SessionGrantLife)); err != nil {
		return err
	}
	t.answer.Budget = b
	return nil
}
