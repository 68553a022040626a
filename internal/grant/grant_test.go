package grant_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/grant"
)

var (
	agent   = call.Principal{Agent: "coder", Session: "s1"}
	write   = call.Need{Capability: call.FSWrite, Scope: "./a.go"}
	connect = call.Need{Capability: call.NetEgress, Scope: "example.com:443"}
)

func vote(level call.Level, rule string, n *call.Need) call.Vote {
	return call.Vote{Stage: call.StageSession, Source: "policy", Rule: rule, Level: level, Reason: rule, Need: n}
}

func decision(votes ...call.Vote) *call.Decision {
	d := &call.Decision{Level: call.AutoApprove, Digest: call.Digest{1}, World: call.Digest{2}, Policy: call.Digest{3}}
	for _, v := range votes {
		d.Level = call.Join(d.Level, v.Level)
	}
	d.Ballots = []call.Ballot{{Stage: call.StageSession, Level: d.Level, Votes: votes}}
	return d
}

func external() *call.Call {
	return &call.Call{Kind: call.External, Principal: agent, Operation: call.OpShell}
}

// once is the grant that a person gives who approves this call once.
func once(c *call.Call, d *call.Decision) grant.Grant {
	return grant.Grant{ID: "g1", Use: grant.Once, Principal: c.Principal, Votes: grant.Keys(d), Digest: d.Digest, World: d.World, Policy: d.Policy}
}

// forSession is the grant of the first session offer, nil if there is none.
func forSession(c *call.Call, d *call.Decision) *grant.Grant {
	offers := grant.Offers(c, d, call.Terms{})
	if len(offers) < 2 {
		return nil
	}
	o := offers[1]
	return &grant.Grant{
		ID: "g2", Use: grant.Session, Principal: c.Principal, Votes: grant.Keys(d),
		Operation: o.Operation, ElementType: o.ElementType, Needs: o.Needs,
	}
}

func covered(c *call.Call, d *call.Decision, gs ...grant.Grant) bool {
	_, open := grant.Cover(c, d, gs, nil)
	return len(open) == 0
}

// ATTACKS row 11: a grant for writing a file must not answer for a new host.
func TestSessionGrantDoesNotCoverANewReason(t *testing.T) {
	t.Parallel()
	c := external()
	shown := decision(vote(call.ConfirmSession, "fs.write", &write))
	g := forSession(c, shown)
	if g == nil || !covered(c, shown, *g) {
		t.Fatalf("the grant does not cover what it was given for: %+v", g)
	}
	more := decision(vote(call.ConfirmSession, "fs.write", &write), vote(call.ConfirmSession, "net.egress", &connect))
	if covered(c, more, *g) {
		t.Error("a grant for writing a file covered a connection")
	}
	other := write
	other.Scope = "./b.go"
	if covered(c, decision(vote(call.ConfirmSession, "fs.write", &other)), *g) {
		t.Error("a grant for one file covered another")
	}
}

func TestOnceIsBound(t *testing.T) {
	t.Parallel()
	c := external()
	d := decision(vote(call.ConfirmSingleUse, "unknown", nil))
	g := once(c, d)
	if !covered(c, d, g) {
		t.Fatal("a single-use grant does not cover its own call")
	}
	changes := map[string]func(*call.Decision, *call.Call){
		"arguments": func(d *call.Decision, _ *call.Call) { d.Digest = call.Digest{9} },
		"world":     func(d *call.Decision, _ *call.Call) { d.World = call.Digest{9} },
		"policy":    func(d *call.Decision, _ *call.Call) { d.Policy = call.Digest{9} },
		"session":   func(_ *call.Decision, c *call.Call) { c.Principal.Session = "s2" },
		"agent":     func(_ *call.Decision, c *call.Call) { c.Principal.Agent = "other" },
		"sub-agent": func(_ *call.Decision, c *call.Call) { c.Principal.Path = "child" },
	}
	for name, change := range changes {
		d2, c2 := *d, *c
		change(&d2, &c2)
		if covered(&c2, &d2, g) {
			t.Errorf("the grant covers a call with another %s", name)
		}
	}
}

