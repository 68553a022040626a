package daemon

import (
	"context"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/approval"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch/job"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
	"github.com/seed-3ebc6b8a/gatehouse/internal/hook"
	"github.com/seed-3ebc6b8a/gatehouse/internal/session"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// newHooks puts the agents' hooks in front of the gate.
func (d *daemon) newHooks() func(context.Context, *api.HookEvent) api.HookReply {
	hooks := hook.New(hook.Options{
		Gate: d.gate, Sessions: &bindings{store: d.store, sessions: d.sessions, desk: d.desk, around: d.jobs.Around}, HostAsk: d.hostAsk, Launcher: d.opts.Launcher, Log: d.log,
	})
	return func(ctx context.Context, e *api.HookEvent) api.HookReply {
		if j, found := d.jobs.Around(e.Peer.Chain); found {
			defer d.jobs.Hold(j.ID)() // it says nothing while a person thinks
		}
		return api.HookReply(hooks.Handle(ctx, &hook.Request{Host: e.Host, Peer: *e.Peer, Held: e.Held, Inside: e.Inside, Event: e.Body, Wait: e.Wait, Defer: e.Defer}))
	}
}

// hostAsk says whether a host's own question may stand in for an approver: as
// the policy says, or else where the gate only advises.
func (d *daemon) hostAsk(host string, c *call.Call) bool {
	snap, _ := d.book.For(c)
	if snap == nil {
		return false
	}
	if ask, said := snap.Settings.HostAsk[host]; said {
		return ask
	}
	return !c.Held
}

// bindings binds hosts' sessions to processes.
type bindings struct {
	store    *store.Store
	sessions *session.Registry
	desk     *approval.Desk
	// around finds the job that a process belongs to.
	around func(chain []session.Process) (job.Job, bool)
}

// Bind returns the session that a host's name stands for. A host that the gate
// itself started for somebody is part of that one's session.
func (b *bindings) Bind(ctx context.Context, bind hook.Binding) (hook.Bound, error) {
	if j, found := b.around(bind.Peer.Chain); found {
		run := &dispatched{CLI: j.CLI, Owner: j.Owner, Job: j.ID}
		return hook.Bound{Principal: run.principal(""), Parent: j.ID, Correlation: j.CorrelationID}, nil
	}
	id, err := b.bind(ctx, bind)
	return hook.Bound{Principal: call.Principal{Agent: bind.Agent, Session: id}}, err
}

// bind returns the session of a host. A session that is there is only read:
// that is on the way of every call.
func (b *bindings) bind(ctx context.Context, bind hook.Binding) (id string, err error) {
	err = b.store.Read(ctx, func(tx *store.Tx) error {
		s, err := b.sessions.Find(tx, bind.Agent, bind.Ref)
		if err == nil {
			s, err = b.sessions.Check(tx, s.ID, bind.Peer)
		}
		if err == nil {
			id = s.ID
		}
		return err
	})
	if err == nil {
		return id, nil
	}
	process, err := session.Anchor(bind.Peer.Chain)
	if err != nil {
		return "", admin.PublicError(err)
	}
	err = b.store.Write(ctx, func(tx *store.Tx) error {
		resume, err := b.sessions.Deferred(tx, bind.Agent, bind.Ref)
		if err != nil {
			return err
		}
		s, opened, err := b.sessions.Open(tx, session.Open{
			Agent: bind.Agent, Ref: bind.Ref, Workspace: bind.Workspace, Surface: bind.Surface, Peer: bind.Peer, Process: process, Resume: resume,
		})
		if err != nil {
			return err
		}
		id = s.ID
		if opened && resume {
			// Another process takes the session on: it gets the answer to the
			// question that waited, and nothing that was granted in advance.
			_, err = b.desk.RevokeStanding(tx, s.ID, "its process ended")
		}
		return err
	})
	return id, admin.PublicError(err)
}

// Block ends a session for good.
func (b *bindings) Block(ctx context.Context, id, why string) error {
	return b.store.Write(ctx, func(tx *store.Tx) error { return b.sessions.Block(tx, id, why) })
}

// End ends a session.
func (b *bindings) End(ctx context.Context, id, by string) error {
	return b.store.Write(ctx, func(tx *store.Tx) error { return b.sessions.End(tx, id, by) })
}

// Defer notes that a session was told to come back.
func (b *bindings) Defer(ctx context.Context, agent, ref string, until time.Time) error {
	return b.store.Write(ctx, func(tx *store.Tx) error { return b.sessions.Defer(tx, agent, ref, until) })
}

// Deferred says whether a session was told to come back.
func (b *bindings) Deferred(ctx context.Context, agent, ref string) (deferred bool, err error) {
	err = b.store.Read(ctx, func(tx *store.Tx) (err error) {
		deferred, err = b.sessions.Deferred(tx, agent, ref)
		return err
	})
	return deferred, err
}

// maxHostIDs bounds how many records one question about a session reads.
const maxHostIDs = 5000

// seen returns the host's ids of the calls of a session, from the log.
func (d *daemon) seen(ctx context.Context, agent, ref string) (map[string]bool, error) {
	var sessions []string
	err := d.store.Read(ctx, func(tx *store.Tx) (err error) {
		sessions, err = d.sessions.Named(tx, agent, ref)
		return err
	})
	known, times := make(map[string]bool), make(map[string]int)
	for _, id := range sessions {
		for _, kind := range []string{"call", "outcome"} {
			for cursor := ""; err == nil && len(known) < maxHostIDs; {
				var page []admin.Record
				page, cursor, err = d.admin.Records(ctx, admin.RecordFilter{Kind: kind, Session: id}, cursor, 200)
				for i := 0; err == nil && i < len(page); i++ {
					var use string
					var ran bool
					if use, ran, err = d.hostUse(ctx, page[i].ID); ran {
						times[use]++
					}
					known[call.NthUse(use, times[use])] = true
				}
				if cursor == "" {
					break
				}
			}
		}
	}
	return known, admin.PublicError(err)
}

// hostUse returns the host's id of a recorded call, "" if it is not known, and
// whether the record is that of a call that could run under it.
func (d *daemon) hostUse(ctx context.Context, record string) (use string, ran bool, err error) {
	r, err := d.admin.Record(ctx, record)
	if err != nil {
		return "", false, err
	}
	var body stored
	if err := json.Unmarshal(r.Body, &body); err != nil {
		return "", false, nil // retention has dropped it
	}
	switch {
	case r.Kind == "call" && body.Call != nil:
		return body.Call.HostID, r.Outcome == gate.Allowed.String(), nil
	case body.Outcome != nil:
		use, ran = hook.RanAs(body.Outcome.Detail)
		return use, ran, nil
	}
	return "", false, nil
}
