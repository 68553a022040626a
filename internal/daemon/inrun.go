package daemon

import (
	"context"
	"slices"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
	"github.com/seed-3ebc6b8a/gatehouse/internal/hook"
	"github.com/seed-3ebc6b8a/gatehouse/internal/inrun"
	"github.com/seed-3ebc6b8a/gatehouse/internal/observe"
)

// dispatched is a run of an agent's CLI that a principal asked for.
type dispatched struct {
	// CLI is claude, codex, gemini, grok or vibe.
	CLI string
	// Owner asked for it. The run is a sub-agent in the owner's session, so that
	// what the owner took in, blocks, cooldowns and counts hold for it too; and
	// when that session ends, nothing more of the run is let through.
	Owner call.Principal
	// Job is the job that runs it, and Correlation the name that joins it with
	// the request and all of its calls.
	Job, Correlation string
	Dir              string
	// Hold stops the job's idle clock.
	Hold func() (release func())
}

// principal is who the calls of the run are made by.
func (r *dispatched) principal(path string) call.Principal {
	p := r.Owner
	p.Path = call.Below(call.Below(p.Path, r.CLI+":"+r.Job), path)
	return p
}

// askWait is how long a tool call waits for a person: as long as a request
// lives.
const askWait = 15 * time.Minute

// asker decides the tool calls of a run. It runs as the gate's own user, so that
// none of it is held: each is the call that the agent's hook
// would make, goes the way of every call, and its end is recorded when the
// agent tells it.
func (d *daemon) asker(r *dispatched) inrun.Ask {
	return func(ctx context.Context, t inrun.Tool) inrun.Verdict {
		dir := t.Dir
		if dir == "" {
			dir = r.Dir
		}
		c := &call.Call{
			Kind: call.External, Surface: "inrun:" + r.CLI, Principal: r.principal(t.Path), Operation: t.Name, Args: t.Args,
			Dir: observe.RealDir(dir), HostID: t.ID, Parent: r.Job, Correlation: r.Correlation,
		}
		release := r.Hold()
		ans := d.gate.Submit(ctx, gate.Submission{Call: c, Wait: askWait, Runs: "host"})
		release()
		if ans.Verdict != gate.Allowed {
			return inrun.Verdict{Why: ans.Message}
		}
		v := inrun.Verdict{Answer: inrun.Run, Why: ans.Message}
		id, p := ans.CallID, c.Principal
		if ans.Edited != nil {
			id, p, v.Args = ans.Edited.ID, ans.Edited.Principal, hook.WithNotes(ans.Edited.Args, t.Args)
		}
		v.Ended = func(o inrun.Outcome) { d.endInRun(ctx, id, p, o) }
		if ans.Run != nil || slices.Contains(ans.Decision.Requires, call.Guarantee{Name: "confined"}) {
			v.Ended(inrun.Refused)
			return inrun.Verdict{Why: "Not run: it was allowed confined, and this run cannot be given another command."}
		}
		return v
	}
}

// endInRun records how a tool call ended.
func (d *daemon) endInRun(ctx context.Context, id string, p call.Principal, o inrun.Outcome) {
	detail := ""
	if o == inrun.Unknown {
		detail = "the run ended without saying how it ended"
	}
	// It is recorded whether or not the run still goes on.
	if err := d.gate.Finish(context.WithoutCancel(ctx), id, p, gate.Outcome(o.String()), detail); err != nil {
		d.log.Error("an outcome could not be recorded", "call", id, "error", err)
	}
}
