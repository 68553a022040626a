package audit

import (
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
