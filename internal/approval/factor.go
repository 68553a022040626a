package approval

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

const (
	// triesAtOnce is how many wrong codes in a row lead to a pause: a minute
	// after the first ten, twice as long after each ten more, up to an hour. At
	// ten a minute for ever a thief of a cookie would find a code in weeks.
	triesAtOnce = 10
	firstPause  = time.Minute
	longPause   = time.Hour
	// proofLife is how long a proof may travel from the code to the answer.
	proofLife = time.Minute
)

// Proof says that an approver proved presence just now, for one purpose. Only
// this package can make one that counts; the zero value proves nothing.
type Proof struct {
	approver, purpose string
	at                time.Time
}

// For says whether the proof is this approver's, for this purpose, and fresh.
func (p Proof) For(approver, purpose string, now time.Time) bool {
	return approver != "" && purpose != "" && p.approver == approver && p.purpose == purpose &&
		!p.at.IsZero() && now.Sub(p.at) <= proofLife
}

func totpPurpose(approver string) string { return "totp " + approver }

// EnrolFactor makes an approver's secret for one-time codes and returns the
// otpauth:// URI with it, to be shown once. The factor counts from the first
// right code on ([Desk.ConfirmFactor]). Where one is confirmed already, proof
// of it is needed, with the purpose "factor"; else whoever holds a cookie could
// replace the factor that is meant to stop them. For the first one the caller
// should ask for the credential, not only a cookie.
func (d *Desk) EnrolFactor(tx *store.Tx, approver string, proof Proof) (uri string, err error) {
	a, err := d.loadApprover(tx, approver)
	if err != nil {
		return "", err
	}
	if !a.Removed.IsZero() {
		return "", fmt.Errorf("approver %s was removed: %w", approver, ErrNotFound)
	}
	now, err := tx.Now()
	if err != nil {
		return "", err
	}
	if a.Factor && !proof.For(approver, "factor", now) {
		return "", ErrFactor
	}
	secret := make([]byte, totpSecret)
	if _, err := io.ReadFull(d.keys.Random(), secret); err != nil {
		return "", fmt.Errorf("make a secret: %w", err)
	}
	if a.totp, err = d.keys.Seal(totpPurpose(approver), secret); err != nil {
		return "", err
	}
	a.Factor, a.totpStep = false, 0
	return totpURI(approver, secret), d.saveApprover(tx, a)
}

// ConfirmFactor makes the approver's factor count, given a first right code.
func (d *Desk) ConfirmFactor(ctx context.Context, st *store.Store, approver, code string) error {
	_, err := d.try(ctx, st, approver, "confirm", code, false)
	return err
}

// Prove checks a one-time code and returns proof of presence for one purpose:
// the id of the request that is being answered, or a name for what else needs
// it. It takes the store and not a transaction, because a try must count even
// when everything that follows is taken back.
func (d *Desk) Prove(ctx context.Context, st *store.Store, approver, purpose, code string) (Proof, error) {
	return d.try(ctx, st, approver, purpose, code, true)
}

func (d *Desk) try(ctx context.Context, st *store.Store, approver, purpose, code string, confirmed bool) (Proof, error) {
	var proof Proof
	var refused error
	err := st.Write(ctx, func(tx *store.Tx) (err error) {
		proof, refused, err = d.tryCode(tx, approver, code, confirmed)
		return err
	})
	if err != nil {
		return Proof{}, err
	}
	if refused != nil {
		return Proof{}, refused
	}
	proof.purpose = purpose
	return proof, nil
}

// tryCode counts the try and judges it. A refusal is not an error of the
// transaction, which must be kept.
func (d *Desk) tryCode(tx *store.Tx, approver, code string, confirmed bool) (p Proof, refused, err error) {
	a, err := d.loadApprover(tx, approver)
	if err != nil {
		return p, nil, err
	}
	now, err := tx.Now()
	if err != nil {
		return p, nil, err
	}
	if !a.Removed.IsZero() || len(a.totp) == 0 || a.Factor != confirmed {
		return p, ErrFactor, nil
	}
	if now.Sub(a.triesSince) < pauseAfter(a.tries) {
		return p, ErrThrottled, nil
	}
	a.tries, a.triesSince = a.tries+1, now
	secret, err := d.keys.Open(totpPurpose(approver), a.totp)
	if err != nil {
		return p, nil, fmt.Errorf("approver %s: %w", approver, ErrForged)
	}
	if step, ok := totpMatch(secret, code, now, a.totpStep); ok {
		a.totpStep, a.Factor, a.tries = step, true, 0
		p = Proof{approver: approver, at: now}
	} else {
		refused = fmt.Errorf("%w: the code is wrong or was used before", ErrFactor)
	}
	return p, refused, d.saveApprover(tx, a)
}

// pauseAfter is how long to wait after so many wrong codes in a row.
func pauseAfter(wrong int64) time.Duration {
	if wrong == 0 || wrong%triesAtOnce != 0 {
		return 0
	}
	return min(firstPause<<min(wrong/triesAtOnce-1, 10), longPause)
}

// DropFactor takes an approver's factor away, on the word of another approver:
// it is how a lost telephone is replaced, and nobody can do it alone.
func (d *Desk) DropFactor(tx *store.Tx, by, approver string, proof Proof) error {
	now, err := tx.Now()
	if err != nil {
		return err
	}
	if _, err := d.activeApprover(tx, by); err != nil {
		return err
	}
	if by == approver || !proof.For(by, "drop "+approver, now) {
		return ErrFactor
	}
	a, err := d.loadApprover(tx, approver)
	if err != nil {
		return err
	}
	a.totp, a.Factor, a.totpStep = nil, false, 0
	return d.saveApprover(tx, a)
}
