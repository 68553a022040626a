package session

import (
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/keyring"
	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// UseLife is how long a use of a declared tool counts if no person ends it.
const UseLife = 12 * time.Hour

// Used is how a declared tool was used by an agent in a workspace.
type Used struct {
	Agent     string `json:"agent"`
	Workspace string `json:"workspace"`
	Tool      string `json:"tool"`
	// Runs were let through, Running of them have not ended.
	Runs      int       `json:"runs"`
	Running   int       `json:"running,omitzero"`
	Succeeded int       `json:"succeeded,omitzero"`
	Last      time.Time `json:"last"`
	Ended     time.Time `json:"ended,omitzero"`
}

// Concerns says whether a success there is one in a workspace: in the same
// directory, or in one above or below it.
func (u *Used) Concerns(agent, workspace string) bool {
	return u.Agent == AgentID(agent) && (u.Workspace == workspace || match.Within(u.Workspace, workspace) || match.Within(workspace, u.Workspace))
}

// Uses reads how declared tools were used by an agent, wherever that was, and
// by anyone in the workspace: a new session, a sub-agent or another directory
// does not wash a count off. In a write nobody else counts until it ends.
func (g *Registry) Uses(tx *store.Tx, agent, workspace string) (used []Used, denials map[string]int, err error) {
	now, err := tx.Now()
	if err != nil {
		return nil, nil, err
	}
	var one int
	if err := tx.QueryRow(`SELECT one FROM tool_turn WHERE one = 1` + tx.ForUpdate()).Scan(&one); err != nil {
		return nil, nil, err
	}
	since := keyring.Micros(now.Add(-UseLife))
	used, err = store.All(tx, scanUsed, usedColumns+` WHERE at > $1 AND (agent = $2 OR workspace = $3 AND workspace <> '') GROUP BY agent, workspace, tool`,
		since, AgentID(agent), workspace)
	if err != nil {
		return nil, nil, err
	}
	rows, err := store.All(tx, scanDenial, `SELECT tool, count FROM tool_denial WHERE agent = $1 AND at > $2`, AgentID(agent), since)
	denials = make(map[string]int, len(rows))
	for _, r := range rows {
		denials[r.tool] = r.count
	}
	return used, denials, err
}

const usedColumns = `SELECT agent, workspace, tool, COUNT(*), SUM(CASE WHEN ended = 0 THEN 1 ELSE 0 END), SUM(succeeded), MAX(at), MAX(ended) FROM tool_use`

func scanUsed(rows *store.Rows) (u Used, err error) {
	var last, ended int64
	err = rows.Scan(&u.Agent, &u.Workspace, &u.Tool, &u.Runs, &u.Running, &u.Succeeded, &last, &ended)
	u.Last = keyring.Time(last)
	if ended > 0 {
		u.Ended = keyring.Time(ended)
	}
	return u, err
}

type denial struct {
	tool  string
	count int
}

func scanDenial(rows *store.Rows) (d denial, err error) { return d, rows.Scan(&d.tool, &d.count) }

// Use counts a use of tools by a call that was opened. It ends a row of denials.
func (g *Registry) Use(tx *store.Tx, callID, agent, path, workspace string, tools []string) error {
	now, err := tx.Now()
	if err != nil {
		return err
	}
	if _, err := tx.Exec(`DELETE FROM tool_use WHERE agent = $1 AND at <= $2`, AgentID(agent), keyring.Micros(now.Add(-UseLife))); err != nil {
		return err
	}
	if _, err := tx.Exec(`UPDATE open_call SET counted = 1 WHERE id = $1`, callID); err != nil {
		return err
	}
	for _, tool := range tools {
		if _, err := tx.Exec(`INSERT INTO tool_use (call, tool, agent, path, workspace, at) VALUES ($1, $2, $3, $4, $5, $6)`,
			callID, tool, AgentID(agent), path, workspace, keyring.Micros(now)); err != nil {
			return err
		}
		if _, err := tx.Exec(`DELETE FROM tool_denial WHERE agent = $1 AND tool = $2`, AgentID(agent), tool); err != nil {
			return err
		}
	}
	return nil
}

// Refuse counts a denial of declared tools.
func (g *Registry) Refuse(tx *store.Tx, agent string, tools []string) error {
	now, err := tx.Now()
	if err != nil {
		return err
	}
	for _, tool := range tools {
		_, err := tx.Exec(`INSERT INTO tool_denial (agent, tool, count, at) VALUES ($1, $2, 1, $3)
			ON CONFLICT (agent, tool) DO UPDATE SET at = excluded.at, count = CASE WHEN tool_denial.at > $4 THEN tool_denial.count + 1 ELSE 1 END`,
			AgentID(agent), tool, keyring.Micros(now), keyring.Micros(now.Add(-UseLife)))
		if err != nil {
			return err
		}
	}
	return nil
}

// UseEnded notes how a counted call ended.
func (g *Registry) UseEnded(tx *store.Tx, callID string, succeeded bool) error {
	now, err := tx.Now()
	if err != nil {
		return err
	}
	success := 0
	if succeeded {
		success = 1
	}
	_, err = tx.Exec(`UPDATE tool_use SET ended = $1, succeeded = $2 WHERE call = $3`, keyring.Micros(now), success, callID)
	return err
}

// ListUses lists the uses that still count, by agent.
func (g *Registry) ListUses(tx *store.Tx) ([]Used, error) {
	now, err := tx.Now()
	if err != nil {
		return nil, err
	}
	return store.All(tx, scanUsed, usedColumns+` WHERE at > $1 GROUP BY agent, workspace, tool ORDER BY agent, workspace, tool`, keyring.Micros(now.Add(-UseLife)))
}

// ClearUses has an agent's uses and denials count no more, and says how many
// there were.
func (g *Registry) ClearUses(tx *store.Tx, agent string) (int64, error) {
	uses, err := tx.Exec(`DELETE FROM tool_use WHERE agent = $1`, AgentID(agent))
	if err != nil {
		return 0, err
	}
	if _, err := tx.Exec(`DELETE FROM agent_share WHERE agent = $1`, AgentID(agent)); err != nil {
		return 0, err
	}
	denials, err := tx.Exec(`DELETE FROM tool_denial WHERE agent = $1`, AgentID(agent))
	return uses + denials, err
}
