package approval_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/seed-3ebc6b8a/gatehouse/internal/approval"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/grant"
	"github.com/seed-3ebc6b8a/gatehouse/internal/keyring"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store/storetest"
)

func TestIdenticalAsksJoin(t *testing.T) {
	t.Parallel()
	storetest.Both(t, func(t *testing.T, s *store.Store) {
		o := newOffice(t, s)
		first := o.file(t, ask("s1", 1), atOnce)
		if again := o.file(t, ask("s1", 1), atOnce); again.ID != first.ID {
			t.Errorf("the identical ask got a request of its own: %s and %s", first.ID, again.ID)
		}
		for name, change := range map[string]func(*approval.Request){
			"world":   func(r *approval.Request) { r.World[3]++ },
			"policy":  func(r *approval.Request) { r.Policy[3]++ },
			"digest":  func(r *approval.Request) { r.Digest[3]++ },
			"session": func(r *approval.Request) { r.Principal.Session = "s2" },
			"path":    func(r *approval.Request) { r.Principal.Path = "sub" },
			"agent":   func(r *approval.Request) { r.Principal.Agent = "codex" },
		} {
			r := ask("s1", 1)
			change(&r)
			if other := o.file(t, r, atOnce); other.ID == first.ID {
				t.Errorf("an ask with another %s joined", name)
			}
		}
		if _, _, err := o.answer(t, first, yes(first), atOnce); err != nil {
			t.Fatal(err)
		}
		if later := o.file(t, ask("s1", 1), atOnce); later.ID == first.ID {
			t.Error("an ask joined a request that has been answered")
		}
	})
}

// TestAttentionIsBounded is I14 and attack 7: the ceilings hold, and a new
// session does not lift the agent's.
func TestAttentionIsBounded(t *testing.T) {
	t.Parallel()
	storetest.Both(t, func(t *testing.T, s *store.Store) {
		o := newOffice(t, s)
		refused := func(r approval.Request, limits approval.Limits) bool {
			err := o.s.Write(t.Context(), func(tx *store.Tx) error {
				_, _, err := o.File(tx, r, limits)
				return err
			})
			if err != nil && !errors.Is(err, approval.ErrTooMany) {
				t.Fatal(err)
			}
			return err != nil
		}
		filed := 0
		for session := range 5 {
			for i := range 6 {
				got := refused(ask(fmt.Sprint("s", session), 10*session+i), approval.Limits{})
				if want := i >= 5 || filed >= 20; got != want {
					t.Fatalf("ask %d of session %d, with %d waiting: refused %v, want %v", i, session, filed, got, want)
				}
				if !got {
					filed++
				}
			}
		}
		other := ask("s9", 1)
		other.Principal.Agent = "codex"
		if refused(other, approval.Limits{}) {
			t.Error("one agent's flood refuses another's ask")
		}
		perHour := approval.Limits{AsksPerHour: filed + 2, PendingPerAgent: 100, PendingPerSession: 100}
		for i := range 4 {
			r := ask(fmt.Sprint("fresh", i), 100+i)
			if got := refused(r, perHour); got != (i >= 2) {
				t.Fatalf("ask %d of the hour: refused %v", i, got)
			}
		}
		if joined := refused(ask("fresh0", 100), perHour); joined {
			t.Error("repeating what waits already was refused")
		}
	})
}

