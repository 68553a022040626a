package session

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// maxLineage bounds how many agents above a session are kept; nobody nests
// agents so deep, and whoever does is not let in.
const maxLineage = 16

// Enclosing returns the sessions that a chain of processes runs inside, the
// nearest first, ended ones included: what stopped an agent stops what it
// started, also after it is gone.
func (g *Registry) Enclosing(tx *store.Tx, chain []Process) ([]*Session, error) {
	var found []*Session
	for _, p := range chain {
		bound, err := store.All(tx, g.nextSession, `SELECT `+sessionColumns+` FROM agent_session WHERE pid = $1
			ORDER BY opened DESC, id DESC`, p.PID)
		if err != nil {
			return nil, err
		}
		for _, s := range bound {
			if s.Token == "" && s.Process.Is(p) {
				found = append(found, s)
			}
		}
	}
	return found, nil
}

// lineageOf lists the other agents that a new session's peer runs under.
func (g *Registry) lineageOf(tx *store.Tx, s *Session, peer Peer) ([]string, error) {
	above, err := g.Enclosing(tx, peer.Chain)
	if err != nil {
		return nil, err
	}
	var agents []string
	for _, a := range above {
		for _, name := range append([]string{a.Agent}, a.Lineage...) {
			if name != s.Agent && !slices.Contains(agents, name) {
				agents = append(agents, name)
			}
		}
	}
	if len(agents) > maxLineage {
		return nil, fmt.Errorf("%w: it runs under %d agents", ErrInvalid, len(agents))
	}
	return agents, nil
}

// HookSurface is what the surfaces of hook sessions begin with.
const HookSurface = "hook:"

// Agent returns the agent whose hook bound the process tree that a chain runs in: the one of the nearest
// open session. ErrNotFound where there is none. Processes elsewhere cannot get into a tree, so a name
// that is had in this way says what a token would.
func (g *Registry) Agent(tx *store.Tx, chain []Process) (string, error) {
	above, err := g.Enclosing(tx, chain)
	if err != nil {
		return "", err
	}
	for _, s := range above {
		if s.Ended.IsZero() && strings.HasPrefix(s.Surface, HookSurface) {
			return s.Agent, nil
		}
	}
	return "", ErrNotFound
}

// Under returns the principal's session that a process belongs to: the nearest
// open one around it. ErrNotFound where there is none.
func (g *Registry) Under(tx *store.Tx, chain []Process) (*Session, error) {
	above, err := g.Enclosing(tx, chain)
	if err != nil {
		return nil, err
	}
	for _, s := range above {
		if s.Ended.IsZero() {
			return s, nil
		}
	}
	return nil, errors.Join(ErrNotFound, ErrEnded)
}
