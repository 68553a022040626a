package policy

import (
	"fmt"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
)

const (
	profileSupervised = "supervised"
	profileAutonomous = "autonomous"
)

// voteSession is the session policy: each capability an external call needs
// maps to a level, and so does its shell class; pattern rules come on top.
// On native calls it can only add a DENY. Requests to agent CLIs have their
// base voted by their score, which arrives as a violation or not at all.
func (s *Snapshot) voteSession(in *Input, buf *Buffer) call.Ballot {
	switch in.Call.Kind {
	case call.Native:
		return s.denyOperation(in)
	case call.Dispatch:
		return s.rulesOnly(in, buf)
	case call.External:
		return s.external(in, buf)
	}
	return deny(call.StageSession, "gatehouse", "no kind", "the call has no kind")
}

func (s *Snapshot) denyOperation(in *Input) call.Ballot {
	for i := range s.operations {
		if o := &s.operations[i]; o.matches(in.Call.Operation) {
			return deny(call.StageSession, o.source, o.rule, "the policy denies "+in.Call.Operation)
		}
	}
	return passed(call.StageSession, nothing)
}

func (s *Snapshot) rulesOnly(in *Input, buf *Buffer) call.Ballot {
	start := len(buf.votes)
	s.applyRules(in, buf)
	return ballot(call.StageSession, buf.votes[start:len(buf.votes):len(buf.votes)])
}

func (s *Snapshot) external(in *Input, buf *Buffer) call.Ballot {
	if s.profile.refused != "" {
		return deny(call.StageSession, s.profile.source, s.profile.name, s.profile.refused)
	}
	start := len(buf.votes)
	objections := s.applyRules(in, buf)
	lowers := len(buf.votes) > start && objections == 0 && !in.Facts.Irreversible
	mid := len(buf.votes)
	s.applyProfile(in, buf)
	var conflicts []call.Conflict
	if lowers {
		conflicts = buf.lower(mid)
	}
	b := ballot(call.StageSession, buf.votes[start:len(buf.votes):len(buf.votes)])
	b.Conflicts = conflicts
	return b
}

// lower takes the profile's confirmations, which start at mid, out of the
// votes: an allow rule matched, no rule objects and the call can be undone.
// What the profile denies stays denied.
func (buf *Buffer) lower(mid int) []call.Conflict {
	start, kept := len(buf.conflicts), mid
	for _, v := range buf.votes[mid:] {
		if v.Level.Asks() {
			buf.conflicts = append(buf.conflicts, call.Conflict{Source: v.Source, Wanted: v.Level, Reason: "lowered by an allow rule"})
			continue
		}
		buf.votes[kept] = v
		kept++
	}
	buf.votes = buf.votes[:kept]
	return buf.conflicts[start:len(buf.conflicts):len(buf.conflicts)]
}

// applyRules adds the votes of matching pattern rules and counts those that
// object.
func (s *Snapshot) applyRules(in *Input, buf *Buffer) (objections int) {
	for i := range s.rules {
		r := &s.rules[i]
		if !r.matches(in) {
			continue
		}
		if r.level != call.AutoApprove {
			objections++
		}
		buf.votes = append(buf.votes, call.Vote{Stage: call.StageSession, Source: r.source, Rule: r.name, Level: r.level, Reason: r.reason})
	}
	return objections
}

// applyProfile adds a vote per need and one for the class. A call that needs
// nothing and has no class is unknown: someone must look at it.
func (s *Snapshot) applyProfile(in *Input, buf *Buffer) {
	f := in.Facts
	for i := range f.Needs {
		buf.votes = append(buf.votes, s.voteNeed(&f.Needs[i]))
	}
	class := f.Class
	if class == "" && len(f.Needs) == 0 {
		class = "unknown"
	}
	if class == "" {
		return
	}
	c, ok := s.profile.classes[class]
	if !ok {
		c = classRule{rule: "class " + class, reason: fmt.Sprintf("the profile says nothing about the class %q", class), level: call.Deny}
	}
	buf.votes = append(buf.votes, call.Vote{Stage: call.StageSession, Source: s.profile.source, Rule: c.rule, Level: c.level, Reason: c.reason})
}

// voteNeed finds the profile's entry for one need: scoped entries that cover
// it count before the plain one, of several the strictest; a capability the
// profile does not know is denied.
func (s *Snapshot) voteNeed(n *call.Need) call.Vote {
	var best *capRule
	scoped := s.profile.scoped[n.Capability]
	for i := range scoped {
		if r := &scoped[i]; r.covers(*n) && (best == nil || r.level.StricterThan(best.level)) {
			best = r
		}
	}
	if best == nil {
		if r, ok := s.profile.plain[n.Capability]; ok {
			return call.Vote{Stage: call.StageSession, Source: r.source, Rule: r.rule, Level: r.level, Reason: r.reason, Need: n}
		}
		return call.Vote{
			Stage: call.StageSession, Source: s.profile.source, Rule: string(n.Capability), Level: call.Deny,
			Reason: fmt.Sprintf("the profile says nothing about %s", n.Capability), Need: n,
		}
	}
	return call.Vote{Stage: call.StageSession, Source: best.source, Rule: best.rule, Level: best.level, Reason: best.reason, Need: n}
}
