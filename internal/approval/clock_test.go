package approval_test

import (
	"testing"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/approval"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store/storetest"
)

// TestAttack34ExpiryByTheServersClock: on PostgreSQL the server says what time
// it is. A node whose own clock is a day ahead or behind neither ends what is
// good nor revives what is over.
func TestAttack34ExpiryByTheServersClock(t *testing.T) {
	t.Parallel()
	opts := storetest.Postgres(t)
	for name, off := range map[string]time.Duration{"ahead": 24 * time.Hour, "behind": -24 * time.Hour} {
		own := opts
		own.Node, own.Clock = name, func() time.Time { return time.Now().Add(off) }
		o := newOffice(t, storetest.Open(t, own))
		long := o.file(t, ask("s_"+name, 1), approval.Limits{RequestLife: time.Hour, ShownAtLeast: 1})
		if got, _, err := o.answer(t, long, yes(long), atOnce); err != nil || got.State != approval.Approved {
			t.Errorf("%s: what is good for an hour: %v", name, err)
		}
		short := o.file(t, ask("s_"+name, 2), approval.Limits{RequestLife: time.Millisecond, ShownAtLeast: 1})
		over := false
		for !over { // until the server's clock has passed it
			o.read(t, func(tx *store.Tx) error {
				now, err := tx.Now()
				over = !now.Before(short.Expires)
				return err
			})
		}
		if got, _, err := o.answer(t, short, yes(short), atOnce); err == nil {
			t.Errorf("%s: what is over was %s", name, got.State)
		}
		opts = storetest.Postgres(t) // a desk has keys of its own, and so a database
	}
}
