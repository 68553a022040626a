package daemon

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/activation"
	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/approval"
	"github.com/seed-3ebc6b8a/gatehouse/internal/aql"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/library"
	"github.com/seed-3ebc6b8a/gatehouse/internal/mcp"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
	"github.com/seed-3ebc6b8a/gatehouse/internal/upstream"
)

// promptHold is how long a host that asks whether it may run a tool is held
// for a person who can be reached. Hosts wait a minute for a tool of an MCP
// server as a rule; one that is told "pending" asks again.
const promptHold = 45 * time.Second

// openTools makes the gate's own operations: the groups of the table, and the
// tools that take calls to them through the gate.
func (d *daemon) openTools() error {
	about := &aql.Gatekeeper{Version: d.opts.Version, Decide: d.gate.Decide, Policy: d.book.For, Waiting: d.waiting, InForce: d.keeper.InForce}
	ask, execute := d.executionGroups()
	native, err := aql.New(
		about, ask, execute,
		&aql.Elements{Library: d.library, Keeper: d.keeper},
		&aql.Activation{Keeper: d.keeper},
		&aql.Memories{Library: d.library},
		&aql.Log{Records: d.ownRecords},
		&aql.Host{Gate: d.gate, Wait: promptHold, ForgetGitHub: d.upstreams.forgetGitHub},
	)
	if err != nil {
		return err
	}
	about.Params = native.Params
	d.tools = &aql.Tools{Gate: d.gate, Native: native, Begin: d.keeper.Begin, More: d.dispatchTools(), Log: d.log}
	ask.Check = d.tools.Check
	return nil
}

// mcp makes the MCP endpoint.
func (d *daemon) mcp(caller func(r *http.Request, session string) (call.Principal, bool, bool, error)) http.Handler {
	d.front = mcp.New(mcp.Options{
		Gate: d.gate, Tools: d.tools, Resources: &cacheState{store: d.store, flight: d.flight, awareness: d.awareness}, Upstreams: d.upstreams,
		Caller: func(r *http.Request, session string) (who mcp.Who, err error) {
			who.Principal, who.Held, who.Bound, err = caller(r, session)
			return who, err
		},
		Seal: d.keys.Seal, Open: d.keys.Open, BaseURL: d.baseURL, Version: d.opts.Version, Log: d.log,
	})
	return d.front
}

// openElements opens the elements' files and what keeps them in force.
func (d *daemon) openElements() (err error) {
	if d.library, err = library.Open(d.opts.Place.Elements()); err != nil {
		return err
	}
	d.keeper = activation.New(activation.Options{
		Store: d.store, Sessions: d.sessions, Library: d.library, Keys: d.keys, Log: d.log,
		Record: func(tx *store.Tx, e activation.Event) error {
			return d.record.act(tx, admin.Act{Name: e.Name, By: e.By, Channel: e.Channel, Subject: e.Subject, Detail: e.Detail})
		},
	})
	return nil
}

// ownRecords lists an agent's own records.
func (d *daemon) ownRecords(ctx context.Context, q aql.RecordQuery) (out []aql.Record, next string, err error) {
	list, next, err := d.admin.Records(ctx, admin.RecordFilter{
		Principal: q.Agent, Kind: q.Kind, Operation: q.Operation, Level: q.Level, Outcome: q.Outcome,
	}, q.Cursor, q.Limit)
	for _, r := range list {
		out = append(out, aql.Record{Time: r.Time, Kind: r.Kind, Call: r.CallID, Operation: r.Operation, Level: r.Level, Outcome: r.Outcome})
	}
	return out, next, err
}

// waiting lists an agent's own requests that wait.
func (d *daemon) waiting(ctx context.Context, agent string) (out []aql.Waiting, err error) {
	err = d.store.Read(ctx, func(tx *store.Tx) error {
		list, err := d.desk.Pending(tx, approval.Filter{Agent: agent})
		for _, r := range list {
			out = append(out, aql.Waiting{Request: r.ID, Operation: r.Operation, Expires: r.Expires})
		}
		return err
	})
	return out, err
}

