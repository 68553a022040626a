package session_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/session"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store/storetest"
)

const scope = "machine"

func (h *hall) standing(t testing.TB, p call.Principal) (st session.Standing, err error) {
	t.Helper()
	err = h.back(t, func(tx *store.Tx) (err error) {
		st, err = h.CheckStanding(tx, p, scope)
		return err
	})
	return st, err
}

// stops says whether a standing stops every call of a node that holds policy.
func stops(st session.Standing, err error, policy call.Digest) bool {
	return err != nil || st.Kill || st.Danger || st.SessionEnded || st.Policy != policy
}

// blocker is a registry, or a hall with one.
type blocker interface {
	SetBlock(*store.Tx, session.Block) (session.Block, error)
	Unblock(tx *store.Tx, agent, id string) error
	Blocks(*store.Tx) ([]session.Block, error)
}

func block(tx *store.Tx, g blocker, agent, by, reason string) error {
	_, err := g.SetBlock(tx, session.Block{Agent: agent, By: by, Reason: reason})
	return err
}

// unblock releases an agent from whatever block it has.
func unblock(tx *store.Tx, g blocker, agent string) error {
	blocks, err := g.Blocks(tx)
	if err != nil {
		return err
	}
	for _, b := range blocks {
		if b.Agent == session.AgentID(agent) {
			return g.Unblock(tx, agent, b.ID)
		}
	}
	return g.Unblock(tx, agent, "b_none")
}

func TestStanding(t *testing.T) {
	t.Parallel()
	storetest.Both(t, func(t *testing.T, s *store.Store) {
		h := newHall(t, s)
		se, _, err := h.open(t, own(t, ""))
		if err != nil {
			t.Fatal(err)
		}
		p := call.Principal{Agent: "claude", Session: se.ID}
		expect := func(name string, want session.Standing) {
			t.Helper()
			got, err := h.standing(t, p)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(session.Standing{}, "Session", "Why", "Block")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
			if (got.Kill || got.Danger) != (got.Why != "") {
				t.Errorf("%s: says why: %q", name, got.Why)
			}
		}
		expect("at first", session.Standing{})
		one, two := call.Digest{1}, call.Digest{2}
		set := func(from, to call.Digest) error {
			return h.s.Write(t.Context(), func(tx *store.Tx) error { _, err := h.SetPolicyHead(tx, scope, from, to, "ada"); return err })
		}
		if err := set(call.Digest{}, one); err != nil {
			t.Fatal(err)
		}
		expect("a policy", session.Standing{Policy: one, Epoch: 1})
		if err := set(call.Digest{}, two); !errors.Is(err, session.ErrMoved) {
			t.Errorf("a policy was replaced unseen: %v", err)
		}
		if err := set(one, two); err != nil {
			t.Fatal(err)
		}
		expect("another policy", session.Standing{Policy: two, Epoch: 2})
		h.write(t, func(tx *store.Tx) error {
			_, err := h.SetPolicyHead(tx, "session:x", call.Digest{}, one, "claude")
			return err
		})
		expect("another scope's policy", session.Standing{Policy: two, Epoch: 2})

		h.write(t, func(tx *store.Tx) error { return block(tx, h, "Claude", "ada", "wrote to /etc") })
		h.write(t, func(tx *store.Tx) error { return block(tx, h, "claude", "bob", "again") })
		expect("blocked", session.Standing{Policy: two, Epoch: 2, Danger: true})
		h.write(t, func(tx *store.Tx) error { return h.SetKill(tx, true, "ada", "fire") })
		expect("killed and blocked", session.Standing{Policy: two, Epoch: 2, Kill: true})
		h.write(t, func(tx *store.Tx) error { return h.SetKill(tx, false, "ada", "") })
		h.write(t, func(tx *store.Tx) error { return block(tx, h, "codex", "ada", "x") })
		h.write(t, func(tx *store.Tx) error { return unblock(tx, h, "ＣLAUDE") })
		expect("released", session.Standing{Policy: two, Epoch: 2})
		if err := h.back(t, func(tx *store.Tx) error { return unblock(tx, h, "claude") }); !errors.Is(err, session.ErrNotFound) {
			t.Errorf("released twice: %v", err)
		}
		var blocks []session.Block
		h.write(t, func(tx *store.Tx) (err error) { blocks, err = h.Blocks(tx); return err })
		if len(blocks) != 1 || blocks[0].Agent != "codex" {
			t.Errorf("blocks: %+v", blocks)
		}
		for _, b := range blocks {
			if err := h.back(t, func(tx *store.Tx) error { return h.Unblock(tx, b.Agent, "b_older") }); !errors.Is(err, session.ErrNotFound) {
				t.Errorf("released by the id of another block: %v", err)
			}
		}
		h.write(t, func(tx *store.Tx) error { return h.End(tx, se.ID, "ada") })
		expect("ended", session.Standing{Policy: two, Epoch: 2, SessionEnded: true})
		p.Session = "s_none"
		expect("no session", session.Standing{Policy: two, Epoch: 2, SessionEnded: true})
		p = call.Principal{Agent: "codex", Session: se.ID}
		if _, err := h.standing(t, p); !errors.Is(err, session.ErrForeign) {
			t.Errorf("another agent in the session: %v", err)
		}
	})
}

