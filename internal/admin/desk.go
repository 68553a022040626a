package admin

import (
	"context"
	"sync"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/activation"
	"github.com/seed-3ebc6b8a/gatehouse/internal/approval"
	"github.com/seed-3ebc6b8a/gatehouse/internal/audit"
	"github.com/seed-3ebc6b8a/gatehouse/internal/autonomy"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch"
	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch/job"
	"github.com/seed-3ebc6b8a/gatehouse/internal/facts"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
	"github.com/seed-3ebc6b8a/gatehouse/internal/policy"
	"github.com/seed-3ebc6b8a/gatehouse/internal/restore"
	"github.com/seed-3ebc6b8a/gatehouse/internal/session"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
	"github.com/seed-3ebc6b8a/gatehouse/internal/upstream"
)

// Rulebook is the policy as an approver handles it.
type Rulebook interface {
	// Status tells what is in force, what did not load and what waits.
	Status() Policy
	// Current is the policy in force outside of projects.
	Current() *policy.Snapshot
	// Accept puts the staged change with this hash in force, inside the
	// transaction.
	Accept(tx *store.Tx, hash call.Digest, by string) error
	// TrustProject takes a project's file as it is on disk, inside the
	// transaction.
	TrustProject(tx *store.Tx, path, by string) (call.Digest, error)
	// Propose prepares a rule that lets a call through without asking.
	Propose(c *call.Call, f *facts.Facts, scopes []call.Need, by, comment string) (*Proposal, error)
	// Adopted is called when the transaction is durable.
	Adopted(ctx context.Context) error
}

// Options is what a desk is made of.
type Options struct {
	Store    *store.Store
	Approval *approval.Desk
	Sessions *session.Registry
	Channels *approval.Channels
	Log      *audit.Log
	Rules    Rulebook
	// Upstreams are the MCP servers behind the gate.
	Upstreams *upstream.Registry
	Autonomy  *autonomy.Keeper
	// Elements keeps which elements are in force.
	Elements *activation.Keeper
	// Restore holds what calls were about to change.
	Restore *restore.Store
	// Jobs are the runs of agent CLIs, and Trace tells what is on record under
	// the correlation id of one.
	Jobs  *job.Jobs
	Trace func(ctx context.Context, who call.Principal, correlation string) (*dispatch.Trace, error)
	// Gate prepares edited calls.
	Gate *gate.Gate
	// Performable says what is wrong with a native call that could not be performed.
	Performable func(*call.Call) error
	// File puts a prepared question before people, inside a transaction.
	File func(tx *store.Tx, r *gate.Request) (id string, err error)
	// Record appends an act to the log, inside its transaction.
	Record func(tx *store.Tx, act Act) error
	// Checkpoint signs the log as it is now.
	Checkpoint func(context.Context) error
	// Limits are the limits in force.
	Limits func() approval.Limits
	// BaseURL is where the console is, for sign-in links.
	BaseURL string
}

// Act is something a person did, for the log.
type Act struct {
	// Name is what was done, such as approver.add.
	Name string `json:"act"`
	// By and Channel are who did it, where.
	By      string `json:"by"`
	Channel string `json:"channel"`
	// Subject is what it was done to.
	Subject string `json:"subject,omitzero"`
	// Detail is what else there is to know. It holds no secret.
	Detail any `json:"detail,omitzero"`
	// Call is the call that an answer is about.
	Call *call.Call `json:"-"`
}

// Desk is where people act. It is safe for concurrent use.
type Desk struct {
	opts    Options
	changes *Changes
	shown   showings

	mu    sync.Mutex
	first *firstLink // until the first approver is enrolled
}

// New makes a desk.
func New(opts Options, changes *Changes) *Desk { return &Desk{opts: opts, changes: changes} }

// act runs one act of a person: the change and its record, durable together.
func (d *Desk) act(ctx context.Context, change func(tx *store.Tx) (Act, error)) error {
	err := d.opts.Store.Write(ctx, func(tx *store.Tx) error {
		a, err := change(tx)
		if err != nil {
			return err
		}
		return d.opts.Record(tx, a)
	})
	d.changes.Tell()
	return publicError(err)
}

func (a Actor) act(name, subject string, detail any) Act {
	return Act{Name: name, By: a.Approver, Channel: a.Channel, Subject: subject, Detail: detail}
}

