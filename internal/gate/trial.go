package gate

import (
	"errors"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/element"
	"github.com/seed-3ebc6b8a/gatehouse/internal/grant"
	"github.com/seed-3ebc6b8a/gatehouse/internal/policy"
)

// trial is one attempt at a call: what it was decided to, and what came of it.
type trial struct {
	gate *Gate
	sub  *Submission
	snap *policy.Snapshot
	in   *policy.Input
	// steps are the calls of a plan, each judged by itself.
	steps []Step
	// change is what the call would do to the caller's active elements.
	change *element.Change

	decision  call.Decision
	described []byte

	answer *Answer
	filed  *Request
	edited *RequestState // the request of the call that a person made of this one
	// drawn is the budget that the call drew from.
	drawn string
	// asked is what the caller itself asks for.
	asked []policy.Violation
	// notKept is what no restore point would hold of what the call changes.
	notKept []string
}

// decide decides the call and describes it for the log.
func (t *trial) decide() {
	judge(t.in, t.change)
	t.decision = t.snap.Decide(t.in, nil)
	t.described = t.gate.opts.Describe(t.sub.Call, &t.decision, t.in.Facts)
}

// rule meets the decision inside the transaction: allow, deny, use grants, or
// put the call before a person.
func (t *trial) rule(tx Tx) error {
	d := &t.decision
	switch {
	case t.sub.ready != nil:
		return t.inquire(tx)
	case t.sub.Refused != "": // where the gate only observes, too: the tool does not run
		return t.deny(tx, t.sub.Refused)
	case d.Level == call.AutoApprove:
		return t.allow(tx, nil)
	case t.snap != nil && t.snap.Settings.Observe && !switched(d):
		return t.observe(tx)
	case d.Level == call.Deny:
		return t.deny(tx, d.Why())
	}
	grants, err := t.grants(tx)
	if err != nil {
		return err
	}
	if t.sub.given != nil {
		grants = append(grants, *t.sub.given)
	}
	used, open := grant.Cover(t.sub.Call, d, grants, t.gate.opts.Scope)
	if len(open) > 0 && t.sub.Budget != "" {
		// What the grants leave open may be drawn from the plan's budget, all
		// of it or nothing.
		if open, err = tx.Draw(t.sub.Budget, t.sub.Call, d, open, t.gate.opts.Scope); err != nil {
			return err
		}
		if len(open) == 0 {
			t.drawn = t.sub.Budget
		}
	}
	switch {
	case len(open) > 0 && t.sub.given != nil:
		return t.deny(tx, "it is judged differently now than when the batch was decided: "+open[0].Reason)
	case len(open) > 0:
		return t.ask(tx)
	}
	for _, g := range used {
		if t.sub.given != nil && g.ID == t.sub.given.ID {
			continue // spent with the batch
		}
		if err := tx.Consume(g.ID); err != nil {
			return err
		}
	}
	return t.allow(tx, used)
}

// grants are the caller's that count under the terms of active elements.
func (t *trial) grants(tx Tx) ([]grant.Grant, error) {
	grants, err := tx.Grants(t.sub.Call.Principal)
	terms := terms(t.in)
	if err != nil || len(grants) == 0 || terms == (call.Terms{}) {
		return grants, err
	}
	now, err := tx.Now()
	if err != nil {
		return nil, err
	}
	return grant.Under(terms, grants, now), nil
}

// terms are what the active elements say about answers to the call.
func terms(in *policy.Input) call.Terms {
	if in.Call.Kind != call.External {
		return call.Terms{}
	}
	return in.Elements.Terms()
}

// allow lets the call through: it is open from here on, and on record.
func (t *trial) allow(tx Tx, used []grant.Grant) error {
	t.answer = allow(t.sub.Call, t.decision, used)
	if t.sub.Composite != nil {
		if err := t.grantBudget(tx, used); err != nil {
			return err
		}
	}
	return t.start(tx, used)
}

