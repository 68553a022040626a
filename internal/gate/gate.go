package gate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/facts"
	"github.com/seed-3ebc6b8a/gatehouse/internal/grant"
	"github.com/seed-3ebc6b8a/gatehouse/internal/policy"
)

// Options is what a gate is made of.
type Options struct {
	// Policy returns the snapshot in force for a call on this node, and the
	// head it was made from, which must be the one all nodes agreed on.
	Policy func(*call.Call) (snap *policy.Snapshot, head call.Digest)
	// Observer, State and Asker are what the gate stands on.
	Observer Observer
	State    State
	Asker    Asker
	// NewID returns a new unique id for a call.
	NewID func() string
	// Scope says whether one need lies within another, for session grants.
	Scope grant.Scope
	// Log receives what goes wrong; nil discards it.
	Log *slog.Logger
}

// Gate decides calls. It is safe for concurrent use.
type Gate struct {
	opts Options
	log  *slog.Logger
}

// New makes a gate.
func New(opts Options) *Gate {
	g := &Gate{opts: opts, log: opts.Log}
	if g.log == nil {
		g.log = slog.New(slog.DiscardHandler)
	}
	return g
}

// Submission is a call with how its caller wants it handled.
type Submission struct {
	Call *call.Call
	// Wait is how long the caller is ready to wait for a person; 0 not at all.
	Wait time.Duration
	// Runs says who runs the effect: "host" or "gate".
	Runs string
	// EditOf is the request that a person answered with this edited call.
	EditOf string
}

// Submit takes a call from entry to verdict. Whatever fails on the way is a
// denial that says why; the answer is never nil.
func (g *Gate) Submit(ctx context.Context, sub Submission) *Answer {
	c := sub.Call
	if err := c.Normalize(); err != nil {
		// A call that cannot be read is not recorded as one: there is no
		// canonical form to record.
		return &Answer{Message: "Denied: " + err.Error() + ". Correct the call and send it again.", Final: true}
	}
	c.ID = g.opts.NewID()
	ans := g.attempt(ctx, &sub)
	if ans.Verdict != Pending || sub.Wait <= 0 || !g.opts.Asker.Live() {
		return ans
	}
	return g.await(ctx, &sub, ans)
}

// attempt runs the way of a call once: describe, decide, and in one
// transaction meet the decision or put it before a person.
func (g *Gate) attempt(ctx context.Context, sub *Submission) *Answer {
	c := sub.Call
	snap, head := g.opts.Policy(c)
	in, err := g.describe(ctx, c, snap)
	if err != nil {
		return g.broken(c, call.Decision{}, err)
	}
	d := snap.Decide(in, nil)

	var ans *Answer
	var filed *Request
	err = g.opts.State.Commit(ctx, func(tx Tx) error {
		ans, filed = nil, nil // the transaction may run more than once
		now, err := tx.Standing(c)
		if err != nil {
			return err
		}
		// What was read before the transaction may be out of date: a switch
		// was thrown, an element activated. Then it is decided again.
		if now.Switches != in.Switches || now.Elements != in.Elements {
			in.Switches, in.Elements = now.Switches, now.Elements
			d = snap.Decide(in, nil)
		}
		if reason := stopped(head, &now); reason != "" {
			ans = deny(c, d, reason)
			return tx.Append(callEvent(c, &d, in.Facts, ruling(ans, nil)))
		}
		ans, filed, err = g.rule(tx, sub, snap, &d, in.Facts)
		return err
	})
	if err != nil {
		return g.broken(c, d, err)
	}
	if filed != nil {
		g.opts.Asker.Filed(filed, RequestState{ID: ans.Request, State: "pending", Expires: ans.Expires})
	}
	return ans
}

// describe finds out what a decision rests on.
func (g *Gate) describe(ctx context.Context, c *call.Call, snap *policy.Snapshot) (*policy.Input, error) {
	f := g.opts.Observer.Facts(ctx, c, snap)
	standing, err := g.opts.State.Standing(ctx, c)
	if err != nil {
		return nil, err
	}
	return &policy.Input{
		Call: c, Facts: f, Digest: c.Digest(),
		Elements: standing.Elements, Switches: standing.Switches, Violations: standing.Violations,
	}, nil
}