// TestCeilingsHoldAcrossNodes: two nodes that file at the same moment do not
// get past the ceiling together.
func TestCeilingsHoldAcrossNodes(t *testing.T) {
	t.Parallel()
	storetest.BothOptions(t, func(t *testing.T, opts store.Options) {
		both := nodes(t, opts, 2)
		o := newOffice(t, both[0])
		var wg sync.WaitGroup
		for n := range 16 {
			wg.Go(func() {
				err := both[n%2].Write(t.Context(), func(tx *store.Tx) error {
					_, _, err := o.File(tx, ask("s1", n), atOnce)
					return err
				})
				if err != nil && !errors.Is(err, approval.ErrTooMany) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		o.read(t, func(tx *store.Tx) error {
			waiting, err := o.Pending(tx, approval.Filter{})
			if len(waiting) != 5 {
				t.Errorf("%d requests wait, want 5", len(waiting))
			}
			return err
		})
	})
}

func TestFileRefusesWhatNobodyCanAnswer(t *testing.T) {
	t.Parallel()
	o := newOffice(t, storetest.Open(t, storetest.SQLite(t)))
	for name, spoil := range map[string]func(*approval.Request){
		"no agent":       func(r *approval.Request) { r.Principal.Agent = "" },
		"no operation":   func(r *approval.Request) { r.Operation = "" },
		"no digest":      func(r *approval.Request) { r.Digest = call.Digest{} },
		"denied":         func(r *approval.Request) { r.Level = call.Deny },
		"auto-approved":  func(r *approval.Request) { r.Level = call.AutoApprove },
		"no votes":       func(r *approval.Request) { r.Votes = nil },
		"no offers":      func(r *approval.Request) { r.Offers = nil },
		"widest first":   func(r *approval.Request) { r.Offers = r.Offers[1:] },
		"too large":      func(r *approval.Request) { r.View = make([]byte, approval.MaxView+1) },
		"not edited yet": func(r *approval.Request) { r.EditOf = "r_none" },
	} {
		r := ask("s1", 1)
		spoil(&r)
		err := o.back(t, func(tx *store.Tx) error {
			_, _, err := o.File(tx, r, atOnce)
			return err
		})
		if !errors.Is(err, approval.ErrInvalid) && !errors.Is(err, approval.ErrNotFound) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	r := ask("s1", 1)
	r.AnsweredBy, r.Words, r.State, r.EditedTo = "ada", "go on", approval.Approved, "r_x"
	got := o.file(t, r, atOnce)
	if got.State != approval.Pending || got.AnsweredBy != "" || got.Words != "" || got.EditedTo != "" {
		t.Errorf("a request was filed as answered: %+v", got)
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	storetest.Both(t, func(t *testing.T, s *store.Store) {
		o := newOffice(t, s)
		tests := []struct {
			name   string
			req    func(*approval.Request)
			answer func(*approval.Answer)
			limits approval.Limits
			want   approval.State
			err    error
			use    grant.Use
			life   time.Duration
		}{
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
		for i, test := range tests {
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

// TestTwoAnswersOneOutcome: of answers given at once, on two nodes, one counts
// and every other hears who was first.
func TestTwoAnswersOneOutcome(t *testing.T) {
	t.Parallel()
	storetest.BothOptions(t, func(t *testing.T, opts store.Options) {
		both := nodes(t, opts, 2)
		o := newOffice(t, both[0])
		for round := range 10 {
			filed := o.file(t, ask(fmt.Sprint("s", round), round), atOnce)
			var mu sync.Mutex
			var winners []approval.State
			var losers []*approval.DecidedError
			var wg sync.WaitGroup
			for n := range 6 {
				a := yes(filed)
				if n%2 == 1 {
					a.Verdict, a.Text = approval.Deny, "no"
				}
				wg.Go(func() {
					var got *approval.Request
					err := both[n/3].Write(t.Context(), func(tx *store.Tx) (err error) {
						got, _, err = o.Answer(tx, filed.ID, a, atOnce)
						return err
					})
					mu.Lock()
					defer mu.Unlock()
					var decided *approval.DecidedError
					switch {
					case err == nil:
						winners = append(winners, got.State)
					case errors.As(err, &decided):
						losers = append(losers, decided)
					default:
						t.Error(err)
					}
				})
			}
			wg.Wait()
			if len(winners) != 1 || len(losers) != 5 {
				t.Fatalf("%d answers counted, %d were told; want 1 and 5", len(winners), len(losers))
			}
			for _, l := range losers {
				if l.By != "ada" || l.State != winners[0] || !strings.HasPrefix(l.Error(), "already decided by ada at 2") {
					t.Errorf("a late answer was told %q, the outcome is %s", l.Error(), winners[0])
				}
			}
			o.read(t, func(tx *store.Tx) error {
				grants, err := o.Grants(tx, filed.Principal)
				if want := winners[0] == approval.Approved; (len(grants) == 1) != want {
					t.Errorf("%d grants after %s", len(grants), winners[0])
				}
				return err
			})
		}
	})
}

func TestExpiryIsJudgedAtUse(t *testing.T) {
	t.Parallel()
	storetest.Both(t, func(t *testing.T, s *store.Store) {
		o := newOffice(t, s)
		soon := approval.Limits{RequestLife: 30 * time.Millisecond, ShownAtLeast: 1}
		filed := o.file(t, ask("s1", 1), soon)
		time.Sleep(40 * time.Millisecond)
		var decided *approval.DecidedError
		if _, g, err := o.answer(t, filed, yes(filed), soon); !errors.As(err, &decided) || decided.State != approval.Expired || g != nil {
			t.Errorf("an answer after the time: %v, %v", g, err)
		}
		if got := o.get(t, filed.ID); got.State != approval.Expired {
			t.Errorf("before a timer ran it is %s, want %s", got.State, approval.Expired)
		}
		if again := o.file(t, ask("s1", 1), soon); again.ID == filed.ID {
			t.Error("an ask joined a request whose time is over")
		}
		other := o.file(t, ask("s2", 2), soon)
		time.Sleep(40 * time.Millisecond)
		var expired []string
		o.write(t, func(tx *store.Tx) error {
			expired = nil
			list, err := o.Expire(tx)
			for _, r := range list {
				expired = append(expired, r.ID)
			}
			return err
		})
		if !slices.Contains(expired, other.ID) {
			t.Errorf("expired %v, want %s among them", expired, other.ID)
		}
		got := o.get(t, other.ID)
		if _, err := o.View(got); !errors.Is(err, approval.ErrNotFound) {
			t.Errorf("an expired request keeps its view: %v", err)
		}
	})
}

func TestCancel(t *testing.T) {
	t.Parallel()
	storetest.Both(t, func(t *testing.T, s *store.Store) {
		o := newOffice(t, s)
		one, two, three := o.file(t, ask("s1", 1), atOnce), o.file(t, ask("s1", 2), atOnce), o.file(t, ask("s2", 3), atOnce)
		o.write(t, func(tx *store.Tx) error { _, err := o.Cancel(tx, one.ID, "gave up"); return err })
		var decided *approval.DecidedError
		if _, _, err := o.answer(t, one, yes(one), atOnce); !errors.As(err, &decided) || decided.State != approval.Cancelled {
			t.Errorf("a cancelled request was answered: %v", err)
		}
		o.write(t, func(tx *store.Tx) error {
			n, err := o.CancelSession(tx, "s1", "the session ended")
			if n != 1 {
				t.Errorf("cancelled %d, want 1", n)
			}
			return err
		})
		states := []approval.State{o.get(t, one.ID).State, o.get(t, two.ID).State, o.get(t, three.ID).State}
		if diff := cmp.Diff([]approval.State{approval.Cancelled, approval.Cancelled, approval.Pending}, states); diff != "" {
			t.Error(diff)
		}
	})
}

func TestListPages(t *testing.T) {
	t.Parallel()
	storetest.Both(t, func(t *testing.T, s *store.Store) {
		o := newOffice(t, s)
		var want []string
		for n := range 7 {
			want = append([]string{o.file(t, ask(fmt.Sprint("s", n%2), n), atOnce).ID}, want...)
		}
		var got []string
		page := approval.Page{Limit: 3}
		for pages := 1; ; pages++ {
			o.read(t, func(tx *store.Tx) error {
				list, more, err := o.List(tx, approval.Filter{}, page)
				for _, r := range list {
					got = append(got, r.ID)
				}
				page.After = more
				return err
			})
			if page.After == "" || pages > 3 {
				break
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("not newest first, each once:\n%s", diff)
		}
		o.read(t, func(tx *store.Tx) error {
			list, _, err := o.List(tx, approval.Filter{Agent: "claude", Session: "s1", State: approval.Pending}, approval.Page{})
			if len(list) != 3 {
				t.Errorf("the filter finds %d, want 3", len(list))
			}
			if _, _, err := o.List(tx, approval.Filter{}, approval.Page{After: "x"}); !errors.Is(err, approval.ErrInvalid) {
				t.Errorf("an invented page: %v", err)
			}
			return err
		})
		var latest *approval.Request
		r := ask("s1", 5)
		o.read(t, func(tx *store.Tx) (err error) {
			latest, err = o.Latest(tx, r.Principal, r.Digest, r.World, r.Policy)
			return err
		})
		if latest.ID != want[1] {
			t.Errorf("the latest request of the call is %s, want %s", latest.ID, want[1])
		}
	})
}

// TestWaitingArgumentsAreSealed: what the agent sent is not in the database in
// clear, while it waits or after.
func TestWaitingArgumentsAreSealed(t *testing.T) {
	t.Parallel()
	opts := storetest.SQLite(t)
	o := newOffice(t, storetest.Open(t, opts))
	filed := o.file(t, ask("s1", 1), atOnce)
	got := o.get(t, filed.ID)
	if view, err := o.View(got); err != nil || !bytes.Contains(view, []byte("hunter2")) {
		t.Fatalf("the person does not see the arguments: %q, %v", view, err)
	}
	other := approval.New(newKeys(t))
	if _, err := other.View(got); !errors.Is(err, keyring.ErrSealed) {
		t.Errorf("other keys open the view: %v", err)
	}
	if _, _, err := o.answer(t, filed, yes(filed), atOnce); err != nil {
		t.Fatal(err)
	}
	if _, err := o.View(o.get(t, filed.ID)); !errors.Is(err, approval.ErrNotFound) {
		t.Errorf("the view outlived the answer: %v", err)
	}
	files, err := filepath.Glob(filepath.Join(opts.Dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil || bytes.Contains(text, []byte("hunter2")) {
			t.Errorf("%s holds the arguments in clear (%v)", filepath.Base(file), err)
		}
	}
}

func TestChangesAreAnnounced(t *testing.T) {
	t.Parallel()
	o := newOffice(t, storetest.Open(t, storetest.SQLite(t)))
	notices := o.s.Subscribe(t.Context(), approval.Topic)
	filed := o.file(t, ask("s1", 1), atOnce)
	for _, what := range []string{"filed", "answered"} {
		select {
		case n := <-notices:
			if n.Payload != filed.ID {
				t.Errorf("%s: announced %q, want %q", what, n.Payload, filed.ID)
			}
		case <-time.After(5 * time.Second):
			t.Fatalf("nobody was told that it was %s", what)
		}
		if what == "filed" {
			if _, _, err := o.answer(t, filed, yes(filed), atOnce); err != nil {
				t.Fatal(err)
			}
		}
	}
}
