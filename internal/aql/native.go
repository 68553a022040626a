package aql

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/facts"
	"github.com/seed-3ebc6b8a/gatehouse/internal/policy"
)

// Waiting is one of the caller's own requests.
type Waiting struct {
	Request   string    `json:"request"`
	Operation string    `json:"operation"`
	Expires   time.Time `json:"expires"`
}

// Options is what the operations stand on.
type Options struct {
	Version string
	// Decide tells how a call would be decided.
	Decide func(context.Context, *call.Call) (call.Decision, *facts.Facts, error)
	// Policy returns the snapshot in force for a call.
	Policy func(*call.Call) (*policy.Snapshot, call.Digest)
	// Waiting lists an agent's own requests that wait.
	Waiting func(ctx context.Context, agent string) ([]Waiting, error)
}

// Native performs native operations.
type Native struct {
	opts Options
	ops  map[string]func(context.Context, *call.Call) (any, error)
}

// New makes the operations.
func New(opts Options) *Native {
	n := &Native{opts: opts}
	n.ops = map[string]func(context.Context, *call.Call) (any, error){
		"introspect":                 n.introspect,
		"get_capabilities":           n.capabilities,
		"get_build_info":             n.buildInfo,
		"get_permission_authority":   n.authority,
		"get_effective_cli_policies": n.policies,
		"get_pending_cli_approvals":  n.pending,
		"evaluate_permission":        n.evaluate,
	}
	return n
}

// Serves says whether an operation is performed here.
func (n *Native) Serves(operation string) bool {
	_, ok := n.ops[operation]
	return ok
}

// Run performs the operation of a call that was let through.
func (n *Native) Run(ctx context.Context, c *call.Call) (any, error) {
	run, ok := n.ops[c.Operation]
	if !ok {
		return nil, fmt.Errorf("%s is not performed by this version", c.Operation)
	}
	return run(ctx, c)
}

// Described is an operation as introspect tells it.
type Described struct {
	call.Operation
	// Served says whether this version performs it.
	Served bool `json:"served"`
}

func (n *Native) introspect(_ context.Context, c *call.Call) (any, error) {
	name, _ := call.StringArg(c.Args, "operation")
	var out []Described
	for _, op := range call.Operations() {
		if name == "" || op.Name == name || slices.Contains(op.Aliases, name) {
			out = append(out, Described{Operation: op, Served: n.Serves(op.Name)})
		}
	}
	return map[string]any{"operations": out}, nil
}

func (n *Native) capabilities(context.Context, *call.Call) (any, error) {
	var names []string
	for name := range n.ops {
		names = append(names, name)
	}
	slices.Sort(names)
	return map[string]any{"levels": call.LevelNames(), "endpoints": call.Endpoints(), "served": names}, nil
}

func (n *Native) buildInfo(context.Context, *call.Call) (any, error) {
	return map[string]any{"name": "gatehouse", "version": n.opts.Version}, nil
}

func (n *Native) authority(_ context.Context, c *call.Call) (any, error) {
	return map[string]any{
		"decides": "the policy of this gate; where it asks, a person on a channel that agents cannot reach",
		"posture": c.Posture(),
	}, nil
}

func (n *Native) policies(_ context.Context, c *call.Call) (any, error) {
	snap, _ := n.opts.Policy(c)
	if snap == nil {
		return nil, fmt.Errorf("no policy is in force here")
	}
	return map[string]any{"hash": snap.Hash, "profile": snap.Settings.Profile, "observe": snap.Settings.Observe}, nil
}

func (n *Native) pending(ctx context.Context, c *call.Call) (any, error) {
	list, err := n.opts.Waiting(ctx, c.Principal.Agent)
	return map[string]any{"requests": list}, err
}

// evaluate tells how a host's tool call would be decided. It runs nothing.
func (n *Native) evaluate(ctx context.Context, c *call.Call) (any, error) {
	var in struct {
		Tool  string         `json:"tool_name"`
		Input jsontext.Value `json:"input"`
		Dir   string         `json:"dir"`
	}
	if err := json.Unmarshal(c.Args, &in); err != nil {
		return nil, &call.InvalidError{Field: "params", Problem: "take tool_name, input and dir: " + err.Error()}
	}
	kind := call.External
	if _, native := call.LookupOperation(in.Tool); native {
		kind = call.Native
	}
	d, f, err := n.opts.Decide(ctx, &call.Call{Kind: kind, Surface: c.Surface, Principal: c.Principal, Operation: in.Tool, Args: in.Input, Dir: in.Dir})
	if err != nil {
		return nil, err
	}
	return map[string]any{"level": d.Level, "why": d.Why(), "class": f.Class, "risk": f.Risk, "does": f.Words}, nil
}
