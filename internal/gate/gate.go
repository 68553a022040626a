package gate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/element"
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
	// Describe writes a call and its decision as they are stored, with what
	// must not be stored taken out.
	Describe func(*call.Call, *call.Decision, *facts.Facts) []byte
	// NewID returns a new unique id for a call.
	NewID func() string
	// Keeper keeps what calls are about to change; nil keeps nothing.
	Keeper Keeper
	// Scope says whether one need lies within another, for session grants.
	Scope grant.Scope
	// Took is told how long each part of a call's way took: describe, decide,
	// record; nil if nobody wants to know.
	Took func(part string, took time.Duration)
	// Log receives what goes wrong; nil discards it.
	Log *slog.Logger
}

// Gate decides calls. It is safe for concurrent use.
type Gate struct {
	opts   Options
	log    *slog.Logger
	tracer trace.Tracer
}

// New makes a gate.
func New(opts Options) *Gate {
	g := &Gate{opts: opts, log: opts.Log, tracer: otel.Tracer("gatehouse")}
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
	// Shown says that the surface itself shows the question to a person, so
	// that waiting makes sense though no other channel is live.
	Shown bool
	// Runs says who runs the effect: "host" or "gate".
	Runs string
	// EditOf is the request that a person answered with this edited call.
	EditOf string
	// Asked, if set, is told that a person is asked, before anybody waits.
	Asked func(*Answer)
	// Ask has a person asked whatever the policy says: whoever calls may ask
	// for more than the policy does.
	Ask bool
	// Claim is what the tool says about itself and this call; it is on record.
	Claim *facts.DeclaredTool
	// Refused says why the tool's own declaration denies the call, "" if it
	// does not: the gate denies it as well, on record.
	Refused string
	// Composite makes the call the plan of a composite tool, which is decided
	// as a whole and gets a budget.
	Composite *Plan
	// Budget is the budget that the call may draw from.
	Budget string
	// Plan says that the host is in a mode in which nothing may be changed.
	Plan bool
	// HostAsk lets the host ask the person at it where the gate can reach
	// nobody. Such an answer is not verified and never meets a pinned call.
	HostAsk bool

	// ready is set where the call is only asked about, see File.
	ready *bool
	// given is what the answer to a batch says about this call of it; such a
	// call is not asked about again.
	given *grant.Grant
}

// Submit takes a call from entry to verdict. Whatever fails on the way is a
// denial that says why; the answer is never nil.
func (g *Gate) Submit(ctx context.Context, sub Submission) *Answer {
	c := sub.Call
	ctx, span := g.tracer.Start(ctx, "call")
	defer span.End()
	err := c.Normalize()
	if err == nil && sub.Composite != nil {
		err = sub.Composite.Check()
	}
	if err != nil {
		// A call that cannot be read is not recorded as one: there is no
		// canonical form to record.
		return &Answer{Message: "Denied: " + err.Error() + ". Correct the call and send it again.", Final: true}
	}
	c.ID = g.opts.NewID()
	ans, edited := g.attempt(ctx, &sub)
	if edited != nil {
		ans = g.replaced(ctx, &sub, ans, edited)
	}
	if ans.Verdict == Pending && sub.Asked != nil {
		sub.Asked(ans)
	}
	if ans.Verdict == Pending && g.waits(&sub) {
		ans = g.await(ctx, &sub, ans)
	}
	if !span.IsRecording() {
		return ans
	}
	// No argument of the call goes into a trace: traces are not redacted.
	span.SetAttributes(
		attribute.String("gatehouse.call", c.ID), attribute.String("gatehouse.operation", c.Operation), attribute.String("gatehouse.agent", c.Principal.Agent),
		attribute.String("gatehouse.level", ans.Decision.Level.String()), attribute.String("gatehouse.verdict", ans.Verdict.String()),
	)
	return ans
}

// waits says whether to hold the call for a person: the caller is ready to,
// somebody can be reached, and the policy does not say that nobody is there.
func (g *Gate) waits(sub *Submission) bool {
	return sub.Wait > 0 && g.Attended(sub.Call) && (sub.Shown || g.opts.Asker.Live())
}

// Attended says whether the policy for a call lets anyone wait for a person.
func (g *Gate) Attended(c *call.Call) bool {
	snap, _ := g.opts.Policy(c)
	return snap != nil && !snap.Settings.Unattended
}

// Output says what happens to output of an MCP server that looks like an
// attack, for whoever makes the call; entry is what the server's entry says.
func (g *Gate) Output(c *call.Call, server, entry string) string {
	snap, _ := g.opts.Policy(c)
	if snap == nil {
		return policy.OutputHold
	}
	return snap.Settings.OutputFor(server, entry)
}

