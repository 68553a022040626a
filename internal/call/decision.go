package call

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Stage is one group of voters. Every stage votes on every call, with
// AUTO_APPROVE where it has nothing to say against it; a decision that misses
// a stage is DENY.
type Stage uint8

const (
	// StageSwitch is the kill switch, the danger zone and the freeze.
	StageSwitch Stage = iota
	// StageContent is content validation.
	StageContent
	// StageRoute checks that the operation exists and came by its endpoint.
	StageRoute
	// StageElement is the policy of active elements.
	StageElement
	// StageTool is the declared policy of a tool.
	StageTool
	// StageConstraint is how often and in which order a tool may run.
	StageConstraint
	// StageSession is the session policy over required capabilities.
	StageSession
	// StageRisk is risk and irreversibility.
	StageRisk
	// StageSelf protects the gate's own files, listeners and settings.
	StageSelf
	numStages
)

var stageNames = [...]string{
	StageSwitch: "switch", StageContent: "content", StageRoute: "route", StageElement: "element",
	StageTool: "tool", StageConstraint: "constraint", StageSession: "session", StageRisk: "risk", StageSelf: "self",
}

// Stages lists all stages in the order in which they are shown.
func Stages() []Stage {
	s := make([]Stage, numStages)
	for i := range s {
		s[i] = Stage(i)
	}
	return s
}

// String returns the stage's name.
func (s Stage) String() string {
	if s >= numStages {
		return "invalid"
	}
	return stageNames[s]
}

// MarshalText writes the stage's name.
func (s Stage) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the exact name of a stage.
func (s *Stage) UnmarshalText(text []byte) error {
	i := slices.Index(stageNames[:], string(text))
	if i < 0 {
		return fmt.Errorf("%q is not a stage", text)
	}
	*s = Stage(i)
	return nil
}

// Vote is what one voter says about a call.
type Vote struct {
	Stage Stage `json:"stage"`
	// Source is who votes: an element, a policy file with its line, the
	// operation table.
	Source string `json:"source"`
	// Rule is what in the source applies.
	Rule string `json:"rule"`
	// Level is what the voter asks for.
	Level Level `json:"level"`
	// Reason says why, in words.
	Reason string `json:"reason"`
	// Need is the capability that the vote is about, if it is about one.
	Need *Need `json:"need,omitzero"`
	// Evidence points at what the vote rests on.
	Evidence []Evidence `json:"evidence,omitzero"`
}

// Key identifies a vote across calls: the same voter asking for the same
// reason. A grant remembers the keys of the votes that were shown to the
// person, and covers those and no others.
func (v Vote) Key() string {
	key := v.Stage.String() + "\x1f" + v.Source + "\x1f" + v.Rule + "\x1f" + v.Level.String()
	if v.Need != nil {
		key += "\x1f" + string(v.Need.Capability)
	}
	return key
}

// Ballot is what a whole stage says: its votes and the level they join to. A
// vote that lost, such as a base level that an element lowered, is not among
// the votes but among the conflicts. The slices are shared with the policy
// that made them: do not change them.
type Ballot struct {
	Stage     Stage      `json:"stage"`
	Level     Level      `json:"level"`
	Votes     []Vote     `json:"votes"`
	Conflicts []Conflict `json:"conflicts,omitzero"`

	// The ballot and the list of its votes as JSON, if it was made to be shared.
	encoded, votes jsontext.Value
}

// Share returns the ballot with its JSON made in advance, for ballots that are
// compiled once and stand in many decisions. It must not be changed after.
func (b Ballot) Share() Ballot {
	encoded, err := json.Marshal(plainBallot(b))
	if err != nil {
		return b
	}
	if b.votes, err = json.Marshal(b.Votes); err == nil {
		b.encoded = encoded
	}
	return b
}

// Shared says that the ballot was compiled in advance and holds nothing of
// the call it stands in.
func (b *Ballot) Shared() bool { return b.encoded != nil }

// plainBallot is a ballot without the method below.
type plainBallot Ballot

