package gate

import (
	"context"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
)

// changes says whether the call changes something that could be kept.
func (t *trial) changes() bool {
	f := t.in.Facts
	return t.gate.opts.Keeper != nil && t.sub.Call.Kind == call.External && (len(f.Touches) > 0 || f.TouchesMore)
}

// preview finds out what could not be taken back, for the person who is about
// to be asked. It looks at files, so it runs before the transaction.
func (t *trial) preview() {
	if t.decision.Level.Asks() && t.changes() {
		t.notKept = t.gate.opts.Keeper.Preview(t.sub.Call, t.in.Facts)
	}
}

// keep keeps what an allowed call is about to change, before whoever runs it
// hears that it may. A question ends the session's batch. Where the copy cannot
// be written the call does not run: its allow is on record, and so is that
// nothing came of it.
func (t *trial) keep(ctx context.Context) *Answer {
	g, c := t.gate, t.sub.Call
	if g.opts.Keeper == nil {
		return t.answer
	}
	if t.answer.Verdict == Pending {
		g.opts.Keeper.Asked(c.Principal.Session)
	}
	// A call that the host asks about may run without coming back here.
	runs := t.answer.Verdict == Allowed || t.answer.HostAsks
	if !runs || !t.changes() {
		return t.answer
	}
	kept, err := g.opts.Keeper.Keep(c, t.in.Facts)
	if err == nil {
		err = g.opts.State.Commit(ctx, func(tx Tx) error {
			return tx.Append(&Event{Kind: "restore", Call: c, Restore: &kept})
		})
	}
	if err == nil {
		t.answer.Restore = kept.Point
		return t.answer
	}
	g.log.Error("call refused: what it changes could not be kept", "call", c.ID, "error", err)
	if err := g.Finish(ctx, c.ID, c.Principal, Refused, "what it changes could not be kept first"); err != nil {
		return g.broken(c, t.decision, err)
	}
	return deny(c, t.decision, "what it changes could not be kept first, so it did not run", false)
}
