package gate

import (
	"slices"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/policy"
)

// counted are the tools whose uses are counted.
func (t *trial) counted() []string { return t.snap.Counts(t.sub.Call, t.in.Facts) }

// constrain holds the call against the usage constraints of its tools. It
// reads what was counted inside the transaction, so that of two calls that
// come at once the second sees the first. It says whether there is news.
func (t *trial) constrain(tx Tx) (news bool, err error) {
	if len(t.counted()) == 0 {
		return false, nil
	}
	uses, err := tx.Uses(t.sub.Call, t.in.Facts.Workspace)
	if err != nil {
		return false, err
	}
	now := slices.Concat(t.asked, t.snap.Constrain(t.sub.Call, t.in.Facts, uses))
	news = !slices.Equal(now, t.in.Violations)
	t.in.Violations = now
	return news, nil
}

// used counts a call that is let through.
func (t *trial) used(tx Tx) error {
	if tools := t.counted(); len(tools) > 0 {
		t.answer.Counted = true
		return tx.Use(t.sub.Call, t.in.Facts.Workspace, tools)
	}
	return nil
}

// refused counts a call that is denied.
func (t *trial) refused(tx Tx) error {
	if tools := t.counted(); len(t.in.Facts.Declared) > 0 && len(tools) > 0 {
		return tx.Refuse(t.sub.Call, t.in.Facts.Workspace, tools)
	}
	return nil
}

// asks is the vote of a caller who wants a person asked.
func asks(c *call.Call) []policy.Violation {
	return []policy.Violation{{Tool: c.Operation, Rule: "requiresApproval", Level: call.ConfirmSingleUse, Reason: "the tool has a person asked before every call"}}
}
