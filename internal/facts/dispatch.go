package facts

import (
	"fmt"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/risk"
)

// dispatch describes a request to an agent CLI. One that cannot be read has no
// task, and is denied for it.
func (x *extractor) dispatch() {
	cli, ok := call.RequestCLI(x.call.Operation)
	if !ok {
		x.facts.TaskProblem = fmt.Sprintf("there is no request %q", x.call.Operation)
		return
	}
	t, err := call.ParseTask(x.call.Args)
	if err != nil {
		x.facts.TaskProblem = err.Error()
		return
	}
	x.facts.Task = t
	x.facts.Score = risk.OfDispatch(&risk.Dispatch{
		Prompt: t.Text(), Bypass: t.Bypass(), FullAuto: t.FullAuto, Servers: t.Servers(),
		AllowedTools: t.AllowedTools, DisallowedTools: t.DisallowedTools,
	}, x.opts.ScoreProfile, x.opts.Weights)
	x.facts.Words = "hands a request to " + cli
}