// observe lets a call through that would have been stopped, and says so.
func (t *trial) observe(tx Tx) error {
	t.answer = allow(t.sub.Call, t.decision, nil)
	t.answer.Observed, t.answer.Lasting = true, false
	return t.start(tx, nil)
}

// hostAsks says whether the question may be left to the host: it offers to
// ask, nobody can be reached here, and the call is not one that only an
// approver of the gate may meet.
func (t *trial) hostAsks() bool {
	return t.sub.HostAsk && !t.decision.Pinned && !t.snap.Settings.Unattended && !t.gate.opts.Asker.Live()
}

// leave leaves the question to the host, on record as what it is: an answer
// that the gate will not see and cannot verify.
func (t *trial) leave(tx Tx) error {
	t.answer = hostAsks(t.sub.Call, t.decision)
	return t.start(tx, nil)
}

func (t *trial) start(tx Tx, used []grant.Grant) error {
	t.answer.Requires = t.requires(used)
	if err := tx.Open(t.sub.Call, t.answer.Requires); err != nil {
		return err
	}
	if err := t.used(tx); err != nil {
		return err
	}
	if taint := t.in.Facts.Taint &^ t.in.Taint; taint != 0 {
		if err := tx.Taint(t.sub.Call, t.in.Facts.Workspace, taint, t.snap.Settings.TaintLife); err != nil {
			return err
		}
	}
	t.answer.Run = launch(t.sub.Call.ID, t.in.Facts, t.answer.Requires)
	e := t.event(used)
	e.Start = &Start{Runs: t.sub.Runs, Guarantees: t.answer.Requires}
	return tx.Append(e)
}

// deny refuses the call, on record.
func (t *trial) deny(tx Tx, reason string) error {
	t.answer = deny(t.sub.Call, t.decision, reason, t.decision.Level == call.Deny)
	if err := t.refused(tx); err != nil {
		return err
	}
	e := t.event(nil)
	e.Verdict.Reason, e.Verdict.Violation = reason, violation(&t.decision)
	return tx.Append(e)
}

// ask puts a call that grants do not cover before a person, unless one has
// put another call in its place, or the host asks by itself.
func (t *trial) ask(tx Tx) (err error) {
	if t.edited, err = tx.Edited(t.sub.Call.Principal, &t.decision); err != nil {
		return err
	}
	switch {
	case t.edited != nil:
		return t.replaced(tx)
	case t.hostAsks():
		return t.leave(tx)
	}
	return t.file(tx)
}

// replaced answers a call in whose place a person put another: that one waits,
// or may run.
func (t *trial) replaced(tx Tx) error {
	t.answer = pending(t.sub.Call, t.decision, *t.edited)
	return tx.Append(t.event(nil))
}

// file puts the call before a person, or denies it where too many wait.
func (t *trial) file(tx Tx) error {
	c := t.sub.Call
	offers := grant.Offers(c, &t.decision, terms(t.in))
	if t.sub.Composite != nil {
		offers = offers[:1] // what a plan gets is its budget
	}
	r := &Request{Call: c, Facts: t.in.Facts, Decision: &t.decision, Offers: offers, Limits: t.snap.Settings, NotKept: t.notKept}
	state, err := tx.File(r)
	var refused *RefusedError
	if errors.As(err, &refused) {
		return t.deny(tx, refused.Reason)
	}
	if err != nil {
		return err
	}
	if t.answer = pending(c, t.decision, state); !state.Joined {
		t.filed = r // an agent that repeats itself is no news
	}
	return tx.Append(t.event(nil))
}

// event is the record of the answer.
func (t *trial) event(used []grant.Grant) *Event {
	e := &Event{Kind: "call", Call: t.sub.Call, Level: t.decision.Level, Described: t.described, Verdict: ruling(t.answer, used), Budget: t.answer.Budget}
	e.Verdict.Budget = t.drawn
	return e
}
