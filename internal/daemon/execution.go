package daemon

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/seed-3ebc6b8a/gatehouse/internal/aql"
	"github.com/seed-3ebc6b8a/gatehouse/internal/audit"
	"github.com/seed-3ebc6b8a/gatehouse/internal/autonomy"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
	"github.com/seed-3ebc6b8a/gatehouse/internal/rulebook"
	"github.com/seed-3ebc6b8a/gatehouse/internal/session"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// executionGroups makes the operations that ask people and those of agents
// that work on their own.
func (d *daemon) executionGroups() (*aql.Challenges, *aql.Executions) {
	c := &aql.Challenges{
		Store: d.store, Desk: d.desk, Sessions: d.sessions, Keeper: d.autonomy, Gate: d.gate, Scope: rulebook.Scope,
		Limits: d.limits, Show: d.showChallenge, Record: d.recordAct,
	}
	return c, &aql.Executions{Challenges: c, Bounds: d.bounds, Agent: d.agentBounds, Calls: d.seenCalls, Judge: d.gate.Decide}
}

// paused finds an execution that waits for a person, for the standing of its
// agent.
func (d *daemon) paused(tx *store.Tx, agents []string) (*session.Pause, error) {
	x, err := d.autonomy.Paused(tx, agents)
	if err != nil || x == nil {
		return nil, err
	}
	return &session.Pause{Session: x.Principal.Session, Why: "execution " + x.ID + " is paused: " + strings.Join(x.Why, "; ")}, nil
}

// bounds are what the policy allows executions.
func (d *daemon) bounds(c *call.Call) autonomy.Bounds {
	snap, _ := d.book.For(c)
	if snap == nil {
		return autonomy.Bounds{} // which lets no step be taken
	}
	return autonomy.Bounds{Tolerance: autonomy.Tolerance(snap.Settings.RiskTolerance), MaxSteps: snap.Settings.MaxSteps}
}

// agentBounds are what an agent element sets for itself, by any of the names
// that elements use for it.
func (d *daemon) agentBounds(_ context.Context, _ *call.Call, name string) (b autonomy.Bounds, err error) {
	f, err := d.library.Get("agent", name)
	if err != nil {
		return b, err
	}
	if f.Doc == nil {
		return b, &aql.RefusedError{Reason: "the agent cannot be read: " + f.Broken}
	}
	meta := f.Doc.Metadata()
	own, _ := meta["autonomy"].(map[string]any)
	for key, v := range own {
		switch strings.ToLower(strings.ReplaceAll(key, "_", "")) {
		case "risktolerance":
			b.Tolerance = autonomy.Tolerance(fmt.Sprint(v))
		case "maxautonomoussteps", "maxsteps":
			b.MaxSteps, _ = strconv.Atoi(fmt.Sprint(v)) // what is no number leaves the operator's
		case "requiresapproval":
			b.RequiresApproval = texts(v)
		}
	}
	if tools, ok := meta["tools"].(map[string]any); ok {
		b.Tools = texts(tools["allowed"])
	}
	return b, nil
}

// texts are the strings of a list.
func texts(v any) (out []string) {
	list, _ := v.([]any)
	for _, e := range list {
		if s, ok := e.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

// maxStepCalls bounds how many calls of one step are looked at. An agent that made
// more has done something else than a step, and the newest are what counts.
const maxStepCalls = 500

// seenCalls reads an agent's calls since a time from the log.
func (d *daemon) seenCalls(ctx context.Context, agent string, since time.Time) ([]aql.SeenCall, error) {
	page, err := d.audit.List(ctx, audit.Filter{Kind: "call", Principal: agent, From: since}, "", maxStepCalls)
	if err != nil {
		return nil, err
	}
	var out []aql.SeenCall
	for _, r := range page.Records {
		full, err := d.audit.Get(ctx, r.ID)
		if err != nil {
			return nil, err
		}
		var s stored
		if err := json.Unmarshal(full.Body, &s); err != nil {
			return nil, err
		}
		out = append(out, seenCall(r, &s))
	}
	return out, nil
}

func seenCall(r *audit.Record, s *stored) aql.SeenCall {
	c := aql.SeenCall{Operation: r.Operation, Denied: r.Outcome == gate.Denied.String()}
	if s.Facts != nil {
		c.Risk, c.Irreversible, c.Outside, c.Needs = s.Facts.Risk, s.Facts.Irreversible, s.Facts.Outside, s.Facts.Needs
	}
	if s.Verdict != nil {
		c.Approved, c.Violation = len(s.Verdict.Grants) > 0, s.Verdict.Violation != ""
	}
	return c
}
