package policy_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/element"
	"github.com/seed-3ebc6b8a/gatehouse/internal/facts"
	"github.com/seed-3ebc6b8a/gatehouse/internal/policy"
)

// voteSet writes the votes of a decision without their order.
func voteSet(d *call.Decision) []string {
	var set []string
	for v := range d.Votes() {
		need := ""
		if v.Need != nil {
			need = v.Need.String()
		}
		set = append(set, fmt.Sprint(v.Stage, "|", v.Source, "|", v.Rule, "|", v.Level, "|", v.Reason, "|", need))
	}
	slices.Sort(set)
	return slices.Compact(set)
}

func compile(t *rapid.T, layers []policy.Layer) *policy.Snapshot {
	s, err := policy.Compile(layers, options)
	if err != nil {
		t.Skip("two files of one layer define the same profile")
	}
	return s
}

func TestI1ZeroValuesDeny(t *testing.T) {
	t.Parallel()
	c := &call.Call{Kind: call.External, Operation: "Read"}
	if err := c.Normalize(); err != nil {
		t.Fatal(err)
	}
	read := &facts.Facts{Needs: []call.Need{{Capability: call.FSRead, Scope: "/w/a"}}}
	full := policy.Input{Call: c, Facts: read, Digest: c.Digest()}
	if d := policy.Default().Decide(&full, nil); d.Level != call.AutoApprove {
		t.Fatalf("the whole input is decided to %s: %s", d.Level, d.Why())
	}
	with := func(change func(*policy.Input)) *policy.Input {
		in := full
		change(&in)
		return &in
	}
	tests := []struct {
		name string
		s    *policy.Snapshot
		in   *policy.Input
	}{
		{"no snapshot", nil, &full},
		{"zero snapshot", new(policy.Snapshot), &full},
		{"no input", policy.Default(), nil},
		{"zero input", policy.Default(), new(policy.Input)},
		{"no call", policy.Default(), with(func(in *policy.Input) { in.Call = nil })},
		{"zero call", policy.Default(), with(func(in *policy.Input) { in.Call = new(call.Call) })},
		{"no facts", policy.Default(), with(func(in *policy.Input) { in.Facts = nil })},
		{"no digest", policy.Default(), with(func(in *policy.Input) { in.Digest = call.Digest{} })},
		{"zero finding", policy.Default(), with(func(in *policy.Input) { f := *read; f.Findings = make([]facts.Finding, 1); in.Facts = &f })},
		{"zero violation", policy.Default(), with(func(in *policy.Input) { in.Violations = make([]policy.Violation, 1) })},
		{"zero need", policy.Default(), with(func(in *policy.Input) { in.Facts = &facts.Facts{Needs: make([]call.Need, 1)} })},
		{"unknown class", policy.Default(), with(func(in *policy.Input) { in.Facts = &facts.Facts{Class: "harmless"} })},
		{"unknown capability", policy.Default(), with(func(in *policy.Input) { in.Facts = &facts.Facts{Needs: []call.Need{{Capability: "fs.look"}}} })},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if d := tt.s.Decide(tt.in, nil); d.Level != call.Deny {
				t.Errorf("decided to %s", d.Level)
			}
		})
	}
}

func TestI2OrderNeverMatters(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		layers, elements, in := drawLayers(t), drawElements(t, 4), drawInput(t)
		one, err1 := policy.Compile(layers, options)
		in.Elements = element.Compile(elements)

		shuffled := rapid.Permutation(layers).Draw(t, "layers")
		for i := range shuffled {
			f := *shuffled[i].File
			f.Rules = rapid.Permutation(f.Rules).Draw(t, "rules")
			f.Adjustable = rapid.Permutation(f.Adjustable).Draw(t, "adjustable")
			shuffled[i].File = &f
		}
		other, err2 := policy.Compile(shuffled, options)
		if (err1 == nil) != (err2 == nil) {
			t.Fatalf("one order compiles, the other does not: %v, %v", err1, err2)
		}
		if err1 != nil {
			t.Skip("does not compile")
		}
		if one.Hash != other.Hash {
			t.Fatal("the hash depends on the order")
		}
		a := one.Decide(in, nil)
		elements = rapid.Permutation(elements).Draw(t, "elements")
		for i := range elements {
			l := &elements[i].Lists
			l.Allow, l.Confirm, l.Deny = rapid.Permutation(l.Allow).Draw(t, "allow"), rapid.Permutation(l.Confirm).Draw(t, "confirm"), rapid.Permutation(l.Deny).Draw(t, "deny")
		}
		moved := *in
		moved.Elements = element.Compile(elements)
		b := other.Decide(&moved, nil)
		if a.Level != b.Level {
			t.Fatalf("decided to %s and %s", a.Level, b.Level)
		}
		if diff := cmp.Diff(voteSet(&a), voteSet(&b)); diff != "" {
			t.Fatalf("the votes depend on the order:\n%s", diff)
		}
	})
}

func TestI3ObjectionsNeverLower(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		layers, elements, in := drawLayers(t), drawElements(t, 3), drawInput(t)
		in.Elements = element.Compile(elements)
		without := compile(t, layers)
		before := without.Decide(in, nil)

		more := drawElement(t, "more")
		more.Lists.Allow = nil
		in.Elements = element.Compile(append(slices.Clone(elements), more))
		rule := drawRule(t, "more")
		if rule.Level == call.AutoApprove {
			rule.Level = call.ConfirmSession
		}
		if len(layers) > 0 {
			layers = slices.Clone(layers)
			l := &layers[rapid.IntRange(0, len(layers)-1).Draw(t, "layer")]
			f := *l.File
			f.Rules = append(slices.Clone(f.Rules), rule)
			f.Operations = map[string]call.Level{"*": call.Deny}
			if rapid.Bool().Draw(t, "keep operations") {
				f.Operations = l.File.Operations
			}
			l.File = &f
		}
		with := compile(t, layers)
		sweep(t, func(in *policy.Input) { asStrict(t, without, with, in) })
		after := with.Decide(in, nil)
		if before.Level.StricterThan(after.Level) {
			t.Fatalf("an objection more lowers %s to %s", before.Level, after.Level)
		}
	})
}

