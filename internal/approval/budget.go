package approval

import (
	"database/sql"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/grant"
	"github.com/seed-3ebc6b8a/gatehouse/internal/keyring"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// budgetRow is a budget with its fate.
type budgetRow struct {
	grant.Budget
	state   GrantState
	version int
}

const budgetColumns = `id, agent, session, path, parent, call_id, votes, lines, given_by, channel, given, expires, state, version, mac`

// maxHands is how often a budget can be handed on.
const maxHands = 8

func (d *Desk) scanBudget(row scanner) (*budgetRow, error) {
	var b budgetRow
	var votes, lines string
	var given, expires int64
	var mac []byte
	err := row.Scan(&b.ID, &b.Principal.Agent, &b.Principal.Session, &b.Principal.Path, &b.Parent, &b.Call, &votes, &lines,
		&b.By, &b.Channel, &given, &expires, &b.state, &b.version, &mac)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("budget: %w", ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	b.Given, b.Expires = keyring.Time(given), keyring.Time(expires)
	if !d.budgetMAC(&b, votes, lines).Is(mac) {
		return nil, fmt.Errorf("budget %s: %w", b.ID, ErrForged)
	}
	return &b, errors.Join(json.Unmarshal([]byte(votes), &b.Votes), json.Unmarshal([]byte(lines), &b.Lines))
}

func (d *Desk) nextBudget(rows *store.Rows) (*budgetRow, error) { return d.scanBudget(rows) }

func (d *Desk) budgetMAC(b *budgetRow, votes, lines string) *keyring.Row {
	return d.keys.Row("budget").
		Text(b.ID, b.Principal.Agent, b.Principal.Session, b.Principal.Path, b.Parent, b.Call, votes, lines, b.By, b.Channel).
		Time(b.Given, b.Expires).Text(string(b.state)).Int(int64(b.version))
}

// Random is where ids come from.
func (d *Desk) Random() io.Reader { return d.keys.Random() }

// AddBudget keeps a new budget. Call it in the transaction that records the
// allow of its plan, or that reserves what it was cut from.
func (d *Desk) AddBudget(tx *store.Tx, b *grant.Budget) error {
	votes, lines, err := budgetLists(b)
	if err != nil {
		return err
	}
	row := &budgetRow{Budget: *b, state: Good}
	_, err = tx.Exec(`INSERT INTO approval_budget (`+budgetColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)`,
		b.ID, b.Principal.Agent, b.Principal.Session, b.Principal.Path, b.Parent, b.Call, votes, lines, b.By, b.Channel,
		keyring.Micros(b.Given), keyring.Micros(b.Expires), string(Good), 0, d.budgetMAC(row, votes, lines).Sum())
	return err
}

func budgetLists(b *grant.Budget) (votes, lines string, err error) {
	v, errVotes := json.Marshal(b.Votes)
	l, errLines := json.Marshal(b.Lines)
	return string(v), string(l), errors.Join(errVotes, errLines)
}

// saveBudget writes a budget back, if nobody has since it was read.
func (d *Desk) saveBudget(tx *store.Tx, b *budgetRow) error {
	before := b.version
	b.version++
	votes, lines, err := budgetLists(&b.Budget)
	if err != nil {
		return err
	}
	n, err := tx.Exec(`UPDATE approval_budget SET lines = $1, state = $2, version = $3, mac = $4 WHERE id = $5 AND version = $6`,
		lines, string(b.state), b.version, d.budgetMAC(b, votes, lines).Sum(), b.ID, before)
	if err == nil && n != 1 {
		err = fmt.Errorf("budget %s: %w", b.ID, ErrSpent)
	}
	return err
}

// loadBudget reads a budget that is still good, and holds it until the
// transaction ends. One whose plan, or whose budget above, is over is over too.
func (d *Desk) loadBudget(tx *store.Tx, id string, p call.Principal) (*budgetRow, error) {
	b, err := d.scanBudget(tx.QueryRow(`SELECT `+budgetColumns+` FROM approval_budget WHERE id = $1`+tx.ForUpdate(), id))
	if err != nil {
		return nil, err
	}
	if b.Principal != p {
		return nil, fmt.Errorf("budget: %w", ErrNotFound) // the same as one that is not there
	}
	now, err := tx.Now() // after the row lock, which may have kept us waiting
	if err != nil {
		return nil, err
	}
	for up, hands := b, 0; ; hands++ {
		if up.state != Good || !now.Before(up.Expires) || hands > maxHands {
			return nil, fmt.Errorf("budget %s: %w", id, ErrSpent)
		}
		if up.Parent == "" {
			return b, nil
		}
		if up, err = d.scanBudget(tx.QueryRow(`SELECT `+budgetColumns+` FROM approval_budget WHERE id = $1`, up.Parent)); err != nil {
			return nil, err
		}
	}
}

// Budget reads a principal's own budget, if it is still good.
func (d *Desk) Budget(tx *store.Tx, id string, p call.Principal) (*grant.Budget, error) {
	b, err := d.loadBudget(tx, id, p)
	if err != nil {
		return nil, err
	}
	return &b.Budget, nil
}

// ChangeBudget lets fn change a principal's own budget. Of all who do, on
// however many nodes, each sees what the one before left.
func (d *Desk) ChangeBudget(tx *store.Tx, id string, p call.Principal, fn func(*grant.Budget) error) error {
	b, err := d.loadBudget(tx, id, p)
	if err != nil {
		return err
	}
	if err := fn(&b.Budget); err != nil {
		return err
	}
	return d.saveBudget(tx, b)
}

// Delegate cuts a budget for a sub-agent of the principal's.
func (d *Desk) Delegate(tx *store.Tx, id string, p call.Principal, path string, lines []grant.Line, scope grant.Scope) (sub *grant.Budget, err error) {
	newID, err := keyring.NewID("b_", d.keys.Random())
	if err != nil {
		return nil, err
	}
	err = d.ChangeBudget(tx, id, p, func(b *grant.Budget) (err error) {
		if sub, err = b.Delegate(newID, path, lines, scope); err != nil {
			return fmt.Errorf("%w: %w", ErrInvalid, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return sub, d.AddBudget(tx, sub)
}

// ReturnBudget ends a budget that was cut from one of the principal's, and all
// that were cut from it, and takes back what is left.
func (d *Desk) ReturnBudget(tx *store.Tx, id string, p call.Principal) error {
	sub, err := d.scanBudget(tx.QueryRow(`SELECT `+budgetColumns+` FROM approval_budget WHERE id = $1`, id))
	if err != nil {
		return err
	}
	if sub.Parent == "" {
		return fmt.Errorf("%w: a plan's own budget ends with the plan", ErrInvalid)
	}
	// The one above first: everyone who changes two rows takes them from the
	// top, so that nobody waits for each other.
	up, err := d.loadBudget(tx, sub.Parent, p)
	if err != nil {
		return err
	}
	return d.returnTo(tx, up, id, 0)
}

func (d *Desk) returnTo(tx *store.Tx, up *budgetRow, id string, depth int) error {
	sub, err := d.scanBudget(tx.QueryRow(`SELECT `+budgetColumns+` FROM approval_budget WHERE id = $1`+tx.ForUpdate(), id))
	if err != nil {
		return err
	}
	if sub.state != Good || depth > maxHands {
		return fmt.Errorf("budget %s: %w", id, ErrSpent)
	}
	below, err := store.All(tx, d.nextBudget, `SELECT `+budgetColumns+` FROM approval_budget WHERE parent = $1 AND state = 'good' ORDER BY id`, id)
	if err != nil {
		return err
	}
	for _, b := range below {
		if err := d.returnTo(tx, sub, b.ID, depth+1); err != nil {
			return err
		}
	}
	if err := up.Return(&sub.Budget); err != nil {
		return err
	}
	sub.state = Used
	return errors.Join(d.saveBudget(tx, sub), d.saveBudget(tx, up))
}

// EndBudgets ends the budgets of a plan whose call is over.
func (d *Desk) EndBudgets(tx *store.Tx, callID string) error {
	rows, err := store.All(tx, d.nextBudget, `SELECT `+budgetColumns+` FROM approval_budget WHERE call_id = $1 AND state = 'good' ORDER BY id`+tx.ForUpdate(), callID)
	if err != nil {
		return err
	}
	for _, b := range rows {
		b.state = Used
		if err := d.saveBudget(tx, b); err != nil {
			return err
		}
	}
	return nil
}

// LiveBudgets returns every principal's budgets that are still good, newest
// first, so that a person can take any of them back.
func (d *Desk) LiveBudgets(tx *store.Tx) ([]grant.Budget, error) {
	now, err := tx.Now()
	if err != nil {
		return nil, err
	}
	rows, err := store.All(tx, d.nextBudget, `SELECT `+budgetColumns+` FROM approval_budget WHERE state = 'good' AND expires > $1
		ORDER BY given DESC, id DESC`, keyring.Micros(now))
	if err != nil {
		return nil, err
	}
	list := make([]grant.Budget, len(rows))
	for i, b := range rows {
		list[i] = b.Budget
	}
	return list, nil
}

// RevokeBudget takes a budget back, and with it all that were cut from it. One
// that is over yields ErrSpent.
func (d *Desk) RevokeBudget(tx *store.Tx, id string) error {
	b, err := d.scanBudget(tx.QueryRow(`SELECT `+budgetColumns+` FROM approval_budget WHERE id = $1`+tx.ForUpdate(), id))
	if err != nil {
		return err
	}
	if b.state != Good {
		return fmt.Errorf("budget %s: %w", id, ErrSpent)
	}
	// Those below end with it: each is read together with the ones above.
	b.state = Revoked
	return d.saveBudget(tx, b)
}

// revokeBudgets takes back the budgets of a session.
func (d *Desk) revokeBudgets(tx *store.Tx, session string) error {
	rows, err := store.All(tx, d.nextBudget, `SELECT `+budgetColumns+` FROM approval_budget WHERE session = $1 AND state = 'good' ORDER BY id`+tx.ForUpdate(), session)
	if err != nil {
		return err
	}
	for _, b := range rows {
		b.state = Revoked
		if err := d.saveBudget(tx, b); err != nil {
			return err
		}
	}
	return nil
}
