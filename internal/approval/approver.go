package approval

import (
	"crypto/subtle"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/seed-3ebc6b8a/gatehouse/internal/keyring"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// Approver is a person who may answer requests.
type Approver struct {
	Name    string    `json:"name"`
	Added   time.Time `json:"added"`
	AddedBy string    `json:"added_by,omitzero"`
	// Info is what is known of the process that enrolled the first approver.
	Info      EnrolInfo `json:"info,omitzero"`
	Removed   time.Time `json:"removed,omitzero"`
	RemovedBy string    `json:"removed_by,omitzero"`
	// Factor says that the approver can prove presence with one-time codes.
	Factor bool `json:"factor"`

	hash       []byte
	totp       []byte    // sealed; set before it is confirmed
	totpStep   int64     // the last time step a code was taken for
	tries      int64     // wrong codes in a row
	triesSince time.Time // of the last try
}

// EnrolInfo names who enrolled without a credential, so that the record shows
// whether it was a person's shell or an agent.
type EnrolInfo struct {
	Process   string   `json:"process,omitzero"`
	Ancestors []string `json:"ancestors,omitzero"`
	UID       int      `json:"uid,omitzero"`
	Terminal  string   `json:"terminal,omitzero"`
}

// enrolMark is set for ever when the first approver enrols. It is also the
// lock under which approvers come and go.
const enrolMark = "enrolled"

// approverName keeps names apart at a glance: no case, no look-alikes.
var approverName = regexp.MustCompile(`^[a-z0-9][a-z0-9._@-]{0,63}$`)

// NameFrom makes an approver's name of a user's, which may be in capitals or
// carry a domain; instead is what is left where nothing of it can be used.
func NameFrom(user, instead string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || strings.ContainsRune("._@-", r) {
			return r
		}
		return '-'
	}, strings.ToLower(user))
	name = strings.TrimLeft(name, "._@-")
	if name = name[:min(len(name), 64)]; !approverName.MatchString(name) {
		return instead
	}
	return name
}

// Enrol makes the first approver and needs no credential for it. It works once
// in the life of a database: with any approver there ever was, removed ones
// included, it fails with ErrEnrolled.
func (d *Desk) Enrol(tx *store.Tx, name string, info EnrolInfo) (keyring.Secret, error) {
	now, err := tx.Now()
	if err != nil {
		return keyring.Secret{}, err
	}
	n, err := tx.Exec(`INSERT INTO approval_mark (name, made, mac) VALUES ($1, $2, $3) ON CONFLICT (name) DO NOTHING`,
		enrolMark, keyring.Micros(now), d.markRow(enrolMark, now).Sum())
	if err != nil {
		return keyring.Secret{}, err
	}
	var before int
	if err := tx.QueryRow(`SELECT count(*) FROM approver`).Scan(&before); err != nil {
		return keyring.Secret{}, err
	}
	if n != 1 || before != 0 {
		return keyring.Secret{}, ErrEnrolled
	}
	return d.addApprover(tx, &Approver{Name: name, Added: now, Info: info})
}

func (d *Desk) markRow(name string, made time.Time) *keyring.Row {
	return d.keys.Row("mark").Text(name).Time(made)
}

// Enrolled reports whether the first approver has been enrolled. A mark that
// was tampered with counts as set.
func (d *Desk) Enrolled(tx *store.Tx) (bool, error) {
	var n int
	err := tx.QueryRow(`SELECT (SELECT count(*) FROM approval_mark WHERE name = $1) + (SELECT count(*) FROM approver)`,
		enrolMark).Scan(&n)
	return n > 0, err
}

// lockApprovers makes changes to the set of approvers one after the other on
// all nodes, and fails where nobody has enrolled.
func (d *Desk) lockApprovers(tx *store.Tx) error {
	var made int64
	var mac []byte
	err := tx.QueryRow(`SELECT made, mac FROM approval_mark WHERE name = $1`+tx.ForUpdate(), enrolMark).Scan(&made, &mac)
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("no approver has enrolled: %w", ErrNotFound)
	}
	if err == nil && !d.markRow(enrolMark, keyring.Time(made)).Is(mac) {
		return ErrForged
	}
	return err
}

