package approval_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/seed-3ebc6b8a/gatehouse/internal/approval"
	"github.com/seed-3ebc6b8a/gatehouse/internal/grant"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store/storetest"
)

var forSession = func(a *approval.Answer) { a.Use, a.Offer = grant.Session, 1 }

// plenty are limits that stay out of a test's way.
var plenty = approval.Limits{ShownAtLeast: 1, AsksPerHour: 1 << 20, PendingPerAgent: 1 << 20}

// storm has many consumers on all nodes go for one grant, and counts those who
// were told that they have it.
func storm(t testing.TB, o *office, on []*store.Store, id string) int {
	var got atomic.Int64
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			err := on[n%len(on)].Write(t.Context(), func(tx *store.Tx) error {
				_, err := o.Consume(tx, id)
				return err
			})
			switch {
			case err == nil:
				got.Add(1)
			case !errors.Is(err, approval.ErrSpent):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	return int(got.Load())
}

// TestSingleGrantIsConsumedOnce is I7: whatever the interleaving of consumers,
// nodes, transactions that are taken back and revocations, at most one use of a
// single-use grant is confirmed, and exactly one if nobody revoked it.
func TestSingleGrantIsConsumedOnce(t *testing.T) {
	t.Parallel()
	storetest.BothOptions(t, func(t *testing.T, opts store.Options) {
		both := nodes(t, opts, 2)
		o := newOffice(t, both[0])
		n := 0
		rapid.Check(t, func(rt *rapid.T) {
			n++
			g := o.granted(t, ask(fmt.Sprint("s", n), n), nil, plenty)
			steps := rapid.SliceOfN(rapid.SampledFrom([]string{"consume", "back", "revoke"}), 2, 8).Draw(rt, "steps")
			var consumed, revoked atomic.Int64
			var wg sync.WaitGroup
			for i, step := range steps {
				wg.Go(func() {
					err := both[i%2].Write(t.Context(), func(tx *store.Tx) error {
						if step == "revoke" {
							return o.Revoke(tx, g.ID, "ada")
						}
						_, err := o.Consume(tx, g.ID)
						if err == nil && step == "back" {
							return errBack
						}
						return err
					})
					switch {
					case err == nil && step == "consume":
						consumed.Add(1)
					case err == nil:
						revoked.Add(1)
					case !errors.Is(err, approval.ErrSpent) && !errors.Is(err, errBack):
						t.Error(err)
					}
				})
			}
			wg.Wait()
			left := storm(t, o, both, g.ID)
			if total := consumed.Load() + revoked.Load() + int64(left); total != 1 {
				rt.Fatalf("%v, then consumers: %d consumed, %d revoked, %d consumed afterwards; want one in all",
					steps, consumed.Load(), revoked.Load(), left)
			}
		})
	})
}

// TestGrantSurvivesNoCrash is attacks 29 and 31 for grants: a connection that
// dies before or after any statement of the consuming transaction never leaves
// a grant that can be used twice, nor one that was confirmed and is still good.
func TestGrantSurvivesNoCrash(t *testing.T) {
	t.Parallel()
	storetest.BothOptions(t, func(t *testing.T, opts store.Options) {
		faulty := &storetest.Driver{}
		wrapped := opts
		wrapped.Wrap, wrapped.Node = faulty.Wrap, "faulty"
		first := storetest.Open(t, wrapped)
		on := []*store.Store{first}
		if opts.DSN != "" {
			on = append(on, storetest.Open(t, opts))
		}
		o := newOffice(t, first)
		consume := func(id string) error {
			return first.Write(t.Context(), func(tx *store.Tx) error {
				_, err := o.Consume(tx, id)
				return err
			})
		}
		for _, when := range []string{"before", "after"} {
			for k := 1; ; k++ {
				g := o.granted(t, ask(fmt.Sprint(when, k), k), nil, plenty)
				var count atomic.Int64
				hook := func(query string) error {
					// Losing the answer to BEGIN or SELECT is the same as losing the next statement.
					if when == "after" && (strings.HasPrefix(query, "BEGIN") || strings.HasPrefix(query, "SELECT")) {
						return nil
					}
					if count.Add(1) != int64(k) {
						return nil
					}
					return io.ErrUnexpectedEOF
				}
				if when == "before" {
					faulty.Before(hook)
				} else {
					faulty.After(hook)
				}
				err := consume(g.ID)
				faulty.Before(nil)
				faulty.After(nil)
				confirmed := 0
				if err == nil {
					confirmed = 1
				}
				if total := confirmed + storm(t, o, on, g.ID); total > 1 || (total == 0 && when == "before") {
					t.Errorf("%s statement %d (%v): %d uses were confirmed", when, k, err, total)
				}
				if count.Load() < int64(k) {
					break // the transaction has no more statements
				}
				if k > 40 {
					t.Fatal("the transaction does not end")
				}
			}
		}
	})
}

func TestGrantsOnlyGoodOnes(t *testing.T) {
	t.Parallel()
	storetest.Both(t, func(t *testing.T, s *store.Store) {
		o := newOffice(t, s)
		list := func(session string) []string { return o.good(t, session) }
		used := o.granted(t, ask("s1", 1), nil, plenty)
		revoked := o.granted(t, ask("s1", 2), nil, plenty)
		session := o.granted(t, ask("s1", 3), forSession, plenty)
		short := plenty
		short.GrantLife = 20 * time.Millisecond
		expired := o.granted(t, ask("s1", 4), nil, short)
		elsewhere := o.granted(t, ask("s2", 5), nil, plenty)
		sub := ask("s1", 6)
		sub.Principal.Path = "sub"
		o.granted(t, sub, nil, plenty)

		o.write(t, func(tx *store.Tx) error { _, err := o.Consume(tx, used.ID); return err })
		o.write(t, func(tx *store.Tx) error { return o.Revoke(tx, revoked.ID, "ada") })
		for uses := 1; uses <= 3; uses++ {
			o.write(t, func(tx *store.Tx) error {
				g, err := o.Consume(tx, session.ID)
				if err == nil && g.Uses != uses {
					t.Errorf("the session grant was used %d times, says %d", uses, g.Uses)
				}
				return err
			})
		}
		time.Sleep(30 * time.Millisecond)
		if diff := cmp.Diff([]string{session.ID}, list("s1")); diff != "" {
			t.Errorf("good grants of s1:\n%s", diff)
		}
		for name, id := range map[string]string{"used": used.ID, "revoked": revoked.ID, "expired": expired.ID} {
			if err := o.back(t, func(tx *store.Tx) error { _, err := o.Consume(tx, id); return err }); !errors.Is(err, approval.ErrSpent) {
				t.Errorf("the %s grant was consumed: %v", name, err)
			}
		}
		if err := o.back(t, func(tx *store.Tx) error { return o.Revoke(tx, used.ID, "ada") }); !errors.Is(err, approval.ErrSpent) {
			t.Errorf("a spent grant was revoked: %v", err)
		}
		if err := o.back(t, func(tx *store.Tx) error { _, err := o.Consume(tx, "g_none"); return err }); !errors.Is(err, approval.ErrNotFound) {
			t.Errorf("a grant that never was: %v", err)
		}
		var live []string
		o.read(t, func(tx *store.Tx) error {
			all, err := o.LiveGrants(tx)
			for _, g := range all {
				live = append(live, g.Principal.String())
			}
			return err
		})
		if diff := cmp.Diff([]string{"claude/s1/sub", "claude/s2", "claude/s1"}, live); diff != "" {
			t.Errorf("everyone's good grants, newest first:\n%s", diff)
		}
		o.write(t, func(tx *store.Tx) error {
			n, err := o.RevokeSession(tx, "s1", "ada")
			if n != 3 { // the session's, the expired one, the sub-agent's
				t.Errorf("revoked %d grants, want 3", n)
			}
			return err
		})
		if got := list("s1"); len(got) != 0 {
			t.Errorf("good after the session was revoked: %v", got)
		}
		if diff := cmp.Diff([]string{elsewhere.ID}, list("s2")); diff != "" {
			t.Errorf("another session lost its grant:\n%s", diff)
		}
		states := o.fates(t, "s1")
		if states[used.ID] != approval.Used || states[session.ID] != approval.Revoked || len(states) != 5 {
			t.Errorf("fates: %v", states)
		}
	})
}

// fates are the states of all grants of a session.
func (o *office) fates(t *testing.T, session string) map[string]approval.GrantState {
	t.Helper()
	states := map[string]approval.GrantState{}
	o.read(t, func(tx *store.Tx) error {
		all, _, err := o.ListGrants(tx, approval.Filter{Session: session}, approval.Page{})
		for _, g := range all {
			states[g.ID] = g.State
		}
		return err
	})
	return states
}

// good are the ids of the grants a session's main agent can use.
func (o *office) good(t *testing.T, session string) (ids []string) {
	t.Helper()
	o.read(t, func(tx *store.Tx) error {
		grants, err := o.Grants(tx, principal(session))
		for _, g := range grants {
			ids = append(ids, g.ID)
		}
		return err
	})
	return ids
}

// BenchmarkDesk is what asking and consuming cost inside a shared write.
func BenchmarkDesk(b *testing.B) {
	for name, opts := range map[string]func(testing.TB) store.Options{"sqlite": storetest.SQLite, "postgres": storetest.Postgres} {
		b.Run(name, func(b *testing.B) {
			o := newOffice(b, storetest.Open(b, opts(b)))
			forever := plenty
			forever.PendingPerSession, forever.SessionGrantLife = 1<<20, time.Hour
			g := o.granted(b, ask("s1", 0), forSession, forever)
			n := 0
			steps := map[string]func(tx *store.Tx) error{
				"grants":  func(tx *store.Tx) error { _, err := o.Grants(tx, g.Principal); return err },
				"consume": func(tx *store.Tx) error { _, err := o.Consume(tx, g.ID); return err },
				"file": func(tx *store.Tx) error {
					n++
					r := ask("s1", n)
					r.Principal.Agent = fmt.Sprint("agent", n/20) // as many as an agent may have waiting
					_, _, err := o.File(tx, r, forever)
					return err
				},
			}
			for name, step := range steps {
				b.Run(name, func(b *testing.B) {
					o.write(b, func(tx *store.Tx) error {
						for b.Loop() {
							if err := step(tx); err != nil {
								return err
							}
						}
						return nil
					})
				})
			}
		})
	}
}
