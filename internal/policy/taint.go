package policy

import (
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
)

// voteTaint raises the level of what leaves the machine after the agent took
// in something delicate. Who has read credentials is asked every time, unless
// the call goes to the server that a credential of the environment is for, or
// stays on the machine. Who has read what nobody vouches for is asked at least
// once per place, and every time before something is published.
func (s *Snapshot) voteTaint(in *Input, votes []call.Vote) []call.Vote {
	if in.Taint == 0 {
		return votes
	}
	for i := range in.Facts.Needs {
		n := &in.Facts.Needs[i]
		if n.Capability != call.NetEgress || local(n.Scope) {
			continue
		}
		v := call.Vote{Stage: call.StageRisk, Source: "taint", Need: n, Evidence: n.Evidence}
		switch {
		case in.Taint&call.TaintSecrets != 0 && !strings.HasPrefix(n.Scope, "$"):
			v.Rule, v.Level = "secrets", call.ConfirmSingleUse
			v.Reason = "secrets were read here before, and this sends something out"
		case in.Taint&call.TaintUntrusted != 0 && in.Facts.Irreversible:
			v.Rule, v.Level = "untrusted", call.ConfirmSingleUse
			v.Reason = "content that nobody vouches for was read here before, and this publishes something"
		case in.Taint&call.TaintUntrusted != 0 && s.lets(n, in):
			v.Rule, v.Level = "untrusted", call.ConfirmSession
			v.Reason = "content that nobody vouches for was read here before, and this sends something out"
		default:
			continue
		}
		votes = append(votes, v)
	}
	return votes
}

// lets says whether the session policy asks nobody about a need.
func (s *Snapshot) lets(n *call.Need, in *Input) bool {
	t := newTarget(n, in.Facts.Workspace)
	v, ok := s.voteNeed(n, &t, in.Facts.Class)
	return !ok || v.Level == call.AutoApprove
}

// local says whether a scope is a host that is this machine.
func local(scope string) bool {
	h, err := match.ParseHost(scope)
	return err == nil && h.Class() == match.ClassLoopback
}
