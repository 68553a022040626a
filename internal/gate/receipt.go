package gate

import (
	"context"
	"fmt"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
)

// Receipt is what a launcher shows when the sandbox of a call stands and
// nothing of its command has run.
type Receipt struct {
	// Call is what is about to start: operation, arguments and directory.
	Call    *call.Call
	Backend string
	// Shown are the guarantees that the sandbox proved, by its own names.
	Shown []string
	// Seen returns what the gate sees of the launcher and its child for itself, or
	// why it does not believe them. It is asked last.
	Seen func() ([]string, error)
}

// Opener returns whose an open call is, and whether it has shown what holds its
// effect.
func (g *Gate) Opener(ctx context.Context, callID string) (p call.Principal, shown bool, err error) {
	return g.opts.State.Opener(ctx, callID)
}

// Receive holds what is about to start against the call that was let through,
// and what holds it against what the decision requires. It puts the receipt on
// record, once; without it the effect does not start.
func (g *Gate) Receive(ctx context.Context, callID string, p call.Principal, r Receipt) error {
	if err := r.Call.Normalize(); err != nil {
		return err
	}
	return g.opts.State.Commit(ctx, func(tx Tx) error {
		effect, requires, err := tx.Show(callID, p)
		if err != nil {
			return err
		}
		if _, ok := wrapped(requires); ok {
			if err := heldTo(requires, r.Call); err != nil {
				return err
			}
			requires = requires[:1] // the rest has been looked at
		} else if r.Call.Effect() != effect {
			return &RefusedError{Reason: "this is not what was let through"}
		}
		if missing := call.Missing(requires, call.Achieved(r.Shown)); len(missing) > 0 {
			return &RefusedError{Reason: fmt.Sprintf("it was let through only %s, and that was not shown", missing[0].Name)}
		}
		seen, err := r.Seen()
		if err != nil {
			return &RefusedError{Reason: err.Error()}
		}
		return tx.Append(&Event{
			Kind: "receipt", Call: &call.Call{ID: callID, Principal: p, Operation: r.Call.Operation},
			Start: &Start{Runs: "launcher", Guarantees: requires, Backend: r.Backend, Shown: r.Shown, Seen: seen},
		})
	})
}