// Changed returns a channel that is closed when something may have changed.
func (d *Desk) Changed() <-chan struct{} { return d.changes.Wait() }

// Present marks that a person is looking, until release is called.
func (d *Desk) Present() (release func()) { return d.opts.Channels.Join(approval.ConsoleOpen) }

// Sessions lists the sessions of agents, newest first.
func (d *Desk) Sessions(ctx context.Context) (out []Session, err error) {
	err = d.opts.Store.Read(ctx, func(tx *store.Tx) error {
		list, err := d.opts.Sessions.List(tx, false, 1000)
		for _, s := range list {
			v := Session{ID: s.ID, Agent: s.Agent, Surface: s.Surface, Workspace: s.Workspace, Opened: s.Opened, LastSeen: s.Seen, Ended: s.EndedBy}
			if !s.Process.IsZero() {
				v.Process = s.Process.String()
			}
			out = append(out, v)
		}
		return err
	})
	return out, publicError(err)
}

// EndSession ends a session: its grants are revoked, its requests cancelled,
// and it takes no more calls.
func (d *Desk) EndSession(ctx context.Context, a Actor, id string) error {
	return d.act(ctx, func(tx *store.Tx) (Act, error) {
		if err := d.opts.Sessions.End(tx, id, a.Approver); err != nil {
			return Act{}, err
		}
		revoked, err := d.opts.Approval.RevokeSession(tx, id, a.Approver)
		if err != nil {
			return Act{}, err
		}
		cancelled, err := d.opts.Approval.CancelSession(tx, id, "the session was ended")
		return a.act("session.end", id, map[string]int{"grants_revoked": revoked, "requests_cancelled": cancelled}), err
	})
}

// Kill tells the state of the kill switch.
func (d *Desk) Kill(ctx context.Context) (k Kill, err error) {
	err = d.opts.Store.Read(ctx, func(tx *store.Tx) error {
		s, err := d.opts.Sessions.Switches(tx)
		k = Kill{On: s.Kill, Reason: s.Reason, By: s.By, At: s.At}
		return err
	})
	return k, publicError(err)
}

// SetKill throws the kill switch. While it is on every call is denied.
func (d *Desk) SetKill(ctx context.Context, a Actor, on bool, reason string) error {
	return d.act(ctx, func(tx *store.Tx) (Act, error) {
		name := "kill.off"
		if on {
			name = "kill.on"
		}
		return a.act(name, "", reason), d.opts.Sessions.SetKill(tx, on, a.Approver, reason)
	})
}

// Policy tells what is in force, what did not load and what waits.
func (d *Desk) Policy(context.Context) (Policy, error) { return d.opts.Rules.Status(), nil }

// AcceptPolicy puts a staged change that loosens in force. Loosening is
// pinned: an approver with a second factor must use it.
func (d *Desk) AcceptPolicy(ctx context.Context, a Actor, hash call.Digest, code string) error {
	if err := d.prove(ctx, a, "policy "+hash.String(), code); err != nil {
		return publicError(err)
	}
	err := d.act(ctx, func(tx *store.Tx) (Act, error) {
		return a.act("policy.accept", hash.String(), nil), d.opts.Rules.Accept(tx, hash, a.Approver)
	})
	if err != nil {
		return err
	}
	return publicError(d.opts.Rules.Adopted(ctx))
}

// TrustPolicy takes a project's policy file as it is on disk: it may loosen,
// or be gone. Like accepting a change it is pinned.
func (d *Desk) TrustPolicy(ctx context.Context, a Actor, path, code string) error {
	if err := d.prove(ctx, a, "trust "+path, code); err != nil {
		return publicError(err)
	}
	err := d.act(ctx, func(tx *store.Tx) (Act, error) {
		digest, err := d.opts.Rules.TrustProject(tx, path, a.Approver)
		return a.act("policy.trust", path, digest), err
	})
	if err != nil {
		return err
	}
	return publicError(d.opts.Rules.Adopted(ctx))
}

// prove checks a fresh second factor for an act that is pinned.
func (d *Desk) prove(ctx context.Context, a Actor, purpose, code string) error {
	proof, err := d.opts.Approval.Prove(ctx, d.opts.Store, a.Approver, purpose, code)
	if err != nil {
		return err
	}
	if !proof.For(a.Approver, purpose, time.Now()) {
		return approval.ErrFactor
	}
	return nil
}
