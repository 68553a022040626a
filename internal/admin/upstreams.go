package admin

import (
	"context"

	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
	"github.com/seed-3ebc6b8a/gatehouse/internal/upstream"
)

// Upstream is an MCP server behind the gate as a person sees it.
type Upstream struct {
	upstream.Entry
	// Credentials are the agents that have one here; "" stands for all.
	Credentials []string `json:"credentials,omitzero"`
	// Waiting is how many definitions wait to be accepted.
	Waiting int `json:"waiting,omitzero"`
}

// Differences is what an upstream says about itself that waits for a person.
type Differences struct {
	Waiting []upstream.Pin `json:"waiting"`
	// Digest is what an acceptance must carry, to prove what was shown.
	Digest string `json:"digest"`
}

// AddUpstream enters an MCP server that the gate will reach or start.
func (d *Desk) AddUpstream(ctx context.Context, a Actor, name string, spec upstream.Spec) error {
	return d.act(ctx, func(tx *store.Tx) (Act, error) {
		err := d.opts.Upstreams.Add(tx, upstream.Entry{Name: name, Spec: spec, AddedBy: a.Approver})
		return a.act("upstream.add", name, spec), err
	})
}

// RemoveUpstream takes an MCP server out, with its pins and credentials.
func (d *Desk) RemoveUpstream(ctx context.Context, a Actor, name string) error {
	return d.act(ctx, func(tx *store.Tx) (Act, error) {
		return a.act("upstream.remove", name, nil), d.opts.Upstreams.Remove(tx, name)
	})
}

// Upstreams lists the MCP servers behind the gate.
func (d *Desk) Upstreams(ctx context.Context) (out []Upstream, err error) {
	err = d.opts.Store.Read(ctx, func(tx *store.Tx) error {
		out = nil
		list, err := d.opts.Upstreams.List(tx)
		if err != nil {
			return err
		}
		waiting, err := d.opts.Upstreams.Waiting(tx, "")
		if err != nil {
			return err
		}
		for _, e := range list {
			u := Upstream{Entry: e}
			if u.Credentials, err = d.opts.Upstreams.Agents(tx, e.Name); err != nil {
				return err
			}
			for _, p := range waiting {
				if p.Upstream == e.Name {
					u.Waiting++
				}
			}
			out = append(out, u)
		}
		return nil
	})
	return out, publicError(err)
}

// UpstreamPins lists what was pinned of an upstream and what waits.
func (d *Desk) UpstreamPins(ctx context.Context, name string) (out []upstream.Pin, err error) {
	err = d.opts.Store.Read(ctx, func(tx *store.Tx) error {
		out, err = d.opts.Upstreams.Pins(tx, name)
		return err
	})
	return out, publicError(err)
}

// Differences shows what an upstream, or any if name is "", says about itself
// that was not pinned.
func (d *Desk) Differences(ctx context.Context, name string) (out Differences, err error) {
	err = d.opts.Store.Read(ctx, func(tx *store.Tx) error {
		out.Waiting, err = d.opts.Upstreams.Waiting(tx, name)
		out.Digest = d.opts.Upstreams.Digest(out.Waiting)
		return err
	})
	return out, publicError(err)
}

// AcceptUpstream pins what waits of an upstream, or one tool of it, as it was
// shown.
func (d *Desk) AcceptUpstream(ctx context.Context, a Actor, name, tool, digest string) error {
	return d.act(ctx, func(tx *store.Tx) (Act, error) {
		n, err := d.opts.Upstreams.Accept(tx, name, tool, digest, a.Approver)
		return a.act("upstream.accept", name, map[string]any{"tool": tool, "accepted": n}), err
	})
}

// SetUpstreamCredential keeps a credential with which the gate goes to an
// upstream for an agent, or for all that have none if agent is "".
func (d *Desk) SetUpstreamCredential(ctx context.Context, a Actor, name, agent, secret string) error {
	return d.act(ctx, func(tx *store.Tx) (Act, error) {
		return a.act("upstream.credential", name, map[string]string{"agent": agent}), d.opts.Upstreams.SetCredential(tx, name, agent, secret, a.Approver)
	})
}

// ClearUpstreamCredential forgets such a credential.
func (d *Desk) ClearUpstreamCredential(ctx context.Context, a Actor, name, agent string) error {
	return d.act(ctx, func(tx *store.Tx) (Act, error) {
		had, err := d.opts.Upstreams.ClearCredential(tx, name, agent)
		if err == nil && !had {
			err = upstream.ErrNotFound
		}
		return a.act("upstream.credential.clear", name, map[string]string{"agent": agent}), err
	})
}
