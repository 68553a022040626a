package storetest

import (
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// SQLite returns the options of a new SQLite database that lives as long as the test.
func SQLite(t testing.TB) store.Options {
	t.Helper()
	return store.Options{Dir: t.TempDir(), Node: "test"}
}

// Postgres returns the options of a new PostgreSQL database that lives as long as the test. It skips the test where
// PostgreSQL is not installed.
func Postgres(t testing.TB) store.Options {
	t.Helper()
	return store.Options{DSN: sharedCluster(t).createDatabase(t), Node: "test"}
}

// Open opens a store and closes it when the test ends.
func Open(t testing.TB, opts store.Options) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close the store: %v", err)
		}
	})
	return s
}

// Both runs test on a new store of each kind, in parallel.
func Both(t *testing.T, test func(t *testing.T, s *store.Store)) {
	t.Helper()
	BothOptions(t, func(t *testing.T, opts store.Options) { test(t, Open(t, opts)) })
}

// BothOptions is Both for tests that open the database themselves, more than once or with other options.
func BothOptions(t *testing.T, test func(t *testing.T, opts store.Options)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, SQLite(t))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, Postgres(t))
	})
}
