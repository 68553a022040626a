package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
)

// Step is a call that a composite tool is going to make.
type Step struct {
	// Tool is one of the tool's Parts.
	Tool string
	Args any
}

// Plan has a composite tool say, before it runs, which of its Parts it is going
// to call. The gate then decides once, on all of it together, and each of the
// calls draws from what was approved. A call that was not planned is decided
// like any other.
func Plan[In any](t *Tool, f func(in In) []Step) *Tool {
	t.plan = func(args []byte) ([]Step, error) {
		in, err := decode[In](args)
		if err != nil {
			return nil, err
		}
		return f(in), nil
	}
	return t
}

// Planner is a gate that decides on the plans of composite tools.
type Planner interface {
	Gate
	// SubmitPlan puts a call with the calls that it is going to make before the
	// gate. The verdict's Budget is what those draw from.
	SubmitPlan(ctx context.Context, c Call, steps []Call) (Verdict, error)
}

// preflight makes calls of the steps that a tool plans, each held against the
// declaration of its own tool. A tool without a plan has none.
func (inv *Invocation) preflight(t *bound, c Call) ([]Call, error) {
	if t.plan == nil {
		return nil, nil
	}
	steps, err := t.plan(c.Args)
	if err != nil {
		return nil, err
	}
	var out []Call
	for _, s := range steps {
		part := inv.agent.tools[s.Tool]
		if part == nil || !slices.Contains(t.decl.Parts, s.Tool) {
			return nil, fmt.Errorf("%s plans to call %s, which is not among its parts", c.Tool, s.Tool)
		}
		args, err := json.Marshal(s.Args)
		if err != nil {
			return nil, err
		}
		if reason := inv.outside(part, args); reason != "" {
			return nil, fmt.Errorf("%s plans to call %s with %s", c.Tool, s.Tool, reason)
		}
		step, err := inv.build(part, args)
		if err != nil {
			return nil, err
		}
		out = append(out, step)
	}
	return out, nil
}

// submit puts a call before the gate, as a plan if it has steps and the gate
// knows plans.
func (inv *Invocation) submit(ctx context.Context, t *bound, c Call) (Verdict, error) {
	g := inv.agent.spec.Gate
	steps, err := inv.preflight(t, c)
	if err != nil {
		return Verdict{Message: err.Error()}, nil
	}
	if p, ok := g.(Planner); ok && len(steps) > 0 && !c.Approval {
		return p.SubmitPlan(ctx, c, steps)
	}
	return g.Submit(ctx, c)
}

// planned is a call of a plan as the gate reads it.
type planned struct {
	Operation string          `json:"operation"`
	Args      json.RawMessage `json:"args,omitempty"`
	Needs     []string        `json:"needs,omitempty"`
}

// SubmitPlan sends a composite tool's call with its steps. The call itself is
// the first of them: its own arguments are judged like theirs.
func (r *remote) SubmitPlan(ctx context.Context, c Call, steps []Call) (Verdict, error) {
	calls := []planned{{c.Tool, c.Args, c.Capabilities}}
	for _, s := range steps {
		calls = append(calls, planned{s.Tool, s.Args, s.Capabilities})
	}
	return r.submit(ctx, "/v1/plans", map[string]any{
		"name": c.Tool, "calls": calls, "dir": r.opts.Dir, "path": c.Agent, "wait_ms": r.opts.Wait.Milliseconds(),
	})
}

var _ Planner = (*remote)(nil)

// submit sends a call or a plan and reads the answer.
func (r *remote) submit(ctx context.Context, path string, in map[string]any) (Verdict, error) {
	var out struct {
		CallID  string          `json:"call_id"`
		Verdict string          `json:"verdict"`
		Message string          `json:"message"`
		Request string          `json:"request"`
		Edited  json.RawMessage `json:"edited_args"`
		Budget  *struct {
			ID string `json:"id"`
		} `json:"budget"`
	}
	if err := r.post(ctx, path, in, &out); err != nil {
		return Verdict{}, err
	}
	if out.CallID == "" && out.Verdict == "allowed" {
		return Verdict{}, fmt.Errorf("the gate's answer names no call")
	}
	v := Verdict{Allowed: out.Verdict == "allowed", ID: out.CallID, Message: out.Message, Request: out.Request, Args: out.Edited}
	if out.Budget != nil {
		v.Budget = out.Budget.ID
	}
	if v.Allowed || v.Request == "" {
		return v, nil
	}
	var st struct{ State, Text string }
	if err := r.do(ctx, http.MethodGet, "/v1/requests/"+v.Request, nil, &st); err != nil {
		return Verdict{}, err
	}
	v.State, v.Text = st.State, st.Text
	return v, nil
}
