package admin

import (
	"context"

	"github.com/seed-3ebc6b8a/gatehouse/internal/grant"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// Budgets lists the budgets of plans that are still good.
func (d *Desk) Budgets(ctx context.Context) (out []grant.Budget, err error) {
	err = d.opts.Store.Read(ctx, func(tx *store.Tx) (err error) {
		out, err = d.opts.Approval.LiveBudgets(tx)
		return err
	})
	return out, publicError(err)
}

// RevokeBudget takes a budget back, with all that were cut from it. What the
// plan still does asks again.
func (d *Desk) RevokeBudget(ctx context.Context, a Actor, id string) error {
	return d.act(ctx, func(tx *store.Tx) (Act, error) {
		return a.act("budget.revoke", id, nil), d.opts.Approval.RevokeBudget(tx, id)
	})
}
