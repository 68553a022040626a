package aql

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-3ebc6b8a/gatehouse/internal/approval"
	"github.com/seed-3ebc6b8a/gatehouse/internal/autonomy"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/facts"
	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
	"github.com/seed-3ebc6b8a/gatehouse/internal/session"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// SeenCall is a call of an agent as the log holds it.
type SeenCall struct {
	Operation string
	Denied    bool
	// Violation says that it was an attempt on the gate or carried an attack.
	Violation bool
	// Approved says that a person approved it.
	Approved     bool
	Risk         int
	Irreversible bool
	Outside      bool
	Needs        []call.Need
}

// Executions is the operations of agents that work on their own towards a
// goal. The steps are the agent's; whether it may take the next one is the
// gate's.
type Executions struct {
	*Challenges
	// Bounds are what the operator allows executions.
	Bounds func(*call.Call) autonomy.Bounds
	// Agent returns what an agent element sets for its executions.
	Agent func(ctx context.Context, c *call.Call, name string) (autonomy.Bounds, error)
	// Calls lists an agent's calls since a time, from the log.
	Calls func(ctx context.Context, agent string, since time.Time) ([]SeenCall, error)
	// Judge tells what a command line would be decided to.
	Judge func(ctx context.Context, c *call.Call) (call.Decision, *facts.Facts, error)
}

// Operations lists the group.
func (g *Executions) Operations() []Operation {
	return []Operation{
		Op("execute_agent", g.execute),
		Op("record_execution_step", g.step),
		Op("get_execution_state", g.state),
		Op("get_gathered_data", g.gathered),
		Op("continue_execution", g.goOn),
		Op("complete_execution", g.complete),
		Op("abort_execution", g.abort),
		Op("prepare_handoff", g.handOff),
		Op("resume_from_handoff", g.resume),
	}
}

type executeParams struct {
	Name       string         `json:"name" about:"the agent element to run"`
	Goal       string         `json:"goal" about:"what it is to reach"`
	Parameters jsontext.Value `json:"parameters,omitzero" about:"what the goal needs to know; it is kept with the goal"`
	Tolerance  string         `json:"risk_tolerance,omitzero" about:"conservative, moderate or aggressive; only ever stricter than the operator's"`
	MaxSteps   int            `json:"max_steps,omitzero" about:"only ever fewer than the operator's"`
	Requires   []string       `json:"requires_approval,omitzero" about:"globs over operations and announced actions that a person approves"`
	Tools      []string       `json:"tools,omitzero" about:"globs over the operations it is meant to use"`
}

// execute begins an execution. Its bounds are the strictest of the operator's,
// the element's and the call's.
func (g *Executions) execute(ctx context.Context, j *Job, p executeParams) (any, error) {
	own, err := g.Agent(ctx, j.Call, p.Name)
	if err != nil {
		return nil, err
	}
	b := narrow(narrow(g.Bounds(j.Call), own), autonomy.Bounds{Tolerance: autonomy.Tolerance(p.Tolerance), MaxSteps: p.MaxSteps, RequiresApproval: p.Requires, Tools: p.Tools})
	goal := p.Goal
	if len(p.Parameters) > 0 {
		goal += "\n" + string(p.Parameters)
	}
	var x *autonomy.Execution
	err = g.Store.Write(ctx, func(tx *store.Tx) error {
		st, err := g.Sessions.CheckStanding(tx, j.Principal, g.Scope)
		if err != nil {
			return err
		}
		if why := stopping(&st); why != "" || st.Session == nil {
			return refused("nothing is begun: %s", why) // it was stopped since the allow
		}
		x, err = g.Keeper.Start(tx, autonomy.Execution{
			Principal: j.Principal, Workspace: st.Session.Workspace, Element: "agent/" + p.Name, Record: autonomy.Record{Goal: goal, Bounds: b},
		})
		return err
	})
	if err != nil {
		return nil, readable(err)
	}
	return x, nil
}

// narrow takes the stricter of both; what is not said leaves it as it is.
func narrow(a, b autonomy.Bounds) autonomy.Bounds {
	if b.Tolerance != "" {
		a.Tolerance = a.Tolerance.Stricter(b.Tolerance)
	}
	if b.MaxSteps > 0 {
		a.MaxSteps = min(a.MaxSteps, b.MaxSteps)
	}
	a.RequiresApproval = slices.Concat(a.RequiresApproval, b.RequiresApproval)
	if len(b.Tools) > 0 {
		a.Tools = b.Tools // drift from either counts; the nearer list is the plan
	}
	return a
}

