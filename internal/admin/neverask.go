package admin

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// Proposal is a rule that lets a call through without asking, ready to be
// written to the user's policy file.
type Proposal struct {
	// Path is the file, Rule the rule's name and Text how it is written there.
	Path string `json:"path"`
	Rule string `json:"rule"`
	Text string `json:"text"`
	// Staged is the policy that waits to be accepted once it is written.
	Staged call.Digest `json:"staged,omitzero"`
	// Write puts it into the file.
	Write func(context.Context) error `json:"-"`
}

// ApproveForGood approves a request and proposes a rule, so that the same is
// never asked again: what it needs, or the scope of the offer that was taken.
// The rule loosens, so it takes effect when an approver accepts it. If no rule
// covers the call nothing is approved.
func (d *Desk) ApproveForGood(ctx context.Context, a Actor, id string, yes Approval) (*Proposal, error) {
	r, err := d.Request(ctx, id)
	if err != nil {
		return nil, err
	}
	if r.Call == nil || yes.Offer < 0 || yes.Offer >= len(r.Offers) {
		return nil, &Error{text: "the request is answered already, or has no such offer", status: 409}
	}
	c := *r.Call
	_, f, err := d.opts.Gate.Decide(ctx, &c)
	if err != nil {
		return nil, publicError(err)
	}
	comment := fmt.Sprintf("Proposed by %s on %s for request %s", a.Approver, time.Now().UTC().Format(time.DateOnly), id)
	p, err := d.opts.Rules.Propose(&c, f, r.Offers[yes.Offer].Needs, a.Approver, comment)
	if err != nil {
		return nil, publicError(err)
	}
	if err := d.Approve(ctx, a, id, yes); err != nil {
		return nil, err
	}
	if err := p.Write(ctx); err != nil {
		return nil, publicError(err)
	}
	detail := map[string]any{"request": id, "file": p.Path, "text": p.Text, "staged": p.Staged}
	return p, d.act(ctx, func(*store.Tx) (Act, error) { return a.act("policy.propose", p.Rule, detail), nil })
}
