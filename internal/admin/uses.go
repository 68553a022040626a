package admin

import (
	"context"
	"fmt"

	"github.com/seed-3ebc6b8a/gatehouse/internal/session"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// Uses lists the uses of declared tools that count against constraints.
func (d *Desk) Uses(ctx context.Context) (out []session.Used, err error) {
	err = d.opts.Store.Read(ctx, func(tx *store.Tx) error {
		out, err = d.opts.Sessions.ListUses(tx)
		return err
	})
	return out, publicError(err)
}

// ClearUses has what an agent used, and was denied, count no more.
func (d *Desk) ClearUses(ctx context.Context, a Actor, agent string) error {
	return d.act(ctx, func(tx *store.Tx) (Act, error) {
		n, err := d.opts.Sessions.ClearUses(tx, agent)
		if err == nil && n == 0 {
			err = fmt.Errorf("uses of tools by %s: %w", agent, session.ErrNotFound)
		}
		return a.act("uses.clear", agent, nil), err
	})
}
