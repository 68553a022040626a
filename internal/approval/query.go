package approval

import (
	"fmt"
	"strings"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/keyring"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// Filter narrows a list of requests or grants; empty fields match all.
type Filter struct {
	Agent   string
	Session string
	State   State
}

// Page is one stretch of a list, newest first.
type Page struct {
	// After is where the page before ended, as its Next said; empty starts.
	After string
	// Limit is how many; 0 means 50, at most 500.
	Limit int
}

func (p Page) limit() int {
	switch {
	case p.Limit <= 0:
		return 50
	case p.Limit > 500:
		return 500
	}
	return p.Limit
}

// cursor reads After: the time and id of the last row seen.
func (p Page) cursor() (micros int64, id string, err error) {
	if p.After == "" {
		return 1<<62 - 1, "", nil
	}
	if n, err := fmt.Sscanf(p.After, "%d.%s", &micros, &id); n != 2 || err != nil {
		return 0, "", fmt.Errorf("%w: %q is not the end of a page", ErrInvalid, p.After)
	}
	return micros, id, nil
}

func next(full bool, t time.Time, id string) string {
	if !full {
		return ""
	}
	return fmt.Sprintf("%d.%s", keyring.Micros(t), id)
}

// Get returns one request. One whose time is over is expired, whether or not
// that has been written down yet.
func (d *Desk) Get(tx *store.Tx, id string) (*Request, error) {
	r, err := d.scanRequest(tx.QueryRow(`SELECT `+requestColumns+` FROM approval_request WHERE id = $1`, id))
	if err != nil {
		return nil, err
	}
	return r, judgeAll(tx, r)
}

// Latest returns the newest request for exactly this call in this world under
// this policy, so that a repeated call finds what became of it.
func (d *Desk) Latest(tx *store.Tx, p call.Principal, digest, world, policy call.Digest) (*Request, error) {
	r, err := d.scanRequest(tx.QueryRow(`SELECT `+requestColumns+` FROM approval_request WHERE digest = $1 AND world = $2
		AND policy = $3 AND agent = $4 AND session = $5 AND path = $6 ORDER BY filed DESC, id DESC LIMIT 1`,
		digest[:], world[:], policy[:], p.Agent, p.Session, p.Path))
	if err != nil {
		return nil, err
	}
	return r, judgeAll(tx, r)
}

// Pending lists what waits, the oldest first. A forged row fails the whole
// list: nobody should answer anything before that is understood.
func (d *Desk) Pending(tx *store.Tx, f Filter) ([]*Request, error) {
	now, err := tx.Now()
	if err != nil {
		return nil, err
	}
	return store.All(tx, d.nextRequest, `SELECT `+requestColumns+` FROM approval_request WHERE state = 'pending'
		AND expires > $1 AND ($2 = '' OR agent = $2) AND ($3 = '' OR session = $3) ORDER BY filed, id`,
		keyring.Micros(now), f.Agent, f.Session)
}

// List returns requests, newest first, and where the next page starts.
func (d *Desk) List(tx *store.Tx, f Filter, p Page) (list []*Request, more string, err error) {
	micros, id, err := p.cursor()
	if err != nil {
		return nil, "", err
	}
	where := []string{`(filed < $1 OR (filed = $1 AND id < $2))`}
	args := []any{micros, id}
	for _, c := range []struct{ column, value string }{{"agent", f.Agent}, {"session", f.Session}, {"state", string(f.State)}} {
		if c.value != "" {
			args = append(args, c.value)
			where = append(where, fmt.Sprintf("%s = $%d", c.column, len(args)))
		}
	}
	args = append(args, p.limit())
	list, err = store.All(tx, d.nextRequest, fmt.Sprintf(`SELECT %s FROM approval_request WHERE %s
		ORDER BY filed DESC, id DESC LIMIT $%d`, requestColumns, strings.Join(where, " AND "), len(args)), args...)
	if err != nil {
		return nil, "", err
	}
	if len(list) > 0 {
		last := list[len(list)-1]
		more = next(len(list) == p.limit(), last.Filed, last.ID)
	}
	return list, more, judgeAll(tx, list...)
}

func (d *Desk) nextRequest(rows *store.Rows) (*Request, error) { return d.scanRequest(rows) }

func judgeAll(tx *store.Tx, list ...*Request) error {
	now, err := tx.Now()
	if err != nil {
		return err
	}
	for _, r := range list {
		r.judge(now)
	}
	return nil
}

const (
	// expireBatch bounds the work of one transaction.
	expireBatch = 200
	// viewGrace is how long the arguments of an approved edit are kept.
	viewGrace = 15 * time.Minute
)

// Expire writes down which requests ran out of time and returns them. Call it
// from a timer while Due says so; that it runs late changes nothing but when
// people hear of it.
func (d *Desk) Expire(tx *store.Tx) ([]*Request, error) {
	now, err := tx.Now()
	if err != nil {
		return nil, err
	}
	due, err := d.expire(tx, now, `$2 = $2`, "")
	if err != nil {
		return nil, err
	}
	return due, d.dropViews(tx, now)
}

// Due says whether [Desk.Expire] has something to do. It is a cheap read, so
// that a timer need not write every time.
func (d *Desk) Due(tx *store.Tx) (bool, error) {
	now, err := tx.Now()
	if err != nil {
		return false, err
	}
	var n int
	err = tx.QueryRow(`SELECT (SELECT count(*) FROM approval_request WHERE state = 'pending' AND expires <= $1)
		+ (SELECT count(*) FROM approval_request WHERE state = 'approved' AND edit_of <> '' AND length(sealed) > 0
			AND answered <= $2)`, keyring.Micros(now), keyring.Micros(now.Add(-viewGrace))).Scan(&n)
	return n > 0, err
}

// dropViews drops what an approved edit kept for the agent to fetch, once the
// grant for it is over for certain.
func (d *Desk) dropViews(tx *store.Tx, now time.Time) error {
	kept, err := store.All(tx, d.nextRequest, fmt.Sprintf(`SELECT %s FROM approval_request WHERE state = 'approved'
		AND edit_of <> '' AND length(sealed) > 0 AND answered <= $1 ORDER BY id LIMIT %d`, requestColumns, expireBatch)+
		tx.ForUpdate(), keyring.Micros(now.Add(-viewGrace)))
	if err != nil {
		return err
	}
	for _, r := range kept {
		r.sealed = nil
		if err := d.save(tx, r, Approved); err != nil {
			return err
		}
	}
	return nil
}

// expire marks due requests that match a condition over $2.
func (d *Desk) expire(tx *store.Tx, now time.Time, condition, arg string) ([]*Request, error) {
	due, err := store.All(tx, d.nextRequest, fmt.Sprintf(`SELECT %s FROM approval_request WHERE state = 'pending'
		AND expires <= $1 AND %s ORDER BY id LIMIT %d`, requestColumns, condition, expireBatch)+tx.ForUpdate(),
		keyring.Micros(now), arg)
	if err != nil {
		return nil, err
	}
	for _, r := range due {
		r.State, r.sealed = Expired, nil
		if err := d.save(tx, r, Pending); err != nil {
			return nil, err
		}
	}
	return due, nil
}

// Cancel takes back a request that nobody needs answered any more: its session
// ended, or the agent gave up.
func (d *Desk) Cancel(tx *store.Tx, id, why string) (*Request, error) {
	r, err := d.load(tx, id)
	if err != nil {
		return nil, err
	}
	now, err := tx.Now()
	if err != nil {
		return nil, err
	}
	r.judge(now)
	if r.State != Pending {
		return r, r.decided()
	}
	if err := text("the reason", why, maxWords); err != nil {
		return r, err
	}
	r.State, r.Answered, r.Words, r.sealed = Cancelled, now, why, nil
	return r, d.save(tx, r, Pending)
}

// CancelSession cancels everything that waits for an agent's session.
func (d *Desk) CancelSession(tx *store.Tx, session, why string) (int, error) {
	waiting, err := d.Pending(tx, Filter{Session: session})
	if err != nil || session == "" {
		return 0, err
	}
	for _, r := range waiting {
		if _, err := d.Cancel(tx, r.ID, why); err != nil {
			return 0, err
		}
	}
	return len(waiting), nil
}
