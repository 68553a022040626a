package store_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store/storetest"
)

// benchCallers is how many callers write at once, as in the product's figure.
const benchCallers = 64

const (
	benchCreate = `CREATE TABLE bench (id INTEGER PRIMARY KEY, who TEXT NOT NULL, what TEXT NOT NULL, body BLOB NOT NULL)`
	benchInsert = `INSERT INTO bench (who, what, body) VALUES ($1, $2, $3)`
)

// benchRounds is how often two things are measured in turn; of each the best counts, since whatever else the machine
// does only takes away from it.
const benchRounds = 5

// BenchmarkGrouped measures durable writes by 64 callers against a bare loop that writes the same rows in
// transactions of the same size on the same disk, in the same run.
func BenchmarkGrouped(b *testing.B) {
	body := make([]byte, 700)
	d := &storetest.Driver{}
	opts := storetest.SQLite(b)
	opts.Wrap = d.Wrap
	s := storetest.Open(b, opts)
	write(b, s, benchCreate)
	n := max(1, b.N/benchRounds)
	var grouped, bare float64
	var size int
	for range benchRounds {
		before := d.Commits()
		grouped = max(grouped, rate(n, func() { callers(b, s, benchCallers, n, body) }))
		size = max(1, n/int(max(1, d.Commits()-before)))
		bare = max(bare, bareLoop(b, n, size, body))
	}
	b.ReportMetric(grouped, "grouped/s")
	b.ReportMetric(bare, "bare/s")
	b.ReportMetric(float64(size), "rows/commit")
	b.ReportMetric(grouped/bare, "grouped/bare")
}

// BenchmarkGroupedSlowSync adds 5 ms to every commit and compares 64 callers with one, whose writes cannot be grouped.
func BenchmarkGroupedSlowSync(b *testing.B) {
	body := make([]byte, 700)
	d := &storetest.Driver{}
	opts := storetest.SQLite(b)
	opts.Wrap = d.Wrap
	s := storetest.Open(b, opts)
	write(b, s, benchCreate)
	d.Before(func(query string) error {
		if query == "COMMIT" {
			time.Sleep(5 * time.Millisecond)
		}
		return nil
	})
	alone := max(1, b.N/benchCallers)
	ungrouped := rate(alone, func() { callers(b, s, 1, alone, body) })
	grouped := rate(b.N, func() { callers(b, s, benchCallers, b.N, body) })
	b.ReportMetric(grouped, "grouped/s")
	b.ReportMetric(ungrouped, "ungrouped/s")
	b.ReportMetric(grouped/ungrouped, "grouped/ungrouped")
}

func rate(n int, run func()) float64 {
	start := time.Now()
	run()
	return float64(n) / time.Since(start).Seconds()
}

// callers lets several goroutines write n rows between them, each waiting for its answer before the next.
func callers(b *testing.B, s *store.Store, count, n int, body []byte) {
	var left atomic.Int64
	left.Store(int64(n))
	var all sync.WaitGroup
	for range count {
		all.Go(func() {
			for left.Add(-1) >= 0 {
				err := s.Write(context.Background(), func(tx *store.Tx) error {
					_, err := tx.Exec(benchInsert, "agent", "operation", body)
					return err
				})
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

// bareLoop is the least that must be done: a prepared insert, a commit every size rows.
func bareLoop(b *testing.B, n, size int, body []byte) float64 {
	db, err := sql.Open("sqlite", filepath.Join(b.TempDir(), "bare.db")+"?_journal_mode=WAL&_synchronous=FULL&_txlock=immediate")
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(benchCreate); err != nil {
		b.Fatal(err)
	}
	conn, err := db.Conn(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	insert, err := conn.PrepareContext(b.Context(), benchInsert)
	if err != nil {
		b.Fatal(err)
	}
	must := func(_ sql.Result, err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	return rate(n, func() {
		ctx := context.Background()
		for done := 0; done < n; done += size {
			must(conn.ExecContext(ctx, "BEGIN IMMEDIATE"))
			for range min(size, n-done) {
				must(insert.ExecContext(ctx, "agent", "operation", body))
			}
			must(conn.ExecContext(ctx, "COMMIT"))
		}
	})
}

func write(t testing.TB, s *store.Store, statements ...string) {
	t.Helper()
	err := s.Write(t.Context(), func(tx *store.Tx) error {
		for _, q := range statements {
			if _, err := tx.Exec(q); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
