package session_test

import (
	"errors"
	"testing"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/session"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store/storetest"
)

// TestDeferral: a session that was told to come back may until its time is over,
// no other may, and a row that somebody else wrote is refused.
func TestDeferral(t *testing.T) {
	t.Parallel()
	storetest.Both(t, func(t *testing.T, s *store.Store) {
		h := newHall(t, s)
		deferred := func(agent, ref string) (ok bool, err error) {
			err = h.back(t, func(tx *store.Tx) (err error) {
				ok, err = h.Deferred(tx, agent, ref)
				return err
			})
			return ok, err
		}
		h.write(t, func(tx *store.Tx) error {
			return errors.Join(h.Defer(tx, "claude-1", "5f", time.Now().Add(time.Hour)), h.Defer(tx, "claude-1", "old", time.Now().Add(time.Hour)))
		})
		h.write(t, func(tx *store.Tx) error { return h.Defer(tx, "claude-1", "old", time.Now().Add(-time.Minute)) })
		for _, tt := range []struct {
			agent, ref string
			want       bool
		}{{"claude-1", "5f", true}, {"claude-2", "5f", false}, {"claude-1", "6a", false}, {"claude-1", "old", false}} {
			if got, err := deferred(tt.agent, tt.ref); got != tt.want || err != nil {
				t.Errorf("%s of %s: %t, %v", tt.ref, tt.agent, got, err)
			}
		}
		h.write(t, func(tx *store.Tx) error {
			_, err := tx.Exec(`UPDATE deferral SET until = until + 1 WHERE ref = '5f'`)
			return err
		})
		if ok, err := deferred("claude-1", "5f"); ok || !errors.Is(err, session.ErrForged) {
			t.Errorf("an edited row: %t, %v", ok, err)
		}
	})
}
