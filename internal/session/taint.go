package session

import (
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/keyring"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// Tainted is a taint as it is kept.
type Tainted struct {
	Agent     string    `json:"agent"`
	Workspace string    `json:"workspace"`
	Kind      string    `json:"kind"`
	Call      string    `json:"call"` // the call that brought it
	Since     time.Time `json:"since"`
	Until     time.Time `json:"until"`
}

// Taint notes what a call that was let through takes in, which counts for as
// long as the policy says if no person ends it. A new session, a sub-agent or
// another agent in the same workspace does not wash it off, and a shorter life
// does not cut one short that is there.
func (g *Registry) Taint(tx *store.Tx, agent, workspace string, t call.Taint, callID string, life time.Duration) error {
	now, err := tx.Now()
	if err != nil {
		return err
	}
	for _, kind := range t.Names() {
		key := taintKey{AgentID(agent), workspace, kind}
		if lasts(tx, key, now, life) {
			continue
		}
		_, err := tx.Exec(`INSERT INTO taint (agent, workspace, kind, call, since, until) VALUES ($1, $2, $3, $4, $5, $6)
			ON CONFLICT (agent, workspace, kind) DO UPDATE SET call = excluded.call, until = CASE WHEN excluded.until > taint.until THEN excluded.until ELSE taint.until END`,
			AgentID(agent), workspace, kind, callID, keyring.Micros(now), keyring.Micros(now.Add(life+taintSlack)))
		if err != nil {
			return err
		}
		tx.Remember(key, noted{now, life, tx.Recall(clearedKey{})})
	}
	return nil
}

// taintSlack is how much longer a taint is noted for than it must last, so that an agent that takes in one thing after
// another is not noted for each.
const taintSlack = time.Minute

// What is remembered of taints that were noted: when, for how long, and what was cleared last before that.
type (
	taintKey   struct{ agent, workspace, kind string }
	clearedKey struct{}
	noted      struct {
		at      time.Time
		life    time.Duration
		cleared any
	}
)

// lasts says whether a taint was noted so lately that it need not be again.
func lasts(tx *store.Tx, key taintKey, now time.Time, life time.Duration) bool {
	seen, ok := tx.Recall(key).(noted)
	return ok && tx.Alone() && seen.life >= life && seen.cleared == tx.Recall(clearedKey{}) && now.Sub(seen.at) < taintSlack
}

// Taints says what an agent carries: what it took in itself, wherever that
// was, and what anyone took in in the workspace.
func (g *Registry) Taints(tx *store.Tx, agent, workspace string) (t call.Taint, err error) {
	now, err := tx.Now()
	if err != nil {
		return 0, err
	}
	rows, err := store.All(tx, scanTaint, `SELECT agent, workspace, kind, call, since, until FROM taint
		WHERE until > $1 AND (agent = $2 OR workspace = $3 AND workspace <> '')`, keyring.Micros(now), AgentID(agent), workspace)
	for _, r := range rows {
		t |= call.ParseTaint(r.Kind)
	}
	return t, err
}

// ListTaints lists the taints that still hold, newest first.
func (g *Registry) ListTaints(tx *store.Tx) ([]Tainted, error) {
	now, err := tx.Now()
	if err != nil {
		return nil, err
	}
	return store.All(tx, scanTaint, `SELECT agent, workspace, kind, call, since, until FROM taint WHERE until > $1
		ORDER BY since DESC, agent, workspace, kind`, keyring.Micros(now))
}

// ClearTaints ends what an agent carries, and says how much that was. In the
// workspaces where it took it in it ends for everyone.
func (g *Registry) ClearTaints(tx *store.Tx, agent string) (int64, error) {
	tx.Remember(clearedKey{}, new(byte))
	return tx.Exec(`DELETE FROM taint WHERE agent = $1`, AgentID(agent))
}

func scanTaint(rows *store.Rows) (Tainted, error) {
	var t Tainted
	var since, until int64
	err := rows.Scan(&t.Agent, &t.Workspace, &t.Kind, &t.Call, &since, &until)
	t.Since, t.Until = keyring.Time(since), keyring.Time(until)
	return t, err
}