type stepParams struct {
	Execution string         `json:"execution_id" about:"the execution"`
	Text      string         `json:"description" about:"what was done"`
	Outcome   string         `json:"outcome" about:"success, partial or failure"`
	Hint      string         `json:"next_action_hint,omitzero" about:"what is to be done next"`
	Risk      jsontext.Value `json:"risk_score,omitzero" about:"how risky that is, 0 to 100, by your own estimate"`
	Data      jsontext.Value `json:"data,omitzero" about:"what the step gathered"`
}

// Stepped is the answer to a step.
type Stepped struct {
	Execution string             `json:"execution_id"`
	State     autonomy.State     `json:"state"`
	Step      int                `json:"step"`
	Directive autonomy.Directive `json:"directive"`
	Challenge *Asked             `json:"challenge,omitzero"`
	Message   string             `json:"message"`
}

// step records a step and says whether the next may be taken, from what the
// gate saw of the agent since the step before.
func (g *Executions) step(ctx context.Context, j *Job, p stepParams) (any, error) {
	agent := j.Principal.Agent
	x, err := g.get(ctx, agent, p.Execution)
	if err != nil {
		return nil, err
	}
	seen, err := g.seen(ctx, x)
	if err != nil {
		return nil, err
	}
	s := autonomy.Step{Text: p.Text, Outcome: autonomy.Outcome(p.Outcome), Hint: p.Hint, Data: p.Data, Claimed: claimed(p.Risk), Seen: seen}
	s.HintRisk, s.HintAttack = g.judgeHint(ctx, j, p.Hint)
	var c *approval.Challenge
	var d autonomy.Directive
	err = g.Store.Write(ctx, func(tx *store.Tx) error {
		c = nil
		if x, d, err = g.Keeper.Step(tx, agent, p.Execution, s); err != nil || d.Continue {
			return err
		}
		c, err = g.stopped(tx, j, x, d)
		return err
	})
	if err != nil {
		return nil, readable(err)
	}
	out := Stepped{Execution: x.ID, State: x.State, Step: x.Steps, Directive: d, Message: "Go on."}
	if c != nil {
		out.Challenge = g.shown(ctx, c, false)
		out.Message = "Stop here and tell the person you work for. The next step is refused until an approver lets it go on."
		if x.State == autonomy.Blocked {
			out.Message = "Stop. This was judged dangerous; you are blocked until an approver releases you."
		}
	}
	return out, nil
}

// stopped does what a step that may not be followed by another leads to: a
// challenge for the pause, or the danger zone.
func (g *Executions) stopped(tx *store.Tx, j *Job, x *autonomy.Execution, d autonomy.Directive) (*approval.Challenge, error) {
	detail, err := json.Marshal(map[string]any{"execution": x.ID, "step": x.Steps, "goal": clip(x.Goal), "directive": d})
	if err != nil {
		return nil, err
	}
	c := approval.Challenge{Kind: approval.ForPause, Subject: x.Pause, Principal: j.Principal, Detail: detail,
		Words: fmt.Sprintf("lets execution %s of %s go on after step %d: %v", x.ID, x.Principal.Agent, x.Steps, d.Reasons)}
	if x.State == autonomy.Blocked {
		b, err := g.Sessions.SetBlock(tx, session.Block{Agent: x.Principal.Agent, Workspace: x.Workspace, By: "gatehouse",
			Reason: fmt.Sprintf("step %d of execution %s: %v", x.Steps, x.ID, d.Reasons)})
		if err != nil {
			return nil, err
		}
		if err := g.Record(tx, Act{Name: "danger.block", Subject: b.ID, By: "gatehouse", Channel: "autonomy", Principal: j.Principal, Detail: b}); err != nil {
			return nil, err
		}
		c.Kind, c.Subject, c.Words = approval.ForBlock, b.ID, "releases "+b.Agent+" from the danger zone: "+b.Reason
	}
	got, _, err := g.issue(tx, c)
	if errors.Is(err, approval.ErrTooMany) {
		// The pause holds without a code; people see it all the same.
		return nil, nil
	}
	return got, err
}

// claimed reads a stated risk; what is no number is the highest.
func claimed(v jsontext.Value) *float64 {
	if len(v) == 0 || v.Kind() == 'n' {
		return nil
	}
	f := math.NaN()
	if v.Kind() == '0' && json.Unmarshal(v, &f) != nil {
		f = math.NaN()
	}
	return &f
}

