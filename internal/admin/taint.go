package admin

import (
	"context"
	"fmt"

	"github.com/seed-3ebc6b8a/gatehouse/internal/session"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// Taints lists what agents have taken in and still carry.
func (d *Desk) Taints(ctx context.Context) (out []session.Tainted, err error) {
	err = d.opts.Store.Read(ctx, func(tx *store.Tx) error {
		out, err = d.opts.Sessions.ListTaints(tx)
		return err
	})
	return out, publicError(err)
}

// ClearTaints says that what an agent took in does not matter any more.
func (d *Desk) ClearTaints(ctx context.Context, a Actor, agent string) error {
	return d.act(ctx, func(tx *store.Tx) (Act, error) {
		n, err := d.opts.Sessions.ClearTaints(tx, agent)
		if err == nil && n == 0 {
			err = fmt.Errorf("taint of %s: %w", agent, session.ErrNotFound)
		}
		return a.act("taint.clear", agent, nil), err
	})
}

// ClearGrants takes back every grant of a session.
func (d *Desk) ClearGrants(ctx context.Context, a Actor, id string) error {
	return d.act(ctx, func(tx *store.Tx) (Act, error) {
		n, err := d.opts.Approval.RevokeSession(tx, id, a.Approver)
		return a.act("grant.clear", id, map[string]any{"revoked": n}), err
	})
}
