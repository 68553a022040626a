package approval

import (
	"crypto/hmac"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/keyring"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// ChallengeKind is what a challenge is about.
type ChallengeKind string

// The kinds of challenge. Each is bound to one subject, and its code is good
// for nothing else.
const (
	// ForRequest answers one waiting request; the subject is its id.
	ForRequest ChallengeKind = "request"
	// ForPause lets a paused execution go on; the subject is the pause.
	ForPause ChallengeKind = "pause"
	// ForLock releases elements that froze a session; the subject is who is
	// frozen.
	ForLock ChallengeKind = "lock"
	// ForBlock releases an agent from the danger zone; the subject is the
	// block's id.
	ForBlock ChallengeKind = "block"
	// ForKill asks for the release of the kill switch; the subject is when it
	// was thrown.
	ForKill ChallengeKind = "kill"
)

// ChallengeState is where a challenge stands. Open moves to given or to one of
// the others, given to one of the others, and those stay.
type ChallengeState string

// The states of a challenge.
const (
	// Open challenges wait for their code.
	Open ChallengeState = "open"
	// Given says that the agent handed in the right code: somebody who was
	// shown it told it. What the code cannot move by itself still waits for a
	// person.
	Given ChallengeState = "given"
	// Moved challenges did what they were for.
	Moved ChallengeState = "moved"
	// Refused ones were turned down by a person, Void ones were guessed at too
	// often, Lapsed ones ran out of time.
	Refused ChallengeState = "refused"
	Void    ChallengeState = "void"
	Lapsed  ChallengeState = "expired"
)

// Waits says whether the challenge can still be answered.
func (s ChallengeState) Waits() bool { return s == Open || s == Given }

// Shown says that somebody was shown a challenge's code.
type Shown struct {
	// By is the approver, or the notice's sender where nobody signed in.
	By      string    `json:"by"`
	Channel string    `json:"channel"`
	At      time.Time `json:"at"`
}

// Challenge is a question that is answered by a code which only people see.
type Challenge struct {
	ID      string        `json:"id"`
	Kind    ChallengeKind `json:"kind"`
	Subject string        `json:"subject"`
	// Principal is whose call led to it. Only that agent can hand in the code.
	Principal call.Principal `json:"principal"`
	// Words say what a right code leads to, for the person who is shown it.
	Words string `json:"words"`
	// Detail is what else belongs to it, such as what was active, as JSON.
	Detail []byte         `json:"-"`
	State  ChallengeState `json:"state"`
	// Tries counts the wrong codes.
	Tries   int       `json:"tries"`
	Shown   []Shown   `json:"shown,omitzero"`
	Issued  time.Time `json:"issued"`
	Expires time.Time `json:"expires"`
	Ended   time.Time `json:"ended,omitzero"`
	EndedBy string    `json:"ended_by,omitzero"`
	Channel string    `json:"channel,omitzero"`

	hash []byte
}

// Reader is who a right code counts as: the approver who was shown it last,
// or the channel that carried it where nobody signed in.
func (c *Challenge) Reader() (by, channel string) {
	if len(c.Shown) == 0 {
		return "", ""
	}
	last := c.Shown[len(c.Shown)-1]
	return last.By, last.Channel
}

const (
	// challengeLife is how long a code is good.
	challengeLife = 5 * time.Minute
	// maxTries is how many wrong codes one challenge takes.
	maxTries = 5
	// triesPerAgent and triesInAll are how many wrong codes count within
	// triesWindow, over all sessions and challenges, restarts included. With
	// 31^6 codes a guesser in all of it hits one in two million hours.
	triesPerAgent = 10
	triesInAll    = 40
	triesWindow   = time.Hour
	// openPerAgent and issuedPerHour bound the attention that an agent's
	// challenges take.
	openPerAgent  = 5
	issuedPerHour = 30
	// maxDetail bounds what is kept with a challenge.
	maxDetail = 256 << 10
)

// ErrCode refuses a code: it is wrong, or nobody was shown it.
var ErrCode = errors.New("the code is wrong")

// ErrTries says that too many wrong codes were handed in of late.
var ErrTries = errors.New("too many wrong codes were handed in: codes are not taken for a while, a person can answer on the page")

const challengeColumns = `id, kind, subject, agent, session, path, words, detail, hash, state, tries, shown, issued, expires,
	ended, ended_by, channel, mac`

func (d *Desk) challengeRow(c *Challenge, shown string) *keyring.Row {
	return d.keys.Row("challenge").Text(c.ID, string(c.Kind), c.Subject).
		Text(c.Principal.Agent, c.Principal.Session, c.Principal.Path, c.Words).Bytes(c.Detail, c.hash).
		Text(string(c.State)).Int(int64(c.Tries)).Text(shown).Time(c.Issued, c.Expires, c.Ended).Text(c.EndedBy, c.Channel)
}

func (d *Desk) scanChallenge(row scanner) (*Challenge, error) {
	var c Challenge
	var shown string
	var issued, expires, ended int64
	var mac []byte
	err := row.Scan(&c.ID, &c.Kind, &c.Subject, &c.Principal.Agent, &c.Principal.Session, &c.Principal.Path, &c.Words,
		&c.Detail, &c.hash, &c.State, &c.Tries, &shown, &issued, &expires, &ended, &c.EndedBy, &c.Channel, &mac)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("challenge: %w", ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	c.Issued, c.Expires, c.Ended = keyring.Time(issued), keyring.Time(expires), keyring.Time(ended)
	if !d.challengeRow(&c, shown).Is(mac) || json.Unmarshal([]byte(shown), &c.Shown) != nil {
		return nil, fmt.Errorf("challenge %s: %w", c.ID, ErrForged)
	}
	return &c, nil
}

func (d *Desk) nextChallenge(rows *store.Rows) (*Challenge, error) { return d.scanChallenge(rows) }

// judge gives a challenge that ran out of time its state.
func (c *Challenge) judge(now time.Time) {
	if c.State.Waits() && !now.Before(c.Expires) {
		c.State = Lapsed
	}
}

// Issue makes a challenge, or returns the one that waits for the same subject.
// The caller fills in kind, subject, principal, words and detail. An agent
// with too many of them is refused with ErrTooMany.
func (d *Desk) Issue(tx *store.Tx, c Challenge) (got *Challenge, joined bool, err error) {
	if c.Kind == "" || c.Subject == "" || c.Principal.Agent == "" || len(c.Detail) > maxDetail {
		return nil, false, fmt.Errorf("%w: a challenge needs a kind, a subject and an agent, and not too much detail", ErrInvalid)
	}
	if err := text("what it is about", c.Words, maxWords); err != nil {
		return nil, false, err
	}
	if err := lockAsker(tx, c.Principal.Agent); err != nil {
		return nil, false, err
	}
	now, err := tx.Now()
	if err != nil {
		return nil, false, err
	}
	waiting, err := d.waitingFor(tx, c.Kind, c.Subject, now)
	if err != nil || waiting != nil {
		return waiting, waiting != nil, err
	}
	if c.Principal.Session != "" { // a person who looks at a block has none
		if err := checkIssues(tx, c.Principal.Agent, now); err != nil {
			return nil, false, err
		}
	}
	if c.ID, err = keyring.NewID("ch_", d.keys.Random()); err != nil {
		return nil, false, err
	}
	c.State, c.Issued, c.Expires, c.hash = Open, now, now.Add(challengeLife), d.codeHash(c.ID, d.Code(&c))
	c.Tries, c.Shown, c.Ended, c.EndedBy, c.Channel = 0, nil, time.Time{}, "", ""
	shown := "[]"
	_, err = tx.Exec(`INSERT INTO challenge (`+challengeColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11,
		$12, $13, $14, 0, '', '', $15)`, c.ID, string(c.Kind), c.Subject, c.Principal.Agent, c.Principal.Session,
		c.Principal.Path, c.Words, blob(c.Detail), c.hash, string(c.State), c.Tries, shown, keyring.Micros(now),
		keyring.Micros(c.Expires), d.challengeRow(&c, shown).Sum())
	store.Notify(tx, Topic, c.ID)
	return &c, false, err
}

// waitingFor finds the challenge that waits for a subject, nil if none does.
func (d *Desk) waitingFor(tx *store.Tx, kind ChallengeKind, subject string, now time.Time) (*Challenge, error) {
	found, err := store.All(tx, d.nextChallenge, `SELECT `+challengeColumns+` FROM challenge
		WHERE kind = $1 AND subject = $2 AND state IN ('open', 'given') AND expires > $3 ORDER BY issued DESC`,
		string(kind), subject, keyring.Micros(now))
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return found[0], nil
}

func checkIssues(tx *store.Tx, agent string, now time.Time) error {
	var open, hour int
	err := tx.QueryRow(`SELECT
		(SELECT count(*) FROM challenge WHERE agent = $1 AND state IN ('open', 'given') AND expires > $2),
		(SELECT count(*) FROM challenge WHERE agent = $1 AND issued > $3)`,
		agent, keyring.Micros(now), keyring.Micros(now.Add(-time.Hour))).Scan(&open, &hour)
	switch {
	case err != nil:
		return err
	case open >= openPerAgent:
		return fmt.Errorf("%w: %d challenges of agent %s wait for their code", ErrTooMany, open, agent)
	case hour >= issuedPerHour:
		return fmt.Errorf("%w: agent %s led to %d challenges within an hour", ErrTooMany, agent, hour)
	}
	return nil
}

// Challenge returns one challenge. One whose time is over has lapsed, whether
// or not that has been written down.
func (d *Desk) Challenge(tx *store.Tx, id string) (*Challenge, error) {
	c, err := d.scanChallenge(tx.QueryRow(`SELECT `+challengeColumns+` FROM challenge WHERE id = $1`, id))
	if err != nil {
		return nil, err
	}
	now, err := tx.Now()
	if err != nil {
		return nil, err
	}
	c.judge(now)
	return c, nil
}

// Challenges lists those that wait, oldest first.
func (d *Desk) Challenges(tx *store.Tx) ([]*Challenge, error) {
	now, err := tx.Now()
	if err != nil {
		return nil, err
	}
	return store.All(tx, d.nextChallenge, `SELECT `+challengeColumns+` FROM challenge WHERE state IN ('open', 'given')
		AND expires > $1 ORDER BY issued, id`, keyring.Micros(now))
}

// WaitingFor returns the challenge that waits for a subject, ErrNotFound if
// none does.
func (d *Desk) WaitingFor(tx *store.Tx, kind ChallengeKind, subject string) (*Challenge, error) {
	now, err := tx.Now()
	if err != nil {
		return nil, err
	}
	c, err := d.waitingFor(tx, kind, subject, now)
	if err == nil && c == nil {
		err = fmt.Errorf("challenge for %s: %w", subject, ErrNotFound)
	}
	return c, err
}

// ShownTo notes that somebody is shown the code, once per person and channel.
// It says whether that is news.
func (d *Desk) ShownTo(tx *store.Tx, id, by, channel string) (news bool, err error) {
	c, now, err := d.loadChallenge(tx, id)
	if err != nil || !c.State.Waits() {
		return false, err
	}
	if slices.ContainsFunc(c.Shown, func(s Shown) bool { return s.By == by && s.Channel == channel }) {
		return false, nil
	}
	c.Shown = append(c.Shown, Shown{By: by, Channel: channel, At: now})
	return true, d.saveChallenge(tx, c)
}

// EndChallenge gives a challenge that waits its outcome: moved or refused.
func (d *Desk) EndChallenge(tx *store.Tx, id string, state ChallengeState, by, channel string) (*Challenge, error) {
	c, now, err := d.loadChallenge(tx, id)
	if err != nil {
		return nil, err
	}
	if !c.State.Waits() {
		return c, fmt.Errorf("%w: challenge %s is %s already", ErrStale, id, c.State)
	}
	c.State, c.Ended, c.EndedBy, c.Channel = state, now, by, channel
	return c, d.saveChallenge(tx, c)
}

// loadChallenge reads a challenge to change it.
func (d *Desk) loadChallenge(tx *store.Tx, id string) (*Challenge, time.Time, error) {
	c, err := d.scanChallenge(tx.QueryRow(`SELECT `+challengeColumns+` FROM challenge WHERE id = $1`+tx.ForUpdate(), id))
	if err != nil {
		return nil, time.Time{}, err
	}
	now, err := tx.Now()
	if err != nil {
		return nil, now, err
	}
	c.judge(now)
	return c, now, nil
}

func (d *Desk) saveChallenge(tx *store.Tx, c *Challenge) error {
	list := c.Shown
	if list == nil {
		list = []Shown{}
	}
	shown, err := json.Marshal(list)
	if err != nil {
		return err
	}
	_, err = tx.Exec(`UPDATE challenge SET state = $1, tries = $2, shown = $3, ended = $4, ended_by = $5, channel = $6, mac = $7
		WHERE id = $8`, string(c.State), c.Tries, string(shown), keyring.Micros(c.Ended), c.EndedBy, c.Channel,
		d.challengeRow(c, string(shown)).Sum(), c.ID)
	store.Notify(tx, Topic, c.ID)
	return err
}

// codeHash is what is kept of a code. It is keyed: with so few codes a bare
// hash could be searched.
func (d *Desk) codeHash(id, code string) []byte {
	return d.keys.Row("challenge code").Text(id, code).Sum()
}

// isCode compares in constant time.
func (d *Desk) isCode(c *Challenge, code string) bool {
	return hmac.Equal(d.codeHash(c.ID, code), c.hash)
}
