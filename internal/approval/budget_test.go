package approval_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-3ebc6b8a/gatehouse/internal/approval"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/grant"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store/storetest"
)

var writes = call.Need{Capability: call.FSWrite, Scope: "./src/a.go"}

func writeVote() call.Vote {
	return call.Vote{Stage: call.StageSession, Source: "p", Rule: "fs.write", Level: call.ConfirmSession, Need: &writes}
}

// newBudget keeps a budget for n writes.
func newBudget(t testing.TB, o *office, id string, p call.Principal, n int) {
	t.Helper()
	o.write(t, func(tx *store.Tx) error {
		now, err := tx.Now()
		if err != nil {
			return err
		}
		return o.AddBudget(tx, &grant.Budget{
			ID: id, Principal: p, Call: "c_" + id, Votes: []string{writeVote().Key()}, Lines: []grant.Line{{Need: writes, Total: n}},
			By: "ada", Channel: "console", Given: now, Expires: now.Add(time.Hour),
		})
	})
}

// drawOne draws once, as the gate does: what stays open fails the transaction.
func drawOne(o *office, tx *store.Tx, id string, p call.Principal) error {
	return o.ChangeBudget(tx, id, p, func(b *grant.Budget) error {
		c := &call.Call{Kind: call.External, Principal: p}
		if _, open := b.Draw(c, &call.Decision{Level: call.ConfirmSession}, []call.Vote{writeVote()}, nil); len(open) > 0 {
			return approval.ErrSpent
		}
		return nil
	})
}

// TestAttack21SubAgentsCannotOverspend has an agent and its sub-agents, on two
// nodes and all at once, draw from a budget, hand it on, take it back and have
// transactions taken back. However they interleave, no more than was approved
// is drawn, and when all is returned the plan's budget says what was drawn.
func TestAttack21SubAgentsCannotOverspend(t *testing.T) {
	t.Parallel()
	storetest.BothOptions(t, func(t *testing.T, opts store.Options) {
		both := nodes(t, opts, 2)
		o := newOffice(t, both[0])
		n := 0
		rapid.Check(t, func(rt *rapid.T) {
			n++
			main := principal(fmt.Sprint("s", n))
			root := fmt.Sprint("b_", n)
			total := rapid.IntRange(1, 6).Draw(rt, "total")
			newBudget(t, o, root, main, total)
			steps := rapid.SliceOfN(rapid.SampledFrom([]string{"draw", "back", "hand", "steal"}), 2, 9).Draw(rt, "steps")
			var drawn atomic.Int64
			var mu sync.Mutex
			var subs []*grant.Budget
			var wg sync.WaitGroup
			spent := func(err error) {
				if err != nil && !errors.Is(err, approval.ErrSpent) && !errors.Is(err, errBack) && !errors.Is(err, approval.ErrInvalid) && !errors.Is(err, approval.ErrNotFound) {
					t.Error(err)
				}
			}
			for i, step := range steps {
				wg.Go(func() {
					on := both[i%2]
					switch step {
					case "draw", "back":
						err := on.Write(t.Context(), func(tx *store.Tx) error {
							err := drawOne(o, tx, root, main)
							if err == nil && step == "back" {
								return errBack
							}
							return err
						})
						spent(err)
						if err == nil {
							drawn.Add(1)
						}
					case "steal": // a sub-agent that names its parent's budget
						other := main
						other.Path = "helper"
						err := on.Write(t.Context(), func(tx *store.Tx) error { return drawOne(o, tx, root, other) })
						if !errors.Is(err, approval.ErrNotFound) {
							t.Errorf("a sub-agent drew from its parent's budget: %v", err)
						}
					case "hand":
						path := fmt.Sprint("sub", i)
						var sub *grant.Budget
						err := on.Write(t.Context(), func(tx *store.Tx) (err error) {
							sub, err = o.Delegate(tx, root, main, path, []grant.Line{{Need: writes, Total: 2}}, nil)
							return err
						})
						spent(err)
						if err != nil {
							return
						}
						mu.Lock()
						subs = append(subs, sub)
						mu.Unlock()
						var inner sync.WaitGroup
						for k := range 4 { // more than it was given, from both nodes
							inner.Go(func() {
								err := both[k%2].Write(t.Context(), func(tx *store.Tx) error { return drawOne(o, tx, sub.ID, sub.Principal) })
								spent(err)
								if err == nil {
									drawn.Add(1)
								}
							})
						}
						inner.Wait()
					}
				})
			}
			wg.Wait()
			if got := drawn.Load(); got > int64(total) {
				rt.Fatalf("%v: %d were drawn from %d", steps, got, total)
			}
			for _, sub := range subs {
				o.write(t, func(tx *store.Tx) error { return o.ReturnBudget(tx, sub.ID, main) })
			}
			o.read(t, func(tx *store.Tx) error {
				b, err := o.Budget(tx, root, main)
				if err == nil && (b.Lines[0].Used != int(drawn.Load()) || b.Lines[0].Reserved != 0) {
					rt.Fatalf("%v: the budget says %+v, and %d were drawn", steps, b.Lines[0], drawn.Load())
				}
				return err
			})
		})
	})
}

// TestBudgetEnds: with its plan, with its time, with the one above; a forged
// one is refused.
func TestBudgetEnds(t *testing.T) {
	t.Parallel()
	storetest.BothOptions(t, func(t *testing.T, opts store.Options) {
		o := newOffice(t, storetest.Open(t, opts))
		main := principal("s")
		sub := main
		sub.Path = "helper"
		newBudget(t, o, "b_1", main, 4)
		var handed *grant.Budget
		o.write(t, func(tx *store.Tx) (err error) {
			handed, err = o.Delegate(tx, "b_1", main, "helper", []grant.Line{{Need: writes, Total: 2}}, nil)
			return err
		})
		o.write(t, func(tx *store.Tx) error { return drawOne(o, tx, handed.ID, sub) })
		if err := o.back(t, func(tx *store.Tx) error { return o.ReturnBudget(tx, handed.ID, sub) }); err == nil {
			t.Error("a sub-agent returned its budget to itself")
		}
		if err := o.back(t, func(tx *store.Tx) error { return o.ReturnBudget(tx, "b_1", main) }); !errors.Is(err, approval.ErrInvalid) {
			t.Errorf("a plan's own budget was returned: %v", err)
		}
		o.write(t, func(tx *store.Tx) error { return o.EndBudgets(tx, "c_b_1") })
		for id, p := range map[string]call.Principal{"b_1": main, handed.ID: sub} {
			if err := o.back(t, func(tx *store.Tx) error { return drawOne(o, tx, id, p) }); !errors.Is(err, approval.ErrSpent) {
				t.Errorf("%s can be drawn from after its plan is over: %v", id, err)
			}
		}
		newBudget(t, o, "b_2", main, 1)
		o.write(t, func(tx *store.Tx) error {
			_, err := tx.Exec(`UPDATE approval_budget SET lines = $1 WHERE id = 'b_2'`, strings.Replace(`[{"need":{"capability":"fs.write","scope":"./src/a.go"},"total":1,"used":0}]`, `:1,`, `:99,`, 1))
			return err
		})
		if err := o.back(t, func(tx *store.Tx) error { return drawOne(o, tx, "b_2", main) }); !errors.Is(err, approval.ErrForged) {
			t.Errorf("an edited budget: %v", err)
		}
	})
}
