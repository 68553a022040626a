package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/element"
	"github.com/seed-3ebc6b8a/gatehouse/internal/facts"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
	"github.com/seed-3ebc6b8a/gatehouse/internal/grant"
	"github.com/seed-3ebc6b8a/gatehouse/internal/policy"
)

// player plays one session: it is the state of a gate, the machine it looks
// at and the person it asks.
type player struct {
	gate.State // what a replay does not need of it
	snap       *policy.Snapshot
	who        call.Principal
	grants     map[string]*grant.Grant
	order      []string
	filed      *gate.Request
	used       []string
	taint      call.Taint
	now        time.Time
}

// outcome is what came of one call.
type outcome struct {
	step    *step
	verdict gate.Verdict
	level   call.Level
	facts   *facts.Facts
	why     string
	// asked is what the person was offered and took, "" if nobody was asked.
	asked string
	// by are the grants that let the call through without asking.
	by []grant.Grant
	// wrong says why the call should not have gone ahead unasked.
	wrong string
}

// play submits every call of a session in order.
func play(ctx context.Context, s *session, snap *policy.Snapshot, rewrites bool) []outcome {
	p := &player{
		snap: snap, who: call.Principal{Agent: "replay", Session: s.name},
		grants: make(map[string]*grant.Grant), now: time.Unix(0, 0),
	}
	n := 0
	g := gate.New(gate.Options{
		Policy:   func(*call.Call) (*policy.Snapshot, call.Digest) { return snap, snap.Hash },
		Observer: p, State: p, Asker: p,
		Describe: func(*call.Call, *call.Decision, *facts.Facts) []byte { return nil },
		NewID:    func() string { n++; return fmt.Sprintf("c_%d", n) },
		Scope:    policy.Holds,
	})
	out := make([]outcome, len(s.steps))
	for i := range s.steps {
		out[i] = p.one(ctx, g, s, &s.steps[i], rewrites)
	}
	return out
}

// one submits one call, and once more if the person was asked.
func (p *player) one(ctx context.Context, g *gate.Gate, s *session, st *step, rewrites bool) outcome {
	build := func() *call.Call {
		return &call.Call{
			Kind: call.External, Surface: "replay", Principal: p.who, Operation: st.Tool, Args: st.Input, Dir: s.dir, Rewrites: rewrites,
		}
	}
	o := outcome{step: st}
	c := build()
	if err := c.Normalize(); err == nil {
		o.facts, _ = p.Facts(ctx, c, p.snap)
	}
	p.filed, p.used = nil, nil
	ans := g.Submit(ctx, gate.Submission{Call: build(), Runs: "host"})
	o.level, o.why = ans.Decision.Level, ans.Decision.Why()
	if ans.Verdict == gate.Pending {
		o.asked = p.answer()
		p.used = nil
		ans = g.Submit(ctx, gate.Submission{Call: build(), Runs: "host"})
		if ans.Verdict == gate.Pending {
			o.asked += " (and that was not enough)"
		}
	} else {
		for _, id := range p.used {
			o.by = append(o.by, *p.grants[id])
		}
	}
	if o.verdict = ans.Verdict; o.why == "" {
		o.why = ans.Message
	}
	return o
}

// answer gives the narrowest grant that is offered for the session, or one
// for this very call where none is.
func (p *player) answer() string {
	r := p.filed
	offer := r.Offers[0]
	if len(r.Offers) > 1 {
		offer = r.Offers[1]
	}
	d := r.Decision
	gr := &grant.Grant{
		ID: fmt.Sprintf("g_%d", len(p.grants)+1), Use: offer.Use, Principal: p.who, Votes: grant.Keys(d), Words: offer.Words, By: "person",
	}
	if offer.Use == grant.Once {
		gr.Digest, gr.World, gr.Policy = d.Digest, d.World, d.Policy
	} else {
		gr.Operation, gr.ElementType, gr.Needs = offer.Operation, offer.ElementType, offer.Needs
	}
	p.grants[gr.ID] = gr
	p.order = append(p.order, gr.ID)
	return strings.TrimSpace(gr.Use.String() + ": " + gr.Words)
}

// Facts describes a call by its words, as the machine of a recorded session
// is not here.
func (p *player) Facts(_ context.Context, c *call.Call, _ *policy.Snapshot) (*facts.Facts, *element.Change) {
	return facts.Extract(c, nil, &facts.Options{Home: "/root"}), nil
}

// Standing is what the session took in; no switch is on.
func (p *player) Standing(context.Context, *call.Call) (gate.Standing, error) {
	return gate.Standing{Policy: p.snap.Hash, Taint: p.taint}, nil
}

// Current is as Standing.
func (p *player) Current(ctx context.Context, c *call.Call) (gate.Standing, error) {
	return p.Standing(ctx, c)
}

// Commit runs the function; there is nothing to make durable.
func (p *player) Commit(_ context.Context, fn func(gate.Tx) error) error { return fn(memory{p: p}) }

// Live says that nobody waits for the person, who answers at once.
func (p *player) Live() bool { return false }

// Filed is told what the transaction has filed already.
func (p *player) Filed(*gate.Request, gate.RequestState) {}

// Changed is not used: no call waits.
func (p *player) Changed() <-chan struct{} { return nil }

// memory is a transaction on the player. What a replay does not need of a
// transaction it does not have.
type memory struct {
	gate.Tx
	p *player
}

func (m memory) Standing(c *call.Call) (gate.Standing, error) {
	return m.p.Standing(context.Background(), c)
}

func (m memory) Grants(call.Principal) ([]grant.Grant, error) {
	var out []grant.Grant
	for _, id := range m.p.order {
		out = append(out, *m.p.grants[id])
	}
	return out, nil
}

func (m memory) Edited(call.Principal, *call.Decision) (*gate.RequestState, error) { return nil, nil }

func (m memory) Consume(id string) error {
	g := m.p.grants[id]
	g.Uses++
	m.p.used = append(m.p.used, id)
	if g.Use == grant.Once {
		for i, other := range m.p.order {
			if other == id {
				m.p.order = append(m.p.order[:i:i], m.p.order[i+1:]...)
				break
			}
		}
	}
	return nil
}

func (m memory) File(r *gate.Request) (gate.RequestState, error) {
	m.p.filed = r
	return gate.RequestState{ID: "r", State: "pending"}, nil
}

func (m memory) Taints(*call.Call) (call.Taint, error) { return m.p.taint, nil }

func (m memory) Taint(_ *call.Call, _ string, t call.Taint, _ time.Duration) error {
	m.p.taint |= t
	return nil
}

func (m memory) Open(*call.Call, []call.Guarantee) error { return nil }
func (m memory) Append(...*gate.Event) error             { return nil }
