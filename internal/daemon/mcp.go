package daemon

import (
	"context"
	"net/http"

	"github.com/seed-3ebc6b8a/gatehouse/internal/activation"
	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/approval"
	"github.com/seed-3ebc6b8a/gatehouse/internal/aql"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/library"
	"github.com/seed-3ebc6b8a/gatehouse/internal/mcp"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

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
		&aql.Host{Gate: d.gate},
	)
	if err != nil {
		return err
	}
	about.Params = native.Params
	d.tools = &aql.Tools{Gate: d.gate, Native: native, Log: d.log}
	return nil
}

// mcp makes the MCP endpoint.
func (d *daemon) mcp(caller func(*http.Request) (call.Principal, bool, error)) http.Handler {
	return mcp.Handler(mcp.Options{Tools: d.tools, Caller: caller, Version: d.opts.Version})
}

// openElements opens the elements' files and what keeps them in force.
func (d *daemon) openElements() (err error) {
	if d.library, err = library.Open(d.opts.Place.Elements()); err != nil {
		return err
	}
	d.keeper = activation.New(activation.Options{
		Store: d.store, Sessions: d.sessions, Library: d.library, Log: d.log,
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
