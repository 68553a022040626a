package approval_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/seed-3ebc6b8a/gatehouse/internal/approval"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/grant"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store/storetest"
)

// answerTest is an answer to a request and what becomes of both.
type answerTest struct {
	name   string
	req    func(*approval.Request)
	answer func(*approval.Answer)
	limits approval.Limits
	want   approval.State
	err    error
	use    grant.Use
	life   time.Duration
}

var answerTests = []answerTest{
	{name: "approve once", want: approval.Approved, life: 2 * time.Minute},
	{name: "approve for the session", answer: func(a *approval.Answer) { a.Use, a.Offer = grant.Session, 1 }, want: approval.Approved, use: grant.Session, life: 8 * time.Hour},
	{name: "deny", answer: func(a *approval.Answer) { a.Verdict, a.Text = approval.Deny, "no" }, want: approval.Denied},
	{name: "respond", answer: func(a *approval.Answer) { a.Verdict, a.Text = approval.Respond, "use git mv" }, want: approval.Responded},
	{name: "respond without words", answer: func(a *approval.Answer) { a.Verdict = approval.Respond }, err: approval.ErrInvalid},
	{name: "edit", answer: func(a *approval.Answer) { a.Verdict, a.EditedArgs = approval.Edit, []byte(`{"path":"g"}`) }, want: approval.Edited},
	{name: "edit to nonsense", answer: func(a *approval.Answer) { a.Verdict, a.EditedArgs = approval.Edit, []byte(`{"a":1,"a":2}`) }, err: approval.ErrInvalid},
	{name: "no verdict", answer: func(a *approval.Answer) { a.Verdict = "" }, err: approval.ErrInvalid},
	{name: "another call was shown", answer: func(a *approval.Answer) { a.Shown[0]++ }, err: approval.ErrStale},
	{name: "nothing was shown", answer: func(a *approval.Answer) { a.Shown = call.Digest{} }, err: approval.ErrStale},
	{name: "too soon", limits: approval.Limits{ShownAtLeast: time.Hour}, err: approval.ErrTooSoon},
	{name: "page rendered in the future", answer: func(a *approval.Answer) { a.ShownSince = time.Now().Add(time.Hour) }, err: approval.ErrTooSoon},
	{name: "page rendered before it was filed", answer: func(a *approval.Answer) { a.ShownSince = time.Unix(0, 0) }, limits: approval.Limits{ShownAtLeast: time.Hour}, err: approval.ErrTooSoon},
	{name: "denying needs no second look", answer: func(a *approval.Answer) { a.Verdict = approval.Deny }, limits: approval.Limits{ShownAtLeast: time.Hour}, want: approval.Denied},
	{name: "unknown approver", answer: func(a *approval.Answer) { a.Approver = "claude" }, err: approval.ErrCredential},
	{name: "no approver", answer: func(a *approval.Answer) { a.Approver = "" }, err: approval.ErrCredential},
	{name: "offer that is not there", answer: func(a *approval.Answer) { a.Offer = 2 }, err: approval.ErrOffer},
	{name: "offer below the first", answer: func(a *approval.Answer) { a.Offer = -1 }, err: approval.ErrOffer},
	{name: "once, but the offer is the session's", answer: func(a *approval.Answer) { a.Offer = 1 }, err: approval.ErrOffer},
	{name: "session without an offer", answer: func(a *approval.Answer) { a.Use = grant.Session }, err: approval.ErrOffer},
	{name: "session for a single-use call", req: func(r *approval.Request) { r.Level = call.ConfirmSingleUse }, answer: func(a *approval.Answer) { a.Use, a.Offer = grant.Session, 1 }, err: approval.ErrOffer},
	{name: "session for code", req: func(r *approval.Request) { r.TakesCode = true }, answer: func(a *approval.Answer) { a.Use, a.Offer = grant.Session, 1 }, err: approval.ErrOffer},
	{name: "pinned without a factor", req: func(r *approval.Request) { r.Pinned = true }, err: approval.ErrFactor},
	{name: "words with a NUL", answer: func(a *approval.Answer) { a.Verdict, a.Text = approval.Deny, "a\x00" }, err: approval.ErrInvalid},
	{name: "endless words", answer: func(a *approval.Answer) { a.Verdict, a.Text = approval.Deny, strings.Repeat("x", 1<<20) }, err: approval.ErrInvalid},
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	storetest.Both(t, func(t *testing.T, s *store.Store) {
		o := newOffice(t, s)
		for i, test := range answerTests {
			r := ask(fmt.Sprint("s", i), i)
			if test.req != nil {
				test.req(&r)
			}
			limits := test.limits
			limits.PendingPerAgent = 100
			if limits.ShownAtLeast == 0 {
				limits.ShownAtLeast = time.Nanosecond
			}
			filed := o.file(t, r, limits)
			a := yes(filed)
			if test.answer != nil {
				test.answer(&a)
			}
			_, g, err := o.answer(t, filed, a, limits)
			if !errors.Is(err, test.err) || (test.err == nil && err != nil) {
				t.Errorf("%s: got %v, want %v", test.name, err, test.err)
				continue
			}
			want := test.want
			if want == "" {
				want = approval.Pending // what was refused changed nothing
			}
			got := o.get(t, filed.ID)
			if got.State != want {
				t.Errorf("%s: the request is %s, want %s", test.name, got.State, want)
			}
			if (g != nil) != (want == approval.Approved) && test.err == nil {
				t.Errorf("%s: got the grant %+v", test.name, g)
			}
			if g == nil || test.err != nil {
				continue
			}
			if life := g.Expires.Sub(g.Given); life != test.life || g.Use != test.use {
				t.Errorf("%s: the grant lives %v as %v, want %v as %v", test.name, life, g.Use, test.life, test.use)
			}
			o.checkGrant(t, filed, g)
		}
	})
}