// TestLaws holds over all small sets of votes and grants what row 11 asks for.
func TestLaws(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c, d := draw(t, "call")
		shownCall, shown := draw(t, "shown")
		var gs []grant.Grant
		if rapid.Bool().Draw(t, "once") {
			gs = append(gs, once(shownCall, shown))
		}
		if g := forSession(shownCall, shown); g != nil && rapid.Bool().Draw(t, "session") {
			gs = append(gs, *g)
		}
		used, open := grant.Cover(c, d, gs, nil)
		if d.Level == call.Deny && len(gs) > 0 && len(used) > 0 {
			t.Fatal("a grant was used for a denied call")
		}
		if len(open) > 0 || len(d.Confirmations()) == 0 && !d.Pinned {
			return
		}
		keys := grant.Keys(shown)
		for _, v := range d.Confirmations() {
			if !slices.Contains(keys, v.Key()) {
				t.Fatalf("vote %q was discharged and never shown", v.Key())
			}
		}
		usedOnce := slices.ContainsFunc(used, func(g grant.Grant) bool { return g.Use == grant.Once })
		if (d.Pinned || d.TakesCode || d.Level == call.ConfirmSingleUse) && !usedOnce {
			t.Fatalf("level %v (pinned %v, code %v) was met by a session grant", d.Level, d.Pinned, d.TakesCode)
		}
		if usedOnce && (d.Digest != shown.Digest || d.World != shown.World || d.Policy != shown.Policy) {
			t.Fatal("a single-use grant was used for another call, world or policy")
		}
		if c.Principal != shownCall.Principal {
			t.Fatal("a grant was used by someone else")
		}
	})
}

func draw(t *rapid.T, label string) (*call.Call, *call.Decision) {
	level := rapid.SampledFrom([]call.Level{call.AutoApprove, call.ConfirmSession, call.ConfirmSingleUse, call.Deny})
	needs := []*call.Need{nil, &write, &connect}
	var votes []call.Vote
	for range rapid.IntRange(0, 3).Draw(t, label+" votes") {
		votes = append(votes, vote(level.Draw(t, label+" level"), rapid.SampledFrom([]string{"a", "b"}).Draw(t, label+" rule"), rapid.SampledFrom(needs).Draw(t, label+" need")))
	}
	d := decision(votes...)
	small := rapid.ByteRange(0, 1)
	d.Digest[0], d.World[0], d.Policy[0] = small.Draw(t, "digest")+1, small.Draw(t, "world"), small.Draw(t, "policy")
	d.Pinned, d.TakesCode = rapid.Bool().Draw(t, label+" pinned"), rapid.Bool().Draw(t, label+" code")
	if d.Pinned {
		d.Level = call.Join(d.Level, call.ConfirmSingleUse)
	}
	c := external()
	if rapid.Bool().Draw(t, label+" native") {
		c.Kind, c.Operation = call.Native, rapid.SampledFrom([]string{"create_element", "edit_element"}).Draw(t, label+" op")
	}
	c.Principal.Session = rapid.SampledFrom([]string{"s1", "s2"}).Draw(t, label+" session")
	return c, d
}

func TestOffers(t *testing.T) {
	t.Parallel()
	c := external()
	native := &call.Call{Kind: call.Native, Principal: agent, Operation: "create_element", ElementType: "skill"}
	pinned := decision(vote(call.ConfirmSession, "x", &write))
	pinned.Pinned = true
	code := decision(vote(call.ConfirmSession, "x", &write))
	code.TakesCode = true
	tests := []struct {
		name string
		c    *call.Call
		d    *call.Decision
		want []string
	}{
		{"single use", c, decision(vote(call.ConfirmSingleUse, "x", &write)), []string{"this call, once"}},
		{"session by scope", c, decision(vote(call.ConfirmSession, "x", &write)), []string{"this call, once", "writes to ./a.go for this session"}},
		{"no scope, no session", c, decision(vote(call.ConfirmSession, "x", nil)), []string{"this call, once"}},
		{"native", native, decision(vote(call.ConfirmSession, "x", nil)), []string{"this call, once", "create_element on elements of type skill for the rest of this session"}},
		{"pinned", c, pinned, []string{"this call, once"}},
		{"takes code", c, code, []string{"this call, once"}},
	}
	for _, tt := range tests {
		var got []string
		for _, o := range grant.Offers(tt.c, tt.d, call.Terms{}) {
			got = append(got, o.Words)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", tt.name, diff)
		}
	}
}
