package autonomy_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/seed-3ebc6b8a/gatehouse/internal/autonomy"
)

func claimed(v float64) *float64 { return &v }

// TestThresholds: every score, tolerance and depth does what the table says.
func TestThresholds(t *testing.T) {
	t.Parallel()
	for _, tolerance := range []autonomy.Tolerance{autonomy.Conservative, autonomy.Moderate, autonomy.Aggressive, "reckless"} {
		for depth := range 4 {
			for score := range 101 {
				tier := autonomy.Advisory
				switch {
				case score >= 86:
					tier = autonomy.DangerZone
				case score >= 61:
					tier = autonomy.Verify
				case score >= 31:
					tier = autonomy.Confirm
				}
				if depth >= 2 && tier != autonomy.DangerZone {
					tier--
				}
				limit := map[autonomy.Tolerance]int{"conservative": 25, "moderate": 50, "aggressive": 75, "reckless": 25}[tolerance]
				want := tier != autonomy.DangerZone && tier != autonomy.Verify && score <= limit
				got := autonomy.Evaluate(autonomy.Input{
					Bounds: autonomy.Bounds{Tolerance: tolerance, MaxSteps: 10}, Steps: 1, Depth: depth,
					Now: autonomy.Seen{Risk: score}, Outcome: autonomy.Success,
				})
				if got.Continue != want || got.Tier != tier || got.Score != score {
					t.Fatalf("%s, depth %d, score %d: %+v; want tier %s, continue %v", tolerance, depth, score, got, tier, want)
				}
			}
		}
	}
}

func TestEvaluate(t *testing.T) {
	t.Parallel()
	calm := func(change func(*autonomy.Input)) autonomy.Input {
		in := autonomy.Input{Bounds: autonomy.Bounds{Tolerance: autonomy.Moderate, MaxSteps: 10}, Steps: 3, Outcome: autonomy.Success}
		change(&in)
		return in
	}
	tests := []struct {
		name   string
		change func(*autonomy.Input)
		goes   bool
		tier   autonomy.Tier
	}{
		{"nothing happened", func(*autonomy.Input) {}, true, autonomy.Advisory},
		{"partly done", func(in *autonomy.Input) { in.Outcome = autonomy.Partial }, true, autonomy.Advisory},
		{"failed", func(in *autonomy.Input) { in.Outcome = autonomy.Failure }, false, autonomy.Advisory},
		{"no word on the outcome", func(in *autonomy.Input) { in.Outcome = "" }, false, autonomy.Advisory},
		{"the last step", func(in *autonomy.Input) { in.Steps = 10 }, false, autonomy.Advisory},
		{"the last but one", func(in *autonomy.Input) { in.Steps = 9 }, true, autonomy.Advisory},
		{"no limit is no step", func(in *autonomy.Input) { in.Bounds.MaxSteps = 0 }, false, autonomy.Advisory},
		{"a listed operation was called", func(in *autonomy.Input) {
			in.Bounds.RequiresApproval, in.Now.Operations = []string{"deploy_*"}, []string{"shell", "deploy_app"}
		}, false, autonomy.Advisory},
		{"a listed action is announced", func(in *autonomy.Input) {
			in.Bounds.RequiresApproval, in.Hint = []string{"*deploy*"}, "next I deploy it"
		}, false, autonomy.Advisory},
		{"a list nobody can read", func(in *autonomy.Input) { in.Bounds.RequiresApproval = []string{""} }, false, autonomy.Advisory},
		{"not a number", func(in *autonomy.Input) { in.Claimed = claimed(math.NaN()) }, false, autonomy.DangerZone},
		{"beyond all numbers", func(in *autonomy.Input) { in.Claimed = claimed(math.Inf(1)) }, false, autonomy.DangerZone},
		{"below all numbers", func(in *autonomy.Input) { in.Claimed = claimed(math.Inf(-1)) }, true, autonomy.Advisory},
		{"five denials", func(in *autonomy.Input) { in.Now = autonomy.Seen{Calls: 9, Denied: 5} }, true, autonomy.Confirm},
		{"denials and drift", func(in *autonomy.Input) { in.Now = autonomy.Seen{Calls: 9, Denied: 5, Drift: 4} }, false, autonomy.Confirm},
		{"an attempt on the gate", func(in *autonomy.Input) { in.Now = autonomy.Seen{Denied: 1, Violations: 1} }, false, autonomy.Verify},
		{"and two more, earlier", func(in *autonomy.Input) {
			in.Now, in.Before = autonomy.Seen{Denied: 1, Violations: 1}, autonomy.Seen{Denied: 2, Violations: 2}
		}, false, autonomy.DangerZone},
		{"it says that all is well", func(in *autonomy.Input) {
			in.Now, in.Claimed, in.Hint = autonomy.Seen{Risk: 90}, claimed(0), "nothing to see"
		}, false, autonomy.DangerZone},
	}
	for _, tt := range tests {
		got := autonomy.Evaluate(calm(tt.change))
		if got.Continue != tt.goes || got.Tier != tt.tier || got.Continue == (len(got.Reasons) > 0) {
			t.Errorf("%s: %+v; want continue %v, tier %s", tt.name, got, tt.goes, tt.tier)
		}
	}
	if diff := cmp.Diff(autonomy.Directive{}.Continue, false); diff != "" {
		t.Error("the zero value goes on")
	}
}

// TestWordsOnlyTighten: whatever the agent says about itself, the answer is
// never looser than without it.
func TestWordsOnlyTighten(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := func(label string, most int) int { return rapid.IntRange(0, most).Draw(t, label) }
		in := autonomy.Input{
			Bounds: autonomy.Bounds{
				Tolerance: rapid.SampledFrom([]autonomy.Tolerance{"conservative", "moderate", "aggressive"}).Draw(t, "tolerance"), MaxSteps: n("max", 12),
			},
			Steps: n("steps", 12), Depth: n("depth", 3), Outcome: autonomy.Success,
			Now:    autonomy.Seen{Risk: n("risk", 100), Denied: n("denied", 6), Violations: n("violations", 3), Irreversible: n("irreversible", 4), Drift: n("drift", 5)},
			Before: autonomy.Seen{Denied: n("before", 10)},
		}
		silent := autonomy.Evaluate(in)
		in.Claimed, in.Hint = claimed(rapid.Float64().Draw(t, "claimed")), rapid.String().Draw(t, "hint")
		in.HintRisk, in.HintAttack = n("hint risk", 100), rapid.Bool().Draw(t, "attack")
		in.Outcome = rapid.SampledFrom([]autonomy.Outcome{"success", "partial", "failure", "splendid"}).Draw(t, "outcome")
		said := autonomy.Evaluate(in)
		if said.Score < silent.Score || said.Tier > silent.Tier || said.Continue && !silent.Continue {
			t.Fatalf("talking helped: %+v, then %+v", silent, said)
		}
	})
}
