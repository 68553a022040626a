package autonomy

import (
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/keyring"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// strikesWindow is how long a violation counts.
const strikesWindow = 10 * time.Minute

type strikes struct {
	n     int64
	since time.Time
	last  string
}

func (k *Keeper) strikesRow(agent string, s *strikes) *keyring.Row {
	return k.keys.Row("strikes").Text(agent).Int(s.n).Time(s.since).Text(s.last)
}

// Strike counts a violation of an agent, over all its sessions and across
// restarts, and returns how many there were within the window. A row that was
// edited is an error, and the violation that met it is denied as it would have
// been.
func (k *Keeper) Strike(tx *store.Tx, agent, what string) (int, error) {
	now, err := tx.Now()
	if err != nil {
		return 0, err
	}
	var s strikes
	var since int64
	var mac []byte
	err = tx.QueryRow(`SELECT strikes, since, last, mac FROM danger_strikes WHERE agent = $1`+tx.ForUpdate(), agent).Scan(&s.n, &since, &s.last, &mac)
	s.since = keyring.Time(since)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		s = strikes{since: now}
	case err != nil:
		return 0, err
	case !k.strikesRow(agent, &s).Is(mac):
		return 0, fmt.Errorf("strikes of %s: %w", agent, ErrForged)
	case now.Sub(s.since) >= strikesWindow:
		s = strikes{since: now}
	}
	s.n, s.last = s.n+1, what
	_, err = tx.Exec(`INSERT INTO danger_strikes (agent, strikes, since, last, mac) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (agent) DO UPDATE SET strikes = excluded.strikes, since = excluded.since, last = excluded.last, mac = excluded.mac`,
		agent, s.n, keyring.Micros(s.since), s.last, k.strikesRow(agent, &s).Sum())
	return int(s.n), err
}

// ForgetStrikes starts an agent's count anew, when a person releases it.
func (k *Keeper) ForgetStrikes(tx *store.Tx, agent string) error {
	_, err := tx.Exec(`DELETE FROM danger_strikes WHERE agent = $1`, agent)
	return err
}
