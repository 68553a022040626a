package gate_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/element"
	"github.com/seed-3ebc6b8a/gatehouse/internal/facts"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
	"github.com/seed-3ebc6b8a/gatehouse/internal/grant"
	"github.com/seed-3ebc6b8a/gatehouse/internal/policy"
)

// script is a state that answers as it is told and notes what it is asked, in
// order. It is for questions of order alone; the gate on its real state is
// tested in package daemon.
type script struct {
	asked  []string
	fail   string // the step that fails
	rerun  bool   // the transaction is run a second time, as after a conflict
	before gate.Standing
	inside gate.Standing
	grants []grant.Grant
	budget grant.Budget
}

var errStep = errors.New("secret detail of the database")

func (s *script) step(name string) error {
	s.asked = append(s.asked, name)
	if s.fail == name {
		return errStep
	}
	return nil
}

func (s *script) Standing(context.Context, *call.Call) (gate.Standing, error) {
	return s.before, s.step("read")
}

func (s *script) Current(context.Context, *call.Call) (gate.Standing, error) {
	return s.inside, s.step("current")
}

func (s *script) Commit(_ context.Context, fn func(gate.Tx) error) error {
	if err := s.step("begin"); err != nil {
		return err
	}
	if err := fn(tx{s}); err != nil {
		return err
	}
	if s.rerun {
		s.asked = append(s.asked, "rerun")
		if err := fn(tx{s}); err != nil {
			return err
		}
	}
	return s.step("commit")
}

func (s *script) Uses(context.Context, *call.Call, string) (*policy.Uses, error) {
	return &policy.Uses{}, s.step("uses")
}

func (s *script) Request(context.Context, string) (gate.RequestState, error) {
	return gate.RequestState{}, s.step("request")
}

func (s *script) Budget(context.Context, string, call.Principal) (*grant.Budget, error) {
	return &s.budget, s.step("budget")
}

func (s *script) Opener(context.Context, string) (call.Principal, bool, error) {
	return call.Principal{}, false, s.step("opener")
}

func (s *script) Live() bool                             { return true }
func (s *script) Changed() <-chan struct{}               { return nil }
func (s *script) Filed(*gate.Request, gate.RequestState) { s.asked = append(s.asked, "notice") }
func (s *script) Facts(context.Context, *call.Call, *policy.Snapshot) (*facts.Facts, *element.Change) {
	return &facts.Facts{}, nil
}

type tx struct{ s *script }

func (t tx) Standing(*call.Call) (gate.Standing, error) { return t.s.inside, t.s.step("standing") }
func (t tx) Grants(call.Principal) ([]grant.Grant, error) {
	return t.s.grants, t.s.step("grants")
}
func (t tx) Consume(string) error                         { return t.s.step("consume") }
func (t tx) AddBudget(*grant.Budget, time.Duration) error { return t.s.step("budget") }
func (t tx) Now() (time.Time, error)                      { return time.Unix(1, 0), t.s.step("now") }
func (t tx) Draw(_ string, c *call.Call, d *call.Decision, votes []call.Vote, scope grant.Scope) ([]call.Vote, error) {
	_, open := t.s.budget.Draw(c, d, votes, scope)
	return open, t.s.step("draw")
}
func (t tx) Delegate(string, call.Principal, string, []grant.Line, grant.Scope) (*grant.Budget, error) {
	return &grant.Budget{}, t.s.step("delegate")
}
func (t tx) ReturnBudget(string, call.Principal) error { return t.s.step("return") }
func (t tx) File(*gate.Request) (gate.RequestState, error) {
	return gate.RequestState{ID: "r_1", State: "pending", Expires: time.Unix(1, 0)}, t.s.step("file")
}
func (t tx) Edited(call.Principal, *call.Decision) (*gate.RequestState, error) {
	return nil, t.s.step("edited")
}
func (t tx) Withdraw(string) error                         { return t.s.step("withdraw") }
func (t tx) Uses(*call.Call, string) (*policy.Uses, error) { return &policy.Uses{}, t.s.step("uses") }
func (t tx) Use(*call.Call, string, []string) error        { return t.s.step("use") }
func (t tx) Refuse(*call.Call, string, []string) error     { return t.s.step("refuse") }
func (t tx) SetAside(call.Principal, string, int) (string, time.Time, error) {
	return "s_1", time.Time{}, t.s.step("set aside")
}
func (t tx) TakeBack(string, call.Principal) error { return t.s.step("take back") }

func (t tx) Open(*call.Call, []call.Guarantee) error { return t.s.step("open") }
func (t tx) Show(string, call.Principal) (call.Digest, []call.Guarantee, error) {
	return call.Digest{}, nil, t.s.step("show")
}
func (t tx) Close(string, call.Principal, gate.Outcome) error {
	return t.s.step("close")
}
func (t tx) Taints(*call.Call) (call.Taint, error)                     { return 0, t.s.step("taints") }
func (t tx) Taint(*call.Call, string, call.Taint, time.Duration) error { return t.s.step("taint") }
func (t tx) Append(...*gate.Event) error                               { return t.s.step("append") }

var someone = call.Principal{Agent: "coder", Session: "s_1"}

func newGate(s *script) *gate.Gate {
	snap := policy.Default()
	s.inside.Policy = snap.Hash
	return gate.New(gate.Options{
		Policy:   func(*call.Call) (*policy.Snapshot, call.Digest) { return snap, snap.Hash },
		Observer: s, State: s, Asker: s,
		Describe: func(*call.Call, *call.Decision, *facts.Facts) []byte { return nil },
		NewID:    func() string { return "c_1" },
	})
}