// AddApprover makes another approver, on the word of one who is.
func (d *Desk) AddApprover(tx *store.Tx, by, name string) (keyring.Secret, error) {
	if err := d.lockApprovers(tx); err != nil {
		return keyring.Secret{}, err
	}
	if _, err := d.activeApprover(tx, by); err != nil {
		return keyring.Secret{}, err
	}
	now, err := tx.Now()
	if err != nil {
		return keyring.Secret{}, err
	}
	return d.addApprover(tx, &Approver{Name: name, Added: now, AddedBy: by})
}

func (d *Desk) addApprover(tx *store.Tx, a *Approver) (keyring.Secret, error) {
	if !approverName.MatchString(a.Name) {
		return keyring.Secret{}, fmt.Errorf("%w: %q is not an approver's name: up to 64 of a-z, 0-9 and . _ @ -", ErrInvalid, a.Name)
	}
	secret, hash, err := keyring.Mint(keyring.Credential, d.keys.Random())
	if err != nil {
		return keyring.Secret{}, err
	}
	a.hash = hash[:]
	info, err := json.Marshal(a.Info)
	if err != nil {
		return keyring.Secret{}, err
	}
	n, err := tx.Exec(`INSERT INTO approver (`+approverColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11,
		$12, $13) ON CONFLICT (name) DO NOTHING`, a.Name, a.hash, keyring.Micros(a.Added), a.AddedBy, string(info),
		keyring.Micros(a.Removed), a.RemovedBy, blob(a.totp), a.Factor, a.totpStep, a.tries, keyring.Micros(a.triesSince),
		d.approverRow(a, string(info)).Sum())
	if err == nil && n != 1 {
		err = fmt.Errorf("approver %s: %w", a.Name, ErrExists)
	}
	if err != nil {
		return keyring.Secret{}, err
	}
	store.Notify(tx, Topic, "approver")
	return secret, nil
}

const approverColumns = `name, hash, added, added_by, info, removed, removed_by, totp, totp_confirmed, totp_step, tries,
	tries_since, mac`

func (d *Desk) scanApprover(row scanner) (*Approver, error) {
	var a Approver
	var added, removed, since int64
	var info string
	var mac []byte
	err := row.Scan(&a.Name, &a.hash, &added, &a.AddedBy, &info, &removed, &a.RemovedBy, &a.totp, &a.Factor, &a.totpStep,
		&a.tries, &since, &mac)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("approver: %w", ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	a.Added, a.Removed, a.triesSince = keyring.Time(added), keyring.Time(removed), keyring.Time(since)
	err = json.Unmarshal([]byte(info), &a.Info)
	if err != nil || !d.approverRow(&a, info).Is(mac) {
		return nil, fmt.Errorf("approver %s: %w", a.Name, ErrForged)
	}
	return &a, nil
}

func (d *Desk) approverRow(a *Approver, info string) *keyring.Row {
	return d.keys.Row("approver").Text(a.Name).Bytes(a.hash).Time(a.Added).Text(a.AddedBy, info).
		Time(a.Removed).Text(a.RemovedBy).Bytes(a.totp).Bool(a.Factor).Int(a.totpStep, a.tries).Time(a.triesSince)
}

// saveApprover writes what can change. Callers hold the row's lock.
func (d *Desk) saveApprover(tx *store.Tx, a *Approver) error {
	info, err := json.Marshal(a.Info)
	if err != nil {
		return err
	}
	n, err := tx.Exec(`UPDATE approver SET hash = $1, removed = $2, removed_by = $3, totp = $4, totp_confirmed = $5,
		totp_step = $6, tries = $7, tries_since = $8, mac = $9 WHERE name = $10`, a.hash, keyring.Micros(a.Removed),
		a.RemovedBy, blob(a.totp), a.Factor, a.totpStep, a.tries, keyring.Micros(a.triesSince),
		d.approverRow(a, string(info)).Sum(), a.Name)
	if err == nil && n != 1 {
		err = fmt.Errorf("approver %s: %w", a.Name, ErrNotFound)
	}
	return err
}

func (d *Desk) loadApprover(tx *store.Tx, name string) (*Approver, error) {
	return d.scanApprover(tx.QueryRow(`SELECT `+approverColumns+` FROM approver WHERE name = $1`+tx.ForUpdate(), name))
}

// activeApprover is one who is known and has not been removed.
func (d *Desk) activeApprover(tx *store.Tx, name string) (*Approver, error) {
	a, err := d.scanApprover(tx.QueryRow(`SELECT `+approverColumns+` FROM approver WHERE name = $1`+tx.ForShare(), name))
	if errors.Is(err, ErrNotFound) || (err == nil && !a.Removed.IsZero()) {
		return nil, fmt.Errorf("%w: %q is not an approver", ErrCredential, name)
	}
	return a, err
}

// CheckCredential returns the approver a credential belongs to. It changes
// nothing, so it works in a read as well. The row is found by the credential's
// hash, which tells whoever measures the lookup nothing about the credential.
// Wrong ones are throttled together; a right one is never held up by them.
func (d *Desk) CheckCredential(tx *store.Tx, secret string) (*Approver, error) {
	if strings.HasPrefix(secret, string(keyring.AgentToken)) {
		return nil, d.refuse(ErrAgentToken)
	}
	hash, ok := keyring.HashOf(keyring.Credential, secret)
	if !ok {
		return nil, d.refuse(ErrCredential)
	}
	a, err := d.scanApprover(tx.QueryRow(`SELECT `+approverColumns+` FROM approver WHERE hash = $1`, hash[:]))
	switch {
	case errors.Is(err, ErrNotFound):
		return nil, d.refuse(ErrCredential)
	case err != nil:
		return nil, err
	case subtle.ConstantTimeCompare(a.hash, hash[:]) != 1 || !a.Removed.IsZero():
		return nil, d.refuse(ErrCredential)
	}
	return a, nil
}

// RemoveApprover ends an approver: the credential, open consoles and links,
// and every grant given that is still good. The last one stays.
func (d *Desk) RemoveApprover(tx *store.Tx, by, name string) error {
	if err := d.lockApprovers(tx); err != nil {
		return err
	}
	if _, err := d.activeApprover(tx, by); err != nil {
		return err
	}
	a, err := d.loadApprover(tx, name)
	if err != nil {
		return err
	}
	if !a.Removed.IsZero() {
		return fmt.Errorf("approver %s was removed before: %w", name, ErrNotFound)
	}
	var left int
	if err := tx.QueryRow(`SELECT count(*) FROM approver WHERE removed = 0 AND name <> $1`, name).Scan(&left); err != nil {
		return err
	}
	if left == 0 {
		return ErrLast
	}
	if a.Removed, err = tx.Now(); err != nil {
		return err
	}
	a.RemovedBy = by
	if err := d.saveApprover(tx, a); err != nil {
		return err
	}
	if _, err := tx.Exec(`DELETE FROM sign_in_link WHERE approver = $1`, name); err != nil {
		return err
	}
	if err := d.signOutAll(tx, name); err != nil {
		return err
	}
	_, err = d.revokeWhere(tx, `given_by = $1`, name, by)
	store.Notify(tx, Topic, "approver")
	return err
}

// NewCredential replaces an approver's credential; the old one is void at once
// and open consoles are signed out.
func (d *Desk) NewCredential(tx *store.Tx, by, name string) (keyring.Secret, error) {
	if err := d.lockApprovers(tx); err != nil {
		return keyring.Secret{}, err
	}
	if _, err := d.activeApprover(tx, by); err != nil {
		return keyring.Secret{}, err
	}
	a, err := d.loadApprover(tx, name)
	if err != nil {
		return keyring.Secret{}, err
	}
	if !a.Removed.IsZero() {
		return keyring.Secret{}, fmt.Errorf("approver %s was removed: %w", name, ErrNotFound)
	}
	secret, hash, err := keyring.Mint(keyring.Credential, d.keys.Random())
	if err != nil {
		return keyring.Secret{}, err
	}
	a.hash = hash[:]
	if err := d.saveApprover(tx, a); err != nil {
		return keyring.Secret{}, err
	}
	return secret, d.signOutAll(tx, name)
}

// Approvers lists all there are and were, by name.
func (d *Desk) Approvers(tx *store.Tx) ([]*Approver, error) {
	return store.All(tx, func(rows *store.Rows) (*Approver, error) { return d.scanApprover(rows) },
		`SELECT `+approverColumns+` FROM approver ORDER BY name`)
}