// tampered edits the database and holds the standing of who against it, in a
// transaction that is taken back: a gate that reads the rows stops. One that
// knows how things stood before may go on by that, and never releases what was
// stopped.
func (n *pair) tampered(t *testing.T, name string, who call.Principal, edit func(tx *store.Tx) error) {
	t.Helper()
	before, errBefore := n.standing(t, who)
	var st session.Standing
	err := n.back(t, func(tx *store.Tx) error {
		if err := edit(tx); err != nil {
			t.Fatal(err)
		}
		warm, err := n.CheckStanding(tx, who, scope)
		if stops(before, errBefore, n.policy) && !stops(warm, err, n.policy) {
			t.Errorf("%s: %s was released: %+v", name, who.Agent, warm)
		}
		st, err = session.New(n.keys, nil).CheckStanding(tx, who, scope)
		return err
	})
	if !stops(st, err, n.policy) {
		t.Errorf("%s: %s goes on: %+v", name, who.Agent, st)
	}
}

func sql(statement string, args ...any) func(tx *store.Tx) error {
	return func(tx *store.Tx) error { _, err := tx.Exec(statement, args...); return err }
}

// blocked blocks codex and opens a session for it.
func (n *pair) blocked(t *testing.T) call.Principal {
	t.Helper()
	o := own(t, "host-2")
	o.Agent = "codex"
	se, _, err := n.open(t, o)
	if err != nil {
		t.Fatal(err)
	}
	n.write(t, func(tx *store.Tx) error { return block(tx, n, "codex", "ada", "x") })
	return call.Principal{Agent: "codex", Session: se.ID}
}