// attempt runs the way of a call once: describe, decide, and in one
// transaction meet the decision or put it before a person.
func (g *Gate) attempt(ctx context.Context, sub *Submission) (ans *Answer, edited *RequestState) {
	begun := time.Now()
	snap, head := g.opts.Policy(sub.Call)
	in, change, err := g.describe(ctx, sub.Call, snap, g.opts.State.Standing)
	begun = g.took("describe", begun)
	if err != nil {
		return g.broken(sub.Call, call.Decision{}, err), nil
	}
	in.Plan = sub.Plan
	t := &trial{gate: g, sub: sub, snap: snap, in: in, change: change}
	t.claims()
	t.union(ctx)
	t.decide()
	t.preview()
	begun = g.took("decide", begun)
	err = g.opts.State.Commit(ctx, func(tx Tx) error {
		t.answer, t.filed, t.edited = nil, nil, nil // the transaction may run more than once
		now, err := tx.Standing(sub.Call)
		if err != nil {
			return err
		}
		// What was read before the transaction may be out of date: a switch
		// was thrown, an element activated. Then it is decided again.
		if sends(in.Facts) {
			if now.Taint, err = tx.Taints(sub.Call); err != nil {
				return err
			}
		}
		news, err := t.constrain(tx)
		if err != nil {
			return err
		}
		if now.Switches != in.Switches || now.Elements != in.Elements || now.Taint != in.Taint || news {
			in.Switches, in.Elements, in.Taint = now.Switches, now.Elements, now.Taint
			t.decide()
		}
		if reason := stopped(head, &now); reason != "" {
			return t.deny(tx, reason)
		}
		return t.rule(tx)
	})
	g.took("record", begun)
	if err != nil {
		return g.broken(sub.Call, t.decision, err), nil
	}
	if t.filed != nil {
		g.opts.Asker.Filed(t.filed, RequestState{ID: t.answer.Request, State: "pending", Expires: t.answer.Expires})
	}
	return t.keep(ctx), t.edited
}

// took tells how long a part took, and when the next begins.
func (g *Gate) took(part string, since time.Time) time.Time {
	now := time.Now()
	if g.opts.Took != nil {
		g.opts.Took(part, now.Sub(since))
	}
	return now
}

// replaced goes on with the call that a person put in place of the one
// submitted: if it is approved it runs the way of its own, on which the
// approval is used; else the answer is about its request.
func (g *Gate) replaced(ctx context.Context, sub *Submission, ans *Answer, edited *RequestState) *Answer {
	if edited.Call == nil {
		return ans
	}
	*sub = Submission{Call: edited.Call, Wait: sub.Wait, Runs: sub.Runs, EditOf: edited.ID, Plan: sub.Plan}
	if edited.State != "approved" {
		return ans
	}
	return g.runEdited(ctx, sub)
}

// runEdited takes an approved edit to its verdict. The agent has other
// arguments than those that may run, and is told which.
func (g *Gate) runEdited(ctx context.Context, sub *Submission) *Answer {
	next, _ := g.attempt(ctx, sub)
	if next.Verdict == Allowed {
		next.Edited = sub.Call
		next.Message += " A person changed the arguments: run it with edited_args, not with yours."
	}
	return next
}

// sends says whether a call reaches another machine: taint matters to no other.
func sends(f *facts.Facts) bool {
	return slices.ContainsFunc(f.Needs, func(n call.Need) bool { return n.Capability == call.NetEgress })
}

