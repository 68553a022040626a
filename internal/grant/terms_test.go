package grant_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/grant"
)

// TestTermsOnlyNarrow: whatever the terms are, they offer nothing that would
// not be offered without them, for no longer, and no grant counts under them
// that does not count without.
func TestTermsOnlyNarrow(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		terms := call.Terms{
			Once: rapid.Bool().Draw(t, "once"), Session: rapid.Bool().Draw(t, "session"),
			Life: time.Duration(rapid.SampledFrom([]int{0, 30, 600}).Draw(t, "life")) * time.Second,
		}
		c := external()
		if rapid.Bool().Draw(t, "native") {
			c.Kind, c.Operation = call.Native, "create_element"
		}
		need := rapid.SampledFrom([]*call.Need{&write, &connect, nil}).Draw(t, "need")
		d := decision(vote(rapid.SampledFrom([]call.Level{call.ConfirmSession, call.ConfirmSingleUse}).Draw(t, "level"), "rule", need))
		free, bound := grant.Offers(c, d, call.Terms{}), grant.Offers(c, d, terms)
		if len(bound) > len(free) || terms.Once && c.Kind == call.External && len(bound) != 1 {
			t.Fatalf("%+v offers %+v, without them %+v", terms, bound, free)
		}
		for i := range bound {
			if bound[i].Use != free[i].Use || len(bound[i].Needs) != len(free[i].Needs) || bound[i].Bound(time.Hour) > free[i].Bound(time.Hour) {
				t.Fatalf("%+v widens %+v to %+v", terms, free[i], bound[i])
			}
			if c.Kind == call.External && terms.Life > 0 && bound[i].Bound(time.Hour) != terms.Life {
				t.Fatalf("an answer counts for %s", bound[i].Bound(time.Hour))
			}
		}
		now := time.Unix(1_000_000, 0)
		given := now.Add(-time.Duration(rapid.IntRange(0, 700).Draw(t, "age")) * time.Second)
		all := []grant.Grant{{ID: "a", Given: given}, {ID: "b", Use: grant.Session, Given: given}}
		for _, g := range grant.Under(terms, all, now) {
			if terms.Once && g.Use == grant.Session || terms.Life > 0 && now.Sub(g.Given) >= terms.Life {
				t.Fatalf("%+v counts under %+v at an age of %s", g, terms, now.Sub(given))
			}
		}
		if terms.Life == 0 && !terms.Once && len(grant.Under(terms, all, now)) != 2 {
			t.Fatal("terms that bound nothing took a grant away")
		}
	})
}