func (o *office) get(t testing.TB, id string) (r *approval.Request) {
	t.Helper()
	o.read(t, func(tx *store.Tx) (err error) {
		r, err = o.Get(tx, id)
		return err
	})
	return r
}

// checkGrant reads the grant back and holds it against the request.
func (o *office) checkGrant(t *testing.T, r *approval.Request, g *grant.Grant) {
	t.Helper()
	o.read(t, func(tx *store.Tx) error {
		grants, err := o.Grants(tx, r.Principal)
		if diff := cmp.Diff([]grant.Grant{*g}, grants, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("the stored grant differs (-given +stored):\n%s", diff)
		}
		return err
	})
	bound := g.Digest == r.Digest && g.World == r.World && g.Policy == r.Policy
	if bound != (g.Use == grant.Once) || g.Request != r.ID || g.By != "ada" || g.Channel != "console" {
		t.Errorf("the grant does not fit its request: %+v", g)
	}
	if diff := cmp.Diff(r.Votes, g.Votes); diff != "" {
		t.Errorf("the grant covers other votes than were shown:\n%s", diff)
	}
}

// TestEditMakesANewRequest is attack 18: what an edit brings is asked anew.
func TestEditMakesANewRequest(t *testing.T) {
	t.Parallel()
	storetest.Both(t, func(t *testing.T, s *store.Store) {
		o := newOffice(t, s)
		filed := o.file(t, ask("s1", 1), atOnce)
		a := yes(filed)
		a.Verdict, a.EditedArgs = approval.Edit, []byte(`{"text":"x", "path":"g"}`)
		edited, g, err := o.answer(t, filed, a, atOnce)
		if err != nil || g != nil {
			t.Fatalf("got %v and the grant %v", err, g)
		}
		args, err := o.EditedArgs(edited)
		if diff := cmp.Diff(`{"path":"g","text":"x"}`, string(args)); diff != "" || err != nil {
			t.Errorf("edited arguments: %v\n%s", err, diff)
		}
		foreign := ask("s2", 2)
		foreign.EditOf = filed.ID
		if err := o.back(t, func(tx *store.Tx) error { _, _, err := o.File(tx, foreign, atOnce); return err }); !errors.Is(err, approval.ErrInvalid) {
			t.Errorf("another session took the edit over: %v", err)
		}
		next := ask("s1", 2)
		next.EditOf = filed.ID
		// An edit is a person's doing: it passes where the agent's asks are used up.
		filedNext := o.file(t, next, approval.Limits{AsksPerHour: 1, PendingPerAgent: 1, ShownAtLeast: 1})
		got := o.get(t, filed.ID)
		if got.EditedTo != filedNext.ID || filedNext.State != approval.Pending || filedNext.EditOf != filed.ID {
			t.Errorf("the requests are not tied: %+v, %+v", got, filedNext)
		}
		if _, err := o.EditedArgs(got); !errors.Is(err, approval.ErrNotFound) {
			t.Errorf("edited arguments are kept after the call was filed: %v", err)
		}
		second := ask("s1", 3)
		second.EditOf = filed.ID
		if err := o.back(t, func(tx *store.Tx) error { _, _, err := o.File(tx, second, atOnce); return err }); !errors.Is(err, approval.ErrInvalid) {
			t.Errorf("one edit made two calls: %v", err)
		}
		if _, _, err := o.answer(t, filedNext, yes(filedNext), atOnce); err != nil {
			t.Fatal(err)
		}
		if view, err := o.View(o.get(t, filedNext.ID)); err != nil || !bytes.Equal(view, next.View) {
			t.Errorf("the agent cannot fetch the approved edit: %q, %v", view, err)
		}
	})
}

// TestApprovedEditIsForgotten: the agent has a quarter of an hour to fetch what
// a person made of its call, and then it is gone.
func TestApprovedEditIsForgotten(t *testing.T) {
	t.Parallel()
	o, clock := timed(t)
	filed := o.file(t, ask("s1", 1), plenty)
	a := yes(filed)
	a.Verdict, a.EditedArgs = approval.Edit, []byte(`{"path":"g"}`)
	if _, _, err := o.answer(t, filed, a, plenty); err != nil {
		t.Fatal(err)
	}
	next := ask("s1", 2)
	next.EditOf = filed.ID
	edited := o.file(t, next, plenty)
	clock.pass(time.Second)
	if _, _, err := o.answer(t, edited, yes(edited), plenty); err != nil {
		t.Fatal(err)
	}
	for _, kept := range []bool{true, false} {
		var due bool
		o.write(t, func(tx *store.Tx) (err error) {
			if due, err = o.Due(tx); err != nil {
				return err
			}
			_, err = o.Expire(tx)
			return err
		})
		_, err := o.View(o.get(t, edited.ID))
		if (err == nil) != kept || due == kept {
			t.Errorf("kept %v, want %v; due %v", err == nil, kept, due)
		}
		clock.pass(15 * time.Minute)
	}
}
