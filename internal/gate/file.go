package gate

import (
	"context"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/grant"
)

// Filing is what became of asking for a call ahead of making it.
type Filing struct {
	// Ready says that the call needs no answer of a person (any more). It is
	// no allow: the call is decided again when it is made.
	Ready bool
	// Answer is what the call would be told otherwise.
	Answer *Answer
	// Pinned says that an approval takes the approver's second factor.
	Pinned bool
}

// File puts a call before a person without making it, or finds out that there
// is nothing to ask. It lets nothing through and uses no grant.
func (g *Gate) File(ctx context.Context, c *call.Call) Filing {
	if err := c.Normalize(); err != nil {
		return Filing{Answer: &Answer{Message: "Denied: " + err.Error() + ". Correct the call and ask again.", Final: true}}
	}
	c.ID = g.opts.NewID()
	ready := false
	ans, _ := g.attempt(ctx, &Submission{Call: c, ready: &ready})
	return Filing{Ready: ready, Answer: ans, Pinned: ans.Decision.Pinned}
}

// inquire files the call where it asks, and says so where it does not.
func (t *trial) inquire(tx Tx) error {
	d := &t.decision
	*t.sub.ready = false // the transaction may run more than once
	if d.Level == call.Deny {
		return t.deny(tx, d.Why())
	}
	grants, err := t.grants(tx)
	if err != nil {
		return err
	}
	if _, open := grant.Cover(t.sub.Call, d, grants, t.gate.opts.Scope); d.Level != call.AutoApprove && len(open) > 0 {
		return t.file(tx)
	}
	*t.sub.ready = true
	t.answer = &Answer{Decision: *d, Message: "Nothing is to be confirmed: " + describe(t.sub.Call) + " can be made as it is."}
	return nil
}

// violation names what of a denied call was an attempt on the gate or carried
// an attack, "" for an ordinary denial.
func violation(d *call.Decision) string {
	for i := range d.Ballots {
		b := &d.Ballots[i]
		if b.Level == call.Deny && (b.Stage == call.StageSelf || b.Stage == call.StageContent) {
			return b.Stage.String()
		}
	}
	return ""
}
