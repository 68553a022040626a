package session

import (
	"errors"
	"strings"
	"sync"
	"unicode"

	"github.com/seed-3ebc6b8a/gatehouse/internal/element"
	"github.com/seed-3ebc6b8a/gatehouse/internal/keyring"
	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// Topic is where changes of sessions, agents and switches are announced.
const Topic = "session"

// What opening, checking and switching can fail with. Each of them denies.
var (
	// ErrForged says that a row was changed by something else than the gate.
	ErrForged = errors.New("a stored row does not bear the gate's signature: the database was edited")
	// ErrNotFound says that there is no such agent, session or policy.
	ErrNotFound = errors.New("not found")
	// ErrForeign says that a message comes from outside the session's process
	// tree, or with another token than the one that opened it.
	ErrForeign = errors.New("the session belongs to another process")
	// ErrEnded says that the session is over.
	ErrEnded = errors.New("the session has ended")
	// ErrToken says that an agent's token is not good.
	ErrToken = errors.New("the agent's token is not valid")
	// ErrExists says that the agent's name is taken.
	ErrExists = errors.New("the name is taken")
	// ErrInvalid refuses malformed names and values.
	ErrInvalid = errors.New("invalid")
	// ErrMoved says that the policy in force is not the one that was to be
	// replaced: someone else was faster.
	ErrMoved = errors.New("the policy in force has changed meanwhile")
)

// Registry keeps agents, sessions and switches. It is safe for concurrent use.
type Registry struct {
	keys *keyring.Keyring
	// alive says whether a process still runs.
	alive func(Process) bool
	// paused finds an execution that waits for a person; nil finds none.
	paused func(tx *store.Tx, agents []string) (*Pause, error)

	mu   sync.Mutex
	seen map[standingKey]standingSeen
	sets map[string]*element.Set // compiled, by the signatures of their rows
}

// Options replace what the registry asks of the machine; nil is valid.
type Options struct {
	// Alive says whether a process still runs, for tests.
	Alive func(Process) bool
	// Paused finds an execution of one of the agents that waits for a person,
	// nil if there is none. Whoever changes what it answers calls Refresh.
	Paused func(tx *store.Tx, agents []string) (*Pause, error)
}

// Pause is an execution that waits for a person.
type Pause struct {
	// Session is the one that runs it.
	Session string
	// Why names it and says why it waits.
	Why string
}

// New makes a registry that signs its rows with the keys.
func New(keys *keyring.Keyring, opts *Options) *Registry {
	g := &Registry{keys: keys, alive: Alive, seen: make(map[standingKey]standingSeen), sets: make(map[string]*element.Set)}
	if opts != nil {
		g.paused = opts.Paused
		if opts.Alive != nil {
			g.alive = opts.Alive
		}
	}
	return g
}

type scanner interface{ Scan(dest ...any) error }

// AgentID folds the spellings of an agent's name to one, so that a block on
// "deployer" reaches "Deployer", the full-width spelling of it, one with an
// invisible character in it and one with a letter that only looks the same.
func AgentID(name string) string {
	if plain(name) {
		return name
	}
	for range 8 { // each step can make room for the next; names settle in two
		next := strings.Map(visible, strings.ToLower(match.NFKC(match.Fold(name))))
		if next == name {
			break
		}
		name = next
	}
	return name
}

// plain names are the ones agents are enrolled under; they are what they are.
func plain(name string) bool {
	for i := range len(name) {
		switch c := name[i]; {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '-', c == '_', c == '.':
		default:
			return false
		}
	}
	return true
}

// visible drops what a reader does not see.
func visible(r rune) rune {
	if unicode.IsSpace(r) || unicode.In(r, unicode.C, unicode.Mn) {
		return -1
	}
	return r
}