// judgeHint reads the announced action as a command line. Prose is no command;
// then only what it carries counts.
func (g *Executions) judgeHint(ctx context.Context, j *Job, hint string) (risk int, attack bool) {
	if hint == "" {
		return 0, false
	}
	args, err := json.Marshal(map[string]string{"command": hint})
	if err != nil {
		return 100, true
	}
	_, f, err := g.Judge(ctx, &call.Call{Kind: call.External, Surface: hostSurface(j), Principal: j.Principal, Operation: "Bash", Args: args, Dir: j.Dir})
	if err != nil {
		return 100, true // what cannot be read is not waved on
	}
	for _, found := range f.Findings {
		attack = attack || found.Severity == facts.Critical
	}
	if f.Class != "unknown" {
		risk = f.Risk
	}
	return risk, attack || len(f.Self) > 0
}

// seen adds up the agent's calls since the last step, in all its sessions.
func (g *Executions) seen(ctx context.Context, x *autonomy.Execution) (autonomy.Seen, error) {
	calls, err := g.Calls(ctx, x.Principal.Agent, x.Since)
	if err != nil {
		return autonomy.Seen{}, err
	}
	var s autonomy.Seen
	for _, c := range calls {
		if op, native := call.LookupOperation(c.Operation); native && (op.Endpoint == call.Read || lifecycle[op.Name]) {
			continue
		}
		s.Calls++
		if !slices.Contains(s.Operations, c.Operation) {
			s.Operations = append(s.Operations, c.Operation)
		}
		if c.Denied {
			s.Denied++
		}
		if c.Violation {
			s.Violations++
		}
		if drifts(&x.Bounds, x.Workspace, &c) {
			s.Drift++
		}
		if c.Approved {
			continue // a person has answered for it
		}
		s.Risk = max(s.Risk, c.Risk)
		if c.Irreversible {
			s.Irreversible++
		}
		if c.Outside {
			s.Outside++
		}
	}
	return s, nil
}

// lifecycle are the operations that keep an execution; they are no work.
var lifecycle = map[string]bool{
	"record_execution_step": true, "continue_execution": true, "complete_execution": true, "execute_agent": true, "prepare_handoff": true,
	"resume_from_handoff": true, "abort_execution": true, "confirm_operation": true, "verify_challenge": true, "release_deadlock": true,
	"approve_cli_permission": true,
}

// isTool says whether an entry of a list of tools means an operation: by its
// name, by a host's name for it, or by the gate's endpoint that serves it.
func isTool(glob, operation string) bool {
	if op, native := call.LookupOperation(operation); native && glob == single+"_"+strings.ToLower(op.Endpoint.String()) {
		return true
	}
	g, err := match.CompileOp(call.FoldTool(glob))
	return err == nil && g.Match(operation)
}

// drifts says whether a call lies outside what the execution was meant to use:
// its tools, or writing outside its workspace.
func drifts(b *autonomy.Bounds, workspace string, c *SeenCall) bool {
	if len(b.Tools) > 0 && !slices.ContainsFunc(b.Tools, func(glob string) bool { return isTool(glob, c.Operation) }) {
		return true
	}
	return workspace != "" && slices.ContainsFunc(c.Needs, func(n call.Need) bool {
		return n.Capability == call.FSWrite && n.Scope != "" && !match.Within(workspace, n.Scope)
	})
}

func (g *Executions) get(ctx context.Context, agent, id string) (x *autonomy.Execution, err error) {
	err = g.Store.Read(ctx, func(tx *store.Tx) error {
		x, err = g.Keeper.Get(tx, agent, id)
		return err
	})
	return x, readable(err)
}

type stateParams struct {
	Execution string `json:"execution_id,omitzero" about:"the execution; all of your own if left out"`
}

// ExecutionList is the answer to get_execution_state without an id.
type ExecutionList struct {
	Executions []*autonomy.Execution `json:"executions"`
}

func (g *Executions) state(ctx context.Context, j *Job, p stateParams) (any, error) {
	if p.Execution != "" {
		return g.get(ctx, j.Principal.Agent, p.Execution)
	}
	var out ExecutionList
	err := g.Store.Read(ctx, func(tx *store.Tx) (err error) {
		out.Executions, err = g.Keeper.List(tx, j.Principal.Agent, 50)
		return err
	})
	return out, readable(err)
}

type executionParams struct {
	Execution string `json:"execution_id" about:"the execution"`
}

