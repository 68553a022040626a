package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
	"github.com/seed-3ebc6b8a/gatehouse/tool/declare"
)

// Invocation is one run of an agent. Usage constraints count within it. It is
// safe for concurrent use.
type Invocation struct {
	agent *Agent
	track *tracker
}

// Invoke begins an invocation.
func (a *Agent) Invoke() *Invocation { return &Invocation{agent: a, track: newTracker()} }

// Call makes one call: constraints, the argument gate, interceptors, grants,
// the gate, and only then the tool. Every way that does not end in a run is a
// denial with a reason the model can read.
func (inv *Invocation) Call(ctx context.Context, name string, args json.RawMessage) Outcome {
	return inv.call(ctx, name, args, "")
}

// call makes a call that may draw from a plan's budget.
func (inv *Invocation) call(ctx context.Context, name string, args json.RawMessage, budget string) Outcome {
	a := inv.agent
	t := a.tools[name]
	if t == nil {
		hint := "; the tools are " + strings.Join(a.names(), ", ")
		if near, ok := match.Nearest(name, a.names()); ok {
			hint = fmt.Sprintf("; did you mean %q?", near)
		}
		return inv.refuse(ctx, nil, name, args, "there is no tool "+name+hint)
	}
	if reason := inv.track.begin(a, name); reason != "" {
		inv.track.denied(name)
		return inv.refuse(ctx, t, name, args, reason)
	}
	out, ran := inv.attempt(ctx, t, args, budget)
	switch {
	case ran:
		inv.track.end(name, out.Err == nil)
	default:
		inv.track.undo(name)
		inv.track.denied(name)
	}
	return out
}

// attempt takes a call that the constraints let through on its way.
func (inv *Invocation) attempt(ctx context.Context, t *bound, args json.RawMessage, budget string) (out Outcome, ran bool) {
	name := t.decl.Name
	if reason := inv.outside(t, args); reason != "" {
		return inv.refuse(ctx, t, name, args, reason), false
	}
	args, verdict := inv.intercept(ctx, t, args)
	switch verdict.act {
	case actDeny:
		return inv.refuse(ctx, t, name, args, verdict.reason), false
	case actSubstitute:
		output, err := json.Marshal(verdict.result)
		inv.tell(t, Event{Kind: Substituted, Args: args})
		return Outcome{Output: output, Err: err}, false
	}
	c, err := inv.build(t, args)
	if err != nil {
		return inv.refuse(ctx, t, name, args, err.Error()), false
	}
	c.Budget = budget
	if t.confirm {
		yes, err := false, error(nil)
		if inv.agent.spec.ConfirmWith != nil {
			yes, err = inv.agent.spec.ConfirmWith(ctx, c)
		}
		if err != nil || !yes {
			return inv.refuse(ctx, t, name, args, name+" needs a yes that was not given"), false
		}
	}
	return inv.ask(ctx, t, c)
}

// ask puts the call before the gate and runs it if it is let through.
func (inv *Invocation) ask(ctx context.Context, t *bound, c Call) (Outcome, bool) {
	g := inv.agent.spec.Gate
	if g == nil {
		if t.approval {
			return inv.deny(t, c.Tool, c.Args, c.Tool+" needs a person's approval, and no gate is connected"), false
		}
		return inv.run(ctx, t, c.Args, "")
	}
	v, err := inv.submit(ctx, t, c)
	switch {
	case err != nil:
		return inv.deny(t, c.Tool, c.Args, "the gate could not be asked: "+err.Error()), false
	case !v.Allowed:
		out := inv.deny(t, c.Tool, c.Args, v.Message)
		out.Pending = v.Request
		return out, false
	}
	if v.Args != nil { // a person put other arguments in place
		if t.plan != nil {
			reason := "a plan was edited: call the tool again with the arguments that fit"
			_ = g.Done(context.WithoutCancel(ctx), c, v.ID, "refused", reason)
			return inv.deny(t, c.Tool, c.Args, reason), false
		}
		if reason := inv.outside(t, v.Args); reason != "" {
			_ = g.Done(context.WithoutCancel(ctx), c, v.ID, "refused", reason)
			return inv.deny(t, c.Tool, v.Args, reason), false
		}
		c.Args = v.Args
	}
	out, ran := inv.run(ctx, t, c.Args, v.Budget)
	outcome, detail := "succeeded", strings.Join(out.refusals, "; ")
	if out.Err != nil {
		outcome, detail = "failed", strings.Join(append(out.refusals, out.Err.Error()), "; ")
	}
	if err := g.Done(context.WithoutCancel(ctx), c, v.ID, outcome, detail); err != nil && out.Err == nil {
		out.Err = fmt.Errorf("the tool ran, and its outcome could not be recorded: %w", err)
	}
	return out, ran
}

