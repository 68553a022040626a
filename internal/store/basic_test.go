package store_test

import (
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store/storetest"
)

func TestBasic(t *testing.T) {
	storetest.Both(t, func(t *testing.T, s *store.Store) {
		err := s.Write(t.Context(), func(tx *store.Tx) error {
			if _, err := tx.Exec(`CREATE TABLE x (k TEXT PRIMARY KEY, v BIGINT)`); err != nil {
				return err
			}
			_, err := tx.Exec(`INSERT INTO x VALUES ($2, $1)`, 7, "a")
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		var v int
		err = s.Read(t.Context(), func(tx *store.Tx) error {
			return tx.QueryRow(`SELECT v FROM x WHERE k = $1`, "a").Scan(&v)
		})
		if err != nil || v != 7 {
			t.Fatal(v, err)
		}
	})
}
