package element_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/element"
)

var entries = []string{
	"create_element", "add_entry", "addEntry", "search", "query_*", "*", "*_element", "get_?onfig", "confirm_operation", "verify_challenge",
	"no_such_operation", "[", "delete_element", "activate_element",
}

func drawElement(t *rapid.T) element.Element {
	list := rapid.SliceOfN(rapid.SampledFrom(entries), 0, 2)
	types := rapid.SliceOfN(rapid.SampledFrom([]string{"memory", "memories", "skills", "agent", "widget"}), 0, 2)
	return element.Element{
		Type: rapid.SampledFrom(call.ElementTypes()).Draw(t, "type"), Name: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name"),
		Lists:      element.Lists{Allow: list.Draw(t, "allow"), Confirm: list.Draw(t, "confirm"), Deny: list.Draw(t, "deny")},
		Scope:      element.Scope{AllowedTypes: types.Draw(t, "allowed"), BlockedTypes: types.Draw(t, "blocked")},
		Quarantine: rapid.SampledFrom([]string{"", "", "bad YAML"}).Draw(t, "quarantine"),
	}
}

// TestOrderNeverMatters: not for levels, votes, conflicts, nor for what
// freezes.
func TestOrderNeverMatters(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		elements := rapid.SliceOfNDistinct(rapid.Custom(drawElement), 0, 4, func(e element.Element) string { return e.ID() }).Draw(t, "elements")
		a, b := element.Compile(elements), element.Compile(rapid.Permutation(elements).Draw(t, "shuffled"))
		if diff := cmp.Diff(a.Frozen(), b.Frozen()); diff != "" {
			t.Fatal(diff)
		}
		for _, op := range call.Operations() {
			typ := rapid.SampledFrom(append(call.ElementTypes(), "", "widget")).Draw(t, "type")
			x, y := a.Resolve(op.Name, typ, false), b.Resolve(op.Name, typ, false)
			if diff := cmp.Diff([]any{x.Level, x.Votes, x.Conflicts}, []any{y.Level, y.Votes, y.Conflicts}); diff != "" {
				t.Fatalf("%s of %q: %s", op.Name, typ, diff)
			}
		}
	})
}

// TestQuarantineDeniesMutations: whatever its lists say, and whatever others
// allow.
func TestQuarantineDeniesMutations(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		q := drawElement(t)
		q.Name, q.Quarantine = "quarantined", "bad YAML"
		s := element.Compile([]element.Element{q, drawElement(t), {Type: "skill", Name: "z", Lists: element.Lists{Allow: []string{"*"}}}})
		for _, op := range call.Operations() {
			if level := s.Resolve(op.Name, "", false).Level; op.Endpoint != call.Read && !op.Ungatable && level != call.Deny {
				t.Fatalf("%s is %s", op.Name, level)
			}
		}
	})
}

// TestMalformedEntry: an entry that can match nothing must not leave a deny
// out.
func TestMalformedEntry(t *testing.T) {
	t.Parallel()
	for _, l := range []element.Lists{{Deny: []string{"[create"}}, {Confirm: []string{"create_[a-"}}, {Allow: []string{"\\"}}} {
		b := element.Compile([]element.Element{{Type: "skill", Name: "s", Lists: l}}).Resolve("create_element", "", false)
		if b.Level != call.Deny || !strings.Contains(b.Votes[len(b.Votes)-1].Reason, "is not a pattern") {
			t.Errorf("%+v: %s, %v", l, b.Level, b.Votes)
		}
	}
}

// TestNames: an entry reaches an operation under each of its names.
func TestNames(t *testing.T) {
	t.Parallel()
	tests := []struct{ entry, operation string }{
		{"search", "search_elements"}, {"query_elements", "search"}, {"query_*", "search_elements"}, {"search_elements", "query_elements"},
		{"add_memory_entry", "addEntry"}, {"add*", "add_entry"}, {"clear_memory", "clear"}, {"upgrade_element", "edit_element"},
	}
	for _, tt := range tests {
		s := element.Compile([]element.Element{{Type: "skill", Name: "s", Lists: element.Lists{Deny: []string{tt.entry}}}})
		if level := s.Resolve(tt.operation, "", false).Level; level != call.Deny {
			t.Errorf("a deny of %s leaves %s at %s", tt.entry, tt.operation, level)
		}
	}
}
