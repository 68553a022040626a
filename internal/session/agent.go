package session

import (
	"crypto/subtle"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/keyring"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// Agent is an agent that was given a token.
type Agent struct {
	Name      string    `json:"name"`
	Added     time.Time `json:"added"`
	AddedBy   string    `json:"added_by"`
	Removed   time.Time `json:"removed,omitzero"`
	RemovedBy string    `json:"removed_by,omitzero"`

	hash []byte
}

// TokenID names the agent's present token without giving it away. Sessions
// over the network are bound to it: a new token does not open old sessions.
func (a *Agent) TokenID() string { return hex.EncodeToString(a.hash[:min(16, len(a.hash))]) }

var agentName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)

const agentColumns = `name, hash, added, added_by, removed, removed_by, mac`

func (g *Registry) agentRow(a *Agent) *keyring.Row {
	return g.keys.Row("agent").Text(a.Name).Bytes(a.hash).Time(a.Added).Text(a.AddedBy).Time(a.Removed).Text(a.RemovedBy)
}

func (g *Registry) scanAgent(row scanner) (*Agent, error) {
	var a Agent
	var added, removed int64
	var mac []byte
	err := row.Scan(&a.Name, &a.hash, &added, &a.AddedBy, &removed, &a.RemovedBy, &mac)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("agent: %w", ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	a.Added, a.Removed = keyring.Time(added), keyring.Time(removed)
	if !g.agentRow(&a).Is(mac) {
		return nil, fmt.Errorf("agent %s: %w", a.Name, ErrForged)
	}
	return &a, nil
}

// AddAgent enrols an agent and returns its token, which is not kept. The name
// of a removed agent can be given again; blocks and limits follow the name.
func (g *Registry) AddAgent(tx *store.Tx, name, by string) (keyring.Secret, error) {
	if !agentName.MatchString(name) {
		return keyring.Secret{}, fmt.Errorf("%w: %q is not an agent's name: up to 64 of a-z, 0-9 and . _ -", ErrInvalid, name)
	}
	now, err := tx.Now()
	if err != nil {
		return keyring.Secret{}, err
	}
	secret, hash, err := keyring.Mint(keyring.AgentToken, g.keys.Random())
	if err != nil {
		return keyring.Secret{}, err
	}
	a := &Agent{Name: name, Added: now, AddedBy: by, hash: hash[:]}
	n, err := tx.Exec(`INSERT INTO agent (`+agentColumns+`) VALUES ($1, $2, $3, $4, 0, '', $5)
		ON CONFLICT (name) DO UPDATE SET hash = excluded.hash, added = excluded.added, added_by = excluded.added_by,
		removed = 0, removed_by = '', mac = excluded.mac WHERE agent.removed <> 0`,
		a.Name, a.hash, keyring.Micros(now), by, g.agentRow(a).Sum())
	if err == nil && n != 1 {
		err = fmt.Errorf("agent %s: %w", name, ErrExists)
	}
	if err != nil {
		return keyring.Secret{}, err
	}
	store.Notify(tx, Topic, "agent "+name)
	return secret, nil
}

// CheckToken returns the agent a token belongs to. It changes nothing.
func (g *Registry) CheckToken(tx *store.Tx, token string) (*Agent, error) {
	hash, ok := keyring.HashOf(keyring.AgentToken, token)
	if !ok {
		return nil, ErrToken
	}
	a, err := g.scanAgent(tx.QueryRow(`SELECT `+agentColumns+` FROM agent WHERE hash = $1`, hash[:]))
	switch {
	case errors.Is(err, ErrNotFound):
		return nil, ErrToken
	case err != nil:
		return nil, err
	case subtle.ConstantTimeCompare(a.hash, hash[:]) != 1 || !a.Removed.IsZero():
		return nil, ErrToken
	}
	return a, nil
}

// holds says whether a token is the agent's present one. The surface may have
// checked it a while ago; here it counts.
func (g *Registry) holds(tx *store.Tx, name, tokenID string) error {
	a, err := g.scanAgent(tx.QueryRow(`SELECT `+agentColumns+` FROM agent WHERE name = $1`+tx.ForShare(), name))
	if errors.Is(err, ErrNotFound) || (err == nil && (!a.Removed.IsZero() || a.TokenID() != tokenID)) {
		return ErrToken
	}
	return err
}

// RemoveAgent voids an agent's token and ends its sessions, which it returns.
func (g *Registry) RemoveAgent(tx *store.Tx, name, by string) ([]*Session, error) {
	a, err := g.scanAgent(tx.QueryRow(`SELECT `+agentColumns+` FROM agent WHERE name = $1`+tx.ForUpdate(), name))
	if err != nil {
		return nil, err
	}
	if !a.Removed.IsZero() {
		return nil, fmt.Errorf("agent %s was removed before: %w", name, ErrNotFound)
	}
	if a.Removed, err = tx.Now(); err != nil {
		return nil, err
	}
	a.RemovedBy = by
	_, err = tx.Exec(`UPDATE agent SET removed = $1, removed_by = $2, mac = $3 WHERE name = $4`,
		keyring.Micros(a.Removed), by, g.agentRow(a).Sum(), name)
	if err != nil {
		return nil, err
	}
	store.Notify(tx, Topic, "agent "+name)
	open, err := g.live(tx, `agent = $1`, name)
	if err != nil {
		return nil, err
	}
	for _, s := range open {
		if err := g.End(tx, s.ID, by); err != nil {
			return nil, err
		}
	}
	return open, nil
}

// Agents lists all there are and were, by name.
func (g *Registry) Agents(tx *store.Tx) ([]*Agent, error) {
	return store.All(tx, func(rows *store.Rows) (*Agent, error) { return g.scanAgent(rows) },
		`SELECT `+agentColumns+` FROM agent ORDER BY name`)
}
