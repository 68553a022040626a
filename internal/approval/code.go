package approval

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/keyring"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// CodeAlphabet spells codes: no character in it is taken for another when it
// is read out or copied by hand.
const CodeAlphabet = "23456789ABCDEFGHJKMNPQRSTUVWXYZ"

// CodeLength is the number of characters of a code.
const CodeLength = 6

// Code returns a challenge's code, for the people who may see it. It is not
// stored: it follows from the gate's key and the challenge's random id, so
// that it can be shown again after a restart.
func (d *Desk) Code(c *Challenge) string {
	code := make([]byte, 0, CodeLength)
	for block := int64(0); ; block++ {
		for _, b := range d.keys.Row("code of challenge").Text(c.ID).Int(block).Sum() {
			if at, ok := letter(b); ok {
				code = append(code, CodeAlphabet[at])
			}
			if len(code) == CodeLength {
				return string(code)
			}
		}
	}
}

// letter maps a random byte to a place in the alphabet. The bytes at the end,
// which would make the first letters more likely, are dropped.
func letter(b byte) (at int, ok bool) {
	const n = len(CodeAlphabet)
	return int(b) % n, int(b) < 256/n*n
}

// foldCode takes a code as people write it: in lower case, with blanks or
// hyphens to hold on to.
func foldCode(code string) string {
	return strings.ToUpper(strings.NewReplacer(" ", "", "-", "", "\t", "").Replace(code))
}

// Try checks a code that was handed in, by an agent or (where the agent is "")
// by an approver on their own channel. A right one leads to moved, which runs
// in the same transaction and says what became of the challenge. It takes the
// store and not a transaction, because a try must count even when everything
// that follows is taken back.
//
// A code that nobody was shown is wrong, whatever it says: it was guessed.
func (d *Desk) Try(ctx context.Context, st *store.Store, agent, id, code string, moved func(tx *store.Tx, c *Challenge) (ChallengeState, error)) (*Challenge, error) {
	var got *Challenge
	var refused error
	err := st.Write(ctx, func(tx *store.Tx) (err error) {
		got, refused, err = d.tryChallenge(tx, agent, id, foldCode(code), moved)
		return err
	})
	if err != nil {
		return nil, err
	}
	return got, refused
}

func (d *Desk) tryChallenge(tx *store.Tx, agent, id, code string, moved func(*store.Tx, *Challenge) (ChallengeState, error)) (c *Challenge, refused, err error) {
	if agent != "" {
		if refused, err = d.throttled(tx, agent); refused != nil || err != nil {
			return nil, refused, err
		}
	}
	c, now, err := d.loadChallenge(tx, id)
	switch {
	case errors.Is(err, ErrNotFound) || err == nil && agent != "" && c.Principal.Agent != agent:
		// The same answer for one that is not there and one that is another's:
		// and a guess at ids is a guess.
		return nil, fmt.Errorf("challenge: %w", ErrNotFound), d.countWrong(tx, agent)
	case err != nil:
		return nil, nil, err
	case !c.State.Waits():
		return c, fmt.Errorf("%w: the challenge is %s", ErrStale, c.State), nil
	}
	if right := d.isCode(c, code); !right || len(c.Shown) == 0 {
		if c.Tries++; c.Tries >= maxTries {
			c.State, c.Ended, c.EndedBy, c.Channel = Void, now, "gatehouse", "tries"
		}
		if err := d.saveChallenge(tx, c); err != nil {
			return c, nil, err
		}
		return c, ErrCode, d.countWrong(tx, agent)
	}
	state, err := moved(tx, c)
	if err != nil {
		return c, nil, err
	}
	if c.State = state; state != Given {
		if c.Ended = now; c.EndedBy == "" {
			c.EndedBy, c.Channel = c.Reader()
		}
	}
	return c, nil, d.saveChallenge(tx, c)
}

// tries is how many wrong codes were handed in since a time.
type tries struct {
	wrong int64
	since time.Time
}

