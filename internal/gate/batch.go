package gate

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/facts"
	"github.com/seed-3ebc6b8a/gatehouse/internal/grant"
	"github.com/seed-3ebc6b8a/gatehouse/internal/policy"
)

// Batch is native calls of one caller that are decided together.
type Batch struct {
	Calls []*call.Call
	// AllOrNothing lets none of them through if one is denied.
	AllOrNothing bool
}

// BatchAnswer is the answer to a batch. Its embedded answer is about the whole.
type BatchAnswer struct {
	Answer
	// Items are the answers to each: denied, or allowed if the whole is.
	Items []Answer
	given []grant.Grant // what the person's answer covers, by item
}

// batchName is what a batch is called in requests and records. It is not an
// operation that anyone can call.
const batchName = "batch"

// item is one call of a batch on trial.
type item struct {
	trial *trial
	open  []call.Vote // what a person must still answer
}

// batchItem is a call of a batch as the person sees it: those that ask come
// first, each with its digest.
type batchItem struct {
	Index       int            `json:"item"`
	Operation   string         `json:"operation"`
	ElementType string         `json:"element_type,omitzero"`
	Params      jsontext.Value `json:"params"`
	Level       call.Level     `json:"level"`
	Why         string         `json:"why,omitzero"`
	Digest      call.Digest    `json:"digest"`
}

// SubmitBatch decides calls together, before any of them has an effect. What
// asks is put before a person as one question about the whole. A call that is
// pinned, or that loosens, is asked about by itself and not in a batch. Each
// call that the answer lets through is decided again by [Gate.SubmitItem].
func (g *Gate) SubmitBatch(ctx context.Context, b *Batch) *BatchAnswer {
	items := make([]*item, len(b.Calls))
	for i, c := range b.Calls {
		if err := c.Normalize(); err != nil {
			return refuseBatch(i, c, err.Error())
		}
		c.ID = g.opts.NewID()
		snap, _ := g.opts.Policy(c)
		in, change, err := g.describe(ctx, c, snap, g.opts.State.Standing)
		if err != nil {
			return refuseBatch(i, c, "the gate could not do its work")
		}
		items[i] = &item{trial: &trial{gate: g, sub: &Submission{Call: c, Runs: "gate"}, snap: snap, in: in, change: change}}
		items[i].trial.decide()
	}
	var out *BatchAnswer
	var filed *Request
	err := g.opts.State.Commit(ctx, func(tx Tx) (err error) {
		out, filed, err = g.ruleBatch(tx, b, items)
		return err
	})
	if err != nil {
		ans := g.broken(&call.Call{Operation: batchName, Principal: b.Calls[0].Principal}, call.Decision{}, err)
		return &BatchAnswer{Answer: *ans}
	}
	if filed != nil {
		g.opts.Asker.Filed(filed, RequestState{ID: out.Request, State: "pending", Expires: out.Expires})
	}
	return out
}

// refuseBatch answers a batch of which one call cannot be decided on.
func refuseBatch(i int, c *call.Call, why string) *BatchAnswer {
	return &BatchAnswer{Answer: Answer{
		Final: true, Message: fmt.Sprintf("Denied: item %d (%s): %s. Nothing was done.", i, c.Operation, why),
	}}
}

// ruleBatch meets the decisions of all items inside one transaction.
func (g *Gate) ruleBatch(tx Tx, b *Batch, items []*item) (out *BatchAnswer, filed *Request, err error) {
	first := items[0].trial
	now, err := tx.Standing(first.sub.Call)
	if err != nil {
		return nil, nil, err
	}
	_, head := g.opts.Policy(first.sub.Call)
	out = &BatchAnswer{Items: make([]Answer, len(items)), given: make([]grant.Grant, len(items))}
	grants, err := tx.Grants(first.sub.Call.Principal)
	if err != nil {
		return nil, nil, err
	}
	why := stopped(head, &now)
	for i, it := range items {
		t := it.trial
		if now.Switches != t.in.Switches || now.Elements != t.in.Elements {
			t.in.Switches, t.in.Elements = now.Switches, now.Elements
			t.decide()
		}
		verdict := it.judge(grants)
		out.Items[i] = *verdict
		switch {
		case why != "":
		case t.decision.Pinned && t.decision.Level != call.Deny:
			why = fmt.Sprintf("item %d (%s) is asked about by itself, with the person present; send it outside of a batch", i, t.sub.Call.Operation)
		case verdict.Verdict == Denied && b.AllOrNothing:
			why = fmt.Sprintf("item %d (%s) is denied: %s", i, t.sub.Call.Operation, t.decision.Why())
		}
	}
	whole := g.compose(items)
	if why == "" && !slices.ContainsFunc(out.Items, func(a Answer) bool { return a.Verdict == Allowed }) {
		why = "every item is denied: " + items[0].trial.decision.Why()
	}
	if why != "" {
		whole.decision.Level = call.Deny
		err = whole.deny(tx, why)
		out.Answer = *whole.answer
		return out, nil, err
	}
	filed, err = g.meetBatch(tx, whole, items, grants)
	out.Answer = *whole.answer
	if out.Verdict == Allowed {
		for i, it := range items {
			out.given[i] = it.given(whole.answer)
		}
	}
	return out, filed, err
}