// run runs the tool.
func (inv *Invocation) run(ctx context.Context, t *bound, args json.RawMessage, budget string) (Outcome, bool) {
	env, err := newEnv(&t.decl, inv.agent.base)
	if err != nil {
		return inv.deny(t, t.decl.Name, args, err.Error()), false
	}
	env.inv, env.budget = inv, budget
	if limit, ok := inv.agent.spec.Budget[declare.PerToolTimeoutMillis]; ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(limit)*time.Millisecond)
		defer cancel()
	}
	result, err := execute(ctx, t, env, args)
	out := Outcome{Err: err}
	for _, r := range env.Refusals() {
		inv.tell(t, Event{Kind: Refused, Args: args, Reason: r})
		out.refusals = append(out.refusals, "beyond what it declares: "+r)
	}
	if err == nil {
		out.Output, out.Err = json.Marshal(result)
	}
	kind, reason := Called, ""
	if out.Err != nil {
		kind, reason = Failed, out.Err.Error()
	}
	inv.tell(t, Event{Kind: kind, Args: args, Reason: reason})
	return out, true
}

// execute calls the executor; a panic is a failure of the tool, not of the
// program around it.
func execute(ctx context.Context, t *bound, env *Env, args []byte) (result any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the tool panicked: %v", p)
		}
	}()
	return t.Tool.run(ctx, env, args)
}

// outside says in what the arguments go beyond the declaration.
func (inv *Invocation) outside(t *bound, args json.RawMessage) string {
	if inv.agent.spec.Inert {
		return ""
	}
	if v := t.gate.Check(args, diskLinks{}); len(v) > 0 {
		return v[0].Where + ": " + v[0].Text
	}
	return ""
}

// intercept runs the interceptors. What one rewrote is held against the policy
// again before the next one sees it.
func (inv *Invocation) intercept(ctx context.Context, t *bound, args json.RawMessage) (json.RawMessage, Intercept) {
	for _, look := range inv.agent.spec.Interceptors {
		v := guarded(ctx, look, inv.described(t, t.decl.Name, args))
		switch v.act {
		case actProceed:
		case actRewrite:
			args = v.args
			if reason := inv.outside(t, args); reason != "" {
				return args, Deny(reason)
			}
		default:
			return args, v
		}
	}
	return args, Proceed()
}

// guarded asks one interceptor; its failure denies.
func guarded(ctx context.Context, look Interceptor, c Call) (v Intercept) {
	defer func() {
		if p := recover(); p != nil {
			v = Deny(fmt.Sprintf("an interceptor failed: %v", p))
		}
	}()
	return look(ctx, c)
}

func (inv *Invocation) build(t *bound, args json.RawMessage) (Call, error) {
	c := inv.described(t, t.decl.Name, args)
	c.Capabilities, c.Approval = t.decl.Capabilities, t.approval
	if t.needs == nil {
		return c, nil
	}
	needs, err := t.needs(args)
	c.Capabilities = needs
	return c, err
}

// described is a call with what its tool's declaration says about it.
func (inv *Invocation) described(t *bound, name string, args json.RawMessage) Call {
	c := Call{Agent: inv.agent.spec.Name, Tool: name, Args: args, Inert: inv.agent.spec.Inert}
	if t != nil && t.decl.Policy != nil {
		c.Risk, c.UsedDeclared = t.decl.Policy.Risk, t.decl.Policy.Grants() && t.gate.Uses(args)
	}
	return c
}

// refuse denies a call that the gate has not seen, and has it put on record
// there. It stays denied where that fails.
func (inv *Invocation) refuse(ctx context.Context, t *bound, name string, args json.RawMessage, reason string) Outcome {
	out := inv.deny(t, name, args, reason)
	if r, ok := inv.agent.spec.Gate.(Recorder); ok {
		if err := r.Refused(context.WithoutCancel(ctx), inv.described(t, name, args), out.Reason); err != nil {
			out.Reason += " (and the denial could not be recorded: " + err.Error() + ")"
		}
	}
	return out
}

func (inv *Invocation) deny(t *bound, name string, args json.RawMessage, reason string) Outcome {
	if reason == "" {
		reason = "an interceptor denied the call"
	}
	inv.tell(t, Event{Kind: Denied, Tool: name, Args: args, Reason: reason})
	return Outcome{Denied: true, Reason: reason}
}

// tell passes an event on, with what must not be kept taken out.
func (inv *Invocation) tell(t *bound, e Event) {
	if inv.agent.spec.OnEvent == nil {
		return
	}
	if t != nil {
		e.Tool = t.decl.Name
	}
	c := inv.described(t, e.Tool, e.Args)
	e.Agent, e.Risk, e.UsedDeclared = c.Agent, c.Risk, c.UsedDeclared
	e.Args, _ = inv.agent.redactor.JSON(e.Args)
	inv.agent.spec.OnEvent(e)
}
