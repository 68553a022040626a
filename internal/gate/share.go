package gate

import (
	"context"
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/grant"
	"github.com/seed-3ebc6b8a/gatehouse/internal/policy"
)

// Declared names, in place of a budget's id, the budget that is declared for
// the caller: how many calls it and its sub-agents may make. It lets nothing
// through; it is one more limit. A part of it can be set aside for a sub-agent,
// which then draws from that and nothing else.
const Declared = "declared"

// ToolCalls is what lines of a declared budget count.
const ToolCalls call.Capability = "tool.calls"

// isShare says whether an id is that of a part that was set aside.
func isShare(id string) bool { return strings.HasPrefix(id, "s_") }

var errNoBudget = &RefusedError{Reason: "no budget of calls (maxToolCalls) is declared for you"}

// declaredBudget tells a principal what is left of what is declared for it.
func (g *Gate) declaredBudget(ctx context.Context, p call.Principal) (*grant.Budget, error) {
	limit, err := g.callBudget(p)
	if err != nil {
		return nil, err
	}
	uses, err := g.opts.State.Uses(ctx, &call.Call{Principal: p}, "")
	if err != nil {
		return nil, err
	}
	return declaredAs(p, Declared, limit, &uses.Purse), nil
}

func (g *Gate) callBudget(p call.Principal) (int64, error) {
	snap, _ := g.opts.Policy(&call.Call{Principal: p})
	limit, ok := snap.CallBudget(p)
	if !ok {
		return 0, errNoBudget
	}
	return limit, nil
}

// declaredAs writes a purse as a budget.
func declaredAs(p call.Principal, id string, limit int64, purse *policy.Purse) *grant.Budget {
	if purse.Calls > 0 {
		limit = int64(purse.Calls)
	}
	return &grant.Budget{ID: id, Principal: p, By: "policy", Channel: "policy", Lines: []grant.Line{
		{Need: call.Need{Capability: ToolCalls}, Total: int(limit), Used: purse.Used, Reserved: purse.Reserved},
	}}
}

// setAside keeps a part of a principal's declared calls for a sub-agent. What
// is left is read in the transaction that takes it.
func (g *Gate) setAside(ctx context.Context, p call.Principal, path string, lines []grant.Line) (sub *grant.Budget, err error) {
	limit, err := g.callBudget(p)
	switch {
	case err != nil:
		return nil, err
	case !grant.Below(p.Path, path):
		return nil, &RefusedError{Reason: "a budget is handed downwards: name a sub-agent below yourself"}
	case len(lines) != 1 || lines[0].Need.Capability != ToolCalls || lines[0].Need.Scope != "":
		return nil, &RefusedError{Reason: "a declared budget holds " + string(ToolCalls) + " and nothing else"}
	}
	calls := lines[0].Total
	err = g.opts.State.Commit(ctx, func(tx Tx) error {
		uses, err := tx.Uses(&call.Call{Principal: p}, "")
		if err != nil {
			return err
		}
		if calls < 1 || uses.Purse.Left(limit) < int64(calls) {
			return &RefusedError{Reason: "so many calls are not left: a sub-agent gets a part of what is left"}
		}
		id, until, err := tx.SetAside(p, path, calls)
		if err != nil {
			return err
		}
		to := p
		to.Path = path
		sub = declaredAs(to, id, limit, &policy.Purse{Path: path, Calls: calls})
		sub.Parent, sub.Expires = Declared, until
		return tx.Append(&Event{Kind: "budget", Call: &call.Call{Principal: p}, Budget: sub})
	})
	return sub, err
}