// Decide tells what a call would be decided to. Nothing is recorded and
// nothing is let through.
func (g *Gate) Decide(ctx context.Context, c *call.Call) (call.Decision, *facts.Facts, error) {
	if err := c.Normalize(); err != nil {
		return call.Decision{}, nil, err
	}
	snap, _ := g.opts.Policy(c)
	in, err := g.describe(ctx, c, snap)
	if err != nil {
		return call.Decision{}, nil, err
	}
	return snap.Decide(in, nil), in.Facts, nil
}

// Prepare decides a call and makes a question of it without letting it
// through, for a person who edits a waiting call. The edited call has votes of
// its own; one that would be denied cannot be asked about.
func (g *Gate) Prepare(ctx context.Context, c *call.Call, editOf string) (*Request, error) {
	d, f, err := g.Decide(ctx, c)
	if err != nil {
		return nil, err
	}
	if d.Level == call.Deny {
		return nil, &RefusedError{Reason: "the edited call would be denied: " + d.Why()}
	}
	c.ID = g.opts.NewID()
	snap, _ := g.opts.Policy(c)
	return &Request{Call: c, Facts: f, Decision: &d, Offers: grant.Offers(c, &d), Limits: snap.Settings, EditOf: editOf}, nil
}

// Request tells an agent how far its own request has got.
func (g *Gate) Request(ctx context.Context, agent, id string) (RequestState, error) {
	st, err := g.opts.State.Request(ctx, id)
	if err != nil {
		return RequestState{}, err
	}
	if st.Agent != agent {
		return RequestState{}, ErrNoRequest
	}
	return st, nil
}

// Withdraw takes back an agent's own request.
func (g *Gate) Withdraw(ctx context.Context, agent, id string) error {
	if _, err := g.Request(ctx, agent, id); err != nil {
		return err
	}
	return g.opts.State.Commit(ctx, func(tx Tx) error { return tx.Withdraw(id) })
}

// stopped says why no call of this standing goes ahead, "" if none does.
func stopped(head call.Digest, now *Standing) string {
	switch {
	case now.Ended != "":
		return "the session has ended: " + now.Ended
	case now.Policy != head:
		return "this node does not hold the policy in force yet; try again in a moment"
	}
	return ""
}

// rule meets the decision inside the transaction: allow, deny, use grants, or
// file a request.
func (g *Gate) rule(tx Tx, sub *Submission, snap *policy.Snapshot, d *call.Decision, f *facts.Facts) (*Answer, *Request, error) {
	c := sub.Call
	switch {
	case d.Level == call.AutoApprove:
		ans := allow(c, *d, nil)
		return ans, nil, g.start(tx, sub, d, f, ans, nil)
	case snap.Settings.Observe && !switched(d):
		ans := allow(c, *d, nil)
		ans.Observed = true
		return ans, nil, g.start(tx, sub, d, f, ans, nil)
	case d.Level == call.Deny:
		ans := deny(c, *d, d.Why())
		return ans, nil, tx.Append(callEvent(c, d, f, ruling(ans, nil)))
	}
	grants, err := tx.Grants(c.Principal)
	if err != nil {
		return nil, nil, err
	}
	used, open := grant.Cover(c, d, grants, g.opts.Scope)
	if len(open) == 0 {
		for _, gr := range used {
			if err := tx.Consume(gr.ID); err != nil {
				return nil, nil, err
			}
		}
		ans := allow(c, *d, used)
		return ans, nil, g.start(tx, sub, d, f, ans, used)
	}
	return g.file(tx, sub, snap, d, f)
}

// start opens the call and records the allow, in the same transaction.
func (g *Gate) start(tx Tx, sub *Submission, d *call.Decision, f *facts.Facts, ans *Answer, used []grant.Grant) error {
	if err := tx.Open(sub.Call, d.Digest); err != nil {
		return err
	}
	e := callEvent(sub.Call, d, f, ruling(ans, used))
	e.Start = &Start{Runs: sub.Runs, Guarantees: d.Requires}
	return tx.Append(e)
}

