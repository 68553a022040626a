package approval

import (
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/grant"
	"github.com/seed-3ebc6b8a/gatehouse/internal/keyring"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// GrantState is whether a grant can still be used. It leaves good once.
type GrantState string

// The states of a grant. Expiry is not among them: it is judged at use.
const (
	Good    GrantState = "good"
	Used    GrantState = "used"
	Revoked GrantState = "revoked"
)

// GrantRow is a grant with its fate.
type GrantRow struct {
	grant.Grant
	State   GrantState `json:"state"`
	Ended   time.Time  `json:"ended,omitzero"`
	EndedBy string     `json:"ended_by,omitzero"`
}

const grantColumns = `id, use, agent, session, path, votes, digest, world, policy, operation, element_type, needs, words,
	given_by, channel, factor, request, given, expires, uses, state, ended, ended_by, mac`

func (d *Desk) scanGrant(row scanner) (*GrantRow, error) {
	var g GrantRow
	var digest, world, policy, mac []byte
	var use, votes, needs string
	var given, expires, ended int64
	err := row.Scan(&g.ID, &use, &g.Principal.Agent, &g.Principal.Session, &g.Principal.Path, &votes, &digest, &world,
		&policy, &g.Operation, &g.ElementType, &needs, &g.Words, &g.By, &g.Channel, &g.Factor, &g.Request, &given,
		&expires, &g.Uses, &g.State, &ended, &g.EndedBy, &mac)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("grant: %w", ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	g.Given, g.Expires, g.Ended = keyring.Time(given), keyring.Time(expires), keyring.Time(ended)
	err = errors.Join(g.Use.UnmarshalText([]byte(use)),
		json.Unmarshal([]byte(votes), &g.Votes), json.Unmarshal([]byte(needs), &g.Needs),
		digestFrom(&g.Digest, digest), digestFrom(&g.World, world), digestFrom(&g.Policy, policy))
	if err != nil || !d.grantRow(&g, votes, needs).Is(mac) {
		return nil, fmt.Errorf("grant %s: %w", g.ID, ErrForged)
	}
	return &g, nil
}

func (d *Desk) grantRow(g *GrantRow, votes, needs string) *keyring.Row {
	return d.keys.Row("grant").
		Text(g.ID, g.Use.String(), g.Principal.Agent, g.Principal.Session, g.Principal.Path, votes).
		Bytes(g.Digest[:], g.World[:], g.Policy[:]).
		Text(g.Operation, g.ElementType, needs, g.Words, g.By, g.Channel).Bool(g.Factor).Text(g.Request).
		Time(g.Given, g.Expires).Int(int64(g.Uses)).Text(string(g.State)).Time(g.Ended).Text(g.EndedBy)
}

func grantLists(g *grant.Grant) (votes, needs string, err error) {
	v, errVotes := json.Marshal(g.Votes)
	n, errNeeds := json.Marshal(g.Needs)
	return string(v), string(n), errors.Join(errVotes, errNeeds)
}

func (d *Desk) insertGrant(tx *store.Tx, g *grant.Grant) error {
	votes, needs, err := grantLists(g)
	if err != nil {
		return err
	}
	row := &GrantRow{Grant: *g, State: Good}
	_, err = tx.Exec(`INSERT INTO approval_grant (`+grantColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10,
		$11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24)`,
		g.ID, g.Use.String(), g.Principal.Agent, g.Principal.Session, g.Principal.Path, votes, g.Digest[:], g.World[:],
		g.Policy[:], g.Operation, g.ElementType, needs, g.Words, g.By, g.Channel, g.Factor, g.Request,
		keyring.Micros(g.Given), keyring.Micros(g.Expires), g.Uses, string(Good), 0, "", d.grantRow(row, votes, needs).Sum())
	return err
}

// saveGrant writes a grant's use or end, if nobody used or ended it since it
// was read.
func (d *Desk) saveGrant(tx *store.Tx, g *GrantRow, usesBefore int) error {
	votes, needs, err := grantLists(&g.Grant)
	if err != nil {
		return err
	}
	n, err := tx.Exec(`UPDATE approval_grant SET uses = $1, state = $2, ended = $3, ended_by = $4, mac = $5
		WHERE id = $6 AND state = 'good' AND uses = $7`, g.Uses, string(g.State), keyring.Micros(g.Ended), g.EndedBy,
		d.grantRow(g, votes, needs).Sum(), g.ID, usesBefore)
	if err != nil {
		return err
	}
	if n != 1 {
		return fmt.Errorf("grant %s: %w", g.ID, ErrSpent)
	}
	store.Notify(tx, Topic, g.ID)
	return nil
}

// Grants returns the grants of a principal that are still good: not expired by
// the database's clock, not used up, not revoked. A forged one fails the whole
// list, which denies.
func (d *Desk) Grants(tx *store.Tx, p call.Principal) ([]grant.Grant, error) {
	rows, err := store.All(tx, d.nextGrant, `SELECT `+grantColumns+` FROM approval_grant
		WHERE state = 'good' AND session = $1 AND agent = $2 AND path = $3 ORDER BY given, id`, p.Session, p.Agent, p.Path)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	now, err := tx.Now()
	if err != nil {
		return nil, err
	}
	var good []grant.Grant
	for _, g := range rows {
		if now.Before(g.Expires) {
			good = append(good, g.Grant)
		}
	}
	return good, nil
}

func (d *Desk) nextGrant(rows *store.Rows) (*GrantRow, error) { return d.scanGrant(rows) }

func (d *Desk) loadGrant(tx *store.Tx, id string) (*GrantRow, error) {
	return d.scanGrant(tx.QueryRow(`SELECT `+grantColumns+` FROM approval_grant WHERE id = $1`+tx.ForUpdate(), id))
}

// Consume uses a grant. A single-use grant is spent by it: of all who try, on
// however many nodes, one succeeds and the rest get ErrSpent. Call it in the
// transaction that records the allow, so that both happen or neither does.
func (d *Desk) Consume(tx *store.Tx, id string) (*grant.Grant, error) {
	g, err := d.loadGrant(tx, id)
	if err != nil {
		return nil, err
	}
	now, err := tx.Now() // after the row lock, which may have kept us waiting
	if err != nil {
		return nil, err
	}
	if g.State != Good || !now.Before(g.Expires) {
		return nil, fmt.Errorf("grant %s: %w", id, ErrSpent)
	}
	before := g.Uses
	g.Uses++
	if g.Use == grant.Once {
		g.State, g.Ended = Used, now
	}
	return &g.Grant, d.saveGrant(tx, g, before)
}

// Revoke takes a grant back. A spent one stays spent and yields ErrSpent.
func (d *Desk) Revoke(tx *store.Tx, id, by string) error {
	g, err := d.loadGrant(tx, id)
	if err != nil {
		return err
	}
	return d.revoke(tx, g, by)
}

func (d *Desk) revoke(tx *store.Tx, g *GrantRow, by string) error {
	if g.State != Good {
		return fmt.Errorf("grant %s: %w", g.ID, ErrSpent)
	}
	now, err := tx.Now()
	if err != nil {
		return err
	}
	g.State, g.Ended, g.EndedBy = Revoked, now, by
	return d.saveGrant(tx, g, g.Uses)
}

// RevokeSession takes back every grant of a session and says how many; its
// budgets go with them.
func (d *Desk) RevokeSession(tx *store.Tx, session, by string) (int, error) {
	if err := d.revokeBudgets(tx, session); err != nil {
		return 0, err
	}
	return d.revokeWhere(tx, `session = $1`, session, by)
}

// RevokeStanding revokes the grants that a session holds for more than one
// call. What was approved for one call stays bound to that call.
func (d *Desk) RevokeStanding(tx *store.Tx, session, by string) (int, error) {
	return d.revokeWhere(tx, `use = 'session' AND session = $1`, session, by)
}

func (d *Desk) revokeWhere(tx *store.Tx, condition, arg, by string) (int, error) {
	rows, err := store.All(tx, d.nextGrant, `SELECT `+grantColumns+` FROM approval_grant WHERE state = 'good'
		AND `+condition+` ORDER BY id`+tx.ForUpdate(), arg)
	if err != nil {
		return 0, err
	}
	for _, g := range rows {
		if err := d.revoke(tx, g, by); err != nil {
			return 0, err
		}
	}
	return len(rows), nil
}

// LiveGrants returns every principal's grants that are still good, newest
// first, so that a person can take any of them back.
func (d *Desk) LiveGrants(tx *store.Tx) ([]*GrantRow, error) {
	now, err := tx.Now()
	if err != nil {
		return nil, err
	}
	return store.All(tx, d.nextGrant, `SELECT `+grantColumns+` FROM approval_grant WHERE state = 'good' AND expires > $1
		ORDER BY given DESC, id DESC`, keyring.Micros(now))
}

// ListGrants returns grants of all fates, newest first, and where the next
// page starts. Filter.State has no meaning here.
func (d *Desk) ListGrants(tx *store.Tx, f Filter, p Page) (list []*GrantRow, more string, err error) {
	micros, id, err := p.cursor()
	if err != nil {
		return nil, "", err
	}
	list, err = store.All(tx, d.nextGrant, `SELECT `+grantColumns+` FROM approval_grant
		WHERE (given < $1 OR (given = $1 AND id < $2)) AND ($3 = '' OR agent = $3) AND ($4 = '' OR session = $4)
		ORDER BY given DESC, id DESC LIMIT $5`, micros, id, f.Agent, f.Session, p.limit())
	if err != nil {
		return nil, "", err
	}
	if len(list) > 0 {
		last := list[len(list)-1]
		more = next(len(list) == p.limit(), last.Given, last.ID)
	}
	return list, more, nil
}
