package approval

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/grant"
	"github.com/seed-3ebc6b8a/gatehouse/internal/keyring"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// State is where a request stands. Pending moves to exactly one of the others.
type State string

// The states of a request.
const (
	Pending   State = "pending"
	Approved  State = "approved"
	Denied    State = "denied"
	Edited    State = "edited"
	Responded State = "responded"
	Expired   State = "expired"
	Cancelled State = "cancelled"
)

// Request is a call that waits, or waited, for a person.
type Request struct {
	ID        string         `json:"id"`
	CallID    string         `json:"call_id"`
	Digest    call.Digest    `json:"digest"`
	World     call.Digest    `json:"world"`
	Policy    call.Digest    `json:"policy"`
	Principal call.Principal `json:"principal"`
	Surface   string         `json:"surface"`
	Kind      call.Kind      `json:"kind"`
	Operation string         `json:"operation"`
	// ElementType is the type of element a native operation works on.
	ElementType string     `json:"element_type,omitzero"`
	Level       call.Level `json:"level"`
	Pinned      bool       `json:"pinned,omitzero"`
	TakesCode   bool       `json:"takes_code,omitzero"`
	// Votes are the keys of the votes the person is shown.
	Votes []string `json:"votes"`
	// Offers are the answers a person may give, the narrowest first.
	Offers []grant.Offer `json:"offers"`
	// View is everything the person is shown: the call with all arguments,
	// the decision and the facts, as JSON. It is stored encrypted while the
	// request waits and dropped when it is resolved; only an approved edit
	// keeps it for a quarter of an hour, because the agent has yet to fetch
	// the call it may make. File takes it from here; to read it again use
	// [Desk.View].
	View []byte `json:"-"`

	State   State     `json:"state"`
	Filed   time.Time `json:"filed"`
	Expires time.Time `json:"expires"`

	Answered   time.Time `json:"answered,omitzero"`
	AnsweredBy string    `json:"answered_by,omitzero"`
	Channel    string    `json:"channel,omitzero"`
	// Words are what the approver tells the agent.
	Words string `json:"words,omitzero"`
	// EditOf is the request whose edited call this is, EditedTo the one that
	// was filed for the edited call.
	EditOf   string `json:"edit_of,omitzero"`
	EditedTo string `json:"edited_to,omitzero"`

	sealed []byte
	edited []byte
}

// DecidedError says that a request has its outcome already.
type DecidedError struct {
	ID    string
	By    string
	State State
	At    time.Time
}

// Error says who decided what, and when.
func (e *DecidedError) Error() string {
	by := ""
	if e.By != "" {
		by = " by " + e.By
	}
	return fmt.Sprintf("already decided%s at %s: %s", by, e.At.UTC().Format(time.RFC3339), e.State)
}

func (r *Request) decided() *DecidedError {
	at := r.Answered
	if r.State == Expired {
		at = r.Expires
	}
	return &DecidedError{ID: r.ID, By: r.AnsweredBy, State: r.State, At: at}
}

// judge gives a request that ran out of time its state, whether or not a timer
// has seen it yet.
func (r *Request) judge(now time.Time) {
	if r.State == Pending && !now.Before(r.Expires) {
		r.State = Expired
	}
}

const requestColumns = `id, call_id, digest, world, policy, agent, session, path, surface, kind, operation,
	element_type, level, pinned, takes_code, votes, offers, sealed, state, filed, expires, answered, answered_by,
	channel, words, edited, edit_of, edited_to, mac`

// scanner is a row or the current one of several.
type scanner interface{ Scan(dest ...any) error }

