package daemon

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/grant"
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
		out.Tools[u.Tool] = one
	}
	for tool, n := range denials {
		one := out.Tools[tool]
		one.Denials = n
		out.Tools[tool] = one
	}
	return out, t.spent(c.Principal, out)
}

// spent reads what an agent and its sub-agents were let through, and what the
// principal draws from: a use belongs to the innermost share that holds it.
func (t *tx) spent(p call.Principal, out *policy.Uses) error {
	spent, row, inRow, err := t.s.sessions.Spent(t.Tx, p.Agent)
	if err != nil {
		return err
	}
	out.Row, out.InRow = row, inRow
	for _, s := range spent {
		out.Spent = append(out.Spent, policy.Spent(s))
		out.Purse.Used += s.Calls
	}
	shares, err := t.s.sessions.Shares(t.Tx, p.Agent)
	if err != nil {
		return err
	}
	for _, s := range shares {
		if s.Holds(p.Path) && len(s.Path) > len(out.Purse.Path) {
			out.Purse = policy.Purse{Path: s.Path, Calls: s.Calls, Used: s.Used}
		}
	}
	for _, s := range shares {
		if !grant.Below(out.Purse.Path, s.Path) || slices.ContainsFunc(shares, func(above session.Share) bool {
			return grant.Below(out.Purse.Path, above.Path) && grant.Below(above.Path, s.Path)
		}) {
			continue // above, beside, or a part of one below
		}
		out.Purse.Used, out.Purse.Reserved = out.Purse.Used-s.Used, out.Purse.Reserved+s.Calls
	}
	return nil
}

// SetAside keeps a part of an agent's calls for a sub-agent.
func (t *tx) SetAside(p call.Principal, path string, calls int) (id string, until time.Time, err error) {
	s, err := t.s.sessions.SetAside(t.Tx, p.Agent, path, calls)
	if err != nil {
		return "", time.Time{}, err
	}
	return s.ID, s.Given.Add(session.UseLife), nil
}

// TakeBack ends what a principal, or one above it, set aside.
func (t *tx) TakeBack(id string, p call.Principal) error {
	shares, err := t.s.sessions.Shares(t.Tx, p.Agent)
	if err != nil {
		return err
	}
	for i := range shares {
		if s := &shares[i]; s.ID == id && grant.Below(p.Path, s.Path) {
			return t.s.sessions.TakeBack(t.Tx, p.Agent, s)
		}
	}
	return fmt.Errorf("budget: %w", session.ErrNotFound)
}

// Use counts a call that was opened.
func (t *tx) Use(c *call.Call, workspace string, tools []string) error {
	t.Remember(slotOf(c.ID), nil) // its end has more to do than to take its row out
	return t.s.sessions.Use(t.Tx, c.ID, c.Principal.Agent, c.Principal.Path, workspace, tools)
}

// Refuse counts a call that was denied.
func (t *tx) Refuse(c *call.Call, _ string, tools []string) error {
	return t.s.sessions.Refuse(t.Tx, c.Principal.Agent, tools)
}
