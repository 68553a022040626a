package admin

import (
	"context"

	"github.com/seed-3ebc6b8a/gatehouse/internal/activation"
	"github.com/seed-3ebc6b8a/gatehouse/internal/session"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// Elements is which elements are in force for whom, and which changes of
// their files wait.
type Elements struct {
	Active []session.ActiveSet `json:"active"`
	Staged []activation.Staged `json:"staged,omitzero"`
}

// Elements tells which elements are in force for whom.
func (d *Desk) Elements(ctx context.Context) (Elements, error) {
	sets, err := d.opts.Elements.All(ctx)
	return Elements{Active: sets, Staged: d.opts.Elements.Staged()}, publicError(err)
}

// AcceptElement takes a change of an element's file that loosens. Loosening is
// pinned: an approver with a second factor must use it.
func (d *Desk) AcceptElement(ctx context.Context, a Actor, s activation.Staged, code string) error {
	subject := s.Element + " of " + s.Agent
	if err := d.prove(ctx, a, "element "+subject+" "+s.Digest.String(), code); err != nil {
		return publicError(err)
	}
	err := d.act(ctx, func(tx *store.Tx) (Act, error) {
		return a.act("element.accept", subject, s.Digest), d.opts.Elements.Accept(tx, s, a.Approver)
	})
	if err == nil {
		_, err = d.opts.Elements.Follow(ctx)
	}
	return publicError(err)
}

// ReleaseElement takes an element out of force for an agent. Like accepting a
// change it is pinned.
func (d *Desk) ReleaseElement(ctx context.Context, a Actor, agent, workspace, id, code string) error {
	subject := id + " of " + agent
	if err := d.prove(ctx, a, "release "+subject, code); err != nil {
		return publicError(err)
	}
	return d.act(ctx, func(tx *store.Tx) (Act, error) {
		return a.act("element.release", subject, workspace), d.opts.Elements.Release(tx, agent, workspace, id, a.Approver)
	})
}
