package session

import (
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/keyring"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// A host that cannot wait ends while its question does, and comes back in
// another process. The name of its session is good for that as long as the
// question waits, and for nothing else; a restart of the gate changes nothing.

func (g *Registry) deferralRow(agent, ref string, until time.Time) *keyring.Row {
	return g.keys.Row("deferral").Text(agent, ref).Time(until)
}

// Defer notes that a host's session was told to come back.
func (g *Registry) Defer(tx *store.Tx, agent, ref string, until time.Time) error {
	now, err := tx.Now()
	if err != nil {
		return err
	}
	if _, err := tx.Exec(`DELETE FROM deferral WHERE until < $1`, keyring.Micros(now)); err != nil {
		return err
	}
	agent, until = AgentID(agent), until.Truncate(time.Microsecond)
	_, err = tx.Exec(`INSERT INTO deferral (agent, ref, until, mac) VALUES ($1, $2, $3, $4)
		ON CONFLICT (agent, ref) DO UPDATE SET until = excluded.until, mac = excluded.mac`,
		agent, ref, keyring.Micros(until), g.deferralRow(agent, ref, until).Sum())
	return err
}

// Deferred says whether a host's session was told to come back and still may.
func (g *Registry) Deferred(tx *store.Tx, agent, ref string) (bool, error) {
	now, err := tx.Now()
	if err != nil {
		return false, err
	}
	var until int64
	var mac []byte
	agent = AgentID(agent)
	err = tx.QueryRow(`SELECT until, mac FROM deferral WHERE agent = $1 AND ref = $2`, agent, ref).Scan(&until, &mac)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return false, nil
	case err != nil:
		return false, err
	case !g.deferralRow(agent, ref, keyring.Time(until)).Is(mac):
		return false, fmt.Errorf("the deferral of %s: %w", ref, ErrForged)
	}
	return now.Before(keyring.Time(until)), nil
}
