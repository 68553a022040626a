package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// kv is the suite's table as one whose rows can wait.
var kv = store.NewTable("kv", "k", "v")

// light writes functions of light writes, each on its own.
func light(t *testing.T, s *store.Store, fns ...func(*store.Tx) error) []error {
	t.Helper()
	var got []error
	for _, fn := range fns {
		got = append(got, s.WriteLight(context.Background(), fn))
	}
	return got
}

func later(k string, v int) func(*store.Tx) error {
	return func(tx *store.Tx) error { return tx.Put(kv, k, v) }
}

// Rows that can wait are read, and undone, like all others.
func testLight(t *testing.T, opts store.Options) {
	s := open(t, opts)
	mustWrite(t, s, func(*store.Tx) error { return nil }) // from here on there is a session
	got := light(t, s,
		later("a", 1), later("b", 2), later("gone", 9),
		func(tx *store.Tx) error { return tx.Drop(kv, "gone") },
		func(tx *store.Tx) error { return errors.Join(tx.Put(kv, "no", 0), errRefused) },
		later("c", 3),
	)
	for i, err := range got {
		if (i == 4) != errors.Is(err, errRefused) || i != 4 && err != nil {
			t.Errorf("answer %d: %v", i, err)
		}
	}
	wantRows(t, s, map[string]int{"a": 1, "b": 2, "c": 3})
	// What was read from the database meanwhile is taken out as well.
	got = light(t, s, func(tx *store.Tx) error { return tx.Drop(kv, "b") }, later("d", 4))
	mustWrite(t, s, func(tx *store.Tx) error {
		n, err := tx.Exec(`UPDATE kv SET v = v + 10`)
		if err == nil && n != 3 {
			err = fmt.Errorf("%d rows changed, want 3", n)
		}
		return err
	})
	if err := errors.Join(got...); err != nil {
		t.Error(err)
	}
	wantRows(t, s, map[string]int{"a": 11, "c": 13, "d": 14})
}

// A light write that does more than it may runs in a transaction, with what waited before it.
func testLightGrowsHeavy(t *testing.T, opts store.Options) {
	s := open(t, opts)
	got := light(t, s, later("a", 1), func(tx *store.Tx) error {
		var n int
		if err := tx.Settled(`SELECT count(*) FROM store_migration`).Scan(&n); err != nil || n == 0 {
			return fmt.Errorf("%d migrations: %w", n, err)
		}
		if err := tx.Put(kv, "b", 2); err != nil {
			return err
		}
		if err := tx.QueryRow(`SELECT count(*) FROM kv`).Scan(&n); err != nil {
			return err
		}
		if n != 2 {
			return fmt.Errorf("%d rows, want 2", n)
		}
		return tx.Put(kv, "c", 3)
	}, func(tx *store.Tx) error {
		_ = tx.Put(kv, "no", 0)
		_, _ = tx.Exec(`INSERT INTO kv VALUES ('a', 2)`) // there already, and the function does not care
		return nil
	})
	if got[0] != nil || got[1] != nil || !errors.Is(got[2], store.ErrExists) {
		t.Errorf("answers %v", got)
	}
	wantRows(t, s, map[string]int{"a": 1, "b": 2, "c": 3})
}

// More rows than can wait, written by many at once, with values of every kind.
func testLightMany(t *testing.T, opts store.Options) {
	s := open(t, opts)
	table := store.NewTable("pile", "n", "body", "note")
	blob := map[store.Dialect]string{store.SQLite: "BLOB", store.Postgres: "BYTEA"}[s.Dialect()]
	mustWrite(t, s, func(tx *store.Tx) error {
		_, err := tx.Exec(`CREATE TABLE pile (n BIGINT PRIMARY KEY, body ` + blob + `, note TEXT)`)
		return err
	})
	const writers, each = 8, 40
	errs := make(chan error, writers)
	for w := range writers {
		go func() {
			var err error
			for i := range each {
				n := int64(w*each + i)
				err = errors.Join(err, s.WriteLight(context.Background(), func(tx *store.Tx) error {
					return tx.Put(table, n, make([]byte, 20_000), nil)
				}))
			}
			errs <- err
		}()
	}
	for range writers {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	var n, bytes, nils int
	err := s.Read(t.Context(), func(tx *store.Tx) error {
		return tx.QueryRow(`SELECT count(*), sum(length(body)), sum(CASE WHEN note IS NULL THEN 1 ELSE 0 END) FROM pile`).Scan(&n, &bytes, &nils)
	})
	if err != nil || n != writers*each || bytes != n*20_000 || nils != n {
		t.Errorf("%d rows of %d bytes, %d nil: %v", n, bytes, nils, err)
	}
}
