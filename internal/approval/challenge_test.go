package approval_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/approval"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store/storetest"
)

// issue makes a challenge for a subject of an agent's.
func (o *office) issue(t testing.TB, agent, subject string) *approval.Challenge {
	t.Helper()
	var got *approval.Challenge
	o.write(t, func(tx *store.Tx) (err error) {
		got, _, err = o.Issue(tx, approval.Challenge{Kind: approval.ForPause, Subject: subject,
			Principal: call.Principal{Agent: agent, Session: "s1"}, Words: "let it go on"})
		return err
	})
	return got
}

// show tells ada the code.
func (o *office) show(t testing.TB, c *approval.Challenge) string {
	t.Helper()
	o.write(t, func(tx *store.Tx) error {
		_, err := o.ShownTo(tx, c.ID, "ada", "console")
		return err
	})
	return o.Code(c)
}

// hand hands in a code; a right one moves the challenge.
func (o *office) hand(t testing.TB, agent, id, code string) error {
	t.Helper()
	_, err := o.Try(t.Context(), o.s, agent, id, code, func(*store.Tx, *approval.Challenge) (approval.ChallengeState, error) {
		return approval.Moved, nil
	})
	return err
}

func (o *office) state(t testing.TB, id string) (c *approval.Challenge) {
	t.Helper()
	o.read(t, func(tx *store.Tx) (err error) {
		c, err = o.Challenge(tx, id)
		return err
	})
	return c
}

// wrongCode is a code of the right form that is not the given one.
func wrongCode(code string, n int) string {
	for {
		var b strings.Builder
		for i := range approval.CodeLength {
			b.WriteByte(approval.CodeAlphabet[(n>>(4*i)&15)+i])
		}
		if b.String() != code {
			return b.String()
		}
		n++
	}
}

func TestChallenge(t *testing.T) {
	t.Parallel()
	storetest.Both(t, func(t *testing.T, s *store.Store) {
		o := newOffice(t, s)
		c := o.issue(t, "claude", "x_1")
		if again := o.issue(t, "claude", "x_1"); again.ID != c.ID {
			t.Errorf("a second challenge for one subject: %s, %s", c.ID, again.ID)
		}
		if err := o.hand(t, "claude", c.ID, o.Code(c)); !errors.Is(err, approval.ErrCode) {
			t.Errorf("a code that nobody was shown: %v", err)
		}
		code := o.show(t, c)
		if err := o.hand(t, "mallory", c.ID, code); !errors.Is(err, approval.ErrNotFound) {
			t.Errorf("another agent's code: %v", err)
		}
		second := o.issue(t, "claude", "x_2")
		o.show(t, second)
		if err := o.hand(t, "claude", second.ID, code); !errors.Is(err, approval.ErrCode) {
			t.Errorf("a code moves another challenge: %v", err)
		}
		spaced := strings.ToLower(code[:3] + "-" + code[3:])
		if err := o.hand(t, "claude", c.ID, spaced); err != nil {
			t.Errorf("the right code, as people write it: %v", err)
		}
		got := o.state(t, c.ID)
		if got.State != approval.Moved || got.EndedBy != "ada" || got.Channel != "console" {
			t.Errorf("the challenge is %s by %s on %s", got.State, got.EndedBy, got.Channel)
		}
		if err := o.hand(t, "claude", c.ID, code); !errors.Is(err, approval.ErrStale) {
			t.Errorf("a code works twice: %v", err)
		}
	})
}

