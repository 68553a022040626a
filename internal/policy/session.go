package policy

import (
	"fmt"
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
)

const (
	profileSupervised = "supervised"
	profileAutonomous = "autonomous"
)

// The shell classes.
const (
	classSafe        = "safe"
	classMutating    = "mutating"
	classNetwork     = "network"
	classDestructive = "destructive"
	classUnknown     = "unknown"
)

// voteSession is the session policy: each capability an external call needs
// maps to a level, and so does its shell class; pattern rules come on top.
// On native calls it can only add a DENY. Requests to agent CLIs have their
// base voted by their score, see voteDispatch.
func (s *Snapshot) voteSession(in *Input, buf *Buffer) call.Ballot {
	switch in.Call.Kind {
	case call.Native:
		return s.denyOperation(in)
	case call.Dispatch:
		return s.voteDispatch(in, buf)
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

func (s *Snapshot) external(in *Input, buf *Buffer) call.Ballot {
	if len(s.profiles) == 0 {
		return deny(call.StageSession, "gatehouse", "no profile", "the policy has no profile")
	}
	for i := range s.profiles {
		if p := &s.profiles[i]; p.refused != "" {
			return deny(call.StageSession, p.source, p.name, p.refused)
		}
	}
	start, lost := len(buf.votes), len(buf.conflicts)
	buf.prepare(in)
	if s.applyRules(in, buf) > 0 || in.Facts.Irreversible {
		buf.allows = buf.allows[:0] // a rule objects or nothing could be undone: no rule lowers
	} else if in.Elements.AllowsExternal(in.Call, in.Facts) {
		buf.allows = append(buf.allows, &elementAllows)
	}
	s.applyProfiles(in, buf)
	b := ballot(call.StageSession, buf.votes[start:len(buf.votes):len(buf.votes)])
	if len(buf.conflicts) > lost {
		b.Conflicts = buf.conflicts[lost:len(buf.conflicts):len(buf.conflicts)]
	}
	return b
}

// elementAllows stands for the allow patterns of active elements, once they
// hold everything that a call does. It speaks for what a command or a file
// tool changes inside the workspace, and for nothing that is not understood.
var elementAllows = rule{command: func(string) bool { return true }}

// prepare makes a target of every need, once for all patterns.
func (buf *Buffer) prepare(in *Input) {
	workspace := in.Facts.Workspace
	if workspace == "" {
		workspace = in.Call.Dir
	}
	buf.targets, buf.allows = buf.targets[:0], buf.allows[:0]
	for i := range in.Facts.Needs {
		buf.targets = append(buf.targets, newTarget(&in.Facts.Needs[i], workspace))
	}
}

// applyRules adds the votes of the rules that apply, counts those that object
// and notes those that approve.
func (s *Snapshot) applyRules(in *Input, buf *Buffer) (objections int) {
	for i := range s.rules {
		r := &s.rules[i]
		v := call.Vote{Stage: call.StageSession, Source: r.source, Rule: r.spec.Name, Level: r.spec.Level, Reason: r.spec.Reason}
		if r.spec.Level == call.AutoApprove {
			if !r.allows(in, buf.targets) {
				continue
			}
			buf.allows = append(buf.allows, r)
		} else {
			f := r.objects(in, buf.targets)
			if f == misses {
				continue
			}
			if f == mayFit {
				v.Level, v.Reason = soften(v.Level, f), r.mayReason
			}
			objections++
		}
		buf.votes = append(buf.votes, v)
	}
	return objections
}

// applyProfiles adds a vote per need and one for the class.
//
// The class of a command and what the command needs answer the same question,
// so they are not asked twice: a command that is understood runs programs as
// a matter of course, so its class stands for a plain proc.exec that would
// ask; and the class of a command that writes or connects is voted on the
// needs that say where, if there are any. A class that is destructive or
// unknown always votes by itself, except that code which runs confined is
// voted on as such where the profile has an entry for it. A call that needs nothing and has no class
// is unknown: someone must look at it.
func (s *Snapshot) applyProfiles(in *Input, buf *Buffer) {
	f := in.Facts
	class, told := f.Class, false
	for i := range f.Needs {
		n := &f.Needs[i]
		told = told || aboutClass(class, n.Capability)
		v, ok := s.voteNeed(n, &buf.targets[i], class)
		if !ok {
			continue
		}
		if v.Level.Asks() && buf.lowered(func(r *rule) bool { return r.lowersNeed(n, &buf.targets[i]) }) {
			buf.conflict(&v)
			continue
		}
		buf.votes = append(buf.votes, v)
	}
	s.voteConfined(in, buf)
	if class == "" && len(f.Needs) == 0 {
		class = classUnknown
	}
	if class == "" || told {
		return
	}
	v, ok := s.voteClass(class, f.Wrapped)
	if !ok {
		return
	}
	if v.Level.Asks() && buf.lowered(func(r *rule) bool { return r.lowersClass(in, class) }) {
		buf.conflict(&v)
		return
	}
	buf.votes = append(buf.votes, v)
}

// lowered says whether one of the approving rules speaks for a vote.
func (buf *Buffer) lowered(speaks func(*rule) bool) bool {
	for _, r := range buf.allows {
		if speaks(r) {
			return true
		}
	}
	return false
}

func (buf *Buffer) conflict(v *call.Vote) {
	buf.conflicts = append(buf.conflicts, call.Conflict{Source: v.Source, Wanted: v.Level, Reason: "lowered by an allow rule"})
}

// aboutClass says whether a need tells what a class of commands is about.
func aboutClass(class string, c call.Capability) bool {
	switch class {
	case classMutating:
		return c == call.FSWrite || c == call.FSDelete
	case classNetwork:
		return c == call.NetEgress
	}
	return false
}

// voteNeed is the strictest vote of all profiles on one need; none if the
// class of the command speaks for it.
func (s *Snapshot) voteNeed(n *call.Need, t *target, class string) (vote call.Vote, ok bool) {
	for i := range s.profiles {
		v, voted := s.profiles[i].voteNeed(n, t, class)
		if voted && (!ok || v.Level.StricterThan(vote.Level)) {
			vote, ok = v, true
		}
	}
	return vote, ok
}

// voteClass is the strictest vote of all profiles on a class; none if every
// profile speaks about what runs confined, and the call does.
func (s *Snapshot) voteClass(class string, confined bool) (vote call.Vote, ok bool) {
	for i := range s.profiles {
		p := &s.profiles[i]
		if confined && class == classUnknown && p.confined() {
			continue
		}
		if v := p.voteClass(class); !ok || v.Level.StricterThan(vote.Level) {
			vote, ok = v, true
		}
	}
	return vote, ok
}

// voteConfined adds the vote on what code that runs confined can do: change
// files anywhere in the workspace. Rules about paths do not meet it, because
// the sandbox leaves out what they are about (see [Snapshot.Decide]).
func (s *Snapshot) voteConfined(in *Input, buf *Buffer) {
	if !in.Facts.Wrapped {
		return
	}
	for i := range in.Facts.Needs {
		n := &in.Facts.Needs[i]
		if n.Capability != call.ProcExec || n.Scope != call.Confined {
			continue
		}
		tree := &call.Need{Capability: call.FSWrite, Scope: "./**", Inside: true, Root: n.Root, Evidence: n.Evidence}
		t := newTarget(tree, in.Facts.Workspace)
		if v, ok := s.voteNeed(tree, &t, ""); ok {
			buf.votes = append(buf.votes, v)
		}
		s.voteUnheld(in, buf)
		return
	}
}

// voteUnheld asks every time where a rule about paths is one that no sandbox
// can hold: a pattern that is neither a path nor a name at any depth.
func (s *Snapshot) voteUnheld(in *Input, buf *Buffer) {
	for i := range s.rules {
		r := &s.rules[i]
		if r.path == nil || r.spec.Level == call.AutoApprove || holdable(r.spec.Path) || r.operation != nil && !r.operation(in.Call.Operation) {
			continue
		}
		buf.votes = append(buf.votes, call.Vote{
			Stage: call.StageSession, Source: r.source, Rule: r.spec.Name, Level: call.ConfirmSingleUse,
			Reason: "no sandbox can keep code away from " + r.spec.Path + ", and a rule is about it: " + r.spec.Reason,
		})
	}
}

// holdable says whether a sandbox can leave alone just what a pattern holds.
func holdable(pattern string) bool {
	p := strings.TrimPrefix(strings.TrimSuffix(pattern, "/**"), "**/")
	return p != "" && !strings.ContainsAny(p, "*?[{")
}

// confined says whether the profile has an entry for code that runs confined.
// It then stands for the class unknown: what is not seen through is held.
func (p *profile) confined() bool {
	for i := range p.scoped[call.ProcExec] {
		if p.scoped[call.ProcExec][i].pattern.src == call.Confined {
			return true
		}
	}
	return false
}

// voteNeed finds the profile's entry for one need. Scoped entries that cover
// it count before the plain one, of several the strictest; on top of that
// every scoped entry counts that the need may reach.
func (p *profile) voteNeed(n *call.Need, t *target, class string) (call.Vote, bool) {
	var cover, meet *capRule
	met, how := call.AutoApprove, misses
	scoped := p.scoped[n.Capability]
	for i := range scoped {
		r := &scoped[i]
		if r.pattern.covers(t) && (cover == nil || r.level.StricterThan(cover.level)) {
			cover = r
		}
		if f := r.pattern.meets(t); f != misses && soften(r.level, f).StricterThan(met) {
			meet, met, how = r, soften(r.level, f), f
		}
	}
	vote, ok := p.votePlain(n, class)
	if cover != nil {
		vote, ok = cover.vote(n), true
	}
	if meet != nil && (!ok || met.StricterThan(vote.Level)) {
		vote, ok = meet.vote(n), true
		if how == mayFit {
			vote.Level, vote.Reason = met, meet.mayReason
		}
	}
	return vote, ok
}

// votePlain is what the profile says where no scope covers the need. A
// capability that the profile does not know is denied.
func (p *profile) votePlain(n *call.Need, class string) (call.Vote, bool) {
	r, ok := p.plain[n.Capability]
	if !ok {
		return call.Vote{
			Stage: call.StageSession, Source: p.source, Rule: string(n.Capability), Level: call.Deny,
			Reason: fmt.Sprintf("the profile %s says nothing about %s", p.name, n.Capability), Need: n,
		}, true
	}
	if n.Capability == call.ProcExec && class != "" && r.level != call.Deny {
		return call.Vote{}, false
	}
	vote := r.vote(n)
	if aboutClass(class, n.Capability) {
		if c := p.voteClass(class); c.Level.StricterThan(vote.Level) {
			c.Need = n
			return c, true
		}
	}
	return vote, true
}

func (p *profile) voteClass(class string) call.Vote {
	c, ok := p.classes[class]
	if !ok {
		c = classRule{
			rule: "class " + class, source: p.source, level: call.Deny,
			reason: fmt.Sprintf("the profile %s says nothing about the class %q", p.name, class),
		}
	}
	return call.Vote{Stage: call.StageSession, Source: c.source, Rule: c.rule, Level: c.level, Reason: c.reason}
}

func (r *capRule) vote(n *call.Need) call.Vote {
	return call.Vote{Stage: call.StageSession, Source: r.source, Rule: r.rule, Level: r.level, Reason: r.reason, Need: n}
}
