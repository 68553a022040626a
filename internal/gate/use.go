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
	var tools []string
	for i := range t.in.Facts.Declared {
		if d := &t.in.Facts.Declared[i]; !d.Claimed {
			tools = append(tools, d.Name)
		}
	}
	if len(tools) > 0 && len(t.counted()) > 0 {
		return tx.Refuse(t.sub.Call, t.in.Facts.Workspace, tools)
	}
	return nil
}

// claims takes over what the tool says about itself: that a person is to be
// asked, or that its own declaration denies the call. Neither lowers anything.
func (t *trial) claims() {
	op := t.sub.Call.Operation
	if t.sub.Claim != nil {
		claim := *t.sub.Claim
		claim.Name, claim.Claimed = op, true
		t.in.Facts.Declared = append(t.in.Facts.Declared, claim)
	}
	if t.sub.Ask {
		t.asked = append(t.asked, policy.Violation{Tool: op, Rule: "requiresApproval", Level: call.ConfirmSingleUse, Reason: "the tool has a person asked before every call"})
	}
	if t.sub.Refused != "" {
		t.asked = append(t.asked, policy.Violation{Tool: op, Rule: "declared", Level: call.Deny, Reason: t.sub.Refused})
	}
	t.in.Violations = t.asked
}
