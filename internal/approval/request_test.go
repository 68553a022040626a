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

	"github.com/seed-3ebc6b8a/gatehouse/internal/approval"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
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

// TestClockSetBackRevivesNothing is attack 34: what has expired stays expired
// when the machine's clock is set back, across a restart too.
func TestClockSetBackRevivesNothing(t *testing.T) {
	t.Parallel()
	clock := newManual()
	opts := storetest.SQLite(t)
	opts.Clock = clock.Now
	s, err := store.Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	o := newOffice(t, s)
	filed := o.file(t, ask("s1", 1), plenty)
	other := o.file(t, ask("s1", 2), plenty)
	clock.pass(time.Second)
	_, g, err := o.answer(t, other, yes(other), plenty)
	if err != nil {
		t.Fatal(err)
	}
	clock.pass(16 * time.Minute)
	o.write(t, func(tx *store.Tx) error { _, err := o.NewLink(tx, "ada"); return err }) // a commit at this time
	clock.pass(-16 * time.Minute)
	check := func(when string) {
		t.Helper()
		var decided *approval.DecidedError
		if _, _, err := o.answer(t, filed, yes(filed), plenty); !errors.As(err, &decided) {
			t.Errorf("%s: an expired request was answered: %v", when, err)
		}
		if err := o.back(t, func(tx *store.Tx) error { _, err := o.Consume(tx, g.ID); return err }); !errors.Is(err, approval.ErrSpent) {
			t.Errorf("%s: an expired grant was consumed: %v", when, err)
		}
	}
	check("after the clock was set back")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	o.s = storetest.Open(t, opts)
	check("after a restart")
}