// scanRequest reads a row as it is and checks its signature.
func (d *Desk) scanRequest(row scanner) (*Request, error) {
	var r Request
	var digest, world, policy, mac []byte
	var kind, level, votes, offers string
	var filed, expires, answered int64
	err := row.Scan(&r.ID, &r.CallID, &digest, &world, &policy, &r.Principal.Agent, &r.Principal.Session,
		&r.Principal.Path, &r.Surface, &kind, &r.Operation, &r.ElementType, &level, &r.Pinned, &r.TakesCode, &votes,
		&offers, &r.sealed, &r.State, &filed, &expires, &answered, &r.AnsweredBy, &r.Channel, &r.Words, &r.edited,
		&r.EditOf, &r.EditedTo, &mac)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("request: %w", ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	r.Filed, r.Expires, r.Answered = keyring.Time(filed), keyring.Time(expires), keyring.Time(answered)
	err = errors.Join(
		r.Kind.UnmarshalText([]byte(kind)), r.Level.UnmarshalText([]byte(level)),
		json.Unmarshal([]byte(votes), &r.Votes), json.Unmarshal([]byte(offers), &r.Offers),
		digestFrom(&r.Digest, digest), digestFrom(&r.World, world), digestFrom(&r.Policy, policy))
	// The lists are signed as they are stored, so that their text cannot
	// change even where it would read the same.
	if err != nil || !d.requestRow(&r, votes, offers).Is(mac) {
		return nil, fmt.Errorf("request %s: %w", r.ID, ErrForged)
	}
	return &r, nil
}

func digestFrom(d *call.Digest, raw []byte) error {
	if copy(d[:], raw) != len(d) || len(raw) != len(d) {
		return ErrForged
	}
	return nil
}

func (d *Desk) requestRow(r *Request, votes, offers string) *keyring.Row {
	return d.keys.Row("request").
		Text(r.ID, r.CallID).Bytes(r.Digest[:], r.World[:], r.Policy[:]).
		Text(r.Principal.Agent, r.Principal.Session, r.Principal.Path, r.Surface, r.Kind.String(), r.Operation).
		Text(r.ElementType, r.Level.String()).Bool(r.Pinned, r.TakesCode).Text(votes, offers).Bytes(r.sealed).
		Text(string(r.State)).Time(r.Filed, r.Expires, r.Answered).
		Text(r.AnsweredBy, r.Channel, r.Words).Bytes(r.edited).Text(r.EditOf, r.EditedTo)
}

// values are the row's columns in the order of requestColumns.
func (d *Desk) requestValues(r *Request) ([]any, error) {
	votes, offers, err := r.lists()
	if err != nil {
		return nil, err
	}
	return []any{r.ID, r.CallID, r.Digest[:], r.World[:], r.Policy[:], r.Principal.Agent, r.Principal.Session,
		r.Principal.Path, r.Surface, r.Kind.String(), r.Operation, r.ElementType, r.Level.String(), r.Pinned,
		r.TakesCode, votes, offers, blob(r.sealed), string(r.State), keyring.Micros(r.Filed), keyring.Micros(r.Expires),
		keyring.Micros(r.Answered), r.AnsweredBy, r.Channel, r.Words, blob(r.edited), r.EditOf, r.EditedTo,
		d.requestRow(r, votes, offers).Sum()}, nil
}

func (r *Request) lists() (votes, offers string, err error) {
	v, errVotes := json.Marshal(r.Votes)
	o, errOffers := json.Marshal(r.Offers)
	return string(v), string(o), errors.Join(errVotes, errOffers)
}

// load reads one request for an answer: no other node changes it meanwhile.
func (d *Desk) load(tx *store.Tx, id string) (*Request, error) {
	return d.scanRequest(tx.QueryRow(`SELECT `+requestColumns+` FROM approval_request WHERE id = $1`+tx.ForUpdate(), id))
}

// save writes what an outcome changes, if the request is still in the state
// it was read in.
func (d *Desk) save(tx *store.Tx, r *Request, was State) error {
	votes, offers, err := r.lists()
	if err != nil {
		return err
	}
	n, err := tx.Exec(`UPDATE approval_request SET sealed = $1, state = $2, answered = $3, answered_by = $4,
		channel = $5, words = $6, edited = $7, edited_to = $8, mac = $9 WHERE id = $10 AND state = $11`,
		blob(r.sealed), string(r.State), keyring.Micros(r.Answered), r.AnsweredBy, r.Channel, r.Words, blob(r.edited),
		r.EditedTo, d.requestRow(r, votes, offers).Sum(), r.ID, string(was))
	if err != nil {
		return err
	}
	if n != 1 {
		return fmt.Errorf("request %s: %w", r.ID, ErrStale)
	}
	store.Notify(tx, Topic, r.ID)
	if d.Resolved == nil {
		return nil
	}
	return d.Resolved(tx, r)
}

// Tell tells [Desk.Resolved] of a request that has its outcome by now, for
// what was noted about it after it was filed.
func (d *Desk) Tell(tx *store.Tx, id string) error {
	r, err := d.load(tx, id)
	if err != nil || d.Resolved == nil {
		return err
	}
	now, err := tx.Now()
	if err != nil {
		return err
	}
	if r.judge(now); r.State == Pending {
		return nil
	}
	return d.Resolved(tx, r)
}

func viewPurpose(id string) string { return "request view " + id }
func editPurpose(id string) string { return "request edit " + id }

// View opens what the person is shown. It is gone once the request has its
// outcome.
func (d *Desk) View(r *Request) ([]byte, error) {
	if len(r.sealed) == 0 {
		return nil, fmt.Errorf("request %s: its view was dropped with the answer: %w", r.ID, ErrNotFound)
	}
	return d.keys.Open(viewPurpose(r.ID), r.sealed)
}

// EditedArgs opens the arguments an approver put in place of the agent's. They
// are kept until the edited call has been filed.
func (d *Desk) EditedArgs(r *Request) ([]byte, error) {
	if len(r.edited) == 0 {
		return nil, fmt.Errorf("request %s: nothing was edited: %w", r.ID, ErrNotFound)
	}
	return d.keys.Open(editPurpose(r.ID), r.edited)
}

// text refuses words that a database or a terminal would choke on.
func text(name, s string, most int) error {
	switch {
	case len(s) > most:
		return fmt.Errorf("%w: %s is longer than %d bytes", ErrInvalid, name, most)
	case strings.ContainsRune(s, 0):
		return fmt.Errorf("%w: %s holds a NUL byte", ErrInvalid, name)
	}
	return nil
}