// judge finds out what is still open about an item.
func (it *item) judge(grants []grant.Grant) *Answer {
	t := it.trial
	it.open = nil
	switch d := &t.decision; {
	case d.Level == call.AutoApprove, t.snap != nil && t.snap.Settings.Observe && !switched(d):
	case d.Level == call.Deny:
		return deny(t.sub.Call, t.decision, d.Why(), true)
	default:
		_, it.open = grant.Cover(t.sub.Call, d, grants, t.gate.opts.Scope)
	}
	return &Answer{CallID: t.sub.Call.ID, Verdict: Allowed, Decision: t.decision}
}

// given is what the answer to the whole says about an item: its votes as they
// were shown, on the call, the world and the policy as they were.
func (it *item) given(ans *Answer) grant.Grant {
	d := &it.trial.decision
	return grant.Grant{
		ID: ans.CallID, Use: grant.Once, Principal: it.trial.sub.Call.Principal, Votes: grant.Keys(d),
		Digest: d.Digest, World: d.World, Policy: d.Policy, By: "the answer to batch " + ans.CallID, Channel: batchName,
	}
}

// compose makes one call of the batch, which a person can be asked about.
func (g *Gate) compose(items []*item) *trial {
	first := items[0].trial
	c := &call.Call{
		ID: g.opts.NewID(), Kind: call.Native, Surface: first.sub.Call.Surface, Principal: first.sub.Call.Principal,
		Held: first.sub.Call.Held, Operation: batchName,
	}
	var shown []batchItem
	var words []string
	world := sha256.New()
	ballots := make([]call.Ballot, 0, len(call.Stages()))
	for _, stage := range call.Stages() {
		ballots = append(ballots, call.Ballot{Stage: stage, Level: call.AutoApprove, Votes: []call.Vote{batchVote(stage)}})
	}
	f := &facts.Facts{}
	for i, it := range items {
		d, ic := &it.trial.decision, it.trial.sub.Call
		one := batchItem{Index: i, Operation: ic.Operation, ElementType: ic.ElementType, Params: ic.Args, Level: d.Level, Digest: d.Digest}
		if d.Level != call.AutoApprove {
			one.Why = d.Why()
		}
		shown = append(shown, one)
		world.Write(d.World[:])
		for _, v := range it.open {
			b := &ballots[v.Stage]
			b.Votes, b.Level = append(b.Votes, v), call.Join(b.Level, v.Level)
		}
		f.Findings = append(f.Findings, it.trial.in.Facts.Findings...)
		f.Observed = append(f.Observed, it.trial.in.Facts.Observed...)
		words = append(words, describe(ic))
	}
	slices.SortStableFunc(shown, func(a, b batchItem) int { return int(a.Level) - int(b.Level) })
	args, err := json.Marshal(map[string]any{"items": shown})
	if err == nil {
		c.Args, err = call.Canonical(args)
	}
	t := &trial{gate: g, sub: &Submission{Call: c, Runs: "gate"}, snap: first.snap}
	f.Words = fmt.Sprintf("performs %d operations: %s", len(items), strings.Join(words, ", "))
	t.in = &policy.Input{Call: c, Facts: f}
	if err != nil {
		return t // too large to be shown whole: the zero decision denies
	}
	t.decision = call.Decide(ballots)
	t.decision.Digest, t.decision.Policy = c.Digest(), first.decision.Policy
	world.Sum(t.decision.World[:0])
	if t.decision.Level != call.AutoApprove {
		// A batch is answered once, never for the session.
		t.decision.Level = call.Join(t.decision.Level, call.ConfirmSingleUse)
	}
	t.described = g.opts.Describe(c, &t.decision, f)
	return t
}

func batchVote(stage call.Stage) call.Vote {
	return call.Vote{Stage: stage, Source: "gatehouse", Rule: batchName, Level: call.AutoApprove, Reason: "each item is voted on by itself"}
}

// meetBatch lets the whole through, by grants or because nothing is open, or
// puts it before a person.
func (g *Gate) meetBatch(tx Tx, whole *trial, items []*item, grants []grant.Grant) (*Request, error) {
	if !slices.ContainsFunc(items, func(it *item) bool { return len(it.open) > 0 }) {
		return nil, whole.allow(tx, nil)
	}
	if whole.decision.Level == call.Deny {
		return nil, whole.deny(tx, "it is too large to be shown whole")
	}
	used, open := grant.Cover(whole.sub.Call, &whole.decision, grants, g.opts.Scope)
	if len(open) > 0 {
		err := whole.file(tx)
		return whole.filed, err
	}
	for _, u := range used {
		if err := tx.Consume(u.ID); err != nil {
			return nil, err
		}
	}
	return nil, whole.allow(tx, used)
}

// SubmitItem decides one call of a batch that was let through again, just
// before its effect. Whatever was not answered with the whole is not asked
// now: it denies, and the batch ends there.
func (g *Gate) SubmitItem(ctx context.Context, b *Batch, ans *BatchAnswer, i int) *Answer {
	sub := &Submission{Call: b.Calls[i], Runs: "gate", given: &ans.given[i]}
	sub.Call.Parent = ans.CallID
	item, _ := g.attempt(ctx, sub)
	return item
}
