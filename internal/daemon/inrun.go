package daemon

import (
	"context"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch"
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
	// Confined says that the run is in a sandbox of the gate's: it reaches
	// neither the gate's files nor its socket.
	Confined bool
	// Budget is the part of the owner's that it may draw from, "" for none.
	Budget string
	// Plan says that the run may look and change nothing.
	Plan bool
	// Hold stops the job's idle clock.
	Hold func() (release func())
}

// principal is who the calls of the run are made by.
func (r *dispatched) principal(path string) call.Principal {
	p := r.Owner
	p.Path = call.Below(dispatch.RunPath(p, r.CLI, r.Job), path)
	return p
}

// askWait is how long a tool call waits for a person: as long as a request
// lives.
const askWait = 15 * time.Minute

// asker decides the tool calls of a run. Each is the call that the agent's hook
// would make, goes the way of every call, and its end is recorded when the agent
// tells it. A run that is not confined runs as the gate's own user, so that none
// of it is held.
func (d *daemon) asker(r *dispatched) inrun.Ask {
	return func(ctx context.Context, t inrun.Tool) inrun.Verdict {
		dir := t.Dir
		if dir == "" {
			dir = r.Dir
		}
		at := hook.Place{Rewrites: t.Rewrites, Inside: r.Confined, Launcher: d.launcher()}
		c := &call.Call{
			Kind: call.External, Surface: "inrun:" + r.CLI, Principal: r.principal(t.Path), Operation: t.Name, Args: t.Args,
			Dir: observe.RealDir(dir), HostID: t.ID, Parent: r.Job, Correlation: r.Correlation, Held: r.Confined, Rewrites: at.Wraps(),
		}
		release := r.Hold()
		ans := d.gate.Submit(ctx, gate.Submission{Call: c, Wait: askWait, Runs: "host", Plan: r.Plan, Budget: r.Budget})
		release()
		if ans.Verdict != gate.Allowed {
			return inrun.Verdict{Why: ans.Message}
		}
		id, p := ans.CallID, c.Principal
		if ans.Edited != nil {
			id, p = ans.Edited.ID, ans.Edited.Principal
		}
		args, not := at.Input(ans, t.Args)
		if not != nil {
			d.endInRun(ctx, id, p, inrun.Refused, not.Detail)
			return inrun.Verdict{Why: not.Message}
		}
		return inrun.Verdict{Answer: inrun.Run, Why: ans.Message, Args: args, Ended: func(o inrun.Outcome) { d.endInRun(ctx, id, p, o, "") }}
	}
}

// launcher are the words that start the gatehouse command, none if this machine
// has no sandbox.
func (d *daemon) launcher() []string {
	if d.opts.Launcher == nil {
		return nil
	}
	return d.opts.Launcher()
}

// endInRun records how a tool call ended.
func (d *daemon) endInRun(ctx context.Context, id string, p call.Principal, o inrun.Outcome, detail string) {
	if o == inrun.Unknown {
		detail = "the run ended without saying how it ended"
	}
	// It is recorded whether or not the run still goes on.
	if err := d.gate.Finish(context.WithoutCancel(ctx), id, p, gate.Outcome(o.String()), detail); err != nil {
		d.log.Error("an outcome could not be recorded", "call", id, "error", err)
	}
}
