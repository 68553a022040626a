package aql

import (
	"context"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
)

// Host is the operations with which a host asks about its own tools.
type Host struct {
	Gate *gate.Gate
	// Wait is how long a prompt is held for a person who can be reached.
	Wait time.Duration
	// ForgetGitHub removes the credential that is kept for an agent at GitHub,
	// and says whether there was one; nil where none is kept.
	ForgetGitHub func(ctx context.Context, agent string) (cleared bool, err error)
}

// Operations lists the group.
func (g *Host) Operations() []Operation {
	return []Operation{
		Op("permission_prompt", g.prompt),
		Op("approve_cli_permission", g.follow),
		Op("clear_github_auth", g.clearGitHub),
	}
}

type promptParams struct {
	Tool  string         `json:"tool_name" about:"the host's tool"`
	Input jsontext.Value `json:"input" about:"its arguments"`
	ID    string         `json:"tool_use_id,omitzero" about:"the host's id of the call"`
	Dir   string         `json:"dir,omitzero" about:"the working directory"`
}

// Prompted is the answer to a host that asks whether it may run a tool. The
// names are the host's.
type Prompted struct {
	Behavior     string         `json:"behavior"`
	UpdatedInput jsontext.Value `json:"updatedInput,omitzero"`
	Message      string         `json:"message,omitzero"`
	Told         *gate.Told     `json:"decision,omitzero"`
}

// hostSurface is the surface of a call of the host's own tools that is told of
// over another one. The names are the host's there, and not an MCP server's.
func hostSurface(j *Job) string { return "host:" + j.Surface }

// prompt takes a call of a host's tool through the gate. What is let through
// is run by the host; what waits for a person is not, and finds its approval
// when the host asks again.
func (g *Host) prompt(ctx context.Context, j *Job, p promptParams) (any, error) {
	c := &call.Call{
		Kind: call.External, Surface: hostSurface(j), Principal: j.Principal, Held: j.Held,
		Operation: p.Tool, Args: p.Input, Dir: p.Dir, Parent: j.ID,
	}
	if _, own := call.LookupOperation(p.Tool); own {
		c.Kind = call.Native
	}
	ans := g.Gate.Submit(ctx, gate.Submission{Call: c, Runs: "host", Wait: g.Wait})
	if ans.Verdict == gate.Allowed {
		input := p.Input
		if ans.Edited != nil {
			input = ans.Edited.Args
		}
		return Prompted{Behavior: "allow", UpdatedInput: input}, nil
	}
	t := gate.Tell(c, ans)
	return Prompted{Behavior: "deny", Message: ans.Message, Told: &t}, nil
}

type followParams struct {
	Request string `json:"request_id" about:"the id of one of your requests"`
	Scope   string `json:"scope,omitzero" about:"has no effect: what an approval covers is the person's choice"`
}

// Followed is how far a request has got.
type Followed struct {
	Request string    `json:"request"`
	State   string    `json:"state"`
	Expires time.Time `json:"expires"`
	Next    string    `json:"next"`
}

// follow tells how far a request has got. It approves nothing: that a caller
// could approve its own request is what the gate is there to prevent.
func (g *Host) follow(ctx context.Context, j *Job, p followParams) (any, error) {
	st, err := g.Gate.Request(ctx, j.Principal.Agent, p.Request)
	if err != nil {
		return nil, err
	}
	next := "Nothing more can come of this request."
	switch st.State {
	case "pending":
		next = "It waits for a person. Tell the person you work for; you cannot approve it yourself."
	case "approved":
		next = "Repeat the identical call; it finds the approval."
	}
	return Followed{Request: st.ID, State: st.State, Expires: st.Expires, Next: next}, nil
}

// Forgotten says whether a credential was removed.
type Forgotten struct {
	Cleared bool   `json:"cleared"`
	Message string `json:"message,omitzero"`
}

// clearGitHub removes the credential that the gate keeps for GitHub.
func (g *Host) clearGitHub(ctx context.Context, j *Job, _ None) (any, error) {
	if !j.Approved {
		return nil, refused("a credential is removed with a person's approval only")
	}
	cleared := false
	if g.ForgetGitHub != nil {
		var err error
		if cleared, err = g.ForgetGitHub(ctx, j.Principal.Agent); err != nil {
			return nil, err
		}
	}
	if !cleared {
		return Forgotten{Message: "This gate keeps no GitHub credential for you, so there was none to remove."}, nil
	}
	return Forgotten{Cleared: true}, nil
}
