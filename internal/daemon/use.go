package daemon

import (
	"context"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/policy"
	"github.com/seed-3ebc6b8a/gatehouse/internal/session"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// Uses reads how an agent used declared tools in a workspace.
func (s *state) Uses(ctx context.Context, c *call.Call, workspace string) (out *policy.Uses, err error) {
	err = s.store.Read(ctx, func(t *store.Tx) error {
		out, err = (&tx{Tx: t, s: s}).Uses(c, workspace)
		return err
	})
	return out, admin.PublicError(err)
}

// Uses reads how an agent used declared tools in a workspace. What limits a
// tool counts wherever the agent used it, and whoever used it in the workspace;
// what it waits for must have been done by this agent there.
func (t *tx) Uses(c *call.Call, workspace string) (*policy.Uses, error) {
	now, err := t.Now()
	if err != nil {
		return nil, err
	}
	used, denials, err := t.s.sessions.Uses(t.Tx, c.Principal.Agent, workspace)
	if err != nil {
		return nil, err
	}
	out := &policy.Uses{Now: now, Tools: make(map[string]policy.Use)}
	for i := range used {
		u := &used[i]
		one := out.Tools[u.Tool]
		one.Runs, one.Running = one.Runs+u.Runs, one.Running+u.Running
		if u.Ended.After(one.Ended) {
			one.Ended = u.Ended
		}
		if u.Concerns(c.Principal.Agent, workspace) {
			one.Completed = one.Completed || u.Succeeded > 0
		}
		if u.Agent == session.AgentID(c.Principal.Agent) {
			out.Steps += u.Runs
		}
		out.Tools[u.Tool] = one
	}
	for tool, n := range denials {
		one := out.Tools[tool]
		one.Denials = n
		out.Tools[tool] = one
	}
	return out, nil
}

// Use counts a call that was opened.
func (t *tx) Use(c *call.Call, workspace string, tools []string) error {
	t.Remember(slotOf(c.ID), nil) // its end has more to do than to take its row out
	return t.s.sessions.Use(t.Tx, c.ID, c.Principal.Agent, workspace, tools)
}

// Refuse counts a call that was denied.
func (t *tx) Refuse(c *call.Call, _ string, tools []string) error {
	return t.s.sessions.Refuse(t.Tx, c.Principal.Agent, tools)
}
