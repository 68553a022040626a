package call_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
)

// order lists the levels from the loosest to the strictest.
var order = []call.Level{call.AutoApprove, call.ConfirmSession, call.ConfirmSingleUse, call.Deny}

func TestLevelOrder(t *testing.T) {
	t.Parallel()
	for i, a := range order {
		for j, b := range order {
			if got := a.StricterThan(b); got != (i > j) {
				t.Errorf("%s stricter than %s: %t", a, b, got)
			}
			if got := call.Join(a, b); got != order[max(i, j)] {
				t.Errorf("%s joined with %s: %s", a, b, got)
			}
		}
	}
}

// TestLevelZeroDenies is I1 for levels: the zero value and every value that
// is none of the four deny.
func TestLevelZeroDenies(t *testing.T) {
	t.Parallel()
	var zero call.Level
	if zero != call.Deny || zero.String() != "DENY" {
		t.Errorf("the zero level is %s", zero)
	}
	odd := call.Level(200)
	if odd.String() != "DENY" || call.Join(odd, call.AutoApprove) != call.Deny || odd.Asks() || !odd.StricterThan(call.ConfirmSingleUse) {
		t.Errorf("an unknown level is %s", odd)
	}
	if call.LevelNames()[0] != "AUTO_APPROVE" || call.LevelNames()[3] != "DENY" {
		t.Errorf("names %v", call.LevelNames())
	}
}

func TestJoinIsASemilattice(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		level := rapid.Map(rapid.Byte(), func(b byte) call.Level { return call.Level(b) })
		a, b, c := level.Draw(t, "a"), level.Draw(t, "b"), level.Draw(t, "c")
		if call.Join(a, b) != call.Join(b, a) || call.Join(a, call.Join(b, c)) != call.Join(call.Join(a, b), c) || call.Join(call.Join(a, b), b) != call.Join(a, b) {
			t.Fatal("join is not commutative, associative and idempotent")
		}
		if a.StricterThan(call.Join(a, b)) {
			t.Fatal("join lowers")
		}
	})
}

func TestLevelText(t *testing.T) {
	t.Parallel()
	for _, l := range order {
		text, err := l.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		var back call.Level
		if err := back.UnmarshalText(text); err != nil || back != l {
			t.Errorf("%s reads back as %s: %v", l, back, err)
		}
	}
	for _, bad := range []string{"", "deny", "AUTO", "AUTO_APPROVE ", "0"} {
		l := call.AutoApprove
		if err := l.UnmarshalText([]byte(bad)); err == nil || l != call.Deny {
			t.Errorf("%q reads as %s: %v", bad, l, err)
		}
	}
}

func TestKindAndEndpointText(t *testing.T) {
	t.Parallel()
	for _, k := range []call.Kind{call.Native, call.External, call.Dispatch} {
		var back call.Kind
		if err := back.UnmarshalText([]byte(k.String())); err != nil || back != k {
			t.Errorf("%s reads back as %s: %v", k, back, err)
		}
	}
	var k call.Kind
	if k.Valid() || k.UnmarshalText([]byte("invalid")) == nil || k.UnmarshalText(nil) == nil {
		t.Error("no kind is a kind")
	}
	for _, e := range call.Endpoints() {
		var back call.Endpoint
		if err := back.UnmarshalText([]byte(e.String())); err != nil || back != e {
			t.Errorf("%s reads back as %s: %v", e, back, err)
		}
	}
	var e call.Endpoint
	if e.Base() != call.Deny || e.UnmarshalText([]byte("read")) == nil {
		t.Error("no endpoint is an endpoint")
	}
}

// TestDecideNeedsEveryStage is ATTACKS 14 for the join itself.
func TestDecideNeedsEveryStage(t *testing.T) {
	t.Parallel()
	var all []call.Ballot
	for _, s := range call.Stages() {
		all = append(all, call.Ballot{Stage: s, Level: call.AutoApprove, Votes: []call.Vote{{Stage: s, Level: call.AutoApprove}}})
	}
	if d := call.Decide(all); d.Level != call.AutoApprove {
		t.Fatalf("a full vote is decided to %s", d.Level)
	}
	for i := range all {
		missing := append(append([]call.Ballot(nil), all[:i]...), all[i+1:]...)
		doubled := append(append([]call.Ballot(nil), all...), all[i])
		silent := append([]call.Ballot(nil), all...)
		silent[i].Votes = nil
		swapped := append([]call.Ballot(nil), all...)
		swapped[i].Stage = call.Stage(100)
		for name, ballots := range map[string][]call.Ballot{"missing": missing, "doubled": doubled, "silent": silent, "unknown": swapped} {
			if d := call.Decide(ballots); d.Level != call.Deny {
				t.Errorf("%s %s: %s", all[i].Stage, name, d.Level)
			}
		}
	}
	if d := new(call.Decision); d.Level != call.Deny || d.Why() == "" {
		t.Errorf("the zero decision is %s: %q", d.Level, d.Why())
	}
}

func TestOperationTable(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	for _, op := range call.Operations() {
		for _, name := range append([]string{op.Name}, op.Aliases...) {
			if seen[name] {
				t.Errorf("%s stands twice in the table", name)
			}
			seen[name] = true
			if got, ok := call.LookupOperation(name); !ok || got.Name != op.Name {
				t.Errorf("%s is not found", name)
			}
		}
		if !op.Endpoint.Valid() || op.Rationale == "" {
			t.Errorf("%s has no endpoint or no rationale", op.Name)
		}
		if op.Pinned && (op.CanBeElevated || !op.Level.StricterThan(call.ConfirmSession)) {
			t.Errorf("%s is pinned, elevatable %t, %s", op.Name, op.CanBeElevated, op.Level)
		}
		if op.Ungatable && (op.Level != call.AutoApprove || op.Pinned || op.CanBeElevated) {
			t.Errorf("%s is ungatable and %s", op.Name, op.Level)
		}
		if op.Level == call.Deny {
			t.Errorf("%s is denied to everyone", op.Name)
		}
	}
	for _, pinned := range []string{"delete_element", "clear", "clear_github_auth", "execute_agent", "abort_execution", "resume_from_handoff"} {
		if op, ok := call.LookupOperation(pinned); !ok || !op.Pinned {
			t.Errorf("%s is not pinned", pinned)
		}
	}
	for _, free := range []string{"verify_challenge", "release_deadlock", "approve_cli_permission", "permission_prompt"} {
		if op, ok := call.LookupOperation(free); !ok || !op.Ungatable {
			t.Errorf("%s is not on the recovery path", free)
		}
	}
}