// TestChallengeTries: guessing ends per challenge, per agent and in all, and a
// new desk on the same store and keys, which is what a restart makes, goes on
// counting.
func TestChallengeTries(t *testing.T) {
	t.Parallel()
	storetest.Both(t, func(t *testing.T, s *store.Store) {
		o := newOffice(t, s)
		guess := func(agent string, n int) (c *approval.Challenge, last error) {
			c = o.issue(t, agent, fmt.Sprintf("x_%s_%d", agent, n))
			code := o.show(t, c)
			for i := range 6 {
				last = o.hand(t, agent, c.ID, wrongCode(code, i))
				o.Desk = approval.New(o.keys) // a restart
			}
			return c, last
		}
		c, last := guess("a", 1)
		if got := o.state(t, c.ID); got.State != approval.Void || got.Tries != 5 || !errors.Is(last, approval.ErrStale) {
			t.Errorf("after six guesses the challenge is %s after %d tries: %v", got.State, got.Tries, last)
		}
		c, last = guess("a", 2)
		if got := o.state(t, c.ID); got.State != approval.Void || !errors.Is(last, approval.ErrTries) {
			t.Errorf("the agent's tries are not used up: %s, %v", got.State, last)
		}
		c = o.issue(t, "a", "x_a_3")
		if err := o.hand(t, "a", c.ID, o.show(t, c)); !errors.Is(err, approval.ErrTries) {
			t.Errorf("an agent that guessed too often hands in a right code: %v", err)
		}
		for i, agent := range []string{"b", "c", "d"} {
			if _, last = guess(agent, 1); i < 2 && errors.Is(last, approval.ErrTries) {
				t.Errorf("agent %s is held up by others too early", agent)
			}
			guess(agent, 2)
		}
		c = o.issue(t, "e", "x_e")
		if err := o.hand(t, "e", c.ID, o.show(t, c)); !errors.Is(err, approval.ErrTries) {
			t.Errorf("forty wrong codes in all: %v", err)
		}
		// The approver's own channel is not held up by what agents guess.
		if err := o.hand(t, "", c.ID, o.Code(c)); err != nil {
			t.Errorf("the approver's own: %v", err)
		}
	})
}

func TestChallengeTime(t *testing.T) {
	t.Parallel()
	o, clock := timed(t)
	c := o.issue(t, "claude", "x_1")
	code := o.show(t, c)
	for i := range 5 {
		_ = o.hand(t, "claude", c.ID, wrongCode(code, i)) // wrong on purpose
	}
	c = o.issue(t, "claude", "x_1")
	code = o.show(t, c)
	clock.pass(5*time.Minute - time.Second)
	if got := o.state(t, c.ID); got.State != approval.Open {
		t.Errorf("a second before its end it is %s", got.State)
	}
	clock.pass(time.Second)
	if err := o.hand(t, "claude", c.ID, code); !errors.Is(err, approval.ErrStale) {
		t.Errorf("after five minutes: %v", err)
	}
	for i := range 5 {
		c = o.issue(t, "claude", fmt.Sprintf("x_%d", 2+i))
	}
	_, last := c, o.back(t, func(tx *store.Tx) error {
		_, _, err := o.Issue(tx, approval.Challenge{Kind: approval.ForPause, Subject: "x_9", Principal: call.Principal{Agent: "claude", Session: "s1"}, Words: "w"})
		return err
	})
	if !errors.Is(last, approval.ErrTooMany) {
		t.Errorf("a sixth that waits: %v", last)
	}
	clock.pass(time.Hour)
	c = o.issue(t, "claude", "x_10")
	if err := o.hand(t, "claude", c.ID, o.show(t, c)); err != nil {
		t.Errorf("an hour later tries count no more: %v", err)
	}
}

// TestChallengeForged: a row that was edited is good for nothing.
func TestChallengeForged(t *testing.T) {
	t.Parallel()
	storetest.Both(t, func(t *testing.T, s *store.Store) {
		o := newOffice(t, s)
		c := o.issue(t, "claude", "x_1")
		code := o.show(t, c)
		for _, edit := range []string{
			`UPDATE challenge SET subject = 'x_2'`, `UPDATE challenge SET expires = expires + 1`,
			`UPDATE challenge SET tries = 0, state = 'given'`, `UPDATE challenge SET agent = 'mallory'`,
			`UPDATE challenge SET hash = (SELECT mac FROM challenge)`, `UPDATE challenge SET shown = '[{"by":"ada","channel":"api","at":"2026-01-01T00:00:00Z"}]'`,
		} {
			err := o.back(t, func(tx *store.Tx) error {
				if _, err := tx.Exec(edit); err != nil {
					return err
				}
				_, err := o.Challenge(tx, c.ID)
				return err
			})
			if !errors.Is(err, approval.ErrForged) {
				t.Errorf("%s: %v", edit, err)
			}
		}
		var row string
		o.read(t, func(tx *store.Tx) error {
			var hash, detail []byte
			err := tx.QueryRow(`SELECT words, hash, detail FROM challenge WHERE id = $1`, c.ID).Scan(&row, &hash, &detail)
			row += string(hash) + string(detail)
			return err
		})
		if strings.Contains(row, code) {
			t.Error("the code is in the database")
		}
	})
}