func (d *Desk) triesRow(who string, t *tries) *keyring.Row {
	return d.keys.Row("challenge tries").Text(who).Int(t.wrong).Time(t.since)
}

func (d *Desk) readTries(tx *store.Tx, who string) (t tries, err error) {
	var since int64
	var mac []byte
	err = tx.QueryRow(`SELECT wrong, since, mac FROM challenge_tries WHERE who = $1`+tx.ForUpdate(), who).Scan(&t.wrong, &since, &mac)
	if errors.Is(err, sql.ErrNoRows) {
		return tries{}, nil
	}
	if err != nil {
		return t, err
	}
	t.since = keyring.Time(since)
	if !d.triesRow(who, &t).Is(mac) {
		return t, fmt.Errorf("wrong codes of %q: %w", who, ErrForged)
	}
	now, err := tx.Now()
	if now.Sub(t.since) >= triesWindow {
		t = tries{}
	}
	return t, err
}

// throttled says whether an agent has used up its tries, or all agents have
// together.
func (d *Desk) throttled(tx *store.Tx, agent string) (refused, err error) {
	own, err := d.readTries(tx, agent)
	if err != nil {
		return nil, err
	}
	all, err := d.readTries(tx, "")
	if err != nil {
		return nil, err
	}
	if own.wrong >= triesPerAgent || all.wrong >= triesInAll {
		return ErrTries, nil
	}
	return nil, nil
}

// countWrong counts a wrong code of an agent. An approver's own slip counts
// for the challenge alone.
func (d *Desk) countWrong(tx *store.Tx, agent string) error {
	if agent == "" {
		return nil
	}
	now, err := tx.Now()
	if err != nil {
		return err
	}
	for _, who := range []string{agent, ""} {
		t, err := d.readTries(tx, who)
		if err != nil {
			return err
		}
		if t.wrong == 0 {
			t.since = now
		}
		t.wrong++
		_, err = tx.Exec(`INSERT INTO challenge_tries (who, wrong, since, mac) VALUES ($1, $2, $3, $4)
			ON CONFLICT (who) DO UPDATE SET wrong = excluded.wrong, since = excluded.since, mac = excluded.mac`,
			who, t.wrong, keyring.Micros(t.since), d.triesRow(who, &t).Sum())
		if err != nil {
			return err
		}
	}
	return nil
}

// ApproveByCode approves a request because somebody who was shown its code
// told it to the agent. It is this call, once, and never a pinned one: a code
// is no second factor. It runs inside [Desk.Try].
func (d *Desk) ApproveByCode(tx *store.Tx, c *Challenge, limits Limits) (*Request, error) {
	limits = limits.WithDefaults()
	limits.ShownAtLeast = time.Nanosecond // reading a code out takes longer than a glance
	r, err := d.load(tx, c.Subject)
	if err != nil {
		return nil, err
	}
	now, err := tx.Now()
	if err != nil {
		return nil, err
	}
	r.judge(now)
	by, channel := c.Reader()
	switch {
	case r.State != Pending:
		return r, r.decided()
	case r.Principal.Agent != c.Principal.Agent:
		return r, fmt.Errorf("request %s: %w", r.ID, ErrNotFound)
	case r.Pinned:
		return r, fmt.Errorf("request %s: %w", r.ID, ErrFactor)
	}
	if signedIn(channel) {
		if _, err := d.activeApprover(tx, by); err != nil {
			return r, err
		}
	}
	a := Answer{Verdict: Approve, Shown: r.Digest, Approver: by, Channel: "code, " + channel}
	if _, err := d.approve(tx, r, &a, limits, now); err != nil {
		return r, err
	}
	r.State, r.Answered, r.AnsweredBy, r.Channel, r.sealed = Approved, now, by, a.Channel, nil
	return r, d.save(tx, r, Pending)
}

// signedIn says whether a channel knows who looks at it.
func signedIn(channel string) bool { return channel == "console" || channel == "api" }
