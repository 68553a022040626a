package element_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/element"
)

func TestResolve(t *testing.T) {
	t.Parallel()
	lists := func(allow, confirm, deny []string) element.Element {
		return element.Element{Type: "skill", Name: "s", Lists: element.Lists{Allow: allow, Confirm: confirm, Deny: deny}}
	}
	scoped := element.Element{Type: "persona", Name: "p", Scope: element.Scope{AllowedTypes: []string{"memories", "skill"}, BlockedTypes: []string{"skills"}}}
	tests := []struct {
		name      string
		elements  []element.Element
		operation string
		typ       string
		want      call.Level
	}{
		{"nothing active", nil, "create_element", "", call.ConfirmSession},
		{"unknown operation", nil, "make_element", "", call.ConfirmSingleUse},
		{"by alias", []element.Element{lists([]string{"add_entry"}, nil, nil)}, "addEntry", "", call.AutoApprove},
		{"by glob", []element.Element{lists([]string{"create_*"}, nil, nil)}, "create_element", "", call.AutoApprove},
		{"deny all", []element.Element{lists(nil, nil, []string{"*"})}, "get_element", "", call.Deny},
		{"deny all but the recovery path", []element.Element{lists(nil, nil, []string{"*"})}, "verify_challenge", "", call.AutoApprove},
		{"quarantined, reading", []element.Element{{Type: "skill", Name: "q", Quarantine: "bad YAML"}}, "get_element", "", call.AutoApprove},
		{"quarantined, writing", []element.Element{{Type: "skill", Name: "q", Quarantine: "bad YAML"}}, "create_element", "", call.Deny},
		{"a quarantined allow", []element.Element{{Type: "skill", Name: "q", Quarantine: "x", Lists: element.Lists{Allow: []string{"*"}}}}, "complete_execution", "", call.Deny},
		{"allowed type", []element.Element{scoped}, "create_element", "memory", call.ConfirmSession},
		{"type not allowed", []element.Element{scoped}, "create_element", "agent", call.Deny},
		{"blocked type", []element.Element{scoped}, "create_element", "skill", call.Deny},
		{"a type that does not exist", []element.Element{scoped}, "create_element", "widget", call.Deny},
		{"no type", []element.Element{scoped}, "create_element", "", call.ConfirmSession},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if b := element.Compile(tt.elements).Resolve(tt.operation, tt.typ, false); b.Level != tt.want {
				t.Errorf("%s, want %s: %v", b.Level, tt.want, b.Votes)
			}
		})
	}
}

func TestNilSet(t *testing.T) {
	t.Parallel()
	var s *element.Set
	if s.Elements() != nil || s.Frozen() != nil {
		t.Error("nil has elements")
	}
	if b := s.Resolve("delete_element", "", false); b.Level != call.ConfirmSingleUse {
		t.Errorf("delete_element: %s", b.Level)
	}
}

// TestConflicts: what lost is said, with what it lost against.
func TestConflicts(t *testing.T) {
	t.Parallel()
	one := func(name string, l element.Lists) element.Element {
		return element.Element{Type: "skill", Name: name, Lists: l}
	}
	op := []string{"create_element"}
	s := element.Compile([]element.Element{one("b", element.Lists{Allow: op}), one("a", element.Lists{Confirm: op})})
	want := []call.Conflict{{Source: "skill/b", Wanted: call.AutoApprove, Reason: "another element confirms or denies it"}}
	if diff := cmp.Diff(want, s.Resolve("create_element", "", false).Conflicts); diff != "" {
		t.Error(diff)
	}
	s = element.Compile([]element.Element{one("b", element.Lists{Allow: op})})
	want = []call.Conflict{{Source: "operation table", Wanted: call.ConfirmSession, Reason: "lowered by an element's allow list"}}
	if diff := cmp.Diff(want, s.Resolve("create_element", "", false).Conflicts); diff != "" {
		t.Error(diff)
	}
}

func TestFrozen(t *testing.T) {
	t.Parallel()
	s := element.Compile([]element.Element{
		{Type: "skill", Name: "z", Lists: element.Lists{Deny: []string{"confirm_*"}}},
		{Type: "agent", Name: "a", Lists: element.Lists{Deny: []string{"confirm_operation"}}},
		{Type: "agent", Name: "b", Lists: element.Lists{Confirm: []string{"confirm_operation"}}},
	})
	if diff := cmp.Diff([]string{"agent/a", "skill/z"}, s.Frozen()); diff != "" {
		t.Error(diff)
	}
}