// TestCodes: six characters of the alphabet, every one of them as likely as
// any other at every place.
func TestCodes(t *testing.T) {
	t.Parallel()
	o := newOffice(t, storetest.Open(t, store.Options{Dir: t.TempDir()}))
	for _, r := range "01IOL" {
		if strings.ContainsRune(approval.CodeAlphabet, r) {
			t.Errorf("%q can be taken for another character", r)
		}
	}
	const n = 62_000
	var counts [approval.CodeLength][256]int
	for i := range n {
		code := o.Code(&approval.Challenge{ID: fmt.Sprintf("ch_%d", i)})
		if len(code) != approval.CodeLength {
			t.Fatalf("%q has not six characters", code)
		}
		for at := range code {
			counts[at][code[at]]++
		}
	}
	for at := range counts {
		want, chi, seen := float64(n)/float64(len(approval.CodeAlphabet)), 0.0, 0
		for c, got := range counts[at] {
			if strings.IndexByte(approval.CodeAlphabet, byte(c)) < 0 {
				if got > 0 {
					t.Errorf("%q is not in the alphabet", byte(c))
				}
				continue
			}
			seen++
			chi += math.Pow(float64(got)-want, 2) / want
		}
		// 30 degrees of freedom: a fair draw exceeds 70 once in 20,000.
		if chi > 70 {
			t.Errorf("place %d: chi-squared is %.1f", at, chi)
		}
	}
}

func TestApproveByCode(t *testing.T) {
	t.Parallel()
	storetest.Both(t, func(t *testing.T, s *store.Store) {
		o := newOffice(t, s)
		for name, test := range map[string]struct {
			change func(*approval.Request)
			want   error
		}{
			"a call":        {func(*approval.Request) {}, nil},
			"a pinned call": {func(r *approval.Request) { r.Pinned = true }, approval.ErrFactor},
		} {
			r := ask("s1", len(name))
			test.change(&r)
			filed := o.file(t, r, atOnce)
			var c *approval.Challenge
			o.write(t, func(tx *store.Tx) (err error) {
				c, _, err = o.Issue(tx, approval.Challenge{Kind: approval.ForRequest, Subject: filed.ID, Principal: filed.Principal, Words: "w"})
				return err
			})
			code := o.show(t, c)
			_, err := o.Try(t.Context(), o.s, "claude", c.ID, code, func(tx *store.Tx, c *approval.Challenge) (approval.ChallengeState, error) {
				_, err := o.ApproveByCode(tx, c, approval.Limits{})
				return approval.Moved, err
			})
			if !errors.Is(err, test.want) {
				t.Errorf("%s: %v, want %v", name, err, test.want)
			}
			o.read(t, func(tx *store.Tx) error {
				got, err := o.Get(tx, filed.ID)
				grants, gerr := o.Grants(tx, filed.Principal)
				if approved := got.State == approval.Approved; approved != (test.want == nil) {
					t.Errorf("%s is %s", name, got.State)
				}
				for _, g := range grants {
					if g.Request != filed.ID && g.Request != "" && test.want != nil {
						continue
					}
					if g.By != "ada" || g.Factor {
						t.Errorf("%s: granted by %s, factor %v", name, g.By, g.Factor)
					}
				}
				return errors.Join(err, gerr)
			})
		}
	})
}
