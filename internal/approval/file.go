package approval

import (
	"errors"
	"fmt"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/grant"
	"github.com/seed-3ebc6b8a/gatehouse/internal/keyring"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// MaxView is the largest view of a call that can be stored: the largest
// arguments a call may have, several times over for decision and facts.
const MaxView = 8 << 20

// File puts a call before the approvers. An identical ask that waits already
// (same principal, call, world and policy) is joined instead. Beyond the
// limits it fails with ErrTooMany, and the gate denies; they count per agent,
// whatever session it asks from.
//
// The caller fills in what the call is; ID, State, Filed and Expires are set
// here. A request whose EditOf is set takes the place of an edited one, which
// must belong to the same principal and have no successor yet; it is a person's
// doing, and the agent's limits do not count for it.
func (d *Desk) File(tx *store.Tx, req Request, limits Limits) (got *Request, joined bool, err error) {
	limits = limits.WithDefaults()
	if err := checkFiled(&req); err != nil {
		return nil, false, err
	}
	if err := lockAsker(tx, req.Principal.Agent); err != nil {
		return nil, false, err
	}
	// After the lock: waiting for it may have taken a while.
	now, err := tx.Now()
	if err != nil {
		return nil, false, err
	}
	if _, err := d.expire(tx, now, `agent = $2`, req.Principal.Agent); err != nil {
		return nil, false, err
	}
	same, err := d.same(tx, &req)
	if err != nil {
		return nil, false, err
	}
	if same != nil {
		return same, true, d.follow(tx, &req, same.ID)
	}
	if err := checkAttention(tx, &req, limits, now); err != nil {
		return nil, false, err
	}
	if req.ID, err = keyring.NewID("r_", d.keys.Random()); err != nil {
		return nil, false, err
	}
	if err := d.follow(tx, &req, req.ID); err != nil {
		return nil, false, err
	}
	req.State, req.Filed, req.Expires = Pending, now, now.Add(limits.RequestLife)
	if req.sealed, err = d.keys.Seal(viewPurpose(req.ID), req.View); err != nil {
		return nil, false, err
	}
	values, err := d.requestValues(&req)
	if err != nil {
		return nil, false, err
	}
	_, err = tx.Exec(`INSERT INTO approval_request (`+requestColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10,
		$11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29)`, values...)
	if err != nil {
		return nil, false, err
	}
	store.Notify(tx, Topic, req.ID)
	return &req, false, nil
}

// checkFiled refuses what no person could answer well. Outcome fields are
// cleared, so that nobody files a request that looks answered.
func checkFiled(r *Request) error {
	r.Answered, r.AnsweredBy, r.Channel, r.Words, r.EditedTo, r.edited = time.Time{}, "", "", "", "", nil
	switch {
	case r.Principal.Agent == "" || r.Operation == "" || r.Digest.IsZero():
		return fmt.Errorf("%w: a request needs an agent, an operation and a digest", ErrInvalid)
	case !r.Level.Asks() && !r.Pinned:
		return fmt.Errorf("%w: a decision at %s is not put before a person", ErrInvalid, r.Level)
	case len(r.Votes) == 0:
		return fmt.Errorf("%w: a request shows at least one vote", ErrInvalid)
	case len(r.Offers) == 0 || r.Offers[0].Use != grant.Once:
		return fmt.Errorf("%w: the first offer is this call alone", ErrInvalid)
	case len(r.View) > MaxView:
		return fmt.Errorf("%w: what would be shown has %d bytes, the limit is %d", ErrInvalid, len(r.View), MaxView)
	}
	return nil
}

// lockAsker makes the agent's asks one after the other on all nodes, because
// counting and adding are two statements.
func lockAsker(tx *store.Tx, agent string) error {
	_, err := tx.Exec(`INSERT INTO approval_asker (agent, asked) VALUES ($1, 1)
		ON CONFLICT (agent) DO UPDATE SET asked = approval_asker.asked + 1`, agent)
	return err
}

// same finds the identical ask that waits.
func (d *Desk) same(tx *store.Tx, r *Request) (*Request, error) {
	found, err := d.scanRequest(tx.QueryRow(`SELECT `+requestColumns+` FROM approval_request WHERE state = 'pending'
		AND agent = $1 AND session = $2 AND path = $3 AND digest = $4 AND world = $5 AND policy = $6`,
		r.Principal.Agent, r.Principal.Session, r.Principal.Path, r.Digest[:], r.World[:], r.Policy[:]))
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	return found, err
}

// checkAttention counts what the agent has asked. Requests that were withdrawn
// or have expired count for the hour like all others: they took attention.
func checkAttention(tx *store.Tx, r *Request, limits Limits, now time.Time) error {
	if r.EditOf != "" {
		return nil
	}
	var ofSession, ofAgent, ofHour int
	err := tx.QueryRow(`SELECT
		(SELECT count(*) FROM approval_request WHERE state = 'pending' AND agent = $1 AND session = $2),
		(SELECT count(*) FROM approval_request WHERE state = 'pending' AND agent = $1),
		(SELECT count(*) FROM approval_request WHERE agent = $1 AND filed > $3)`,
		r.Principal.Agent, r.Principal.Session, keyring.Micros(now.Add(-time.Hour))).Scan(&ofSession, &ofAgent, &ofHour)
	switch {
	case err != nil:
		return err
	case ofSession >= limits.PendingPerSession:
		return fmt.Errorf("%w: %d wait for an answer in this session", ErrTooMany, ofSession)
	case ofAgent >= limits.PendingPerAgent:
		return fmt.Errorf("%w: %d of agent %s wait for an answer", ErrTooMany, ofAgent, r.Principal.Agent)
	case ofHour >= limits.AsksPerHour:
		return fmt.Errorf("%w: agent %s has asked %d times within an hour", ErrTooMany, r.Principal.Agent, ofHour)
	}
	return nil
}

// follow ties the request that was edited to the one for the edited call, and
// drops the edited arguments there: they are in the new call now.
func (d *Desk) follow(tx *store.Tx, r *Request, id string) error {
	if r.EditOf == "" {
		return nil
	}
	old, err := d.load(tx, r.EditOf)
	if err != nil {
		return err
	}
	if old.State != Edited || old.EditedTo != "" || old.Principal != r.Principal {
		return fmt.Errorf("%w: request %s does not wait for its edited call", ErrInvalid, old.ID)
	}
	old.EditedTo, old.edited = id, nil
	return d.save(tx, old, Edited)
}
