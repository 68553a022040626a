package element_test

import (
	"fmt"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/element"
)

// oracle is the rule of the design in a few lines, written without a look at
// the resolver: deny > confirm > allow > base; a confirm joins and never
// lowers; an allow lowers the base of an elevatable operation and nothing
// else; the recovery path is out of reach; what changes policy and is not
// proven to loosen nothing, and what is pinned, is asked about every time.
func oracle(op call.Operation, lists []string, tightening bool) call.Level {
	base := op.Level
	if op.FreeIfTightening && tightening {
		base = call.AutoApprove
	}
	if op.Ungatable {
		return base
	}
	denied, confirmed, allowed := false, false, false
	for _, l := range lists {
		for _, mark := range l {
			denied = denied || mark == 'd'
			confirmed = confirmed || mark == 'c'
			allowed = allowed || mark == 'a'
		}
	}
	switch {
	case denied:
		return call.Deny
	case confirmed && (base == call.AutoApprove || base == call.ConfirmSession):
		return call.ConfirmSession
	case confirmed:
		return base
	case allowed && op.CanBeElevated:
		return call.AutoApprove
	}
	return base
}

// TestExhaustive tries every way in which three elements can have an
// operation on their three lists, for every operation: elevatable or not,
// pinned, ungatable, policy-changing, on every endpoint.
func TestExhaustive(t *testing.T) {
	t.Parallel()
	choices := []string{"", "a", "c", "d", "ac", "ad", "cd", "acd"}
	seen := make(map[string]bool)
	for _, op := range call.Operations() {
		seen[fmt.Sprintf("%s elevatable %t", op.Endpoint, op.CanBeElevated)] = true
	}
	for _, e := range call.Endpoints() {
		if !seen[fmt.Sprintf("%s elevatable true", e)] && !seen[fmt.Sprintf("%s elevatable false", e)] {
			t.Errorf("no operation on %s", e)
		}
	}
	for _, a := range choices {
		for _, b := range choices {
			for _, c := range choices {
				checkCombination(t, []string{a, b, c})
			}
		}
	}
}

// checkCombination puts every operation on the same lists and resolves each.
func checkCombination(t *testing.T, lists []string) {
	t.Helper()
	var names []string
	for _, op := range call.Operations() {
		names = append(names, op.Name)
	}
	var elements []element.Element
	for i, l := range lists {
		e := element.Element{Type: "skill", Name: fmt.Sprint(i)}
		for _, mark := range l {
			switch mark {
			case 'a':
				e.Lists.Allow = names
			case 'c':
				e.Lists.Confirm = names
			case 'd':
				e.Lists.Deny = names
			}
		}
		elements = append(elements, e)
	}
	set := element.Compile(elements)
	for _, op := range call.Operations() {
		for _, tightening := range []bool{false, true} {
			checkResolved(t, set.Resolve(op.Name, "", tightening), op, lists, tightening)
		}
	}
}

func checkResolved(t *testing.T, b call.Ballot, op call.Operation, lists []string, tightening bool) {
	t.Helper()
	if want := oracle(op, lists, tightening); b.Level != want {
		t.Errorf("%s with %q, tightening %t: %s, want %s", op.Name, lists, tightening, b.Level, want)
	}
	joined := call.AutoApprove
	for _, v := range b.Votes {
		joined = call.Join(joined, v.Level)
	}
	if joined != b.Level || len(b.Votes) == 0 {
		t.Errorf("%s with %q: the votes join to %s, the ballot says %s", op.Name, lists, joined, b.Level)
	}
	if pinned := op.Pinned || op.FreeIfTightening && !tightening; pinned && !b.Level.StricterThan(call.ConfirmSession) {
		t.Errorf("%s with %q is pinned and gets %s", op.Name, lists, b.Level)
	}
}