// file puts the call before a person.
func (g *Gate) file(tx Tx, sub *Submission, snap *policy.Snapshot, d *call.Decision, f *facts.Facts) (*Answer, *Request, error) {
	c := sub.Call
	r := &Request{Call: c, Facts: f, Decision: d, Offers: grant.Offers(c, d), Limits: snap.Settings, EditOf: sub.EditOf}
	state, err := tx.File(r)
	var refused *RefusedError
	if errors.As(err, &refused) {
		ans := deny(c, *d, refused.Reason)
		return ans, nil, tx.Append(callEvent(c, d, f, ruling(ans, nil)))
	}
	if err != nil {
		return nil, nil, err
	}
	ans := pending(c, *d, state)
	return ans, r, tx.Append(callEvent(c, d, f, ruling(ans, nil)))
}

// RefusedError says why a request was not put before a person: too many wait
// already. It denies the call; it is not a failure.
type RefusedError struct{ Reason string }

// Error returns the reason.
func (e *RefusedError) Error() string { return e.Reason }

// Public returns the reason, which may be shown.
func (e *RefusedError) Public() string { return e.Reason }

// ErrNoRequest is the answer to a request id that is not the caller's, the
// same whether it exists or not.
var ErrNoRequest = &RefusedError{Reason: "you have no such request"}

// broken answers when the gate itself could not do its work. Nothing durable
// was written, so nothing may run.
func (g *Gate) broken(c *call.Call, d call.Decision, err error) *Answer {
	g.log.Error("call denied: the gate could not finish its work", "call", c.ID, "operation", c.Operation, "error", err)
	d.Level = call.Deny
	var pub interface{ Public() string }
	reason := "the gate could not record the call"
	if errors.As(err, &pub) {
		reason = pub.Public()
	}
	return deny(c, d, reason)
}

// switched says whether a big switch denies; observe mode does not pass it.
func switched(d *call.Decision) bool {
	for i := range d.Ballots {
		if d.Ballots[i].Stage == call.StageSwitch {
			return d.Ballots[i].Level == call.Deny
		}
	}
	return true
}

// await waits for the person's answer and then runs the way again: the world
// is observed and the call decided anew before a grant is consumed.
func (g *Gate) await(ctx context.Context, sub *Submission, ans *Answer) *Answer {
	ctx, cancel := context.WithTimeout(ctx, sub.Wait)
	defer cancel()
	id := ans.Request
	for {
		changed := g.opts.Asker.Changed()
		state, err := g.opts.State.Request(ctx, id)
		if err != nil {
			return ans
		}
		switch state.State {
		case "pending":
		case "approved":
			next := g.attempt(ctx, sub)
			if next.Verdict == Pending && next.Request == id {
				return next // approved, but spent by an identical call
			}
			if sub.EditOf != "" && next.Verdict == Allowed {
				next.Edited = sub.Call
			}
			return next
		case "edited":
			edited, err := g.opts.State.Request(ctx, state.EditedTo)
			if err != nil || edited.Call == nil {
				return answered(ans, state)
			}
			id, sub = edited.ID, &Submission{Call: edited.Call, Wait: sub.Wait, Runs: sub.Runs, EditOf: id}
			continue
		default:
			return answered(ans, state)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ans
		}
	}
}

// Finish records how a started call ended. Only the principal that the call
// was opened for can close it, and only once.
func (g *Gate) Finish(ctx context.Context, callID string, p call.Principal, outcome Outcome, detail string) error {
	if !outcome.Valid() {
		return &call.InvalidError{Field: "outcome", Problem: fmt.Sprintf("%q is none: use succeeded, failed, refused or unknown", outcome)}
	}
	return g.opts.State.Commit(ctx, func(tx Tx) error {
		if err := tx.Close(callID, p, outcome); err != nil {
			return err
		}
		return tx.Append(&Event{Kind: "outcome", CallID: callID, Call: &call.Call{ID: callID, Principal: p}, Outcome: &End{Outcome: outcome, Detail: detail}})
	})
}
