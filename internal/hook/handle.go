package hook

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
	"github.com/seed-3ebc6b8a/gatehouse/internal/observe"
	"github.com/seed-3ebc6b8a/gatehouse/internal/session"
)

// Sessions binds events to sessions.
type Sessions interface {
	// Bind returns the session that a host's name stands for, opening it for
	// the process tree the peer is part of. A name that belongs to another
	// tree is refused.
	Bind(ctx context.Context, b Binding) (Bound, error)
	// Block ends a session for good: its process opens no other.
	Block(ctx context.Context, id, why string) error
	// End ends a session that its host ended.
	End(ctx context.Context, id, by string) error
	// Defer notes that the session a host's name stands for was told to come
	// back, in another process, as long as its question waits.
	Defer(ctx context.Context, agent, ref string, until time.Time) error
	// Deferred says whether it was, and still may.
	Deferred(ctx context.Context, agent, ref string) (bool, error)
}

// Binding is what a session is bound to.
type Binding struct {
	Agent, Ref, Workspace, Surface string
	Peer                           session.Peer
}

// Bound is what an event was bound to.
type Bound struct {
	// Principal is who makes the call; the path is that of the host's main agent.
	Principal call.Principal
	// Parent and Correlation name the request that the gate itself started the
	// host for, "" where it did not. Such a host is part of its asker's session
	// and does not end it.
	Parent, Correlation string
}

// Gate is what the hooks need of the gate.
type Gate interface {
	Submit(ctx context.Context, sub gate.Submission) *gate.Answer
	Finish(ctx context.Context, callID string, p call.Principal, outcome gate.Outcome, detail string) error
}

// Options is what hooks are made of.
type Options struct {
	Gate     Gate
	Sessions Sessions
	// HostAsk says whether the operator lets this host's own question stand in
	// for an approver where none can be reached.
	HostAsk func(host string, c *call.Call) bool
	// Launcher returns the words that start the gatehouse command, which runs
	// what must run confined; none if this machine has no sandbox.
	Launcher func() []string
	Log      *slog.Logger
}

// Hooks answers the hooks of agents. It is safe for concurrent use.
type Hooks struct {
	opts Options
	open openCalls
}

// New makes hooks.
func New(opts Options) *Hooks {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	return &Hooks{opts: opts}
}

// Request is one event with who sent it.
type Request struct {
	// Host is the agent as the hook's command line names it.
	Host string
	Peer session.Peer
	// Held says that the agent cannot reach the gate's own files.
	Held bool
	// Inside says that the agent itself runs in a sandbox of the gate's: what
	// it starts is held already, and no other sandbox can be made in there.
	Inside bool
	Event  []byte
	// Wait is how long the hook can wait for an answer.
	Wait time.Duration
	// Defer says that the host may be told to come back later.
	Defer bool
}

// Handle answers one event. Whatever fails on the way blocks.
func (h *Hooks) Handle(ctx context.Context, r *Request) Reply {
	a, known := agents[r.Host]
	if !known {
		return block(fmt.Sprintf("Denied: %q is no agent that the gate knows; it knows %s.", r.Host, strings.Join(Names(), ", ")))
	}
	reply := h.handle(ctx, &a, r)
	if reply.Exit == blocked && a.explain != nil {
		reply.Stdout = a.explain(strings.TrimSpace(string(reply.Stderr)))
	}
	return reply
}

func (h *Hooks) handle(ctx context.Context, a *agent, r *Request) Reply {
	e, err := a.parse(r.Event)
	if err == nil {
		err = e.check()
	}
	if err == nil {
		err = a.name(e, r.Peer)
	}
	if err != nil {
		h.opts.Log.Warn("a hook's event is refused", "host", r.Host, "error", err)
		return block("Denied: " + err.Error() + ".")
	}
	agent := fmt.Sprintf("%s-%d", r.Host, r.Peer.Chain[0].UID)
	bound, err := h.opts.Sessions.Bind(ctx, Binding{
		Agent: agent, Ref: e.ref, Workspace: observe.RealDir(e.dir), Surface: surface(r.Host), Peer: r.Peer,
	})
	if err != nil {
		h.opts.Log.Warn("a hook's event does not belong to its session", "host", r.Host, "session", e.ref, "error", err)
		return block("Denied: " + err.Error() + ".")
	}
	p := bound.Principal
	p.Path = call.Below(p.Path, e.path)
	switch e.moment {
	case before, prompt:
		return h.judge(ctx, a, r, e, p, &bound)
	case after:
		return h.close(ctx, e, p, gate.Succeeded)
	case failed:
		return h.close(ctx, e, p, gate.Failed)
	case refused:
		return h.close(ctx, e, p, gate.Refused)
	case end:
		return h.end(ctx, p, bound.Parent != "" || h.comesBack(ctx, p.Agent, e.ref))
	}
	return Reply{}
}

// name sees to it that the session has a name.
func (a *agent) name(e *event, peer session.Peer) error {
	switch {
	case e.ref != "":
		return nil
	case !a.nameless:
		return errNoSession
	}
	p, err := session.Anchor(peer.Chain)
	if err != nil {
		return errNoHost
	}
	e.ref = fmt.Sprintf("process %d of %d", p.PID, p.Start)
	return nil
}

