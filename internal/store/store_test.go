package store_test

import (
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store/storetest"
)

func TestContract(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		storetest.Run(t, storetest.SQLite)
	})
	t.Run("sqlite with a journal", func(t *testing.T) {
		t.Parallel()
		storetest.Run(t, func(t testing.TB) store.Options {
			opts := storetest.SQLite(t)
			opts.Alone = true
			return opts
		})
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		storetest.Run(t, storetest.Postgres)
	})
}
