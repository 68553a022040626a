package admin

import (
	"context"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/seed-3ebc6b8a/gatehouse/internal/approval"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/facts"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
	"github.com/seed-3ebc6b8a/gatehouse/internal/grant"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// View is everything a person is shown about a waiting call. It is stored
// encrypted with the request and dropped when the request is resolved.
type View struct {
	Call     *call.Call     `json:"call"`
	Decision *call.Decision `json:"decision"`
	Facts    *Facts         `json:"facts"`
}

// NewView makes the view of a call.
func NewView(c *call.Call, d *call.Decision, f *facts.Facts) *View {
	v := &View{Call: c, Decision: d, Facts: &Facts{
		Words: f.Words, Class: f.Class, Needs: f.Needs, Risk: f.Risk, Irreversible: f.Irreversible,
		TakesCode: f.TakesCode, Outside: f.Outside, Uncommitted: f.Uncommitted, Destroys: f.Destroys, Loosens: f.Loosens, Observed: f.Observed, Tools: f.Declared,
	}}
	for _, found := range f.Findings {
		v.Facts.Findings = append(v.Facts.Findings, call.Evidence{Where: found.Evidence.Where, Text: found.Category + ": " + found.Evidence.Text})
	}
	return v
}

// Requests lists requests in a state, or in all, newest first.
func (d *Desk) Requests(ctx context.Context, state, cursor string, limit int) (out []Request, next string, err error) {
	err = d.opts.Store.Read(ctx, func(tx *store.Tx) error {
		list, more, err := d.opts.Approval.List(tx, approval.Filter{State: approval.State(state)}, approval.Page{After: cursor, Limit: limit})
		if err != nil {
			return err
		}
		next = more
		for _, r := range list {
			v, err := d.view(r)
			if err != nil {
				return err
			}
			out = append(out, *v)
		}
		return nil
	})
	return out, next, publicError(err)
}

// Request returns one request, with every byte of the call while it waits.
func (d *Desk) Request(ctx context.Context, id string) (out *Request, err error) {
	err = d.opts.Store.Read(ctx, func(tx *store.Tx) error {
		r, err := d.opts.Approval.Get(tx, id)
		if err != nil {
			return err
		}
		out, err = d.view(r)
		return err
	})
	if err == nil {
		out.History, err = d.history(ctx, out)
	}
	return out, publicError(err)
}

// view makes of a stored request what a person sees.
func (d *Desk) view(r *approval.Request) (*Request, error) {
	out := &Request{
		ID: r.ID, CallID: r.CallID, State: string(r.State), Filed: r.Filed, Expires: r.Expires, Digest: r.Digest,
		Offers: r.Offers, Pinned: r.Pinned, AnsweredBy: r.AnsweredBy, Channel: r.Channel, Answered: r.Answered,
		Text: r.Words, EditOf: r.EditOf, EditedTo: r.EditedTo,
		Call: &call.Call{ID: r.CallID, Kind: r.Kind, Surface: r.Surface, Principal: r.Principal, Operation: r.Operation, ElementType: r.ElementType},
	}
	if r.State != approval.Pending {
		return out, nil
	}
	plain, err := d.opts.Approval.View(r)
	if err != nil {
		return nil, err
	}
	var v View
	if err := json.Unmarshal(plain, &v); err != nil {
		return nil, err
	}
	out.Call, out.Decision, out.Facts = v.Call, v.Decision, v.Facts
	return out, nil
}

// Approve approves a request: once, or for what the offer says.
func (d *Desk) Approve(ctx context.Context, a Actor, id string, yes Approval) error {
	if yes.ShownAt.IsZero() {
		if err := d.look(ctx, a, id, yes.Shown); err != nil {
			return err
		}
	}
	answer := approval.Answer{
		Verdict: approval.Approve, Offer: yes.Offer, Shown: yes.Shown, ShownSince: yes.ShownAt, Approver: a.Approver, Channel: a.Channel,
	}
	if yes.Offer > 0 {
		answer.Use = grant.Session
	}
	if yes.Code != "" {
		proof, err := d.opts.Approval.Prove(ctx, d.opts.Store, a.Approver, id, yes.Code)
		if err != nil {
			return publicError(err)
		}
		answer.Proof = proof
	}
	return d.answer(ctx, a, id, answer)
}

// Deny denies a request; the words are for the agent.
func (d *Desk) Deny(ctx context.Context, a Actor, id string, shown call.Digest, text string) error {
	return d.answer(ctx, a, id, approval.Answer{Verdict: approval.Deny, Shown: shown, Approver: a.Approver, Channel: a.Channel, Text: text})
}

// Respond answers in words; the call does not run.
func (d *Desk) Respond(ctx context.Context, a Actor, id string, shown call.Digest, text string) error {
	return d.answer(ctx, a, id, approval.Answer{Verdict: approval.Respond, Shown: shown, Approver: a.Approver, Channel: a.Channel, Text: text})
}

func (d *Desk) answer(ctx context.Context, a Actor, id string, answer approval.Answer) error {
	return d.act(ctx, func(tx *store.Tx) (Act, error) {
		limits := d.opts.Limits()
		if answer.ShownSince.IsZero() {
			// No page: an approval was held until it had been shown for long
			// enough, by this node's clock.
			limits.ShownAtLeast = time.Nanosecond
		}
		r, g, err := d.opts.Approval.Answer(tx, id, answer, limits)
		if err != nil {
			return Act{}, err
		}
		return a.verdict(r, g, answer.Text), nil
	})
}

// verdict is the act of answering a request.
func (a Actor) verdict(r *approval.Request, g *grant.Grant, text string) Act {
	detail := map[string]any{"state": r.State, "digest": r.Digest, "text": text}
	if g != nil {
		detail["grant"], detail["scope"], detail["factor"] = g.ID, g.Words, g.Factor
	}
	act := a.act("request."+string(r.State), r.ID, detail)
	act.Call = &call.Call{ID: r.CallID, Kind: r.Kind, Surface: r.Surface, Principal: r.Principal, Operation: r.Operation, ElementType: r.ElementType}
	return act
}

// Edit puts other arguments in place of those asked for. The edited call is
// described and decided anew and becomes a request of its own, which somebody
// must approve. One that could not be performed is nothing to ask about.
func (d *Desk) Edit(ctx context.Context, a Actor, id string, shown call.Digest, args []byte) (newID string, err error) {
	r, err := d.Request(ctx, id)
	if err != nil {
		return "", err
	}
	edited := *r.Call
	edited.Args = args
	if edited.Kind == call.Native {
		if err := d.opts.Performable(&edited); err != nil {
			return "", publicError(&gate.RefusedError{Reason: "the edited call could not be performed: " + err.Error()})
		}
	}
	question, err := d.opts.Gate.Prepare(ctx, &edited, id)
	if err != nil {
		return "", publicError(err)
	}
	err = d.act(ctx, func(tx *store.Tx) (Act, error) {
		answer := approval.Answer{Verdict: approval.Edit, Shown: shown, Approver: a.Approver, Channel: a.Channel, EditedArgs: edited.Args}
		old, _, err := d.opts.Approval.Answer(tx, id, answer, d.opts.Limits())
		if err != nil {
			return Act{}, err
		}
		if newID, err = d.opts.File(tx, question); err != nil {
			return Act{}, err
		}
		return a.verdict(old, nil, "edited to "+newID), nil
	})
	return newID, err
}

// Grants lists the grants that are still good.
func (d *Desk) Grants(ctx context.Context) (out []grant.Grant, err error) {
	err = d.opts.Store.Read(ctx, func(tx *store.Tx) error {
		rows, err := d.opts.Approval.LiveGrants(tx)
		for _, row := range rows {
			out = append(out, row.Grant)
		}
		return err
	})
	return out, publicError(err)
}

// RevokeGrant takes a grant back. Whatever it covered asks again.
func (d *Desk) RevokeGrant(ctx context.Context, a Actor, id string) error {
	return d.act(ctx, func(tx *store.Tx) (Act, error) {
		return a.act("grant.revoke", id, nil), d.opts.Approval.Revoke(tx, id, a.Approver)
	})
}

// Expired is the record of a request that nobody answered in time.
func Expired(r *approval.Request) Act {
	return Actor{Approver: "gatehouse", Channel: "clock"}.verdict(r, nil, "nobody answered in time")
}