// describe finds out what a decision rests on.
func (g *Gate) describe(ctx context.Context, c *call.Call, snap *policy.Snapshot, read func(context.Context, *call.Call) (Standing, error)) (*policy.Input, *element.Change, error) {
	f, change := g.opts.Observer.Facts(ctx, c, snap)
	standing, err := read(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	return &policy.Input{
		Call: c, Facts: f, Digest: c.Digest(), Elements: standing.Elements, Switches: standing.Switches, Taint: standing.Taint,
	}, change, nil
}

// judge finds out whether what a call changes of the active elements loosens
// them. It depends on what is active, so it is judged with every decision.
func judge(in *policy.Input, change *element.Change) {
	if change == nil {
		return
	}
	in.Facts.Change, in.Facts.Loosens = facts.MayLoosen, in.Elements.Loosens(change)
	if len(in.Facts.Loosens) == 0 {
		in.Facts.Change = facts.LoosensNothing
	}
}

// Decide tells what a call would be decided to. Nothing is recorded and
// nothing is let through.
func (g *Gate) Decide(ctx context.Context, c *call.Call) (call.Decision, *facts.Facts, error) {
	if err := c.Normalize(); err != nil {
		return call.Decision{}, nil, err
	}
	in, d, err := g.weigh(ctx, c)
	if err != nil {
		return call.Decision{}, nil, err
	}
	return d, in.Facts, nil
}

// weigh decides a call that is in its normal form, with what it rests on.
func (g *Gate) weigh(ctx context.Context, c *call.Call) (*policy.Input, call.Decision, error) {
	snap, _ := g.opts.Policy(c)
	in, change, err := g.describe(ctx, c, snap, g.opts.State.Current)
	if err != nil {
		return nil, call.Decision{}, err
	}
	judge(in, change)
	if len(snap.Counts(c, in.Facts)) > 0 {
		uses, err := g.opts.State.Uses(ctx, c, in.Facts.Workspace)
		if err != nil {
			return nil, call.Decision{}, err
		}
		in.Violations = snap.Constrain(c, in.Facts, uses)
	}
	return in, snap.Decide(in, nil), nil
}

// Prepare decides a call and makes a question of it without letting it
// through, for a person who edits a waiting call. The edited call has votes of
// its own; one that would be denied cannot be asked about.
func (g *Gate) Prepare(ctx context.Context, c *call.Call, editOf string) (*Request, error) {
	if err := c.Normalize(); err != nil {
		return nil, err
	}
	in, d, err := g.weigh(ctx, c)
	if err != nil {
		return nil, err
	}
	if d.Level == call.Deny {
		return nil, &RefusedError{Reason: "the edited call would be denied: " + d.Why()}
	}
	c.ID = g.opts.NewID()
	snap, _ := g.opts.Policy(c)
	return &Request{Call: c, Facts: in.Facts, Decision: &d, Offers: grant.Offers(c, &d, terms(in)), Limits: snap.Settings, EditOf: editOf}, nil
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
	return deny(c, d, reason, false) // the cause may go away
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
			if sub.EditOf != "" {
				return g.runEdited(ctx, sub)
			}
			next, _ := g.attempt(ctx, sub)
			return next
		case "edited":
			edited, err := g.opts.State.Request(ctx, state.EditedTo)
			if err != nil || edited.Call == nil {
				return answered(ans, state)
			}
			id, sub = edited.ID, &Submission{Call: edited.Call, Wait: sub.Wait, Runs: sub.Runs, EditOf: id, Plan: sub.Plan}
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

// Ended is a started call that has ended.
type Ended struct {
	CallID    string
	Principal call.Principal
	Outcome   Outcome
	Detail    string
}

// FinishAll records how several calls ended, in one transaction. One that is
// not open is left out, and told; the others are recorded all the same.
func (g *Gate) FinishAll(ctx context.Context, ended []Ended) error {
	var left []error
	err := g.opts.State.Commit(ctx, func(tx Tx) error {
		left = nil // the transaction may run more than once
		for _, e := range ended {
			if err := tx.Close(e.CallID, e.Principal, e.Outcome); err != nil {
				var public interface{ Public() string }
				if !errors.As(err, &public) {
					return err // the store's own failure, which undoes all
				}
				left = append(left, err)
				continue
			}
			if err := tx.Append(&Event{Kind: "outcome", Call: &call.Call{ID: e.CallID, Principal: e.Principal}, Outcome: &End{Outcome: e.Outcome, Detail: e.Detail}}); err != nil {
				return err
			}
		}
		return nil
	})
	return errors.Join(append(left, err)...)
}

// Finish records how a started call ended. Only the principal that the call
// was opened for can close it, and only once.
func (g *Gate) Finish(ctx context.Context, callID string, p call.Principal, outcome Outcome, detail string) error {
	return g.End(ctx, callID, p, End{Outcome: outcome, Detail: detail})
}

// End records how a started call ended, with all that is known about it.
func (g *Gate) End(ctx context.Context, callID string, p call.Principal, end End) error {
	if !end.Outcome.Valid() {
		return &call.InvalidError{Field: "outcome", Problem: fmt.Sprintf("%q is none: use succeeded, failed, refused or unknown", end.Outcome)}
	}
	return g.opts.State.Commit(ctx, func(tx Tx) error {
		if err := tx.Close(callID, p, end.Outcome); err != nil {
			return err
		}
		return tx.Append(&Event{Kind: "outcome", Call: &call.Call{ID: callID, Principal: p}, Outcome: &end})
	})
}