// Gathered is what the steps of an execution gathered.
type Gathered struct {
	Data []jsontext.Value `json:"data"`
}

func (g *Executions) gathered(ctx context.Context, j *Job, p executionParams) (any, error) {
	x, err := g.get(ctx, j.Principal.Agent, p.Execution)
	if err != nil {
		return nil, err
	}
	out := Gathered{Data: []jsontext.Value{}}
	for _, t := range x.Taken {
		if len(t.Data) > 0 {
			out.Data = append(out.Data, t.Data)
		}
	}
	return out, nil
}

// goOn tells whether the next step may be taken. A paused execution's code is
// shown to people again if the last one has run out.
func (g *Executions) goOn(ctx context.Context, j *Job, p executionParams) (any, error) {
	x, err := g.get(ctx, j.Principal.Agent, p.Execution)
	if err != nil {
		return nil, err
	}
	out := Stepped{Execution: x.ID, State: x.State, Step: x.Steps, Message: "Go on."}
	if n := len(x.Taken); n > 0 {
		out.Directive = x.Taken[n-1].Directive
	}
	switch {
	case x.State.Over() || x.State == autonomy.Handed:
		return nil, readable(autonomy.ErrOver)
	case x.State == autonomy.Running:
		out.Directive.Continue = true
	case x.State == autonomy.Paused:
		out.Message = "The execution is paused. Stop here; the next step is refused until an approver lets it go on."
		out.Challenge, err = g.ask(ctx, j, approval.Challenge{Kind: approval.ForPause, Subject: x.Pause,
			Words: fmt.Sprintf("lets execution %s of %s go on after step %d: %v", x.ID, x.Principal.Agent, x.Steps, x.Why)})
	}
	return out, err
}

type completeParams struct {
	Execution string `json:"execution_id" about:"the execution"`
	Outcome   string `json:"outcome,omitzero" about:"success or failure; success if left out"`
	Summary   string `json:"summary,omitzero" about:"what came of it"`
}

func (g *Executions) complete(ctx context.Context, j *Job, p completeParams) (any, error) {
	state := autonomy.Completed
	if p.Outcome != "" && p.Outcome != string(autonomy.Success) {
		state = autonomy.Failed
	}
	return g.end(ctx, j, p.Execution, state, p.Summary)
}

type abortParams struct {
	Execution string `json:"execution_id" about:"the execution"`
	Reason    string `json:"reason,omitzero" about:"why it ends"`
}

func (g *Executions) abort(ctx context.Context, j *Job, p abortParams) (any, error) {
	return g.end(ctx, j, p.Execution, autonomy.Aborted, p.Reason)
}

func (g *Executions) end(ctx context.Context, j *Job, id string, state autonomy.State, why string) (x *autonomy.Execution, err error) {
	err = g.Store.Write(ctx, func(tx *store.Tx) error {
		x, err = g.Keeper.End(tx, j.Principal.Agent, id, state, why, j.Principal.Agent)
		return err
	})
	if err != nil {
		return nil, readable(err)
	}
	return x, nil
}

type handOffParams struct {
	Execution string `json:"execution_id" about:"the execution"`
	To        string `json:"to,omitzero" about:"the agent that takes it up; yourself, in another session, if left out"`
}

// HandedOff is the answer to prepare_handoff.
type HandedOff struct {
	Handoff string    `json:"handoff"`
	Expires time.Time `json:"expires"`
	Message string    `json:"message"`
}

func (g *Executions) handOff(ctx context.Context, j *Job, p handOffParams) (any, error) {
	out := HandedOff{Message: "Whoever takes it up calls resume_from_handoff with it, once. Nothing happens in the execution until then."}
	err := g.Store.Write(ctx, func(tx *store.Tx) (err error) {
		out.Handoff, out.Expires, err = g.Keeper.Handoff(tx, j.Principal.Agent, p.Execution, p.To)
		return err
	})
	if err != nil {
		return nil, readable(err)
	}
	return out, nil
}

type resumeParams struct {
	Handoff string `json:"handoff" about:"what prepare_handoff returned"`
}

func (g *Executions) resume(ctx context.Context, j *Job, p resumeParams) (any, error) {
	var x *autonomy.Execution
	err := g.Store.Write(ctx, func(tx *store.Tx) (err error) {
		x, err = g.Keeper.Resume(tx, j.Principal, p.Handoff)
		return err
	})
	if err != nil {
		return nil, readable(err)
	}
	return x, nil
}
