package autonomy

import (
	"fmt"
	"math"

	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
)

// Tolerance is how much risk an execution bears before it pauses.
type Tolerance string

// The tolerances. Anything else counts as conservative.
const (
	Conservative Tolerance = "conservative"
	Moderate     Tolerance = "moderate"
	Aggressive   Tolerance = "aggressive"
)

// Threshold is the score above which an execution pauses.
func (t Tolerance) Threshold() int {
	switch t {
	case Moderate:
		return 50
	case Aggressive:
		return 75
	}
	return 25
}

// Stricter returns the tolerance that pauses earlier.
func (t Tolerance) Stricter(u Tolerance) Tolerance {
	if u.Threshold() < t.Threshold() {
		return u
	}
	return t
}

// Tier is what a score calls for. The zero value is the strictest.
type Tier uint8

// The tiers, the strictest first.
const (
	// DangerZone blocks the agent.
	DangerZone Tier = iota
	// Verify pauses until a person who was shown a code lets it go on.
	Verify
	// Confirm pauses where the score is above the tolerance.
	Confirm
	// Advisory goes on.
	Advisory
)

var tierNames = [...]string{DangerZone: "danger_zone", Verify: "verify", Confirm: "confirm", Advisory: "advisory"}

// String returns the tier's name.
func (t Tier) String() string {
	if int(t) >= len(tierNames) {
		return tierNames[DangerZone]
	}
	return tierNames[t]
}

// MarshalText writes the tier's name.
func (t Tier) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads a tier's name; anything unknown is the strictest.
func (t *Tier) UnmarshalText(text []byte) error {
	*t = DangerZone
	for i, name := range tierNames {
		if string(text) == name {
			*t = Tier(i)
		}
	}
	return nil
}

// Where the tiers begin, and from which depth of agents that start agents on
// each counts one up.
const (
	ConfirmAt = 31
	VerifyAt  = 61
	DangerAt  = 86
	DeepAt    = 2
)

// TierOf is the tier of a score at a depth.
func TierOf(score, depth int) Tier {
	t := Advisory
	switch {
	case score >= DangerAt:
		t = DangerZone
	case score >= VerifyAt:
		t = Verify
	case score >= ConfirmAt:
		t = Confirm
	}
	if depth >= DeepAt && t > DangerZone {
		t--
	}
	return t
}

// Seen is what the gate saw of an agent's calls.
type Seen struct {
	Calls  int `json:"calls"`
	Denied int `json:"denied,omitzero"`
	// Violations are denials of what reaches the gate itself or carries an
	// attack.
	Violations int `json:"violations,omitzero"`
	// Risk is the highest of a call that no person approved.
	Risk int `json:"risk,omitzero"`
	// Irreversible and Outside count such calls that no person approved.
	Irreversible int `json:"irreversible,omitzero"`
	Outside      int `json:"outside,omitzero"`
	// Drift counts calls outside the declared tools or the workspace.
	Drift int `json:"drift,omitzero"`
	// Operations are the operations that were called.
	Operations []string `json:"operations,omitzero"`
}

// add makes a sum over the whole run.
func (s Seen) add(o Seen) Seen {
	return Seen{Calls: s.Calls + o.Calls, Denied: s.Denied + o.Denied, Violations: s.Violations + o.Violations, Risk: max(s.Risk, o.Risk),
		Irreversible: s.Irreversible + o.Irreversible, Outside: s.Outside + o.Outside, Drift: s.Drift + o.Drift}
}

// Outcome is how a step ended, by the agent's word.
type Outcome string

// The outcomes of a step. Anything else counts as a failure.
const (
	Success Outcome = "success"
	Partial Outcome = "partial"
	Failure Outcome = "failure"
)

// Bounds are what an execution keeps to.
type Bounds struct {
	Tolerance Tolerance `json:"risk_tolerance"`
	// MaxSteps is how many steps it takes before a person lets it go on.
	MaxSteps int `json:"max_steps"`
	// RequiresApproval are globs over operations and announced actions that a
	// person lets through.
	RequiresApproval []string `json:"requires_approval,omitzero"`
	// Tools are globs over the operations it was meant to use; none is all.
	Tools []string `json:"tools,omitzero"`
}

// Input is everything an evaluation rests on.
type Input struct {
	Bounds Bounds
	// Steps were taken since a person last let it go on, this one included.
	Steps int
	// Depth is how many agents started this one.
	Depth int
	// Now was seen since the step before, Before in the whole run until then.
	Now, Before Seen
	Outcome     Outcome
	// Hint is what the agent says it will do next; HintRisk is what the gate
	// makes of it, HintAttack says that it carries an attack.
	Hint       string
	HintRisk   int
	HintAttack bool
	// Claimed is the risk that the agent states, nil for none.
	Claimed *float64
}

