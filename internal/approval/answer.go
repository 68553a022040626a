package approval

import (
	"fmt"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/grant"
	"github.com/seed-3ebc6b8a/gatehouse/internal/keyring"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// Verdict is what an approver says. The zero value is none.
type Verdict string

// The verdicts.
const (
	Approve Verdict = "approve"
	Deny    Verdict = "deny"
	// Edit puts other arguments in place of the agent's; the edited call is
	// decided afresh and needs its own approval.
	Edit Verdict = "edit"
	// Respond tells the agent something instead of an answer; the call is
	// denied.
	Respond Verdict = "respond"
)

// Answer is an approver's answer to one request.
type Answer struct {
	Verdict Verdict
	// Use and Offer say which of the request's offers is taken.
	Use   grant.Use
	Offer int
	// Shown is the digest of the call that was on screen.
	Shown call.Digest
	// ShownSince is when the page that showed it was rendered, by the gate's
	// record of it and not by the client's word. Zero where a channel has no
	// page; then the request must at least be old enough to have been read.
	ShownSince time.Time
	// Approver is the name behind the credential or cookie that was checked in
	// this transaction; Channel is where it came in.
	Approver string
	Channel  string
	// Text is told to the agent.
	Text string
	// EditedArgs are the arguments of an edit.
	EditedArgs []byte
	// Proof is the approver's fresh proof of presence for this request; a
	// pinned call takes no approval without it.
	Proof Proof
}

const maxWords = 16 << 10

// Answer moves a request to its outcome. Of several answers, on however many
// nodes, the first to commit counts; the others get a [DecidedError]. An
// approval creates the grant; an edit or response creates none. A request
// whose time is over is expired, whatever the answer says.
func (d *Desk) Answer(tx *store.Tx, id string, a Answer, limits Limits) (*Request, *grant.Grant, error) {
	limits = limits.WithDefaults()
	r, err := d.load(tx, id)
	if err != nil {
		return nil, nil, err
	}
	now, err := tx.Now() // after the row lock, which may have kept us waiting
	if err != nil {
		return nil, nil, err
	}
	r.judge(now)
	if r.State != Pending {
		return r, nil, r.decided()
	}
	if a.Shown != r.Digest {
		return r, nil, fmt.Errorf("request %s: %w", id, ErrStale)
	}
	if _, err := d.activeApprover(tx, a.Approver); err != nil {
		return r, nil, err
	}
	if err := text("the answer", a.Text, maxWords); err != nil {
		return r, nil, err
	}
	var g *grant.Grant
	switch a.Verdict {
	case Approve:
		if g, err = d.approve(tx, r, &a, limits, now); err != nil {
			return r, nil, err
		}
		r.State = Approved
	case Deny:
		r.State = Denied
	case Respond:
		if a.Text == "" {
			return r, nil, fmt.Errorf("%w: a response needs words", ErrInvalid)
		}
		r.State = Responded
	case Edit:
		if err := d.edit(r, &a); err != nil {
			return r, nil, err
		}
		r.State = Edited
	default:
		return r, nil, fmt.Errorf("%w: %q is not a verdict: use approve, deny, edit or respond", ErrInvalid, a.Verdict)
	}
	r.Answered, r.AnsweredBy, r.Channel, r.Words = now, a.Approver, a.Channel, a.Text
	if r.State != Approved || r.EditOf == "" {
		// Of an edited call the agent has not the arguments; they stay until
		// the grant is over.
		r.sealed = nil
	}
	return r, g, d.save(tx, r, Pending)
}

// approve checks what an approval needs and makes the grant.
func (d *Desk) approve(tx *store.Tx, r *Request, a *Answer, limits Limits, now time.Time) (*grant.Grant, error) {
	since := r.Filed // nobody can have seen it before
	if a.ShownSince.After(since) {
		since = a.ShownSince
	}
	if now.Sub(since) < limits.ShownAtLeast {
		return nil, fmt.Errorf("request %s: %w", r.ID, ErrTooSoon)
	}
	proven := a.Proof.For(a.Approver, r.ID, now)
	if r.Pinned && !proven {
		return nil, fmt.Errorf("request %s: %w", r.ID, ErrFactor)
	}
	if a.Offer < 0 || a.Offer >= len(r.Offers) || r.Offers[a.Offer].Use != a.Use {
		return nil, fmt.Errorf("request %s: %w", r.ID, ErrOffer)
	}
	o := r.Offers[a.Offer]
	if o.Use == grant.Session && (r.Pinned || r.TakesCode || r.Level != call.ConfirmSession) {
		return nil, fmt.Errorf("request %s: %w", r.ID, ErrOffer)
	}
	id, err := keyring.NewID("g_", d.keys.Random())
	if err != nil {
		return nil, err
	}
	g := &grant.Grant{ID: id, Use: o.Use, Principal: r.Principal, Votes: r.Votes, Words: o.Words, By: a.Approver,
		Channel: a.Channel, Factor: proven, Request: r.ID, Given: now}
	if o.Use == grant.Once {
		g.Digest, g.World, g.Policy = r.Digest, r.World, r.Policy
		g.Expires = now.Add(o.Bound(limits.GrantLife))
	} else {
		g.Operation, g.ElementType, g.Needs = o.Operation, o.ElementType, o.Needs
		g.Expires = now.Add(o.Bound(limits.SessionGrantLife))
	}
	return g, d.insertGrant(tx, g)
}

// edit keeps the new arguments, sealed, until the gate has filed the call they
// make.
func (d *Desk) edit(r *Request, a *Answer) error {
	args, err := call.Canonical(a.EditedArgs)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	r.edited, err = d.keys.Seal(editPurpose(r.ID), args)
	return err
}
