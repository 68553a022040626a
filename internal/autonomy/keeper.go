package autonomy

import (
	"errors"

	"github.com/seed-3ebc6b8a/gatehouse/internal/keyring"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// Topic is where changes of executions are announced, with the id as payload.
const Topic = "execution"

// What keeping executions can fail with. Each of them stops the step.
var (
	// ErrForged says that a row was changed by something else than the gate.
	ErrForged = errors.New("a stored row does not bear the gate's signature: the database was edited")
	// ErrNotFound says that the agent has no such execution or handoff.
	ErrNotFound = errors.New("there is no such execution of yours")
	// ErrPaused refuses a step: the execution waits for a person.
	ErrPaused = errors.New("the execution is paused and waits for a person")
	// ErrOver refuses a step of an execution that has ended or was passed on.
	ErrOver = errors.New("the execution is over")
	// ErrInvalid refuses what cannot be kept.
	ErrInvalid = errors.New("invalid")
	// ErrTooMany refuses another execution.
	ErrTooMany = errors.New("too many executions are running")
	// ErrHandoff refuses a token that this gate did not make, or that was used.
	ErrHandoff = errors.New("the handoff is not valid: it was changed, used before, is for another agent or has expired")
	// ErrStopped refuses a process of an agent that is blocked or stopped.
	ErrStopped = errors.New("the agent is stopped: nothing is started for it")
)

// Keeper keeps executions, strikes and processes. It is safe for concurrent
// use.
type Keeper struct {
	keys *keyring.Keyring
	// Changed is told, in the transaction, that something about a paused
	// execution has changed; nil if nobody wants to know.
	Changed func(tx *store.Tx) error
}

// New makes a keeper that signs its rows with the keys.
func New(keys *keyring.Keyring) *Keeper { return &Keeper{keys: keys} }
