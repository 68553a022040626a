package approval

import (
	"crypto/subtle"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/keyring"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// How long sign-ins last.
const (
	// LinkLife is how long a sign-in link waits to be opened.
	LinkLife = 10 * time.Minute
	// ConsoleIdle ends a console that nobody used for so long.
	ConsoleIdle = 12 * time.Hour
	// ConsoleLife ends a console however much it is used.
	ConsoleLife = 7 * 24 * time.Hour
	// seenEvery is how exact a console's last use is: writing it down on every
	// page would make each page a durable write.
	seenEvery = time.Minute
)

// NewLink makes a single-use sign-in link for an approver. The caller puts the
// token into a URL and shows it where only the approver looks.
func (d *Desk) NewLink(tx *store.Tx, approver string) (keyring.Secret, error) {
	if _, err := d.activeApprover(tx, approver); err != nil {
		return keyring.Secret{}, err
	}
	now, err := tx.Now()
	if err != nil {
		return keyring.Secret{}, err
	}
	// Links that are over leave with the next one made.
	if _, err := tx.Exec(`DELETE FROM sign_in_link WHERE expires < $1`, keyring.Micros(now.Add(-time.Hour))); err != nil {
		return keyring.Secret{}, err
	}
	secret, hash, err := keyring.Mint(keyring.SignInLink, d.keys.Random())
	if err != nil {
		return keyring.Secret{}, err
	}
	expires := now.Add(LinkLife)
	_, err = tx.Exec(`INSERT INTO sign_in_link (hash, approver, made, expires, used, mac) VALUES ($1, $2, $3, $4, 0, $5)`,
		hash[:], approver, keyring.Micros(now), keyring.Micros(expires),
		d.linkRow(hash[:], approver, now, expires, time.Time{}).Sum())
	return secret, err
}

func (d *Desk) linkRow(hash []byte, approver string, made, expires, used time.Time) *keyring.Row {
	return d.keys.Row("link").Bytes(hash).Text(approver).Time(made, expires, used)
}

// Console is a browser or terminal in which an approver is signed in.
type Console struct {
	ID       string    `json:"id"`
	Approver string    `json:"approver"`
	Label    string    `json:"label"`
	Opened   time.Time `json:"opened"`
	Seen     time.Time `json:"seen"`
	Ended    time.Time `json:"ended,omitzero"`
	// Touch asks the caller to call [Desk.Touch] in a write: the last use on
	// record is getting old.
	Touch bool `json:"-"`

	hash []byte
}

// RedeemLink spends a link and signs its approver in. The secret is the
// cookie's value; label says what signed in, such as the browser's name.
func (d *Desk) RedeemLink(tx *store.Tx, token, label string) (keyring.Secret, *Console, error) {
	hash, ok := keyring.HashOf(keyring.SignInLink, token)
	if !ok {
		return keyring.Secret{}, nil, d.refuse(ErrCredential)
	}
	var approver string
	var madeAt, expiresAt, usedAt int64
	var mac []byte
	err := tx.QueryRow(`SELECT approver, made, expires, used, mac FROM sign_in_link WHERE hash = $1`+tx.ForUpdate(),
		hash[:]).Scan(&approver, &madeAt, &expiresAt, &usedAt, &mac)
	if errors.Is(err, sql.ErrNoRows) {
		return keyring.Secret{}, nil, d.refuse(ErrCredential)
	}
	if err != nil {
		return keyring.Secret{}, nil, err
	}
	made, expires, used := keyring.Time(madeAt), keyring.Time(expiresAt), keyring.Time(usedAt)
	if !d.linkRow(hash[:], approver, made, expires, used).Is(mac) {
		return keyring.Secret{}, nil, fmt.Errorf("sign-in link: %w", ErrForged)
	}
	now, err := tx.Now()
	if err != nil {
		return keyring.Secret{}, nil, err
	}
	if !used.IsZero() || !now.Before(expires) {
		return keyring.Secret{}, nil, d.refuse(fmt.Errorf("%w: the link has been used or is too old", ErrCredential))
	}
	if _, err := d.activeApprover(tx, approver); err != nil {
		return keyring.Secret{}, nil, err
	}
	n, err := tx.Exec(`UPDATE sign_in_link SET used = $1, mac = $2 WHERE hash = $3 AND used = 0`, keyring.Micros(now),
		d.linkRow(hash[:], approver, made, expires, now).Sum(), hash[:])
	if err != nil {
		return keyring.Secret{}, nil, err
	}
	if n != 1 {
		return keyring.Secret{}, nil, d.refuse(ErrCredential)
	}
	return d.openConsole(tx, approver, label, now)
}

// SignIn opens a console for an approver whose credential was checked in this
// transaction.
func (d *Desk) SignIn(tx *store.Tx, approver, label string) (keyring.Secret, *Console, error) {
	if _, err := d.activeApprover(tx, approver); err != nil {
		return keyring.Secret{}, nil, err
	}
	now, err := tx.Now()
	if err != nil {
		return keyring.Secret{}, nil, err
	}
	return d.openConsole(tx, approver, label, now)
}

func (d *Desk) openConsole(tx *store.Tx, approver, label string, now time.Time) (keyring.Secret, *Console, error) {
	if err := text("the label", label, 256); err != nil {
		return keyring.Secret{}, nil, err
	}
	secret, hash, err := keyring.Mint(keyring.Cookie, d.keys.Random())
	if err != nil {
		return keyring.Secret{}, nil, err
	}
	id, err := keyring.NewID("c_", d.keys.Random())
	if err != nil {
		return keyring.Secret{}, nil, err
	}
	c := &Console{ID: id, Approver: approver, Label: label, Opened: now, Seen: now, hash: hash[:]}
	_, err = tx.Exec(`INSERT INTO console_session (`+consoleColumns+`) VALUES ($1, $2, $3, $4, $5, $6, 0, $7)`,
		c.ID, c.hash, c.Approver, c.Label, keyring.Micros(now), keyring.Micros(now), d.consoleRow(c).Sum())
	return secret, c, err
}

const consoleColumns = `id, hash, approver, label, opened, seen, ended, mac`

func (d *Desk) consoleRow(c *Console) *keyring.Row {
	return d.keys.Row("console").Text(c.ID).Bytes(c.hash).Text(c.Approver, c.Label).Time(c.Opened, c.Seen, c.Ended)
}

func (d *Desk) scanConsole(row scanner) (*Console, error) {
	var c Console
	var opened, seen, ended int64
	var mac []byte
	err := row.Scan(&c.ID, &c.hash, &c.Approver, &c.Label, &opened, &seen, &ended, &mac)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("console: %w", ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	c.Opened, c.Seen, c.Ended = keyring.Time(opened), keyring.Time(seen), keyring.Time(ended)
	if !d.consoleRow(&c).Is(mac) {
		return nil, fmt.Errorf("console %s: %w", c.ID, ErrForged)
	}
	return &c, nil
}

// over says whether the console's time has passed.
func (c *Console) over(now time.Time) bool {
	return !c.Ended.IsZero() || now.Sub(c.Seen) >= ConsoleIdle || now.Sub(c.Opened) >= ConsoleLife
}

// CheckCookie returns the console and approver a cookie belongs to. It changes
// nothing; where Console.Touch is set the caller notes the use with Touch.
func (d *Desk) CheckCookie(tx *store.Tx, cookie string) (*Console, *Approver, error) {
	hash, ok := keyring.HashOf(keyring.Cookie, cookie)
	if !ok {
		return nil, nil, d.refuse(ErrCredential)
	}
	c, err := d.scanConsole(tx.QueryRow(`SELECT `+consoleColumns+` FROM console_session WHERE hash = $1`, hash[:]))
	if errors.Is(err, ErrNotFound) {
		return nil, nil, d.refuse(ErrCredential)
	}
	if err != nil {
		return nil, nil, err
	}
	now, err := tx.Now()
	if err != nil {
		return nil, nil, err
	}
	if subtle.ConstantTimeCompare(c.hash, hash[:]) != 1 || c.over(now) {
		return nil, nil, fmt.Errorf("%w: signed out", ErrCredential)
	}
	a, err := d.activeApprover(tx, c.Approver)
	if err != nil {
		return nil, nil, err
	}
	c.Touch = now.Sub(c.Seen) >= seenEvery
	return c, a, nil
}

// Touch notes that a console is in use.
func (d *Desk) Touch(tx *store.Tx, id string) error {
	return d.changeConsole(tx, id, func(c *Console, now time.Time) { c.Seen = now })
}

// SignOut ends a console.
func (d *Desk) SignOut(tx *store.Tx, id string) error {
	return d.changeConsole(tx, id, func(c *Console, now time.Time) { c.Ended = now })
}

// changeConsole changes a console that is still signed in, and no other: a
// late touch must not revive one that has ended.
func (d *Desk) changeConsole(tx *store.Tx, id string, change func(c *Console, now time.Time)) error {
	c, err := d.scanConsole(tx.QueryRow(`SELECT `+consoleColumns+` FROM console_session WHERE id = $1`+tx.ForUpdate(), id))
	if err != nil {
		return err
	}
	now, err := tx.Now()
	if err != nil || c.over(now) {
		return err
	}
	change(c, now)
	_, err = tx.Exec(`UPDATE console_session SET seen = $1, ended = $2, mac = $3 WHERE id = $4`, keyring.Micros(c.Seen),
		keyring.Micros(c.Ended), d.consoleRow(c).Sum(), c.ID)
	return err
}

// Consoles lists where an approver is signed in, newest first; all approvers'
// for an empty name.
func (d *Desk) Consoles(tx *store.Tx, approver string) ([]*Console, error) {
	all, err := store.All(tx, func(rows *store.Rows) (*Console, error) { return d.scanConsole(rows) },
		`SELECT `+consoleColumns+` FROM console_session WHERE ended = 0 AND ($1 = '' OR approver = $1)
		ORDER BY opened DESC, id`, approver)
	if err != nil {
		return nil, err
	}
	now, err := tx.Now()
	if err != nil {
		return nil, err
	}
	var open []*Console
	for _, c := range all {
		if !c.over(now) {
			open = append(open, c)
		}
	}
	return open, nil
}

func (d *Desk) signOutAll(tx *store.Tx, approver string) error {
	open, err := d.Consoles(tx, approver)
	if err != nil {
		return err
	}
	for _, c := range open {
		if err := d.SignOut(tx, c.ID); err != nil {
			return err
		}
	}
	return nil
}

// FreshFor is how long after signing in a console may do what otherwise needs
// the credential.
const FreshFor = 5 * time.Minute

// CheckFresh says whether an approver at a console may change how they prove
// who they are. A cookie is not enough: whoever came by one could make
// themselves a factor or a credential with it. It takes the credential, or a
// sign-in of just now.
func (d *Desk) CheckFresh(tx *store.Tx, approver, cookie, credential string) error {
	if credential != "" {
		a, err := d.CheckCredential(tx, credential)
		if err == nil && a.Name != approver {
			err = d.refuse(ErrCredential)
		}
		return err
	}
	c, a, err := d.CheckCookie(tx, cookie)
	if err != nil {
		return err
	}
	now, err := tx.Now()
	if err != nil {
		return err
	}
	if a.Name != approver || now.Sub(c.Opened) >= FreshFor {
		return ErrNotFresh
	}
	return nil
}
