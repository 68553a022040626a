package daemon

import (
	"context"
	"net/http"

	"github.com/seed-3ebc6b8a/gatehouse/internal/approval"
	"github.com/seed-3ebc6b8a/gatehouse/internal/aql"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/mcp"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// openTools makes the gate's own operations: the groups of the table, and the
// tools that take calls to them through the gate.
func (d *daemon) openTools() error {
	about := &aql.Gatekeeper{Version: d.opts.Version, Decide: d.gate.Decide, Policy: d.book.For, Waiting: d.waiting}
	ask, execute := d.executionGroups()
	native, err := aql.New(about, ask, execute)
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
