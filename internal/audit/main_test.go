package audit_test

import (
	"errors"
	"fmt"
	"testing"

	"go.uber.org/goleak"

	"github.com/seed-3ebc6b8a/gatehouse/internal/audit"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// example is a record with a value in every column; the values repeat at different intervals.
func example(i int) *audit.Record {
	return &audit.Record{
		Kind:        []string{audit.KindCall, audit.KindVerdict, audit.KindOutcome}[i%3],
		CallID:      fmt.Sprintf("call-%d", i/3),
		Principal:   fmt.Sprintf("agent-%d", i%5),
		Session:     fmt.Sprintf("session-%d", i/50),
		Surface:     []string{"mcp", "hook"}[i%2],
		Operation:   fmt.Sprintf("op-%d", i%7),
		Level:       []string{"AUTO_APPROVE", "DENY"}[i%2],
		Outcome:     []string{"", "succeeded", "failed"}[i%3],
		Correlation: fmt.Sprintf("job-%d", i/20),
		Body:        fmt.Appendf(nil, `{"n":%d,"text":"<ä>"}`, i),
	}
}

// fill appends the examples [from, to), some to a transaction.
func fill(t testing.TB, s *store.Store, from, to int) []*audit.Record {
	t.Helper()
	var all []*audit.Record
	for from < to {
		end := min(from+40, to)
		var batch []*audit.Record
		err := s.Write(t.Context(), func(tx *store.Tx) error {
			batch = nil
			for i := from; i < end; i++ {
				batch = append(batch, example(i))
			}
			return audit.Append(tx, batch...)
		})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, batch...)
		from = end
	}
	return all
}

// newKeys makes a signing key for one test.
func newKeys(t testing.TB) *audit.Keys {
	t.Helper()
	keys, err := audit.LoadOrCreate(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// checkpoint sequences what waits and signs it.
func checkpoint(t testing.TB, q *audit.Sequencer) audit.Checkpoint {
	t.Helper()
	c, err := q.Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// verify expects a verification that could be done.
func verify(t testing.TB, s *store.Store, keys *audit.Keys, checkpoint []byte) *audit.Report {
	t.Helper()
	report, err := audit.Verify(t.Context(), s, keys.Public(), audit.VerifyOptions{Checkpoint: checkpoint})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// attack runs SQL as somebody who owns the database: without the triggers, and while the gate is down, so that it
// remembers nothing from before.
func attack(t testing.TB, s *store.Store, statements ...string) {
	t.Helper()
	err := s.Write(t.Context(), func(tx *store.Tx) error {
		if err := disarm(tx); err != nil {
			return err
		}
		for _, q := range statements {
			if _, err := tx.Exec(q); err != nil {
				return fmt.Errorf("%s: %w", q, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	forget := errors.New("forget")
	if err := s.Write(t.Context(), func(*store.Tx) error { return forget }); !errors.Is(err, forget) {
		t.Fatal(err)
	}
}

func disarm(tx *store.Tx) error {
	if tx.Dialect() == store.Postgres {
		_, err := tx.Exec(`SET LOCAL session_replication_role = replica`)
		return err
	}
	names, err := store.All(tx, func(rows *store.Rows) (name string, err error) {
		err = rows.Scan(&name)
		return name, err
	}, `SELECT name FROM sqlite_schema WHERE type = 'trigger'`)
	for _, name := range names {
		if err == nil {
			_, err = tx.Exec("DROP TRIGGER " + name)
		}
	}
	return err
}
