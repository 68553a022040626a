package approval

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"golang.org/x/time/rate"

	"github.com/seed-3ebc6b8a/gatehouse/internal/keyring"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// Topic is where every change of a request or grant is announced, with the id
// of the request or grant as payload.
const Topic = "approval"

// What a request for an answer, a grant or a sign-in can fail with. Each of
// them denies.
var (
	// ErrForged says that a row was changed by something else than the gate.
	ErrForged = errors.New("a stored row does not bear the gate's signature: the database was edited")
	// ErrNotFound says that there is no such request, grant or approver.
	ErrNotFound = errors.New("not found")
	// ErrTooMany refuses to ask: the person's attention is used up.
	ErrTooMany = errors.New("too many requests are waiting or were made this hour")
	// ErrNotFresh refuses what a cookie alone is not enough for.
	ErrNotFresh = errors.New("this takes the credential, or a sign-in of just now")
	// ErrStale refuses an answer to something else than what is waiting.
	ErrStale = errors.New("what was shown is not what is waiting: look again")
	// ErrTooSoon refuses an approval of what nobody can have read yet.
	ErrTooSoon = errors.New("it was not on screen long enough to be read")
	// ErrFactor refuses an approval that needs a fresh proof of presence.
	ErrFactor = errors.New("this call needs a fresh one-time code of the approver")
	// ErrOffer refuses an answer that was not offered.
	ErrOffer = errors.New("this answer was not offered for this call")
	// ErrInvalid refuses a malformed request or answer.
	ErrInvalid = errors.New("invalid")
	// ErrSpent says that a grant has been used, revoked or has expired.
	ErrSpent = errors.New("the grant is spent")
	// ErrCredential says that a credential, link or cookie is not good.
	ErrCredential = errors.New("the credential is not valid")
	// ErrAgentToken says that an agent's token was given for a credential.
	ErrAgentToken = fmt.Errorf("%w: an agent's token cannot approve", ErrCredential)
	// ErrThrottled says that too many wrong secrets were tried of late.
	ErrThrottled = errors.New("too many failed tries: wait a minute")
	// ErrEnrolled says that the time of the first approver is over.
	ErrEnrolled = errors.New("an approver has been enrolled before: only an approver can add another")
	// ErrLast refuses to remove the last approver.
	ErrLast = errors.New("the last approver cannot be removed")
	// ErrExists says that the name is taken, by a removed approver too.
	ErrExists = errors.New("the name is taken")
)

// Limits bound what agents may ask and how long answers live. A zero field
// takes its default.
type Limits struct {
	// PendingPerSession and PendingPerAgent are how many requests may wait.
	PendingPerSession, PendingPerAgent int
	// AsksPerHour is how many requests an agent may file in an hour, over all
	// its sessions.
	AsksPerHour int
	// RequestLife is how long a request waits.
	RequestLife time.Duration
	// GrantLife is how long an approved call may stay unused.
	GrantLife time.Duration
	// SessionGrantLife bounds a grant for the session.
	SessionGrantLife time.Duration
	// ShownAtLeast is how long a call must have been on screen.
	ShownAtLeast time.Duration
}

// WithDefaults fills in what is zero. It is the only place with the defaults.
func (l Limits) WithDefaults() Limits {
	l.PendingPerSession = cmp.Or(l.PendingPerSession, 5)
	l.PendingPerAgent = cmp.Or(l.PendingPerAgent, 20)
	l.AsksPerHour = cmp.Or(l.AsksPerHour, 60)
	l.RequestLife = cmp.Or(l.RequestLife, 15*time.Minute)
	l.GrantLife = cmp.Or(l.GrantLife, 2*time.Minute)
	l.SessionGrantLife = cmp.Or(l.SessionGrantLife, 8*time.Hour)
	l.ShownAtLeast = cmp.Or(l.ShownAtLeast, time.Second)
	return l
}

// Desk files requests and takes answers. It is safe for concurrent use.
type Desk struct {
	// Resolved, if set, is told of every request that gets its outcome, in the
	// transaction that gives it; an edit is told again once it has a request of
	// its own. It is set before the desk is used.
	Resolved func(tx *store.Tx, r *Request) error

	keys *keyring.Keyring
	// wrong slows down those who try secrets. A right one always passes, so
	// that an agent cannot lock people out by trying wrong ones.
	wrong *rate.Limiter
}

// New makes a desk that signs its rows with the keys.
func New(keys *keyring.Keyring) *Desk {
	return &Desk{keys: keys, wrong: rate.NewLimiter(rate.Every(2*time.Second), 30)}
}

// refuse counts a wrong secret.
func (d *Desk) refuse(err error) error {
	if !d.wrong.Allow() {
		return fmt.Errorf("%w (%w)", ErrThrottled, err)
	}
	return err
}

// blob keeps empty byte strings from becoming NULL.
func blob(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