// Factor is one reason for a score.
type Factor struct {
	Name   string `json:"name"`
	Points int    `json:"points"`
	Text   string `json:"text"`
}

// Directive says whether the next step may be taken. The zero value stops.
type Directive struct {
	Continue bool     `json:"continue"`
	Tier     Tier     `json:"tier"`
	Score    int      `json:"score"`
	Steps    int      `json:"steps_remaining"`
	Seen     Seen     `json:"seen"`
	Reasons  []string `json:"reasons,omitzero"`
	// Factors say what the score is made of.
	Factors []Factor `json:"factors,omitzero"`
}

// Evaluate says whether an execution may take its next step. Every check is
// made and every reason given; nothing the agent says outweighs what was seen.
func Evaluate(in Input) Directive {
	d := Directive{Continue: true, Seen: in.Now, Steps: max(0, in.Bounds.MaxSteps-in.Steps)}
	d.Score, d.Factors = score(&in)
	d.Tier = TierOf(d.Score, in.Depth)
	pause := func(format string, args ...any) {
		d.Continue, d.Reasons = false, append(d.Reasons, fmt.Sprintf(format, args...))
	}
	if in.Steps >= in.Bounds.MaxSteps {
		pause("%d steps were taken, and %d is the limit before a person looks at it", in.Steps, in.Bounds.MaxSteps)
	}
	if in.Outcome != Success && in.Outcome != Partial {
		pause("the step failed")
	}
	for _, glob := range in.Bounds.RequiresApproval {
		if what := matches(glob, &in); what != "" {
			pause("%q needs a person's approval (%s)", what, glob)
		}
	}
	switch threshold := in.Bounds.Tolerance.Threshold(); {
	case d.Tier == DangerZone:
		pause("the score is %d, in the danger zone", d.Score)
	case d.Tier == Verify:
		pause("the score is %d, which a person verifies", d.Score)
	case d.Score > threshold:
		pause("the score is %d, above %d, the limit of a %s tolerance", d.Score, threshold, in.Bounds.Tolerance)
	}
	return d
}

// matches returns what of the step a glob names, "" for nothing.
func matches(glob string, in *Input) string {
	g, err := match.CompileOp(glob)
	if err != nil {
		return "everything" // a glob that nobody can read approves nothing
	}
	for _, op := range in.Now.Operations {
		if g.Match(op) {
			return op
		}
	}
	if in.Hint != "" && g.Match(in.Hint) {
		return in.Hint
	}
	return ""
}

// score adds up what speaks against the next step.
func score(in *Input) (int, []Factor) {
	var factors []Factor
	total := 0
	base := func(name string, points int, format string, args ...any) {
		if points > 0 {
			factors = append(factors, Factor{name, points, fmt.Sprintf(format, args...)})
			total = max(total, points)
		}
	}
	base("risk", in.Now.Risk, "the riskiest call that no person approved")
	base("hint", in.HintRisk, "what the gate makes of the announced action")
	if in.Claimed != nil {
		base("claimed", sanitized(*in.Claimed), "what the agent itself states")
	}
	add := func(name string, count, each, most int, text string) {
		if points := min(count*each, most); points > 0 {
			factors = append(factors, Factor{name, points, fmt.Sprintf("%d %s", count, text)})
			total += points
		}
	}
	add("irreversible", in.Now.Irreversible, 5, 15, "calls that cannot be undone")
	add("outside", in.Now.Outside, 5, 15, "calls that act outside the agent's own processes")
	add("denied", in.Now.Denied, 8, 40, "calls denied since the step before")
	add("history", in.Before.Denied, 2, 20, "calls denied earlier in this run")
	add("drift", in.Now.Drift, 5, 20, "calls outside the declared tools or the workspace")
	// A floor and not a sum: whoever reaches for the gate itself is verified
	// at once, and blocked when it goes on.
	switch v := in.Now.Violations + in.Before.Violations; {
	case v >= 3:
		base("violations", DangerAt, "%d attempts on the gate, or calls that carried an attack", v)
	case v > 0:
		base("violations", VerifyAt, "%d attempts on the gate, or calls that carried an attack", v)
	}
	if in.HintAttack {
		base("attack", VerifyAt, "the announced action carries an attack")
	}
	return min(total, 100), factors
}

// sanitized brings a stated risk between 0 and 100; what is no number is the
// highest.
func sanitized(v float64) int {
	switch {
	case math.IsNaN(v) || v > 100:
		return 100
	case v < 0:
		return 0
	}
	return int(math.Ceil(v))
}