func TestI3LowerLayersOnlyTighten(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := drawPools(t)
		above := policy.Layer{Scope: policy.ScopeUser, File: p.file(t)}
		above.File.Adjustable = nil
		below := policy.Layer{
			Scope: rapid.SampledFrom([]policy.Scope{policy.ScopeProject, policy.ScopeSession}).Draw(t, "scope"),
			File:  p.file(t), Trusted: rapid.Bool().Draw(t, "trusted"),
		}
		if rapid.Bool().Draw(t, "adjustable") { // but a file that nobody trusts
			above.File.Adjustable = []string{"profile", "rules", "mode", "risk", "isolation"}
			below.Scope, below.Trusted = policy.ScopeProject, false
		}
		alone, both := compile(t, []policy.Layer{above}), compile(t, []policy.Layer{above, below})
		if changes := policy.Loosens(alone, both); len(changes) > 0 {
			t.Fatalf("a layer below loosens %v", changes)
		}
		asStrict(t, alone, both, drawInput(t))
		sweep(t, func(in *policy.Input) { asStrict(t, alone, both, in) })
	})
}

func TestI4PinnedIsNeverAutomatic(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s, in := compile(t, drawLayers(t)), drawInput(t)
		in.Call.Kind = call.Native
		in.Call.Operation = rapid.SampledFrom(nativeNames).Draw(t, "native")
		elements := drawElements(t, 3)
		elements = append(elements, element.Element{Type: "skill", Name: "generous", Lists: element.Lists{Allow: []string{"*"}}})
		in.Elements = element.Compile(elements)
		d := s.Decide(in, nil)
		op, _ := call.LookupOperation(in.Call.Operation)
		loosening := op.FreeIfTightening && in.Facts.Change != facts.LoosensNothing
		strict := s.Settings.Strictness == "elevated" || s.Settings.Strictness == "maximum"
		if pinned := op.Pinned || loosening; pinned && !d.Pinned || !pinned && d.Pinned && !strict {
			t.Fatalf("%s pinned: %t", op.Name, d.Pinned)
		}
		if d.Pinned && !d.Level.StricterThan(call.ConfirmSession) {
			t.Fatalf("%s is pinned and decided to %s", op.Name, d.Level)
		}
	})
}

func TestI5RecoveryPathCannotBeGated(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s, in := compile(t, drawLayers(t)), drawInput(t)
		in.Call.Kind = call.Native
		in.Call.Operation = rapid.SampledFrom([]string{"verify_challenge", "release_deadlock", "approve_cli_permission", "permission_prompt"}).Draw(t, "recovery")
		in.Elements = element.Compile(append(drawElements(t, 3), element.Element{Type: "skill", Name: "stern", Lists: element.Lists{Deny: []string{"*"}}}))
		in.Switches = policy.Switches{Kill: "on", Danger: "blocked"}
		if d := s.Decide(in, nil); d.Level != call.AutoApprove {
			t.Fatalf("%s is decided to %s: %s", in.Call.Operation, d.Level, d.Why())
		}
	})
}

// TestAttack14MissingVoter takes each voter away in turn.
func TestAttack14MissingVoter(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s, in := compile(t, drawLayers(t)), drawInput(t)
		if op, ok := call.LookupOperation(in.Call.Operation); ok && op.Ungatable {
			t.Skip("the recovery path asks no voter")
		}
		for i := range s.Voters() {
			if d := s.WithoutVoter(i).Decide(in, nil); d.Level != call.Deny {
				t.Fatalf("without voter %d the call is decided to %s", i, d.Level)
			}
		}
	})
}

func TestI12WorkIsLinear(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := 0
		s, in := compile(t, drawLayers(t)), drawInput(t)
		counting := s.Counting(&n)
		for range rapid.IntRange(0, 50).Draw(t, "more needs") {
			in.Facts.Needs = append(in.Facts.Needs, drawNeed(t))
		}
		for range rapid.IntRange(0, 50).Draw(t, "more commands") {
			in.Facts.Commands = append(in.Facts.Commands, rapid.SampledFrom(commands).Draw(t, "command"))
		}
		a, b := s.Decide(in, nil), counting.Decide(in, nil)
		if a.Level != b.Level {
			t.Fatal("counting changes the decision")
		}
		// Each pattern is compared at most twice with each thing the call does.
		if most := 2 * s.Size() * (1 + len(in.Facts.Needs) + len(in.Facts.Commands)); n > most {
			t.Fatalf("%d comparisons, at most %d are linear", n, most)
		}
	})
}

func TestI14LimitsExist(t *testing.T) {
	t.Parallel()
	positive := func(t rapid.TB, s *policy.Snapshot) {
		set := s.Settings
		for name, v := range map[string]int64{
			"pending_per_session": int64(set.PendingPerSession), "pending_per_principal": int64(set.PendingPerPrincipal),
			"asks_per_hour": int64(set.AsksPerHour), "request_life": int64(set.RequestLife),
			"grant_life": int64(set.GrantLife), "session_grant_life": int64(set.SessionGrantLife),
		} {
			if v <= 0 {
				t.Errorf("%s is %d", name, v)
			}
		}
	}
	positive(t, policy.Default())
	rapid.Check(t, func(t *rapid.T) { positive(t, compile(t, drawLayers(t))) })
}
