package dispatch

import (
	"cmp"
	"context"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/grant"
)

// Path is the place of a run below whoever asked for it. The run is a sub-agent
// in that one's session.
func (r *Run) Path() string { return RunPath(r.Call.Principal, r.CLI, r.JobID) }

// RunPath is the path of the run that a job is.
func RunPath(owner call.Principal, cli, job string) string {
	return call.Below(owner.Path, cli+":"+job)
}

// setAside cuts the run's part from the caller's budget, so that neither spends
// what the other has. No budget is "".
func (s *Service) setAside(ctx context.Context, run *Run) (string, error) {
	b := run.Task.Budget
	if b == nil {
		return "", nil
	}
	var lines []grant.Line
	for _, n := range b.Needs {
		lines = append(lines, grant.Line{Need: call.ParseNeed(n.Need), Total: cmp.Or(n.Uses, 1)})
	}
	part, err := s.opts.Gate.Delegate(ctx, b.ID, run.Call.Principal, run.Path(), lines)
	if err != nil {
		return "", refuse("budget: %s", publicText(err))
	}
	return part.ID, nil
}

// giveBack returns what is left of a run's part, whether or not anybody still
// waits for the run.
func (s *Service) giveBack(part string, owner call.Principal) {
	if part == "" {
		return
	}
	if err := s.opts.Gate.Return(context.Background(), part, owner); err != nil {
		s.opts.Log.Warn("what is left of a run's budget stays set aside until its plan ends", "budget", part, "error", err)
	}
}
