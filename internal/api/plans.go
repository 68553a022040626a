package api

import (
	"cmp"
	"context"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/facts"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
	"github.com/seed-3ebc6b8a/gatehouse/internal/grant"
	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
	"github.com/seed-3ebc6b8a/gatehouse/internal/observe"
)

// planRoutes are the part of the agent half about composite tools.
func planRoutes() []route {
	return []route{
		as[CallResponse](jsonRoute("POST", "/v1/plans", agentHalf, "Submit the plan of a composite tool; allowed means: its calls may draw from the budget", (*Server).plan)),
		jsonRoute("POST", "/v1/plans/decide", agentHalf, "What a plan would be decided to, as a whole and step by step; nothing is recorded", (*Server).decidePlan),
		jsonRoute("GET", "/v1/budgets/{id}", agentHalf, "What is left of the caller's own budget; ?session= and ?path= say whose it is", (*Server).budget),
		jsonRoute("POST", "/v1/budgets/{id}/delegate", agentHalf, "Cut a budget for a sub-agent; what it gets is reserved", (*Server).delegate),
		jsonRoute("POST", "/v1/budgets/{id}/return", agentHalf, "End a sub-agent's budget; what is left of it goes back", (*Server).returnBudget),
	}
}

// PlanRequest is what a composite tool is going to do.
type PlanRequest struct {
	// Name is the composite tool.
	Name string `json:"name"`
	// Calls are the calls that are known already.
	Calls []PlannedCall `json:"calls,omitzero"`
	// Needs are what further calls will need.
	Needs []PlannedNeed `json:"needs,omitzero"`
	// Dir is the working directory; steps that name none have it too.
	Dir     string `json:"dir,omitzero"`
	Session string `json:"session,omitzero"`
	Path    string `json:"path,omitzero"`
	Note    string `json:"note,omitzero"`
	// WaitMS is how long to wait for a person, in milliseconds.
	WaitMS int `json:"wait_ms,omitzero"`
}

// PlannedCall is one call of a plan.
type PlannedCall struct {
	Operation string         `json:"operation"`
	Args      jsontext.Value `json:"args,omitzero"`
	// Needs are what the tool says that the call needs.
	Needs []string `json:"needs,omitzero"`
	Dir   string   `json:"dir,omitzero"`
}

// PlannedNeed is what calls of a plan will need.
type PlannedNeed struct {
	// Need is a capability with its scope, such as fs.write:./src/**.
	Need string `json:"need"`
	// Uses is how many times; 1 where left out.
	Uses int `json:"uses,omitzero"`
}

// PlanDecision is a decision on a plan without consequences.
type PlanDecision struct {
	DecideResponse
	Needs []call.Need  `json:"needs,omitzero"`
	Steps []StepAnswer `json:"steps"`
}

// StepAnswer is what one call of a plan would be decided to by itself.
type StepAnswer struct {
	Operation string     `json:"operation"`
	Level     call.Level `json:"level"`
	Why       string     `json:"why"`
	Words     string     `json:"words,omitzero"`
}

// DelegateRequest cuts a budget for a sub-agent.
type DelegateRequest struct {
	// To names the sub-agent, below the caller's own path.
	To      string        `json:"to"`
	Needs   []PlannedNeed `json:"needs"`
	Session string        `json:"session,omitzero"`
	Path    string        `json:"path,omitzero"`
}

// ReturnRequest says whose budget takes back what is left.
type ReturnRequest struct {
	Session string `json:"session,omitzero"`
	Path    string `json:"path,omitzero"`
}

// BuildPlan makes a plan, and the call that stands for it, of a request. The
// call's arguments are the whole plan: what a person approves is every step.
func BuildPlan(in *PlanRequest, surface string, p call.Principal) (*call.Call, *gate.Plan, error) {
	dir := observe.RealDir(in.Dir)
	plan := &gate.Plan{Name: in.Name}
	for i := range in.Calls {
		s := &in.Calls[i]
		if s.Dir == "" {
			s.Dir = in.Dir
		}
		c, err := BuildCall(&CallRequest{Operation: s.Operation, Args: s.Args, Needs: s.Needs, Dir: s.Dir}, surface, p)
		if err != nil {
			return nil, nil, err
		}
		s.Dir = c.Dir // the person sees where it leads
		plan.Calls = append(plan.Calls, c)
	}
	for i := range in.Needs {
		n := &in.Needs[i]
		n.Uses = max(n.Uses, 1)
		need, err := planNeed(n.Need, dir)
		if err != nil {
			return nil, nil, err
		}
		plan.Needs = append(plan.Needs, gate.PlannedNeed{Need: need, Uses: n.Uses})
	}
	args, err := json.Marshal(struct {
		Name  string        `json:"name"`
		Calls []PlannedCall `json:"calls,omitzero"`
		Needs []PlannedNeed `json:"needs,omitzero"`
	}{in.Name, in.Calls, in.Needs})
	if err != nil {
		return nil, nil, &call.InvalidError{Field: "calls", Problem: err.Error()}
	}
	c := &call.Call{Kind: call.External, Surface: surface, Principal: p, Operation: call.OpPlan, Args: args, Dir: dir, Note: in.Note}
	return c, plan, nil
}

