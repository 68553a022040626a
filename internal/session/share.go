package session

import (
	"fmt"
	"strings"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/keyring"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// maxShares is how many sub-agents of one agent can have a share at a time.
const maxShares = 32

// Spent is what was let through of the sub-agent with a path; an agent's own
// calls have none.
type Spent struct {
	Path  string
	Calls int
	First time.Time
}

// Share is a part of an agent's calls that was set aside for a sub-agent, and
// all below it. It lasts as long as uses count, if it is not taken back.
type Share struct {
	ID, Path string
	Calls    int
	Given    time.Time
	// Used is what it and those below it were let through since.
	Used int
}

// Holds says whether a sub-agent draws from the share.
func (s *Share) Holds(path string) bool { return path == s.Path || strings.HasPrefix(path, s.Path+"/") }

// Spent reads what an agent was let through, by sub-agent, and how often the
// tool that it used last was used in a row.
func (g *Registry) Spent(tx *store.Tx, agent string) (spent []Spent, row string, inRow int, err error) {
	now, err := tx.Now()
	if err != nil {
		return nil, "", 0, err
	}
	since, agent := keyring.Micros(now.Add(-UseLife)), AgentID(agent)
	spent, err = store.All(tx, scanSpent, `SELECT path, COUNT(DISTINCT call), MIN(at) FROM tool_use WHERE agent = $1 AND at > $2 GROUP BY path ORDER BY path`, agent, since)
	if err != nil || len(spent) == 0 {
		return nil, "", 0, err
	}
	if err := tx.QueryRow(`SELECT tool FROM tool_use WHERE agent = $1 AND at > $2 ORDER BY at DESC, call DESC, tool LIMIT 1`, agent, since).Scan(&row); err != nil {
		return nil, "", 0, err
	}
	err = tx.QueryRow(`SELECT COUNT(DISTINCT call) FROM tool_use WHERE agent = $1 AND at > $2 AND tool = $3
		AND at > COALESCE((SELECT MAX(at) FROM tool_use WHERE agent = $1 AND at > $2 AND tool <> $3), 0)`, agent, since, row).Scan(&inRow)
	return spent, row, inRow, err
}

func scanSpent(rows *store.Rows) (s Spent, err error) {
	var first int64
	err = rows.Scan(&s.Path, &s.Calls, &first)
	s.First = keyring.Time(first)
	return s, err
}

// Shares reads what of an agent's calls is set aside.
func (g *Registry) Shares(tx *store.Tx, agent string) ([]Share, error) {
	now, err := tx.Now()
	if err != nil {
		return nil, err
	}
	return store.All(tx, scanShare, `SELECT id, path, calls, given,
		(SELECT COUNT(DISTINCT call) FROM tool_use u WHERE u.agent = s.agent AND u.at > s.given AND (u.path = s.path OR substr(u.path, 1, length(s.path) + 1) = s.path || '/'))
		FROM agent_share s WHERE agent = $1 AND given > $2 ORDER BY path`, AgentID(agent), keyring.Micros(now.Add(-UseLife)))
}

func scanShare(rows *store.Rows) (s Share, err error) {
	var given int64
	err = rows.Scan(&s.ID, &s.Path, &s.Calls, &given, &s.Used)
	s.Given = keyring.Time(given)
	return s, err
}

// SetAside keeps a part of an agent's calls for a sub-agent. Whoever calls it
// has seen, in the same transaction, that so many are left.
func (g *Registry) SetAside(tx *store.Tx, agent, path string, calls int) (*Share, error) {
	shares, err := g.Shares(tx, agent)
	if err != nil {
		return nil, err
	}
	for _, s := range shares {
		if s.Path == path {
			return nil, fmt.Errorf("%w: %s has a share already: take it back first", ErrInvalid, path)
		}
	}
	if len(shares) >= maxShares {
		return nil, fmt.Errorf("%w: %d sub-agents have a share already: take one back first", ErrInvalid, maxShares)
	}
	now, err := tx.Now()
	if err != nil {
		return nil, err
	}
	id, err := keyring.NewID("s_", g.keys.Random())
	if err != nil {
		return nil, err
	}
	// One that is over may still stand there.
	if _, err := tx.Exec(`DELETE FROM agent_share WHERE agent = $1 AND (path = $2 OR given <= $3)`, AgentID(agent), path, keyring.Micros(now.Add(-UseLife))); err != nil {
		return nil, err
	}
	_, err = tx.Exec(`INSERT INTO agent_share (id, agent, path, calls, given) VALUES ($1, $2, $3, $4, $5)`, id, AgentID(agent), path, calls, keyring.Micros(now))
	return &Share{ID: id, Path: path, Calls: calls, Given: now}, err
}

// TakeBack ends a share, and those below it. What was drawn counts for who set
// it aside.
func (g *Registry) TakeBack(tx *store.Tx, agent string, s *Share) error {
	_, err := tx.Exec(`DELETE FROM agent_share WHERE agent = $1 AND (path = $2 OR substr(path, 1, length($2) + 1) = $2 || '/')`, AgentID(agent), s.Path)
	return err
}