// TestTamperedSwitchesStop is attack 2 for switches: every edit of a column,
// every deletion of a row and every row added by hand stops.
func TestTamperedSwitchesStop(t *testing.T) {
	t.Parallel()
	storetest.BothOptions(t, func(t *testing.T, opts store.Options) {
		n := newPair(t, opts)
		blocked := n.blocked(t)
		if st, err := n.standing(t, n.p); stops(st, err, n.policy) {
			t.Fatalf("as it is: %+v, %v", st, err)
		}
		for table, columns := range map[string][]string{
			"switches":      {"killed", "reason", "set_by", "set_at", "blocks", "version", "mac"},
			"policy_head":   {"scope", "hash", "epoch", "set_by", "set_at", "mac"},
			"agent_session": {"id", "agent", "ref", "surface", "workspace", "pid", "start", "uid", "boot", "machine", "token", "attendance", "mode", "opened", "ended", "ended_by", "lineage", "mac"},
		} {
			for _, column := range columns {
				n.tampered(t, table+"."+column, n.p, func(tx *store.Tx) error { return spoil(tx, table, column) })
			}
		}
		for _, column := range []string{"id", "agent", "workspace", "reason", "set_by", "set_at", "mac"} {
			n.tampered(t, "danger_block."+column, blocked, func(tx *store.Tx) error { return spoil(tx, "danger_block", column) })
		}
		n.tampered(t, "the switches are deleted", n.p, sql(`DELETE FROM switches`))
		n.tampered(t, "the blocks are deleted", blocked, sql(`DELETE FROM danger_block`))
		n.tampered(t, "the blocks are deleted", n.p, sql(`DELETE FROM danger_block`))
		n.tampered(t, "the policy is deleted", n.p, sql(`DELETE FROM policy_head`))
		n.tampered(t, "the session is deleted", n.p, sql(`DELETE FROM agent_session`))
		n.tampered(t, "a block is made by hand", n.p, sql(`INSERT INTO danger_block (agent, reason, set_by, set_at, mac) VALUES ('claude', 'x', 'x', 1, $1)`, []byte{1}))
		n.write(t, func(tx *store.Tx) error { return n.SetKill(tx, true, "ada", "fire") })
		n.tampered(t, "the kill switch is released by hand", n.p, sql(`UPDATE switches SET killed = $1`, false))
	})
}

// TestTamperedSwitchesAreMendedByPeople: nothing the gate does by itself makes
// an edit good; throwing the kill switch does, and then a person releases it.
func TestTamperedSwitchesAreMendedByPeople(t *testing.T) {
	t.Parallel()
	storetest.BothOptions(t, func(t *testing.T, opts store.Options) {
		n := newPair(t, opts)
		n.blocked(t)
		for name, fn := range map[string]func(tx *store.Tx) error{
			"a block":   func(tx *store.Tx) error { return block(tx, n, "gemini", "ada", "x") },
			"a release": func(tx *store.Tx) error { return unblock(tx, n, "codex") },
		} {
			if err := n.back(t, func(tx *store.Tx) error {
				return errors.Join(sql(`DELETE FROM danger_block`)(tx), fn(tx))
			}); !errors.Is(err, session.ErrForged) {
				t.Errorf("%s after the blocks were deleted: %v", name, err)
			}
		}
		if err := n.back(t, func(tx *store.Tx) error {
			return errors.Join(sql(`DELETE FROM switches`)(tx), n.Prepare(tx))
		}); !errors.Is(err, session.ErrForged) {
			t.Errorf("a restart without the row of switches: %v", err)
		}
		n.write(t, sql(`UPDATE switches SET version = version + 1`))
		if err := n.back(t, func(tx *store.Tx) error { return n.SetKill(tx, false, "ada", "") }); !errors.Is(err, session.ErrForged) {
			t.Errorf("an edited row was released: %v", err)
		}
		n.write(t, func(tx *store.Tx) error { return n.SetKill(tx, true, "ada", "looked at it") })
		n.write(t, func(tx *store.Tx) error { return n.SetKill(tx, false, "ada", "") })
		if st, err := n.standing(t, n.p); stops(st, err, n.policy) {
			t.Errorf("after it was mended: %+v, %v", st, err)
		}
	})
}

// spoil changes one column of a row.
func spoil(tx *store.Tx, table, column string) error {
	var v any
	where := ""
	if table == "agent_session" {
		where = " WHERE ref = 'host-1'"
	}
	if err := tx.QueryRow(`SELECT ` + column + ` FROM ` + table + where).Scan(&v); err != nil {
		return err
	}
	switch w := v.(type) {
	case string:
		v = w + "x"
	case bool:
		v = !w
	case int64:
		v = w + 1
		if w == 0 || w == 1 {
			v = 1 - w // it may be a truth value
		}
	case []byte:
		v = append([]byte{w[0] ^ 1}, w[1:]...)
	default:
		return fmt.Errorf("a column of type %T", v)
	}
	_, err := tx.Exec(`UPDATE `+table+` SET `+column+` = $1`+where, v)
	return err
}

// pair is two nodes on one database, or one twice where nodes cannot share it,
// with an agent's session under a policy.
type pair struct {
	*hall
	second *store.Store
	p      call.Principal
	policy call.Digest
}

