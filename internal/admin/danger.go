package admin

import (
	"context"
	"slices"

	"github.com/seed-3ebc6b8a/gatehouse/internal/approval"
	"github.com/seed-3ebc6b8a/gatehouse/internal/autonomy"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/session"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// Danger is the danger zone as a person sees it.
type Danger struct {
	Blocks []session.Block `json:"blocks"`
}

// Danger lists the blocked agents.
func (d *Desk) Danger(ctx context.Context) (out Danger, err error) {
	err = d.opts.Store.Read(ctx, func(tx *store.Tx) error {
		out.Blocks, err = d.opts.Sessions.Blocks(tx)
		return err
	})
	return out, publicError(err)
}

// BlockView is a block with the challenge that releases it.
type BlockView struct {
	Block     session.Block `json:"block"`
	Challenge Challenge     `json:"challenge"`
}

// Block shows a block, with a challenge that is bound to it. Where none waits
// one is made: the person who looks needs no agent for it.
func (d *Desk) Block(ctx context.Context, a Actor, id string) (*BlockView, error) {
	out := &BlockView{}
	var c *approval.Challenge
	err := d.opts.Store.Write(ctx, func(tx *store.Tx) error {
		b, err := d.findBlock(tx, id)
		if err != nil {
			return err
		}
		out.Block = b
		var joined bool
		c, joined, err = d.opts.Approval.Issue(tx, approval.Challenge{Kind: approval.ForBlock, Subject: b.ID, Principal: call.Principal{Agent: b.Agent},
			Words: "releases " + b.Agent + " from the danger zone: " + b.Reason, Detail: detail(b)})
		if err != nil || joined {
			return err
		}
		return d.opts.Record(tx, a.act("challenge.issued", c.ID, map[string]any{"kind": c.Kind, "about": c.Subject}))
	})
	if err != nil {
		return nil, publicError(err)
	}
	if err := d.showsCode(ctx, a, c); err != nil {
		return nil, publicError(err)
	}
	out.Challenge = d.challenge(c)
	return out, nil
}

// findBlock finds a block by its id or by its agent's name.
func (d *Desk) findBlock(tx *store.Tx, id string) (session.Block, error) {
	blocks, err := d.opts.Sessions.Blocks(tx)
	if err != nil {
		return session.Block{}, err
	}
	i := slices.IndexFunc(blocks, func(b session.Block) bool { return b.ID == id || b.Agent == session.AgentID(id) })
	if i < 0 {
		return session.Block{}, session.ErrNotFound
	}
	return blocks[i], nil
}

// BlockAgent puts an agent into the danger zone. Stopping is free.
func (d *Desk) BlockAgent(ctx context.Context, a Actor, agent, reason string) (b session.Block, err error) {
	err = d.act(ctx, func(tx *store.Tx) (Act, error) {
		b, err = d.opts.Sessions.SetBlock(tx, session.Block{Agent: agent, By: a.Approver, Reason: reason})
		return a.act("danger.block", b.Agent, b), err
	})
	return b, err
}

// ReleaseBlock releases a blocked agent by the challenge that is bound to the
// block.
func (d *Desk) ReleaseBlock(ctx context.Context, a Actor, id string, yes Release) error {
	var c *approval.Challenge
	err := d.opts.Store.Read(ctx, func(tx *store.Tx) error {
		b, err := d.findBlock(tx, id)
		if err != nil {
			return err
		}
		c, err = d.opts.Approval.WaitingFor(tx, approval.ForBlock, b.ID)
		return err
	})
	if err != nil {
		return publicError(err)
	}
	return d.ReleaseChallenge(ctx, a, c.ID, yes)
}

// Executions lists the executions of all agents, newest first.
func (d *Desk) Executions(ctx context.Context) (out []*autonomy.Execution, err error) {
	err = d.opts.Store.Read(ctx, func(tx *store.Tx) error {
		out, err = d.opts.Autonomy.List(tx, "", 200)
		return err
	})
	return out, publicError(err)
}

// AbortExecution ends an execution.
func (d *Desk) AbortExecution(ctx context.Context, a Actor, agent, id string) error {
	return d.act(ctx, func(tx *store.Tx) (Act, error) {
		_, err := d.opts.Autonomy.End(tx, agent, id, autonomy.Aborted, "ended by "+a.Approver, a.Approver)
		return a.act("execution.abort", id, agent), err
	})
}
