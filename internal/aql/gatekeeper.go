package aql

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/element"
	"github.com/seed-3ebc6b8a/gatehouse/internal/facts"
	"github.com/seed-3ebc6b8a/gatehouse/internal/policy"
)

// Waiting is one of the caller's own requests.
type Waiting struct {
	Request   string    `json:"request"`
	Operation string    `json:"operation"`
	Expires   time.Time `json:"expires"`
}

// Gatekeeper is the operations that tell an agent about the gate. They change
// nothing.
type Gatekeeper struct {
	Version string
	// Decide tells how a call would be decided.
	Decide func(context.Context, *call.Call) (call.Decision, *facts.Facts, error)
	// Policy returns the snapshot in force for a call.
	Policy func(*call.Call) (*policy.Snapshot, call.Digest)
	// Waiting lists an agent's own requests that wait.
	Waiting func(ctx context.Context, agent string) ([]Waiting, error)
	// InForce lists the policies of the elements that are active for someone.
	InForce func(context.Context, call.Principal) ([]element.Element, error)
	// Params lists the parameters of an operation, for introspect.
	Params func(operation string) []Param
}

// Operations lists the group.
func (g *Gatekeeper) Operations() []Operation {
	return []Operation{
		Op("introspect", g.introspect),
		Op("get_capabilities", g.capabilities),
		Op("get_build_info", g.buildInfo),
		Op("get_permission_authority", g.authority),
		Op("get_effective_cli_policies", g.policies),
		Op("get_pending_cli_approvals", g.pending),
		Op("evaluate_permission", g.evaluate),
		Op("get_config", g.config),
	}
}

// Described is an operation as introspect tells it.
type Described struct {
	call.Operation
	Parameters []Param `json:"parameters"`
}

// Introspection is the answer to introspect.
type Introspection struct {
	Operations []Described `json:"operations"`
}

type introspectParams struct {
	Operation string `json:"operation,omitzero" about:"an operation's name or alias; all of them if left out"`
}

func (g *Gatekeeper) introspect(_ context.Context, _ *Job, p introspectParams) (any, error) {
	var out Introspection
	for _, op := range call.Operations() {
		if p.Operation == "" || op.Name == p.Operation || slices.Contains(op.Aliases, p.Operation) {
			out.Operations = append(out.Operations, Described{Operation: op, Parameters: g.Params(op.Name)})
		}
	}
	if len(out.Operations) == 0 {
		return nil, unknown("operation", p.Operation, call.OperationNames())
	}
	return out, nil
}

// Capabilities is the answer to get_capabilities.
type Capabilities struct {
	Levels       []string        `json:"levels"`
	Endpoints    []call.Endpoint `json:"endpoints"`
	ElementTypes []string        `json:"element_types"`
	MaxBatch     int             `json:"max_batch"`
}

func (g *Gatekeeper) capabilities(context.Context, *Job, None) (any, error) {
	return Capabilities{Levels: call.LevelNames(), Endpoints: call.Endpoints(), ElementTypes: call.ElementTypes(), MaxBatch: MaxBatch}, nil
}

// BuildInfo is the answer to get_build_info.
type BuildInfo struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

func (g *Gatekeeper) buildInfo(context.Context, *Job, None) (any, error) {
	return BuildInfo{Name: "gatehouse", Version: g.Version}, nil
}

// Authority is the answer to get_permission_authority.
type Authority struct {
	Decides string `json:"decides"`
	Posture string `json:"posture"`
}

func (g *Gatekeeper) authority(_ context.Context, j *Job, _ None) (any, error) {
	return Authority{
		Decides: "the policy of this gate; where it asks, a person on a channel that agents cannot reach",
		Posture: j.Posture(),
	}, nil
}

// Effective is the answer to get_effective_cli_policies.
type Effective struct {
	Hash    call.Digest `json:"hash"`
	Profile string      `json:"profile"`
	Observe bool        `json:"observe"`
	// Elements are the policies of the elements that are active for the caller.
	Elements []element.Element `json:"elements,omitzero"`
}

func (g *Gatekeeper) policies(ctx context.Context, j *Job, _ None) (any, error) {
	snap, _ := g.Policy(j.Call)
	if snap == nil {
		return nil, errors.New("no policy is in force here")
	}
	active, err := g.InForce(ctx, j.Principal)
	active = slices.DeleteFunc(active, func(e element.Element) bool { return !hasPolicy(&e) && e.Quarantine == "" })
	return Effective{Hash: snap.Hash, Profile: snap.Settings.Profile, Observe: snap.Settings.Observe, Elements: active}, err
}

// Settings is the answer to get_config: what of the policy an agent may know.
type Settings struct {
	Profile      string        `json:"profile"`
	Mode         string        `json:"mode"`
	Unattended   bool          `json:"unattended"`
	Isolation    string        `json:"isolation,omitzero"`
	RequestLife  time.Duration `json:"request_life,format:sec"`
	AsksPerHour  int           `json:"asks_per_hour"`
	MaxPending   int           `json:"max_pending"`
	Irreversible call.Level    `json:"irreversible"`
}

func (g *Gatekeeper) config(_ context.Context, j *Job, _ None) (any, error) {
	snap, _ := g.Policy(j.Call)
	if snap == nil {
		return nil, errors.New("no policy is in force here")
	}
	s := &snap.Settings
	out := Settings{
		Profile: s.Profile, Mode: "enforce", Unattended: s.Unattended, Isolation: s.Isolation, RequestLife: s.RequestLife,
		AsksPerHour: s.AsksPerHour, MaxPending: s.PendingPerSession, Irreversible: s.Irreversible,
	}
	if s.Observe {
		out.Mode = "observe"
	}
	return out, nil
}

// Pending is the answer to get_pending_cli_approvals.
type Pending struct {
	Requests []Waiting `json:"requests"`
}

func (g *Gatekeeper) pending(ctx context.Context, j *Job, _ None) (any, error) {
	list, err := g.Waiting(ctx, j.Principal.Agent)
	return Pending{Requests: list}, err
}

type evaluateParams struct {
	Tool  string         `json:"tool_name" about:"the host's tool, or an operation of the gate"`
	Input jsontext.Value `json:"input,omitzero" about:"its arguments, an object"`
	Dir   string         `json:"dir,omitzero" about:"the working directory"`
}

// Evaluation is the answer to evaluate_permission.
type Evaluation struct {
	Level call.Level `json:"level"`
	Why   string     `json:"why"`
	Class string     `json:"class,omitzero"`
	Risk  int        `json:"risk"`
	Does  string     `json:"does"`
}

// evaluate tells how a host's tool call would be decided. It runs nothing.
func (g *Gatekeeper) evaluate(ctx context.Context, j *Job, p evaluateParams) (any, error) {
	kind := call.External
	if _, native := call.LookupOperation(p.Tool); native {
		kind = call.Native
	}
	d, f, err := g.Decide(ctx, &call.Call{Kind: kind, Surface: hostSurface(j), Principal: j.Principal, Held: j.Held, Operation: p.Tool, Args: p.Input, Dir: p.Dir})
	if err != nil {
		return nil, err
	}
	return Evaluation{Level: d.Level, Why: d.Why(), Class: f.Class, Risk: f.Risk, Does: f.Words}, nil
}
