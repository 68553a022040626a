package approval_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-3ebc6b8a/gatehouse/internal/approval"
	"github.com/seed-3ebc6b8a/gatehouse/internal/keyring"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store/storetest"
)

// TestEnrolOnce is attack 1: without a credential the first approver enrols,
// and after that nobody, however the rows are emptied.
func TestEnrolOnce(t *testing.T) {
	t.Parallel()
	storetest.BothOptions(t, func(t *testing.T, opts store.Options) {
		both := nodes(t, opts, 2)
		d := approval.New(newKeys(t))
		var enrolled atomic.Int64
		var wg sync.WaitGroup
		for n := range 6 {
			wg.Go(func() {
				err := both[n%2].Write(t.Context(), func(tx *store.Tx) error {
					_, err := d.Enrol(tx, fmt.Sprint("first", n), approval.EnrolInfo{Process: "42 bash", Ancestors: []string{"1 init"}})
					return err
				})
				if err == nil {
					enrolled.Add(1)
				} else if !errors.Is(err, approval.ErrEnrolled) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if enrolled.Load() != 1 {
			t.Fatalf("%d approvers enrolled as the first", enrolled.Load())
		}
		o := &office{Desk: d, s: both[0]}
		for _, emptied := range []string{`DELETE FROM approver`, `DELETE FROM approval_mark`, `UPDATE approver SET removed = 1`} {
			err := o.back(t, func(tx *store.Tx) error {
				if _, err := tx.Exec(emptied); err != nil {
					t.Fatal(err)
				}
				_, err := d.Enrol(tx, "me", approval.EnrolInfo{})
				return err
			})
			if !errors.Is(err, approval.ErrEnrolled) {
				t.Errorf("after %s: got %v, want %v", emptied, err, approval.ErrEnrolled)
			}
		}
		o.read(t, func(tx *store.Tx) error {
			all, err := d.Approvers(tx)
			if len(all) != 1 || !cmp.Equal(all[0].Info.Ancestors, []string{"1 init"}) {
				t.Errorf("the record does not say who enrolled: %+v", all)
			}
			yes, err2 := d.Enrolled(tx)
			if !yes {
				t.Error("nobody seems to be enrolled")
			}
			return errors.Join(err, err2)
		})
	})
}

func TestApproversAddAndRemove(t *testing.T) {
	t.Parallel()
	storetest.Both(t, func(t *testing.T, s *store.Store) {
		o := newOffice(t, s)
		var bob, cookie string
		o.write(t, func(tx *store.Tx) error {
			secret, err := o.AddApprover(tx, "ada", "bob")
			bob = secret.Reveal()
			return err
		})
		refused := func(name string, want error, fn func(tx *store.Tx) error) {
			t.Helper()
			if err := o.back(t, fn); !errors.Is(err, want) {
				t.Errorf("%s: got %v, want %v", name, err, want)
			}
		}
		refused("a name that is taken", approval.ErrExists, func(tx *store.Tx) error { _, err := o.AddApprover(tx, "ada", "bob"); return err })
		refused("by someone unknown", approval.ErrCredential, func(tx *store.Tx) error { _, err := o.AddApprover(tx, "claude", "me"); return err })
		refused("by nobody", approval.ErrCredential, func(tx *store.Tx) error { _, err := o.AddApprover(tx, "", "me"); return err })
		for _, name := range []string{"", "Bob", "b b", "bоb", "../x", strings.Repeat("a", 65)} {
			refused(name, approval.ErrInvalid, func(tx *store.Tx) error { _, err := o.AddApprover(tx, "ada", name); return err })
		}
		check := func(secret string) error {
			return o.back(t, func(tx *store.Tx) error { _, err := o.CheckCredential(tx, secret); return err })
		}
		if err := check(bob); err != nil {
			t.Fatal(err)
		}
		a := yes(o.file(t, ask("s1", 1), plenty))
		a.Approver = "bob"
		filed := o.file(t, ask("s1", 1), plenty)
		_, g, err := o.answer(t, filed, a, plenty)
		if err != nil {
			t.Fatal(err)
		}
		o.write(t, func(tx *store.Tx) error {
			c, _, err := o.SignIn(tx, "bob", "x")
			cookie = c.Reveal()
			return err
		})
		o.write(t, func(tx *store.Tx) error { return o.RemoveApprover(tx, "ada", "bob") })
		if err := check(bob); !errors.Is(err, approval.ErrCredential) {
			t.Errorf("a removed approver's credential: %v", err)
		}
		refused("a removed approver's cookie", approval.ErrCredential, func(tx *store.Tx) error { _, _, err := o.CheckCookie(tx, cookie); return err })
		refused("a removed approver's grant", approval.ErrSpent, func(tx *store.Tx) error { _, err := o.Consume(tx, g.ID); return err })
		refused("a removed approver adds", approval.ErrCredential, func(tx *store.Tx) error { _, err := o.AddApprover(tx, "bob", "eve"); return err })
		refused("a removed approver's name", approval.ErrExists, func(tx *store.Tx) error { _, err := o.AddApprover(tx, "ada", "bob"); return err })
		refused("the last approver leaves", approval.ErrLast, func(tx *store.Tx) error { return o.RemoveApprover(tx, "ada", "ada") })
		old := o.ada
		o.write(t, func(tx *store.Tx) error {
			secret, err := o.NewCredential(tx, "ada", "ada")
			o.ada = secret.Reveal()
			return err
		})
		if err := check(old); !errors.Is(err, approval.ErrCredential) {
			t.Errorf("the replaced credential: %v", err)
		}
		if err := check(o.ada); err != nil {
			t.Errorf("the new credential: %v", err)
		}
	})
}

// TestTwoApproversRemoveEachOther: one of them stays.
func TestTwoApproversRemoveEachOther(t *testing.T) {
	t.Parallel()
	storetest.BothOptions(t, func(t *testing.T, opts store.Options) {
		both := nodes(t, opts, 2)
		o := newOffice(t, both[0])
		o.write(t, func(tx *store.Tx) error { _, err := o.AddApprover(tx, "ada", "bob"); return err })
		var removed atomic.Int64
		var wg sync.WaitGroup
		for i, pair := range [][2]string{{"ada", "bob"}, {"bob", "ada"}} {
			wg.Go(func() {
				if both[i].Write(t.Context(), func(tx *store.Tx) error { return o.RemoveApprover(tx, pair[0], pair[1]) }) == nil {
					removed.Add(1)
				}
			})
		}
		wg.Wait()
		if removed.Load() != 1 {
			t.Errorf("%d removals succeeded, want 1", removed.Load())
		}
	})
}

// TestAgentsTokenIsNoCredential is I9: no secret of another kind approves.
func TestAgentsTokenIsNoCredential(t *testing.T) {
	t.Parallel()
	o := newOffice(t, storetest.Open(t, storetest.SQLite(t)))
	token, hash, err := keyring.Mint(keyring.AgentToken, o.keys.Random())
	if err != nil {
		t.Fatal(err)
	}
	// Even a token whose hash was put among the approvers' is refused by kind.
	err = o.back(t, func(tx *store.Tx) error {
		if _, err := tx.Exec(`UPDATE approver SET hash = $1`, hash[:]); err != nil {
			t.Fatal(err)
		}
		_, err := o.CheckCredential(tx, token.Reveal())
		return err
	})
	if !errors.Is(err, approval.ErrAgentToken) {
		t.Errorf("got %v, want %v", err, approval.ErrAgentToken)
	}
	for _, wrong := range []string{"", "gha_", o.ada + "a", o.ada[:len(o.ada)-1], strings.Replace(o.ada, "gha_", "ghc_", 1), "ada"} {
		err := o.back(t, func(tx *store.Tx) error { _, err := o.CheckCredential(tx, wrong); return err })
		if !errors.Is(err, approval.ErrCredential) {
			t.Errorf("%q: got %v", wrong, err)
		}
	}
	o.read(t, func(tx *store.Tx) error {
		a, err := o.CheckCredential(tx, o.ada)
		if err == nil && a.Name != "ada" {
			t.Errorf("the credential is %s's", a.Name)
		}
		return err
	})
}

// TestWrongSecretsAreSlowedRightOnesAreNot: a flood of guesses is refused as
// such, and does not lock people out.
func TestWrongSecretsAreSlowedRightOnesAreNot(t *testing.T) {
	t.Parallel()
	o := newOffice(t, storetest.Open(t, storetest.SQLite(t)))
	throttled := 0
	for range 100 {
		err := o.back(t, func(tx *store.Tx) error { _, err := o.CheckCredential(tx, "gha_guess"); return err })
		if errors.Is(err, approval.ErrThrottled) {
			throttled++
		}
	}
	if throttled < 60 {
		t.Errorf("%d of 100 guesses were throttled", throttled)
	}
	o.read(t, func(tx *store.Tx) error { _, err := o.CheckCredential(tx, o.ada); return err })
}

func TestSignInLinks(t *testing.T) {
	t.Parallel()
	o, clock := timed(t)
	link := func() string {
		var l string
		o.write(t, func(tx *store.Tx) error { s, err := o.NewLink(tx, "ada"); l = s.Reveal(); return err })
		return l
	}
	redeem := func(token string) (cookie string, err error) {
		err = o.s.Write(t.Context(), func(tx *store.Tx) error {
			s, _, err := o.RedeemLink(tx, token, "Firefox")
			cookie = s.Reveal()
			return err
		})
		return cookie, err
	}
	good := link()
	cookie, err := redeem(good)
	if err != nil {
		t.Fatal(err)
	}
	o.read(t, func(tx *store.Tx) error {
		c, a, err := o.CheckCookie(tx, cookie)
		if err == nil && (a.Name != "ada" || c.Label != "Firefox") {
			t.Errorf("the cookie signs in %s on %s", a.Name, c.Label)
		}
		return err
	})
	late := link()
	clock.pass(approval.LinkLife)
	for name, token := range map[string]string{"replayed": good, "late": late, "wrong": "ghl_x", "a credential": o.ada, "a cookie": cookie, "empty": ""} {
		if _, err := redeem(token); !errors.Is(err, approval.ErrCredential) {
			t.Errorf("%s link: got %v, want %v", name, err, approval.ErrCredential)
		}
	}
	if err := o.back(t, func(tx *store.Tx) error { _, err := o.NewLink(tx, "eve"); return err }); !errors.Is(err, approval.ErrCredential) {
		t.Errorf("a link for a stranger: %v", err)
	}
}

// TestLinkIsRedeemedOnce: of browsers that open a link at once, on two nodes,
// one is signed in.
func TestLinkIsRedeemedOnce(t *testing.T) {
	t.Parallel()
	storetest.BothOptions(t, func(t *testing.T, opts store.Options) {
		both := nodes(t, opts, 2)
		o := newOffice(t, both[0])
		var token string
		o.write(t, func(tx *store.Tx) error { s, err := o.NewLink(tx, "ada"); token = s.Reveal(); return err })
		var in atomic.Int64
		var wg sync.WaitGroup
		for n := range 8 {
			wg.Go(func() {
				err := both[n%2].Write(t.Context(), func(tx *store.Tx) error { _, _, err := o.RedeemLink(tx, token, "x"); return err })
				if err == nil {
					in.Add(1)
				} else if !errors.Is(err, approval.ErrCredential) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if in.Load() != 1 {
			t.Errorf("one link signed in %d times", in.Load())
		}
	})
}

func TestConsoleSessions(t *testing.T) {
	t.Parallel()
	o, clock := timed(t)
	signIn := func() (string, *approval.Console) {
		var cookie string
		var console *approval.Console
		o.write(t, func(tx *store.Tx) error {
			s, c, err := o.SignIn(tx, "ada", "x")
			cookie, console = s.Reveal(), c
			return err
		})
		return cookie, console
	}
	check := func(cookie string) (touch bool, err error) {
		err = o.back(t, func(tx *store.Tx) error {
			c, _, err := o.CheckCookie(tx, cookie)
			touch = err == nil && c.Touch
			return err
		})
		return touch, err
	}
	over := func(name, cookie string) {
		t.Helper()
		if _, err := check(cookie); !errors.Is(err, approval.ErrCredential) {
			t.Errorf("%s: got %v, want %v", name, err, approval.ErrCredential)
		}
	}
	out, console := signIn()
	o.write(t, func(tx *store.Tx) error { return o.SignOut(tx, console.ID) })
	over("signed out", out)
	o.write(t, func(tx *store.Tx) error { return o.Touch(tx, console.ID) })
	over("signed out, then touched", out)

	idle, _ := signIn()
	used, console := signIn()
	if touch, err := check(used); touch || err != nil {
		t.Errorf("a fresh cookie: touch %v, %v", touch, err)
	}
	clock.pass(time.Minute)
	o.write(t, func(tx *store.Tx) error { return o.Touch(tx, console.ID) })
	for range 14 * 2 { // seven days in half days, twice over
		clock.pass(approval.ConsoleIdle - time.Minute)
		if touch, err := check(used); err == nil && touch {
			o.write(t, func(tx *store.Tx) error { return o.Touch(tx, console.ID) })
		}
		over("left alone", idle)
		if touched := clock.Now().Sub(console.Opened) < approval.ConsoleLife; touched {
			if _, err := check(used); err != nil {
				t.Fatalf("in use for %v: %v", clock.Now().Sub(console.Opened), err)
			}
		}
	}
	over("used for more than a week", used)
	over("forged", "ghc_"+strings.Repeat("a", 52))
	o.read(t, func(tx *store.Tx) error {
		open, err := o.Consoles(tx, "")
		if len(open) != 0 {
			t.Errorf("%d consoles are open", len(open))
		}
		return err
	})
}

// TestNameFrom: whatever the user who starts the gate is called, the link on
// their terminal enrols them.
func TestNameFrom(t *testing.T) {
	t.Parallel()
	for user, want := range map[string]string{
		"ann": "ann", "Ann.Smith": "ann.smith", `CORP\Ann`: "corp-ann", "ann@corp.example": "ann@corp.example", "_www": "www", "": "me", "...": "me",
		"žofie": "ofie", strings.Repeat("a", 70): strings.Repeat("a", 64),
	} {
		if got := approval.NameFrom(user, "me"); got != want {
			t.Errorf("%q becomes %q, want %q", user, got, want)
		}
	}
}
