package session_test

import (
	"errors"
	"fmt"
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
			if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(session.Standing{}, "Session", "Why")); diff != "" {
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

		h.write(t, func(tx *store.Tx) error { return h.SetBlock(tx, "Claude", "ada", "wrote to /etc") })
		h.write(t, func(tx *store.Tx) error { return h.SetBlock(tx, "claude", "bob", "again") })
		expect("blocked", session.Standing{Policy: two, Epoch: 2, Danger: true})
		h.write(t, func(tx *store.Tx) error { return h.SetKill(tx, true, "ada", "fire") })
		expect("killed and blocked", session.Standing{Policy: two, Epoch: 2, Kill: true})
		h.write(t, func(tx *store.Tx) error { return h.SetKill(tx, false, "ada", "") })
		h.write(t, func(tx *store.Tx) error { return h.SetBlock(tx, "codex", "ada", "x") })
		h.write(t, func(tx *store.Tx) error { return h.Unblock(tx, "ＣLAUDE") })
		expect("released", session.Standing{Policy: two, Epoch: 2})
		if err := h.back(t, func(tx *store.Tx) error { return h.Unblock(tx, "claude") }); !errors.Is(err, session.ErrNotFound) {
			t.Errorf("released twice: %v", err)
		}
		var blocks []session.Block
		h.write(t, func(tx *store.Tx) (err error) { blocks, err = h.Blocks(tx); return err })
		if len(blocks) != 1 || blocks[0].Agent != "codex" {
			t.Errorf("blocks: %+v", blocks)
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

// TestTamperedSwitchesStop is attack 2 for switches: every edit of a column,
// every deletion of a row and every row added by hand stops a gate that reads
// it. One that knows how things stood before may go on by that, and never
// releases what was stopped.
func TestTamperedSwitchesStop(t *testing.T) {
	t.Parallel()
	storetest.Both(t, func(t *testing.T, s *store.Store) {
		h := newHall(t, s)
		se, _, err := h.open(t, own(t, "host-1"))
		if err != nil {
			t.Fatal(err)
		}
		p := call.Principal{Agent: "claude", Session: se.ID}
		policy := call.Digest{1}
		h.write(t, func(tx *store.Tx) error {
			_, err := h.SetPolicyHead(tx, scope, call.Digest{}, policy, "ada")
			return err
		})
		h.write(t, func(tx *store.Tx) error { return h.SetBlock(tx, "codex", "ada", "x") })
		if st, err := h.standing(t, p); stops(st, err, policy) {
			t.Fatalf("as it is: %+v, %v", st, err)
		}
		var other *session.Session
		h.write(t, func(tx *store.Tx) error {
			o := own(t, "host-2")
			o.Agent = "codex"
			var err error
			other, _, err = h.Open(tx, o)
			return err
		})
		blocked := call.Principal{Agent: "codex", Session: other.ID}
		tampered := func(name string, who call.Principal, edit func(tx *store.Tx) error) {
			t.Helper()
			before, errBefore := h.standing(t, who)
			stopped := stops(before, errBefore, policy)
			var st session.Standing
			err := h.back(t, func(tx *store.Tx) error {
				if err := edit(tx); err != nil {
					t.Fatal(err)
				}
				before, err := h.CheckStanding(tx, who, scope)
				if stopped && !stops(before, err, policy) {
					t.Errorf("%s: %s was released: %+v", name, who.Agent, before)
				}
				st, err = session.New(h.keys, nil).CheckStanding(tx, who, scope)
				return err
			})
			if !stops(st, err, policy) {
				t.Errorf("%s: %s goes on: %+v", name, who.Agent, st)
			}
		}
		edit := func(statement string, args ...any) func(tx *store.Tx) error {
			return func(tx *store.Tx) error { _, err := tx.Exec(statement, args...); return err }
		}
		for table, columns := range map[string][]string{
			"switches":      {"killed", "reason", "set_by", "set_at", "blocks", "version", "mac"},
			"policy_head":   {"scope", "hash", "epoch", "set_by", "set_at", "mac"},
			"agent_session": {"id", "agent", "ref", "surface", "workspace", "pid", "start", "uid", "boot", "machine", "token", "attendance", "mode", "opened", "ended", "ended_by", "mac"},
		} {
			for _, column := range columns {
				tampered(table+"."+column, p, func(tx *store.Tx) error { return spoil(tx, table, column) })
			}
		}
		for _, column := range []string{"agent", "reason", "set_by", "set_at", "mac"} {
			tampered("danger_block."+column, blocked, func(tx *store.Tx) error { return spoil(tx, "danger_block", column) })
		}
		tampered("the switches are deleted", p, edit(`DELETE FROM switches`))
		tampered("the blocks are deleted", blocked, edit(`DELETE FROM danger_block`))
		tampered("the blocks are deleted", p, edit(`DELETE FROM danger_block`))
		tampered("the policy is deleted", p, edit(`DELETE FROM policy_head`))
		tampered("the session is deleted", p, edit(`DELETE FROM agent_session`))
		tampered("a block is made by hand", p, edit(`INSERT INTO danger_block VALUES ('claude', 'x', 'x', 1, $1)`, []byte{1}))
		h.write(t, func(tx *store.Tx) error { return h.SetKill(tx, true, "ada", "fire") })
		tampered("the kill switch is released by hand", p, edit(`UPDATE switches SET killed = $1`, false))

		// What was deleted is not made good by the next block.
		for name, change := range map[string]func(tx *store.Tx) error{
			"a block":   func(tx *store.Tx) error { return h.SetBlock(tx, "gemini", "ada", "x") },
			"a release": func(tx *store.Tx) error { return h.Unblock(tx, "codex") },
		} {
			if err := h.back(t, func(tx *store.Tx) error {
				return errors.Join(edit(`DELETE FROM danger_block`)(tx), change(tx))
			}); !errors.Is(err, session.ErrForged) {
				t.Errorf("%s after the blocks were deleted: %v", name, err)
			}
		}
		// A deleted row of switches does not come back released with a restart.
		if err := h.back(t, func(tx *store.Tx) error {
			return errors.Join(edit(`DELETE FROM switches`)(tx), h.Prepare(tx))
		}); !errors.Is(err, session.ErrForged) {
			t.Errorf("a restart without the row of switches: %v", err)
		}
		// Throwing the kill switch again mends the row; then a person can release it.
		h.write(t, func(tx *store.Tx) error {
			return errors.Join(edit(`UPDATE switches SET version = version + 1`)(tx), h.SetKill(tx, true, "ada", "looked at it"))
		})
		h.write(t, func(tx *store.Tx) error { return h.SetKill(tx, false, "ada", "") })
		if st, err := h.standing(t, p); stops(st, err, policy) {
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

// TestNoDecisionSlipsPastASwitch is attacks 29 and 30: on two nodes, whoever
// throws a switch waits for a decision that has read it, and a decision that
// starts while the switch is being thrown waits and sees it.
func TestNoDecisionSlipsPastASwitch(t *testing.T) {
	t.Parallel()
	policy := call.Digest{1}
	throws := map[string]func(h *hall, tx *store.Tx, p call.Principal) error{
		"kill":    func(h *hall, tx *store.Tx, _ call.Principal) error { return h.SetKill(tx, true, "ada", "fire") },
		"block":   func(h *hall, tx *store.Tx, p call.Principal) error { return h.SetBlock(tx, p.Agent, "ada", "x") },
		"session": func(h *hall, tx *store.Tx, p call.Principal) error { return h.End(tx, p.Session, "ada") },
		"policy": func(h *hall, tx *store.Tx, _ call.Principal) error {
			_, err := h.SetPolicyHead(tx, scope, policy, call.Digest{2}, "ada")
			return err
		},
	}
	for name, throw := range throws {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.BothOptions(t, func(t *testing.T, opts store.Options) {
				first := storetest.Open(t, opts)
				second := first
				if opts.DSN != "" {
					second = storetest.Open(t, opts)
				}
				h := newHall(t, first)
				se, _, err := h.open(t, own(t, ""))
				if err != nil {
					t.Fatal(err)
				}
				p := call.Principal{Agent: "claude", Session: se.ID}
				h.write(t, func(tx *store.Tx) error {
					_, err := h.SetPolicyHead(tx, scope, call.Digest{}, policy, "ada")
					return err
				})

				// A decision has read the switches and has not committed yet.
				reading, release := make(chan struct{}), make(chan struct{})
				decided := make(chan error, 1)
				go func() {
					once := false
					decided <- first.Write(t.Context(), func(tx *store.Tx) error {
						st, err := h.CheckStanding(tx, p, scope)
						if stops(st, err, policy) {
							return fmt.Errorf("stopped too early: %+v, %w", st, err)
						}
						if !once {
							once = true
							close(reading)
							<-release
						}
						return nil
					})
				}()
				<-reading
				thrown := make(chan error, 1)
				go func() {
					thrown <- second.Write(t.Context(), func(tx *store.Tx) error { return throw(h, tx, p) })
				}()
				select {
				case err := <-thrown:
					t.Errorf("the switch did not wait for the decision: %v", err)
				case <-time.After(100 * time.Millisecond):
				}
				close(release)
				if err := errors.Join(<-decided, <-thrown); err != nil {
					t.Fatal(err)
				}
				if st, err := h.standing(t, p); !stops(st, err, policy) {
					t.Errorf("a decision after the switch goes on: %+v", st)
				}
			})
		})
		t.Run(name+" first", func(t *testing.T) {
			t.Parallel()
			storetest.BothOptions(t, func(t *testing.T, opts store.Options) {
				first := storetest.Open(t, opts)
				second := first
				if opts.DSN != "" {
					second = storetest.Open(t, opts)
				}
				h := newHall(t, first)
				se, _, err := h.open(t, own(t, ""))
				if err != nil {
					t.Fatal(err)
				}
				p := call.Principal{Agent: "claude", Session: se.ID}
				h.write(t, func(tx *store.Tx) error {
					_, err := h.SetPolicyHead(tx, scope, call.Digest{}, policy, "ada")
					return err
				})

				// The switch is thrown and not committed yet.
				throwing, release := make(chan struct{}), make(chan struct{})
				thrown := make(chan error, 1)
				go func() {
					once := false
					thrown <- first.Write(t.Context(), func(tx *store.Tx) error {
						err := throw(h, tx, p)
						if !once {
							once = true
							close(throwing)
							<-release
						}
						return err
					})
				}()
				<-throwing
				type answer struct {
					st  session.Standing
					err error
				}
				decided := make(chan answer, 1)
				go func() {
					var a answer
					a.err = second.Write(t.Context(), func(tx *store.Tx) (err error) {
						a.st, err = h.CheckStanding(tx, p, scope)
						return err
					})
					decided <- a
				}()
				time.Sleep(50 * time.Millisecond)
				close(release)
				if err := <-thrown; err != nil {
					t.Fatal(err)
				}
				if a := <-decided; !stops(a.st, a.err, policy) {
					t.Errorf("a decision that waited for the switch did not see it: %+v", a.st)
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