func newPair(t *testing.T, opts store.Options) *pair {
	t.Helper()
	first := storetest.Open(t, opts)
	n := &pair{hall: newHall(t, first), second: first, policy: call.Digest{1}}
	if opts.DSN != "" {
		n.second = storetest.Open(t, opts)
	}
	se, _, err := n.open(t, own(t, "host-1"))
	if err != nil {
		t.Fatal(err)
	}
	n.p = call.Principal{Agent: "claude", Session: se.ID}
	n.write(t, func(tx *store.Tx) error {
		_, err := n.SetPolicyHead(tx, scope, call.Digest{}, n.policy, "ada")
		return err
	})
	return n
}

// paused runs fn in a write on the first node and holds the transaction open
// after it until release is called.
func (n *pair) paused(t *testing.T, fn func(tx *store.Tx) error) (done chan error, release func()) {
	t.Helper()
	ran, held := make(chan struct{}), make(chan struct{})
	done = make(chan error, 1)
	go func() {
		once := sync.OnceFunc(func() { close(ran) })
		done <- n.s.Write(t.Context(), func(tx *store.Tx) error {
			err := fn(tx)
			once()
			<-held
			return err
		})
	}()
	<-ran
	return done, func() { close(held) }
}

// throws are the ways to stop a principal.
var throws = map[string]func(n *pair, tx *store.Tx) error{
	"kill":    func(n *pair, tx *store.Tx) error { return n.SetKill(tx, true, "ada", "fire") },
	"block":   func(n *pair, tx *store.Tx) error { return block(tx, n, n.p.Agent, "ada", "x") },
	"session": func(n *pair, tx *store.Tx) error { return n.End(tx, n.p.Session, "ada") },
	"policy": func(n *pair, tx *store.Tx) error {
		_, err := n.SetPolicyHead(tx, scope, n.policy, call.Digest{2}, "ada")
		return err
	},
}

// TestASwitchWaitsForDecisions is attacks 29 and 30: whoever throws a switch on
// one node waits for a decision on another that has read it.
func TestASwitchWaitsForDecisions(t *testing.T) {
	t.Parallel()
	for name, throw := range throws {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.BothOptions(t, func(t *testing.T, opts store.Options) {
				n := newPair(t, opts)
				decided, release := n.paused(t, func(tx *store.Tx) error {
					if st, err := n.CheckStanding(tx, n.p, scope); stops(st, err, n.policy) {
						return fmt.Errorf("stopped too early: %+v, %w", st, err)
					}
					return nil
				})
				thrown := make(chan error, 1)
				go func() { thrown <- n.second.Write(t.Context(), func(tx *store.Tx) error { return throw(n, tx) }) }()
				select {
				case err := <-thrown:
					t.Errorf("the switch did not wait for the decision: %v", err)
					thrown <- err
				case <-time.After(100 * time.Millisecond):
				}
				release()
				if err := errors.Join(<-decided, <-thrown); err != nil {
					t.Fatal(err)
				}
				if st, err := n.standing(t, n.p); !stops(st, err, n.policy) {
					t.Errorf("a decision after the switch goes on: %+v", st)
				}
			})
		})
	}
}

// TestADecisionWaitsForSwitches is the other way round: a decision that starts
// while a switch is being thrown waits, and sees it.
func TestADecisionWaitsForSwitches(t *testing.T) {
	t.Parallel()
	for name, throw := range throws {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.BothOptions(t, func(t *testing.T, opts store.Options) {
				n := newPair(t, opts)
				thrown, release := n.paused(t, func(tx *store.Tx) error { return throw(n, tx) })
				var st session.Standing
				decided := make(chan error, 1)
				go func() {
					decided <- n.second.Write(t.Context(), func(tx *store.Tx) (err error) {
						st, err = n.CheckStanding(tx, n.p, scope)
						return err
					})
				}()
				time.Sleep(50 * time.Millisecond)
				release()
				if err := <-thrown; err != nil {
					t.Fatal(err)
				}
				if err := <-decided; !stops(st, err, n.policy) {
					t.Errorf("a decision that waited for the switch did not see it: %+v", st)
				}
			})
		})
	}
}

