package audit

import (
	"context"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// PostingKey lets tests attack the list's postings.
var PostingKey = postingKey

// RootOf computes what an attacker would: the root of the first records.
func RootOf(tx *store.Tx, size int64) (tlog.Hash, error) {
	f, err := loadFrontier(tx, size)
	return f.root(), err
}

// Remembers says whether the next step needs no look into the database.
func Remembers(ctx context.Context, q *Sequencer) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	_, known, err := q.fresh(ctx)
	return known && err == nil
}
