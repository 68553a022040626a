package policy

import (
	"fmt"
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/facts"
	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
)

// Reasons of a stage that has nothing against a call. They are shared, so
// that the way to AUTO_APPROVE allocates nothing.
var (
	nothing  = passes("nothing to object")
	recovery = passes("the recovery path is out of reach of every policy; it approves nothing by itself")
)

// confined is the guarantee that project code runs in the gate's sandbox.
var confined = []call.Guarantee{{Name: "confined"}}

// passes makes one AUTO_APPROVE ballot per stage.
func passes(reason string) []call.Ballot {
	ballots := make([]call.Ballot, len(call.Stages()))
	for i, stage := range call.Stages() {
		vote := call.Vote{Stage: stage, Source: "gatehouse", Rule: "default", Level: call.AutoApprove, Reason: reason}
		ballots[i] = call.Ballot{Stage: stage, Level: call.AutoApprove, Votes: []call.Vote{vote}}.Share()
	}
	return ballots
}

func passed(stage call.Stage, ballots []call.Ballot) call.Ballot { return ballots[stage] }

// ballot joins votes to a stage's ballot; without any the stage passes.
func ballot(stage call.Stage, votes []call.Vote) call.Ballot {
	if len(votes) == 0 {
		return passed(stage, nothing)
	}
	level := call.AutoApprove
	for i := range votes {
		level = call.Join(level, votes[i].Level)
	}
	return call.Ballot{Stage: stage, Level: level, Votes: votes}
}

func deny(stage call.Stage, source, rule, reason string, evidence ...call.Evidence) call.Ballot {
	return ballot(stage, []call.Vote{{Stage: stage, Source: source, Rule: rule, Level: call.Deny, Reason: reason, Evidence: evidence}})
}

// voteSwitch: the kill switch stops everything, the danger zone one agent; and
// while an active element denies confirm_operation, or an execution is paused,
// nothing beyond reads happens.
func (s *Snapshot) voteSwitch(in *Input, _ *Buffer) call.Ballot {
	if in.Switches.Kill != "" {
		return deny(call.StageSwitch, "kill switch", "on", saying("the kill switch is on", in.Switches.Kill))
	}
	if in.Switches.Danger != "" {
		return deny(call.StageSwitch, "danger zone", "blocked", saying("this agent is blocked", in.Switches.Danger))
	}
	if by := in.Elements.Frozen(); len(by) > 0 && !reads(in) {
		return deny(call.StageSwitch, by[0], "deny: confirm_operation",
			"the session is frozen: "+strings.Join(by, ", ")+" denies every confirmation, so only reads go ahead")
	}
	if in.Switches.Paused != "" && !reads(in) && !keepsExecution(in.Call) {
		return deny(call.StageSwitch, "autonomy", "paused", in.Switches.Paused+"; only reads go ahead until an approver lets it go on")
	}
	if (in.Plan || in.Switches.Plan) && !reads(in) && in.Call.Operation != call.OpNote {
		return deny(call.StageSwitch, "plan mode", "reads only", "the agent is in plan mode, in which only reads go ahead")
	}
	if why := s.verifies(in); why != "" {
		return ballot(call.StageSwitch, []call.Vote{{
			Stage: call.StageSwitch, Source: "strictness", Rule: s.Settings.Strictness, Level: call.ConfirmSingleUse, Reason: why,
		}})
	}
	return passed(call.StageSwitch, nothing)
}

// keepsExecution says whether a call is one of those that an execution is kept
// by: they answer for a paused one themselves. What begins another is not among
// them.
func keepsExecution(c *call.Call) bool {
	if c.Kind != call.Native {
		return false
	}
	switch c.Operation {
	case "record_execution_step", "continue_execution", "complete_execution", "abort_execution", "prepare_handoff", "resume_from_handoff", "confirm_operation":
		return true
	}
	return false
}

// saying puts words before a reason that does not begin with them.
func saying(words, reason string) string {
	if strings.HasPrefix(reason, words) {
		return reason
	}
	return words + ": " + reason
}

// reads says whether a call does nothing beyond reading.
func reads(in *Input) bool {
	if op := nativeOperation(in.Call); op != nil {
		return op.Endpoint == call.Read
	}
	if in.Call.Kind != call.External || in.Facts.TakesCode || in.Facts.Class != "" && in.Facts.Class != "safe" || len(in.Facts.Needs) == 0 {
		return false
	}
	for _, n := range in.Facts.Needs {
		if n.Capability != call.FSRead {
			return false
		}
	}
	return true
}

// voteContent: a critical finding denies, a high one asks, the rest is kept
// in the record.
func (s *Snapshot) voteContent(in *Input, _ *Buffer) call.Ballot {
	var votes []call.Vote
	for _, f := range in.Facts.Findings {
		v := call.Vote{
			Stage: call.StageContent, Source: "content", Rule: f.Rule, Level: call.AutoApprove,
			Reason: "found " + f.Category, Evidence: []call.Evidence{f.Evidence},
		}
		switch f.Severity {
		case facts.Critical:
			v.Level = call.Deny
		case facts.High:
			v.Level = call.ConfirmSingleUse
		}
		votes = append(votes, v)
	}
	return ballot(call.StageContent, votes)
}