// BenchmarkStanding is what every call pays: inside a write that others share,
// and as a read of its own. The baseline is the cheapest query there is.
func BenchmarkStanding(b *testing.B) {
	for name, opts := range map[string]func(testing.TB) store.Options{"sqlite": storetest.SQLite, "postgres": storetest.Postgres} {
		b.Run(name, func(b *testing.B) {
			h := newHall(b, storetest.Open(b, opts(b)))
			se, _, err := h.open(b, own(b, ""))
			if err != nil {
				b.Fatal(err)
			}
			p := call.Principal{Agent: "claude", Session: se.ID}
			h.write(b, func(tx *store.Tx) error {
				_, err := h.SetPolicyHead(tx, scope, call.Digest{}, call.Digest{1}, "ada")
				return err
			})
			inside := func(fn func(tx *store.Tx) error) func(b *testing.B) {
				return func(b *testing.B) {
					h.write(b, func(tx *store.Tx) error {
						for b.Loop() {
							if err := fn(tx); err != nil {
								return err
							}
						}
						return nil
					})
				}
			}
			b.Run("baseline", inside(func(tx *store.Tx) error { var n int; return tx.QueryRow(`SELECT 1`).Scan(&n) }))
			b.Run("in a write", inside(func(tx *store.Tx) error { _, err := h.CheckStanding(tx, p, scope); return err }))
			b.Run("in a write, after a switch", inside(func(tx *store.Tx) error {
				_, err := session.New(h.keys, nil).CheckStanding(tx, p, scope)
				return err
			}))
			b.Run("check session", inside(func(tx *store.Tx) error { _, err := h.Get(tx, se.ID); return err }))
			b.Run("as a read", func(b *testing.B) {
				for b.Loop() {
					if err := h.s.Read(b.Context(), func(tx *store.Tx) error { _, err := h.CheckStanding(tx, p, scope); return err }); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}

// TestStandingInOneTransaction: functions that share a transaction share the
// row of switches that the first of them read, until one of them changes it.
func TestStandingInOneTransaction(t *testing.T) {
	t.Parallel()
	storetest.Both(t, func(t *testing.T, s *store.Store) {
		h := newHall(t, s)
		se, _, err := h.open(t, own(t, ""))
		if err != nil {
			t.Fatal(err)
		}
		p := call.Principal{Agent: "claude", Session: se.ID}
		changes := map[string]func(*store.Tx) error{
			"kill":    func(tx *store.Tx) error { return h.SetKill(tx, true, "ada", "drill") },
			"release": func(tx *store.Tx) error { return h.SetKill(tx, false, "ada", "over") },
			"block":   func(tx *store.Tx) error { return block(tx, h, "claude", "ada", "wild") },
			"unblock": func(tx *store.Tx) error { return unblock(tx, h, "claude") },
			"end":     func(tx *store.Tx) error { return h.End(tx, se.ID, "ada") },
		}
		h.write(t, func(tx *store.Tx) error {
			steps := []struct {
				name string
				want session.Standing
			}{
				{"", session.Standing{}}, {"kill", session.Standing{Kill: true}}, {"release", session.Standing{}},
				{"block", session.Standing{Danger: true}}, {"unblock", session.Standing{}}, {"end", session.Standing{SessionEnded: true}},
			}
			for _, step := range steps {
				if change := changes[step.name]; change != nil {
					if err := change(tx); err != nil {
						return err
					}
				}
				for range 2 {
					got, err := h.CheckStanding(tx, p, scope)
					if err != nil {
						return err
					}
					if diff := cmp.Diff(step.want, got, cmpopts.IgnoreFields(session.Standing{}, "Session", "Why", "Block")); diff != "" {
						t.Errorf("after %q (-want +got):\n%s", step.name, diff)
					}
				}
			}
			return nil
		})
	})
}