// upstreams puts the registry of upstreams behind the front's interface. It
// remembers what it read until something changes.
type upstreams struct {
	store    *store.Store
	registry *upstream.Registry
	record   func(*store.Tx, admin.Act) error

	changes atomic.Uint64

	mu          sync.Mutex
	of          uint64 // the change that the rest was read after
	list        []upstream.Entry
	credentials map[[2]string]string
	withheld    map[string]map[upstream.Offer]string
}

// Changed counts the changes.
func (u *upstreams) Changed() uint64 { return u.changes.Load() }

// watch notes changes, here or on another node, until the context ends, and
// tells of them.
func (u *upstreams) watch(ctx context.Context, changed func(context.Context)) error {
	changes := u.store.Subscribe(ctx, upstream.Topic)
	for {
		select {
		case <-ctx.Done():
			return nil
		case _, ok := <-changes:
			if !ok {
				return nil
			}
			u.changes.Add(1)
			changed(ctx)
		}
	}
}

// fresh forgets what was read before the last change.
func (u *upstreams) fresh() {
	if now := u.changes.Load(); u.credentials == nil || now != u.of {
		u.of, u.list, u.credentials = now, nil, make(map[[2]string]string)
		u.withheld = make(map[string]map[upstream.Offer]string)
	}
}

// List returns the upstreams by name.
func (u *upstreams) List(ctx context.Context) ([]upstream.Entry, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.fresh(); u.list != nil {
		return u.list, nil
	}
	list := []upstream.Entry{}
	err := u.store.Read(ctx, func(tx *store.Tx) error {
		got, err := u.registry.List(tx)
		list = append(list[:0], got...)
		return err
	})
	if err != nil {
		return nil, admin.PublicError(err)
	}
	u.list = list
	return list, nil
}

// Credential returns an agent's credential for an upstream, "" for none.
func (u *upstreams) Credential(ctx context.Context, name, agent string) (secret string, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.fresh()
	key := [2]string{name, agent}
	if secret, ok := u.credentials[key]; ok {
		return secret, nil
	}
	err = u.store.Read(ctx, func(tx *store.Tx) error {
		secret, err = u.registry.Credential(tx, name, agent)
		return err
	})
	if err != nil {
		return "", admin.PublicError(err)
	}
	u.credentials[key] = secret
	return secret, nil
}

// Withheld says what of an upstream's offers waits to be accepted.
func (u *upstreams) Withheld(ctx context.Context, name string) (out map[upstream.Offer]string, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.fresh()
	if out, ok := u.withheld[name]; ok {
		return out, nil
	}
	err = u.store.Read(ctx, func(tx *store.Tx) error {
		out, err = u.registry.Withheld(tx, name)
		return err
	})
	if err != nil {
		return nil, admin.PublicError(err)
	}
	u.withheld[name] = out
	return out, nil
}

// Compare holds what an upstream says about itself against its pins, and puts
// what is new on record.
func (u *upstreams) Compare(ctx context.Context, name string, seen []upstream.Definition) (out *upstream.Comparison, err error) {
	err = u.store.Read(ctx, func(tx *store.Tx) error {
		out, err = u.registry.Compare(tx, name, seen, false)
		return err
	})
	if err != nil || len(out.News) == 0 {
		return out, admin.PublicError(err)
	}
	err = u.store.Write(ctx, func(tx *store.Tx) error {
		if out, err = u.registry.Compare(tx, name, seen, true); err != nil {
			return err
		}
		return u.record(tx, admin.Act{Name: "upstream.seen", By: "gatehouse", Channel: "mcp", Subject: name, Detail: newsOf(out)})
	})
	u.changes.Add(1)
	return out, admin.PublicError(err)
}

// newsOf lists what was pinned or waits, without the words of the server.
func newsOf(c *upstream.Comparison) (out []map[string]string) {
	for _, p := range c.News {
		out = append(out, map[string]string{"kind": p.Kind, "name": p.Name, "state": p.State, "reason": p.Reason})
	}
	return out
}