// planNeed reads a need. Paths are written as they are in the needs of calls:
// below the workspace with "./", elsewhere absolute and clean.
func planNeed(text, dir string) (call.Need, error) {
	n := call.ParseNeed(text)
	switch n.Capability {
	case call.FSRead, call.FSWrite, call.FSDelete:
	default:
		return n, nil
	}
	bad := &call.InvalidError{Field: "need", Problem: text + ": start a path with \"./\" for the workspace or with \"/\", without \"..\""}
	tree, deep := strings.CutSuffix(n.Scope, "/**")
	if strings.ContainsAny(tree, "*?[\\\x00") {
		return n, &call.InvalidError{Field: "need", Problem: text + ": name a file, or a directory with /** at its end"}
	}
	rel, inside := strings.CutPrefix(tree+"/", "./")
	switch {
	case strings.Contains("/"+tree+"/", "/../"):
		return n, bad
	case inside && dir != "":
		n.Scope, n.Inside = "./"+path.Clean(rel), true
		if rel == "" {
			n.Scope = "."
		}
	case path.IsAbs(tree):
		n.Scope = path.Clean(tree)
		if n.Inside = dir != "" && match.Within(dir, n.Scope); n.Inside {
			n.Scope = "." + strings.TrimPrefix(n.Scope, strings.TrimSuffix(dir, "/"))
		}
	default:
		return n, bad
	}
	if deep {
		n.Scope += "/**"
	}
	if n.Inside {
		n.Root = observe.Root(dir)
	}
	return n, nil
}

func (s *Server) buildPlan(ctx context.Context, c *caller, in *PlanRequest) (*call.Call, *gate.Plan, error) {
	session, err := s.opts.Doors.Session(ctx, SessionAsk{
		Agent: c.agent, TokenID: c.tokenID, Peer: c.peer, ID: in.Session, Workspace: in.Dir, Surface: c.surface,
	})
	if err != nil {
		return nil, nil, err
	}
	built, plan, err := BuildPlan(in, c.surface, call.Principal{Agent: c.agent, Session: session, Path: in.Path})
	if err != nil {
		return nil, nil, err
	}
	built.Held = held(c.peer)
	return built, plan, nil
}

func (s *Server) plan(ctx context.Context, c *caller, _ *http.Request, in *PlanRequest) (*callAnswer, error) {
	built, plan, err := s.buildPlan(ctx, c, in)
	if err != nil {
		return nil, err
	}
	wait := min(time.Duration(in.WaitMS)*time.Millisecond, maxWait)
	ans := s.opts.Gate.Submit(ctx, gate.Submission{Call: built, Wait: wait, Runs: "host", Composite: plan})
	return newCallAnswer(built, ans), nil
}

func (s *Server) decidePlan(ctx context.Context, c *caller, _ *http.Request, in *PlanRequest) (*PlanDecision, error) {
	built, plan, err := s.buildPlan(ctx, c, in)
	if err != nil {
		return nil, err
	}
	d, f, steps, err := s.opts.Gate.DecidePlan(ctx, built, plan)
	if err != nil {
		return nil, err
	}
	return NewPlanDecision(d, f, steps), nil
}

// NewPlanDecision writes a decision on a plan with what it rests on.
func NewPlanDecision(d call.Decision, f *facts.Facts, steps []gate.Step) *PlanDecision {
	out := &PlanDecision{DecideResponse: *NewDecideResponse(d, f), Needs: f.Needs}
	for _, s := range steps {
		out.Steps = append(out.Steps, StepAnswer{Operation: s.Call.Operation, Level: s.Decision.Level, Why: s.Decision.Why(), Words: s.Facts.Words})
	}
	return out
}

func (s *Server) budget(ctx context.Context, c *caller, req *http.Request, _ *none) (*grant.Budget, error) {
	q := req.URL.Query()
	p, err := s.principal(ctx, c, q.Get("session"), q.Get("path"))
	if err != nil {
		return nil, err
	}
	return s.opts.Gate.Budget(ctx, req.PathValue("id"), p)
}

func (s *Server) delegate(ctx context.Context, c *caller, req *http.Request, in *DelegateRequest) (*grant.Budget, error) {
	p, err := s.principal(ctx, c, in.Session, in.Path)
	if err != nil {
		return nil, err
	}
	var lines []grant.Line
	for _, n := range in.Needs {
		need := call.ParseNeed(n.Need)
		lines = append(lines, grant.Line{Need: need, Total: cmp.Or(n.Uses, 1)})
	}
	return s.opts.Gate.Delegate(ctx, req.PathValue("id"), p, in.To, lines)
}

func (s *Server) returnBudget(ctx context.Context, c *caller, req *http.Request, in *ReturnRequest) (*none, error) {
	p, err := s.principal(ctx, c, in.Session, in.Path)
	if err != nil {
		return nil, err
	}
	return nil, s.opts.Gate.Return(ctx, req.PathValue("id"), p)
}
