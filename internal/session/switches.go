package session

import (
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/keyring"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// Switches is the row that everything which stops decisions changes and every
// decision reads.
type Switches struct {
	// Kill stops everything.
	Kill   bool      `json:"kill"`
	Reason string    `json:"reason,omitzero"`
	By     string    `json:"by,omitzero"`
	At     time.Time `json:"at,omitzero"`
	// Version is another random number after every change of a switch, a
	// block, an active element, a policy in force or a session, and so never the same twice, not
	// even for a change that was taken back.
	Version int64 `json:"version"`

	// blocks signs the list of blocked agents; a block that was deleted from
	// the database, or given to another, is missed that way.
	blocks []byte
	// elements signs which elements are active for whom, likewise.
	elements []byte
}

const switchColumns = `killed, reason, set_by, set_at, blocks, elements, version, mac`

func (g *Registry) switchRow(s *Switches) *keyring.Row {
	row := g.keys.Row("switches").Bool(s.Kill).Text(s.Reason, s.By).Time(s.At).Bytes(s.blocks).Int(s.Version)
	if len(s.elements) > 0 {
		row.Bytes(s.elements)
	}
	return row
}

// Prepare makes the row of switches in a new database. In one that has been
// used it must be there: whoever deleted it does not get it back switched off.
func (g *Registry) Prepare(tx *store.Tx) error {
	_, err := g.Switches(tx)
	if !errors.Is(err, ErrNotFound) {
		return err
	}
	var used int
	err = tx.QueryRow(`SELECT (SELECT count(*) FROM agent) + (SELECT count(*) FROM agent_session)
		+ (SELECT count(*) FROM danger_block) + (SELECT count(*) FROM policy_head)`).Scan(&used)
	if err != nil {
		return err
	}
	if used != 0 {
		return fmt.Errorf("the row of switches is missing: %w", ErrForged)
	}
	s := Switches{blocks: g.blockList(nil)}
	_, err = tx.Exec(`INSERT INTO switches (one, `+switchColumns+`) VALUES (1, $1, '', '', 0, $2, $3, 0, $4)
		ON CONFLICT (one) DO NOTHING`, false, s.blocks, []byte{}, g.switchRow(&s).Sum())
	return err
}

// Switches reads the switches.
func (g *Registry) Switches(tx *store.Tx) (Switches, error) { return g.readSwitches(tx, "") }

func (g *Registry) readSwitches(tx *store.Tx, lock string) (Switches, error) {
	var s Switches
	var at int64
	var mac []byte
	err := tx.QueryRow(`SELECT `+switchColumns+` FROM switches WHERE one = 1`+lock).
		Scan(&s.Kill, &s.Reason, &s.By, &at, &s.blocks, &s.elements, &s.Version, &mac)
	if errors.Is(err, sql.ErrNoRows) {
		return s, fmt.Errorf("switches: %w", ErrNotFound)
	}
	if err != nil {
		return s, err
	}
	s.At = keyring.Time(at)
	if !g.switchRow(&s).Is(mac) {
		return s, fmt.Errorf("switches: %w", ErrForged)
	}
	return s, nil
}

// lockSwitches waits for every decision that has read the switches, and makes
// those that follow wait for this transaction.
func (g *Registry) lockSwitches(tx *store.Tx) error {
	return g.changeSwitches(tx, func(*Switches) {})
}

// Refresh has every standing read anew: something that it rests on has changed.
func (g *Registry) Refresh(tx *store.Tx) error { return g.lockSwitches(tx) }

func (g *Registry) changeSwitches(tx *store.Tx, change func(*Switches)) error {
	s, err := g.readSwitches(tx, tx.ForUpdate())
	if err != nil {
		return err
	}
	change(&s)
	return g.writeSwitches(tx, s)
}

func (g *Registry) writeSwitches(tx *store.Tx, s Switches) error {
	var version [8]byte
	if _, err := io.ReadFull(g.keys.Random(), version[:]); err != nil {
		return fmt.Errorf("switches: %w", err)
	}
	s.Version = int64(binary.BigEndian.Uint64(version[:]) >> 1)
	tx.Share(versionKey{}, nil)
	_, err := tx.Exec(`INSERT INTO switches (one, `+switchColumns+`) VALUES (1, $1, $2, $3, $4, $5, $6, $7, $8)
		ON CONFLICT (one) DO UPDATE SET killed = excluded.killed, reason = excluded.reason, set_by = excluded.set_by,
		set_at = excluded.set_at, blocks = excluded.blocks, elements = excluded.elements, version = excluded.version, mac = excluded.mac`,
		s.Kill, s.Reason, s.By, keyring.Micros(s.At), s.blocks, append([]byte{}, s.elements...), s.Version, g.switchRow(&s).Sum())
	return err
}

// SetKill throws the kill switch or releases it. Throwing it works whatever
// became of the row, and takes the blocks as they are: when the database was
// edited and everything stands still, people throw it, look at what happened,
// and release it. Releasing is for approvers alone, which is the API's matter.
func (g *Registry) SetKill(tx *store.Tx, on bool, by, reason string) error {
	if err := checkWords(by, reason); err != nil {
		return err
	}
	now, err := tx.Now()
	if err != nil {
		return err
	}
	s, err := g.readSwitches(tx, tx.ForUpdate())
	if on && (err == nil || errors.Is(err, ErrForged) || errors.Is(err, ErrNotFound)) {
		err = g.signLists(tx, &s)
	}
	if err != nil {
		return err
	}
	s.Kill, s.By, s.Reason, s.At = on, by, reason, now
	store.Notify(tx, Topic, "kill")
	return g.writeSwitches(tx, s)
}

// signLists takes the lists of blocks and of active elements as they are.
func (g *Registry) signLists(tx *store.Tx, s *Switches) error {
	blocks, err := g.Blocks(tx)
	if err != nil {
		return err
	}
	s.blocks = g.blockList(blocks)
	sets, err := g.ActiveSets(tx)
	if errors.Is(err, ErrForged) {
		return nil // an edited row denies by itself, and must not keep anyone from the switch
	}
	if err != nil {
		return err
	}
	if s.elements = nil; len(sets) > 0 {
		s.elements = g.activeList(sets)
	}
	return nil
}

func checkWords(words ...string) error {
	for _, w := range words {
		if len(w) > 4096 || strings.ContainsRune(w, 0) {
			return fmt.Errorf("%w: a reason is too long or holds a NUL byte", ErrInvalid)
		}
	}
	return nil
}

// Head is the policy in force in one scope.
type Head struct {
	Scope string      `json:"scope"`
	Hash  call.Digest `json:"hash"`
	// Epoch counts the changes.
	Epoch int64     `json:"epoch"`
	By    string    `json:"by"`
	At    time.Time `json:"at"`
}

func (g *Registry) headRow(h *Head) *keyring.Row {
	return g.keys.Row("policy").Text(h.Scope).Bytes(h.Hash[:]).Int(h.Epoch).Text(h.By).Time(h.At)
}

// PolicyHead returns the policy in force in a scope; ErrNotFound where none
// has been set.
func (g *Registry) PolicyHead(tx *store.Tx, scope string) (Head, error) {
	h := Head{Scope: scope}
	var at int64
	var hash, mac []byte
	err := tx.QueryRow(`SELECT hash, epoch, set_by, set_at, mac FROM policy_head WHERE scope = $1`, scope).
		Scan(&hash, &h.Epoch, &h.By, &at, &mac)
	if errors.Is(err, sql.ErrNoRows) {
		return Head{}, fmt.Errorf("policy of %s: %w", scope, ErrNotFound)
	}
	if err != nil {
		return Head{}, err
	}
	h.At = keyring.Time(at)
	if len(hash) != copy(h.Hash[:], hash) || !g.headRow(&h).Is(mac) {
		return Head{}, fmt.Errorf("policy of %s: %w", scope, ErrForged)
	}
	return h, nil
}

// SetPolicyHead puts the policy to in force in a scope, in place of from (zero
// where there was none). Where another one is in force it fails with ErrMoved:
// what was computed about the change no longer holds.
func (g *Registry) SetPolicyHead(tx *store.Tx, scope string, from, to call.Digest, by string) (Head, error) {
	if err := checkWords(scope, by); err != nil {
		return Head{}, err
	}
	if scope == "" || to.IsZero() {
		return Head{}, fmt.Errorf("%w: a policy needs a scope and a hash", ErrInvalid)
	}
	if err := g.lockSwitches(tx); err != nil {
		return Head{}, err
	}
	h, err := g.PolicyHead(tx, scope)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return Head{}, err
	}
	if h.Hash != from {
		return h, fmt.Errorf("policy of %s: %w", scope, ErrMoved)
	}
	now, err := tx.Now()
	if err != nil {
		return Head{}, err
	}
	h = Head{Scope: scope, Hash: to, Epoch: h.Epoch + 1, By: by, At: now}
	_, err = tx.Exec(`INSERT INTO policy_head (scope, hash, epoch, set_by, set_at, mac) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (scope) DO UPDATE SET hash = excluded.hash, epoch = excluded.epoch, set_by = excluded.set_by,
		set_at = excluded.set_at, mac = excluded.mac`, scope, to[:], h.Epoch, by, keyring.Micros(now), g.headRow(&h).Sum())
	store.Notify(tx, Topic, "policy "+scope)
	return h, err
}