// MarshalJSONTo writes the ballot, from what was made in advance if it was.
func (b Ballot) MarshalJSONTo(enc *jsontext.Encoder) error {
	if b.encoded != nil {
		return enc.WriteValue(b.encoded)
	}
	return json.MarshalEncode(enc, plainBallot(b))
}

// Conflict is a vote that lost against another.
type Conflict struct {
	// Source is the voter that lost.
	Source string `json:"source"`
	// Wanted is the level it asked for.
	Wanted Level `json:"wanted"`
	// Reason says what it lost against.
	Reason string `json:"reason"`
}

// Guarantee is something the effect must hold to: that it writes only under
// some roots, reaches only some hosts, runs confined. Guarantees are joined
// like levels: an effect must hold all of them.
type Guarantee struct {
	// Name is one of confined, write, read, hosts, protect, exec, limits.
	Name string `json:"name"`
	// Scope bounds it; what it means depends on the name.
	Scope string `json:"scope,omitzero"`
}

// Missing returns the guarantees that are required but not achieved.
func Missing(required, achieved []Guarantee) []Guarantee {
	var missing []Guarantee
	for _, g := range required {
		if !slices.Contains(achieved, g) {
			missing = append(missing, g)
		}
	}
	return missing
}

// Decision is the join of all ballots on one call. The zero value denies.
type Decision struct {
	Level     Level       `json:"level"`
	Ballots   []Ballot    `json:"ballots"`
	Requires  []Guarantee `json:"requires,omitzero"`
	Digest    Digest      `json:"digest"`
	World     Digest      `json:"world"`
	Policy    Digest      `json:"policy"`
	Pinned    bool        `json:"pinned,omitzero"`
	TakesCode bool        `json:"takes_code,omitzero"`
}

// Decide joins ballots to a decision. Every stage must have voted, once; a
// missing or doubled stage, or a stage without a vote, denies.
func Decide(ballots []Ballot) Decision {
	d := Decision{Level: AutoApprove, Ballots: ballots}
	var seen [numStages]bool
	for i := range ballots {
		b := &ballots[i]
		if b.Stage >= numStages || seen[b.Stage] || len(b.Votes) == 0 {
			d.Level = Deny
			continue
		}
		seen[b.Stage] = true
		d.Level = Join(d.Level, b.Level)
	}
	for _, ok := range seen {
		if !ok {
			d.Level = Deny
		}
	}
	return d
}

// Votes yields every vote of every stage.
func (d *Decision) Votes() iter.Seq[Vote] {
	return func(yield func(Vote) bool) {
		for i := range d.Ballots {
			for _, v := range d.Ballots[i].Votes {
				if !yield(v) {
					return
				}
			}
		}
	}
}

// Conflicts lists every vote that lost against another.
func (d *Decision) Conflicts() []Conflict {
	var all []Conflict
	for i := range d.Ballots {
		all = append(all, d.Ballots[i].Conflicts...)
	}
	return all
}

// Confirmations lists the votes that a person's answer must cover.
func (d *Decision) Confirmations() []Vote {
	var asks []Vote
	for v := range d.Votes() {
		if v.Level.Asks() {
			asks = append(asks, v)
		}
	}
	return asks
}

// Why returns the reasons of the strictest votes, in one line of words.
func (d *Decision) Why() string {
	var reasons []string
	for i := range d.Ballots {
		b := &d.Ballots[i]
		if b.Level != d.Level {
			continue
		}
		for _, v := range b.Votes {
			if v.Level == d.Level && v.Reason != "" && !slices.Contains(reasons, v.Reason) {
				reasons = append(reasons, v.Reason)
			}
		}
	}
	if len(reasons) == 0 {
		return missingReason(d)
	}
	return strings.Join(reasons, "; ")
}

func missingReason(d *Decision) string {
	if d.Level == AutoApprove {
		return "nothing speaks against it"
	}
	for _, s := range Stages() {
		if !slices.ContainsFunc(d.Ballots, func(b Ballot) bool { return b.Stage == s && len(b.Votes) > 0 }) {
			return "the stage " + s.String() + " did not vote, and an incomplete vote denies"
		}
	}
	return "no reason was given, and that denies"
}
