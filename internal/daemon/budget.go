package daemon

import (
	"context"
	"errors"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/approval"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/grant"
	"github.com/seed-3ebc6b8a/gatehouse/internal/keyring"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// Budget reads a principal's own budget.
func (s *state) Budget(ctx context.Context, id string, p call.Principal) (b *grant.Budget, err error) {
	err = s.store.Read(ctx, func(t *store.Tx) error {
		b, err = s.desk.Budget(t, id, p)
		return err
	})
	return b, admin.PublicError(err)
}

// AddBudget keeps the budget of a plan.
func (t *tx) AddBudget(b *grant.Budget, life time.Duration) error {
	id, err := keyring.NewID("b_", t.s.desk.Random())
	if err != nil {
		return err
	}
	now, err := t.Now()
	if err != nil {
		return err
	}
	b.ID, b.Given, b.Expires = id, now, now.Add(life)
	return t.s.desk.AddBudget(t.Tx, b)
}

// errOpen takes back a draw that does not cover everything.
var errOpen = errors.New("the budget does not cover it")

// Draw takes what the votes need from a budget, all of it or nothing. A budget
// that is not the caller's, or is over, discharges nothing: the call asks.
func (t *tx) Draw(id string, c *call.Call, d *call.Decision, votes []call.Vote, scope grant.Scope) (open []call.Vote, err error) {
	err = t.s.desk.ChangeBudget(t.Tx, id, c.Principal, func(b *grant.Budget) error {
		if _, open = b.Draw(c, d, votes, scope); len(open) > 0 {
			return errOpen
		}
		return nil
	})
	switch {
	case err == nil:
		return nil, nil
	case errors.Is(err, errOpen), errors.Is(err, approval.ErrNotFound), errors.Is(err, approval.ErrSpent):
		return votes, nil
	}
	return nil, err
}

// Delegate cuts a budget for a sub-agent.
func (t *tx) Delegate(id string, p call.Principal, path string, lines []grant.Line, scope grant.Scope) (*grant.Budget, error) {
	return t.s.desk.Delegate(t.Tx, id, p, path, lines, scope)
}

// ReturnBudget ends a budget that was cut from one of the principal's.
func (t *tx) ReturnBudget(id string, p call.Principal) error {
	return t.s.desk.ReturnBudget(t.Tx, id, p)
}