func native(op string) *call.Call {
	return &call.Call{Kind: call.Native, Surface: "api", Principal: someone, Operation: op}
}

// granted makes the script hold a grant for the call.
func granted(t *testing.T, s *script, c *call.Call) {
	t.Helper()
	d, _, err := newGate(&script{}).Decide(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	s.grants = []grant.Grant{{ID: "g_1", Use: grant.Once, Principal: someone, Votes: grant.Keys(&d), Digest: d.Digest, World: d.World, Policy: d.Policy, By: "alice"}}
}

// TestOrder: what happens in a call, in which order. The answer comes after
// the commit, and so does the notice.
func TestOrder(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, operation string
		granted         bool
		want            string
		verdict         gate.Verdict
	}{
		{"allowed", "list_elements", false, "read begin standing open append commit", gate.Allowed},
		{"asked", "create_element", false, "read begin standing grants edited file append commit notice", gate.Pending},
		{"granted", "create_element", true, "read begin standing grants consume open append commit", gate.Allowed},
		{"denied", "no_such_operation", false, "read begin standing append commit", gate.Denied},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := &script{}
			if tt.granted {
				granted(t, s, native(tt.operation))
			}
			ans := newGate(s).Submit(t.Context(), gate.Submission{Call: native(tt.operation)})
			if ans.Verdict != tt.verdict {
				t.Errorf("%s: %s", ans.Verdict, ans.Message)
			}
			if diff := cmp.Diff(tt.want, strings.Join(s.asked, " ")); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
			// Each of these steps fails once. None leads to an allow, to a
			// notice of a request that is not there, or to a word too many.
			for _, step := range strings.Fields(tt.want) {
				if step == "notice" {
					continue
				}
				f := &script{fail: step, grants: s.grants}
				ans := newGate(f).Submit(t.Context(), gate.Submission{Call: native(tt.operation)})
				if ans.Verdict != gate.Denied || ans.Decision.Level != call.Deny || ans.Request != "" {
					t.Errorf("%s fails: %s, level %s", step, ans.Verdict, ans.Decision.Level)
				}
				if strings.Contains(ans.Message, "secret detail") || !strings.Contains(ans.Message, "could not record the call") {
					t.Errorf("%s fails: the agent is told %q", step, ans.Message)
				}
				if slices.Contains(f.asked, "notice") {
					t.Errorf("%s fails: notice was given", step)
				}
			}
		})
	}
}

// TestRerun: a transaction that runs twice answers once, by its second run.
func TestRerun(t *testing.T) {
	t.Parallel()
	s := &script{rerun: true}
	ans := newGate(s).Submit(t.Context(), gate.Submission{Call: native("create_element")})
	if ans.Verdict != gate.Pending || ans.Request != "r_1" {
		t.Errorf("%+v", ans)
	}
	if got := strings.Count(strings.Join(s.asked, " "), "notice"); got != 1 {
		t.Errorf("%d notices", got)
	}
}

// TestStale: what was read before the transaction counts for nothing.
func TestStale(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name           string
		before, inside gate.Standing
		want           gate.Verdict
		words          string
	}{
		{"the switch was thrown", gate.Standing{}, gate.Standing{Switches: policy.Switches{Kill: "drill"}}, gate.Denied, "drill"},
		{"the switch was released", gate.Standing{Switches: policy.Switches{Kill: "drill"}}, gate.Standing{}, gate.Allowed, ""},
		{"the agent was blocked", gate.Standing{}, gate.Standing{Switches: policy.Switches{Danger: "wild"}}, gate.Denied, "wild"},
		{"the session ended", gate.Standing{}, gate.Standing{Ended: "by alice"}, gate.Denied, "by alice"},
	}
	for _, tt := range tests {
		s := &script{before: tt.before, inside: tt.inside}
		ans := newGate(s).Submit(t.Context(), gate.Submission{Call: native("list_elements")})
		if ans.Verdict != tt.want || !strings.Contains(ans.Message, tt.words) {
			t.Errorf("%s: %s: %s", tt.name, ans.Verdict, ans.Message)
		}
	}
}

func TestVerdictsAndOutcomes(t *testing.T) {
	t.Parallel()
	var zero gate.Verdict
	if zero != gate.Denied || gate.Verdict(9).String() != "denied" {
		t.Error("what is no verdict does not deny")
	}
	for text, want := range map[string]gate.Verdict{"allowed": gate.Allowed, "pending": gate.Pending, "denied": gate.Denied, "Allowed": gate.Denied, "": gate.Denied, "yes": gate.Denied} {
		got := gate.Allowed
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("%q is %s: %v", text, got, err)
		}
	}
	for _, o := range []gate.Outcome{"", "ok", "Succeeded"} {
		s := &script{}
		if err := newGate(s).Finish(t.Context(), "c_1", someone, o, ""); err == nil || len(s.asked) > 0 {
			t.Errorf("%q is an outcome: %v %q", o, err, s.asked)
		}
	}
}

// TestFinishAll: the outcomes of several calls are one transaction, and one that
// cannot be recorded for the store's sake undoes all.
func TestFinishAll(t *testing.T) {
	t.Parallel()
	ended := []gate.Ended{{CallID: "c_1", Principal: someone, Outcome: gate.Succeeded}, {CallID: "c_2", Principal: someone, Outcome: gate.Failed}}
	s := &script{}
	if err := newGate(s).FinishAll(t.Context(), ended); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("begin close append close append commit", strings.Join(s.asked, " ")); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	for _, step := range []string{"begin", "close", "append", "commit"} {
		if err := newGate(&script{fail: step}).FinishAll(t.Context(), ended); err == nil {
			t.Errorf("%s fails and nobody is told", step)
		}
	}
}