func surface(host string) string { return session.HookSurface + host }

// judge takes the call of an event through the gate.
func (h *Hooks) judge(ctx context.Context, a *agent, r *Request, e *event, p call.Principal, bound *Bound) Reply {
	if e.moment == prompt && h.open.has(p, e) {
		return Reply{} // the gate has judged it; this question is the host's own
	}
	at := Place{Rewrites: a.rewrites && !e.fixed, Inside: r.Inside, Launcher: h.launcher()}
	c := &call.Call{
		Kind: call.External, Surface: surface(r.Host), Principal: p, Operation: e.tool, Args: slices.Clone(e.input),
		Dir: observe.RealDir(e.dir), HostID: e.use(), Parent: bound.Parent, Correlation: bound.Correlation, Held: r.Held, Rewrites: at.Wraps(),
	}
	ans := h.opts.Gate.Submit(ctx, gate.Submission{
		Call: c, Wait: r.Wait, Runs: "host", Plan: e.plan,
		HostAsk: a.ask != nil && e.asks && !r.Defer && h.opts.HostAsk(r.Host, c),
	})
	switch {
	case ans.Verdict == gate.Allowed:
		return h.start(ctx, a, at, e, p, ans)
	case ans.HostAsks:
		h.open.add(p, e, openCall{id: ans.CallID, input: e.input})
		return a.ask(e, ans.Message)
	case ans.Verdict == gate.Pending && r.Defer && a.later != nil && e.moment == before:
		if err := h.opts.Sessions.Defer(ctx, p.Agent, e.ref, ans.Expires); err != nil {
			h.opts.Log.Error("a session could not be told to come back", "session", p.Session, "error", err)
			return block(ans.Message)
		}
		return a.later(e, ans.Message)
	}
	return block(ans.Message)
}

// start lets the host run what was allowed, or runs nothing.
func (h *Hooks) start(ctx context.Context, a *agent, at Place, e *event, p call.Principal, ans *gate.Answer) Reply {
	id := ans.CallID
	if ans.Edited != nil {
		id = ans.Edited.ID
	}
	edited, not := at.Input(ans, e.input)
	if not != nil {
		h.finish(ctx, id, p, gate.Refused, not.Detail)
		return block(not.Message)
	}
	told := e.input
	if edited != nil {
		told = edited
	}
	h.open.add(p, e, openCall{id: id, input: told, changed: edited != nil})
	return a.allow(e, edited, ans.Message)
}

func (h *Hooks) launcher() []string {
	if h.opts.Launcher == nil {
		return nil
	}
	return h.opts.Launcher()
}

// close records how a call ended that the gate opened in this session. What it
// did not open there it does not close.
func (h *Hooks) close(ctx context.Context, e *event, p call.Principal, outcome gate.Outcome) Reply {
	o, found := h.open.take(p, e)
	if !found {
		h.opts.Log.Warn("a host tells of a call that the gate did not let through", "agent", p.Agent, "session", p.Session, "tool", e.tool)
		return Reply{}
	}
	if string(o.input) == string(e.input) || outcome == gate.Refused {
		h.finish(ctx, o.id, p, outcome, o.ranAs(e))
		return Reply{}
	}
	const why = "the host ran something else than what was allowed"
	h.opts.Log.Error(why, "agent", p.Agent, "session", p.Session, "call", o.id, "tool", e.tool)
	h.finish(ctx, o.id, p, outcome, why+": "+string(e.input))
	if err := h.opts.Sessions.Block(ctx, p.Session, why); err != nil {
		h.opts.Log.Error("the session could not be blocked", "session", p.Session, "error", err)
	}
	return block("The gate has stopped this session: " + why + ". Tell the person you work for.")
}

// comesBack says whether a session was told to come back. One of which that
// cannot be told is ended: it can ask again.
func (h *Hooks) comesBack(ctx context.Context, agent, ref string) bool {
	deferred, err := h.opts.Sessions.Deferred(ctx, agent, ref)
	if err != nil {
		h.opts.Log.Error("it cannot be told whether a session comes back", "session", ref, "error", err)
	}
	return deferred
}

// end closes what the session has open, whose end nobody told, and the session,
// unless it is to come back.
func (h *Hooks) end(ctx context.Context, p call.Principal, comesBack bool) Reply {
	for _, o := range h.open.drop(p.Session) {
		h.finish(ctx, o.id, o.principal, gate.Unknown, "the host ended the session without saying how it ended")
	}
	if comesBack {
		return Reply{}
	}
	if err := h.opts.Sessions.End(ctx, p.Session, "the host"); err != nil {
		h.opts.Log.Warn("a session could not be ended", "session", p.Session, "error", err)
	}
	return Reply{}
}

func (h *Hooks) finish(ctx context.Context, id string, p call.Principal, outcome gate.Outcome, detail string) {
	// The host goes on whether or not this is recorded, and may hang up.
	ctx = context.WithoutCancel(ctx)
	if err := h.opts.Gate.Finish(ctx, id, p, outcome, detail); err != nil {
		h.opts.Log.Error("an outcome could not be recorded", "call", id, "error", err)
	}
}