// voteRoute: the operation must exist and must have come by its endpoint.
func (s *Snapshot) voteRoute(in *Input, _ *Buffer) call.Ballot {
	c := in.Call
	switch c.Kind {
	case call.External, call.Dispatch:
		return passed(call.StageRoute, nothing)
	case call.Native:
		op := nativeOperation(c)
		if op == nil {
			reason := fmt.Sprintf("there is no operation %q", c.Operation)
			if near, ok := match.Nearest(c.Operation, call.OperationNames()); ok {
				reason += fmt.Sprintf("; did you mean %q?", near)
			}
			return deny(call.StageRoute, "operation table", "unknown operation", reason)
		}
		if !routed(c, op) {
			return deny(call.StageRoute, "operation table", "wrong endpoint",
				fmt.Sprintf("%s is served by the %s endpoint, not by %s", op.Name, op.Endpoint, c.Endpoint))
		}
		return passed(call.StageRoute, nothing)
	}
	return deny(call.StageRoute, "gatehouse", "no kind", "the call has no kind")
}

// voteElement: what the operation table and the active elements say. External
// calls and requests have no endpoint default; their base is voted elsewhere,
// and elements object to them by their patterns.
func (s *Snapshot) voteElement(in *Input, _ *Buffer) call.Ballot {
	if in.Call.Kind == call.Native {
		return in.Elements.Resolve(in.Call.Operation, in.Call.ElementType, in.Facts.Change == facts.LoosensNothing)
	}
	return ballot(call.StageElement, in.Elements.External(in.Call, in.Facts, reads(in)))
}

// voteTool: what goes beyond the tool's own declaration is denied.
func (s *Snapshot) voteTool(in *Input, _ *Buffer) call.Ballot {
	if len(in.Facts.ToolViolations) == 0 {
		return passed(call.StageTool, nothing)
	}
	return deny(call.StageTool, "tool policy", "declared", "the call goes beyond what the tool declares: "+in.Facts.ToolViolations[0].Text, in.Facts.ToolViolations...)
}

// voteConstraint: how often and in which order a tool may run.
func (s *Snapshot) voteConstraint(in *Input, _ *Buffer) call.Ballot {
	var votes []call.Vote
	for _, v := range in.Violations {
		votes = append(votes, call.Vote{Stage: call.StageConstraint, Source: v.Tool, Rule: v.Rule, Level: v.Level, Reason: v.Reason})
	}
	return ballot(call.StageConstraint, votes)
}

// voteRisk: external calls ask from a risk on, and when they cannot be undone.
func (s *Snapshot) voteRisk(in *Input, _ *Buffer) call.Ballot {
	if in.Call.Kind != call.External {
		return passed(call.StageRisk, nothing)
	}
	var votes []call.Vote
	f, set := in.Facts, &s.Settings
	add := func(rule string, level call.Level, reason string) {
		votes = append(votes, call.Vote{Stage: call.StageRisk, Source: "risk", Rule: rule, Level: level, Reason: reason, Evidence: f.RiskEvidence})
	}
	if set.RiskDenyAt > 0 && f.Risk >= set.RiskDenyAt {
		add("deny_at", call.Deny, fmt.Sprintf("its risk is %d, and from %d on calls are denied", f.Risk, set.RiskDenyAt))
	}
	if f.Risk >= set.RiskConfirmAt {
		add("confirm_at", call.ConfirmSingleUse, fmt.Sprintf("its risk is %d, and from %d on a person is asked", f.Risk, set.RiskConfirmAt))
	}
	if f.Irreversible && set.Irreversible != call.AutoApprove {
		add("irreversible", set.Irreversible, "it cannot be undone")
	}
	votes = s.voteTaint(in, votes)
	if len(f.Destroys) > 0 {
		// No setting turns this off, and as a vote on this very use no session
		// grant answers it: what would be lost is different every time.
		add("unsaved", call.ConfirmSingleUse, "it destroys work that is saved nowhere else: "+some(f.Destroys, 3))
	}
	if f.Outside {
		add("outside", call.ConfirmSingleUse, "it acts outside the agent's own processes")
	}
	return ballot(call.StageRisk, votes)
}

// voteSelf: nothing an agent does may reach the gate itself.
func (s *Snapshot) voteSelf(in *Input, _ *Buffer) call.Ballot {
	if len(in.Facts.Self) == 0 {
		return passed(call.StageSelf, nothing)
	}
	return deny(call.StageSelf, "self", "protected", "it reaches the gate itself: "+in.Facts.Self[0].Text, in.Facts.Self...)
}

// some names the first few of a list.
func some(list []string, n int) string {
	if len(list) <= n {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:n], ", "), len(list)-n)
}
