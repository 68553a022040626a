package policy

import (
	"slices"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/element"
	"github.com/seed-3ebc6b8a/gatehouse/internal/facts"
)

// Input is everything a decision rests on.
type Input struct {
	Call  *call.Call
	Facts *facts.Facts
	// Digest is the call's digest, computed once by whoever normalised it.
	Digest call.Digest
	// Elements are the active elements of the principal and workspace.
	Elements *element.Set
	// Switches are the big switches as last read; the verdict reads them
	// again in its transaction.
	Switches Switches
	// Taint is what the principal, or anyone in the workspace, took in.
	Taint call.Taint
	// Violations are the usage constraints that the call would break.
	Violations []Violation
	// Plan says that the agent's host is in a mode in which nothing may be
	// changed.
	Plan bool
}

// Switches are what stops calls whatever policy says.
type Switches struct {
	// Kill is why the kill switch is on, "" when it is off.
	Kill string
	// Danger is why the danger zone blocks the agent, "" when it does not.
	Danger string
	// Paused says which execution of the agent waits for a person, and why, ""
	// when none does.
	Paused string
	// Plan says that the session was set to read only, as a host's mode does.
	Plan bool
}

// Violation is a usage constraint that a call would break.
type Violation struct {
	Tool   string
	Rule   string
	Level  call.Level
	Reason string
}

// Buffer holds what one decision needs, to be used again for the next. A
// decision shares memory with its buffer, so whoever keeps decisions gives
// each its own buffer, or none.
type Buffer struct {
	ballots   []call.Ballot
	votes     []call.Vote
	conflicts []call.Conflict
	targets   []target
	allows    []*rule
}

// voter is one stage's way to vote.
type voter struct {
	stage call.Stage
	vote  func(*Snapshot, *Input, *Buffer) call.Ballot
}

// allVoters is the complete set. A snapshot carries it so that a test can
// take one away and watch every call being denied.
var allVoters = []voter{
	{call.StageSwitch, (*Snapshot).voteSwitch},
	{call.StageContent, (*Snapshot).voteContent},
	{call.StageRoute, (*Snapshot).voteRoute},
	{call.StageElement, (*Snapshot).voteElement},
	{call.StageTool, (*Snapshot).voteTool},
	{call.StageConstraint, (*Snapshot).voteConstraint},
	{call.StageSession, (*Snapshot).voteSession},
	{call.StageRisk, (*Snapshot).voteRisk},
	{call.StageSelf, (*Snapshot).voteSelf},
}

// Decide lets every voter vote on a normalised call and joins the votes.
// Without a snapshot, a call, its facts or its digest it denies. The buffer
// may be nil.
func (s *Snapshot) Decide(in *Input, buf *Buffer) call.Decision {
	if s == nil || in == nil || in.Call == nil || in.Facts == nil || in.Digest.IsZero() {
		return call.Decision{}
	}
	if buf == nil {
		buf = new(Buffer)
	}
	buf.ballots, buf.votes, buf.conflicts = buf.ballots[:0], buf.votes[:0], buf.conflicts[:0]
	op := nativeOperation(in.Call)
	if op != nil && op.Ungatable && routed(in.Call, op) {
		// The recovery path: no voter can gate it, and it approves nothing.
		for _, stage := range call.Stages() {
			buf.ballots = append(buf.ballots, passed(stage, recovery))
		}
	} else {
		for _, v := range s.voters {
			buf.ballots = append(buf.ballots, v.vote(s, in, buf))
		}
	}
	d := call.Decide(buf.ballots)
	d.Digest = in.Digest
	d.World = in.Facts.World
	d.Policy = s.Hash
	d.TakesCode = in.Facts.TakesCode
	d.Pinned = op != nil && pinned(op, in.Facts) || s.verifies(in) != ""
	if d.Pinned {
		d.Level = call.Join(d.Level, call.ConfirmSingleUse)
	}
	if in.Call.Kind == call.External && (in.Facts.Confined || in.Facts.Wrapped || in.Facts.Class == classUnknown && s.confines()) {
		d.Requires = slices.Clone(confined)
		if in.Facts.Wrapped {
			d.Requires = append(d.Requires, s.bounds(in)...)
		}
	}
	return d
}

// bounds are what the sandbox around a confined call must hold besides: it
// runs just this command, writes in the workspace, reads the files and reaches the hosts that the call
// names and no others, and leaves alone what a rule about paths objects to.
func (s *Snapshot) bounds(in *Input) []call.Guarantee {
	out := []call.Guarantee{{Name: "exec", Scope: in.Facts.Script}, {Name: "write", Scope: in.Facts.Workspace}}
	for i := range in.Facts.Needs {
		n := &in.Facts.Needs[i]
		g := call.Guarantee{Name: "hosts", Scope: n.Scope}
		if n.Capability == call.FSRead {
			g.Name = "read"
		}
		wanted := n.Capability == call.NetEgress || n.Capability == call.FSRead && !n.Inside
		if wanted && n.Scope != "" && !slices.Contains(out, g) {
			out = append(out, g)
		}
	}
	for i := range s.rules {
		if r := &s.rules[i]; r.path != nil && r.spec.Level != call.AutoApprove {
			out = append(out, call.Guarantee{Name: "protect", Scope: r.spec.Path})
		}
	}
	return out
}

// nativeOperation is the row of a native call, nil for others and unknowns.
func nativeOperation(c *call.Call) *call.Operation {
	if c.Kind != call.Native {
		return nil
	}
	op, _ := call.LookupOperation(c.Operation)
	return op
}

// pinned says whether the operation takes a confirmation of this very use.
func pinned(op *call.Operation, f *facts.Facts) bool {
	return op.Pinned || op.FreeIfTightening && f.Change != facts.LoosensNothing
}

// confines says whether a profile in use was made for isolated agents.
func (s *Snapshot) confines() bool {
	for i := range s.profiles {
		if s.profiles[i].confines {
			return true
		}
	}
	return false
}

// routed says whether the call came by the operation's endpoint. Surfaces
// without endpoints name none.
func routed(c *call.Call, op *call.Operation) bool {
	return c.Endpoint == 0 || c.Endpoint == op.Endpoint
}
