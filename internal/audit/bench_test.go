package audit_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/seed-3ebc6b8a/gatehouse/internal/audit"
	"github.com/seed-3ebc6b8a/gatehouse/internal/audit/audittest"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store/storetest"
)

// BenchmarkListMillion prints how long the newest 50 of a million records take under filters that match all, ten and
// none, and how far they are apart.
func BenchmarkListMillion(b *testing.B) {
	dir := audittest.Million(b)
	s := storetest.Open(b, store.Options{Dir: dir, Node: audittest.Node})
	log := audit.New(s)
	var first audit.Page
	var err error
	if first, err = log.List(b.Context(), audit.Filter{}, "", 1); err != nil {
		b.Fatal(err)
	}
	newest := first.Records[0].Time
	cases := []struct {
		name   string
		filter audit.Filter
		want   int
	}{
		{"all", audit.Filter{}, 50},
		{"all by node", audit.Filter{Node: audittest.Node}, 50},
		{"half by surface", audit.Filter{Surface: "mcp"}, 50},
		{"ten by operation", audit.Filter{Operation: audittest.RareOperation}, 10},
		{"none by operation", audit.Filter{Operation: "no-such"}, 0},
		{"1000 by session", audit.Filter{Session: "session-7"}, 50},
		{"ten by two", audit.Filter{Operation: audittest.RareOperation, Principal: "rare-agent"}, 10},
		{"ten by three", audit.Filter{Node: audittest.Node, Operation: "rare-operation", Principal: "rare-agent"}, 10},
		{"common two, none", audit.Filter{Surface: "mcp", Kind: "start"}, 0},
		{"common three, none", audit.Filter{Node: audittest.Node, Surface: "mcp", Kind: "start"}, 0},
		{"common four, none", audit.Filter{Node: audittest.Node, Surface: "mcp", Kind: "start", Level: "DENY"}, 0},
		{"session and kind, none", audit.Filter{Session: "session-7", Kind: "call"}, 0},
		{"principal and surface, none", audit.Filter{Principal: "agent-7", Surface: "mcp"}, 0},
		{"common two, many", audit.Filter{Level: "DENY", Kind: "call"}, 50},
		{"old time, all", audit.Filter{Until: newest.Add(-time.Second)}, 50},
		{"old time, common two, none", audit.Filter{Until: newest.Add(-time.Second), Surface: "mcp", Kind: "start"}, 0},
		{"future, none", audit.Filter{From: newest.Add(time.Hour)}, 0},
	}
	// Interleaved, and of each the quickest run, since whatever else the machine does only adds to it.
	quickest := make([]time.Duration, len(cases))
	for round := range max(b.N, 101) {
		for i, c := range cases {
			start := time.Now()
			page, err := log.List(b.Context(), c.filter, "", 50)
			took := time.Since(start)
			if err != nil || len(page.Records) != c.want {
				b.Fatalf("%s: %d records, %v", c.name, len(page.Records), err)
			}
			if round == 0 || took < quickest[i] {
				quickest[i] = took
			}
		}
	}
	for i, c := range cases {
		ratio := float64(quickest[i]) / float64(quickest[0])
		b.Logf("%-30s %8s  %.2f of all", c.name, quickest[i].Round(time.Microsecond), ratio)
	}
	b.ReportMetric(float64(quickest[0].Microseconds()), "µs-all")
	b.ReportMetric(float64(slices.Max(quickest))/float64(slices.Min(quickest)), "slowest/quickest")
}

// BenchmarkAppend measures durable records by 64 callers, with the sequencer at work, against a bare loop that writes
// the same rows in transactions of the same size.
func BenchmarkAppend(b *testing.B) {
	d := &storetest.Driver{}
	opts := storetest.SQLite(b)
	opts.Wrap = d.Wrap
	s := storetest.Open(b, opts)
	keys := newKeys(b)
	q := audit.NewSequencer(audit.New(s), audit.SequencerOptions{Keys: keys})
	ctx, stop := context.WithCancel(b.Context())
	done := make(chan error)
	go func() { done <- q.Run(ctx) }()
	n := max(1, b.N/benchRounds)
	var grouped, bare float64
	var size int
	for range benchRounds {
		before := d.Commits()
		grouped = max(grouped, appendBy64(b, s, n))
		size = max(1, n/int(max(1, d.Commits()-before)))
		bare = max(bare, bareAppend(b, n, size))
	}
	stop()
	if err := <-done; err != nil {
		b.Error(err)
	}
	b.ReportMetric(grouped, "appended/s")
	b.ReportMetric(bare, "bare/s")
	b.ReportMetric(float64(size), "rows/commit")
	b.ReportMetric(grouped/bare, "appended/bare")
}

// benchRounds is how often two things are measured in turn; of each the best counts, since whatever else the machine
// does only takes away from it.
const benchRounds = 5

// appendBy64 lets 64 callers append n records between them, and returns how many that were in a second.
func appendBy64(b *testing.B, s *store.Store, n int) float64 {
	var left atomic.Int64
	left.Store(int64(n))
	var all sync.WaitGroup
	start := time.Now()
	for range 64 {
		all.Go(func() {
			for i := left.Add(-1); i >= 0; i = left.Add(-1) {
				err := s.Write(context.Background(), func(tx *store.Tx) error { return audit.Append(tx, audittest.Record(int(i))) })
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	return float64(n) / time.Since(start).Seconds()
}

// bareAppend writes the same rows into a table with the same columns and the same index, and does nothing else.
func bareAppend(b *testing.B, n, size int) float64 {
	db, err := sql.Open("sqlite", filepath.Join(b.TempDir(), "bare.db")+"?_journal_mode=WAL&_synchronous=FULL")
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	conn, err := db.Conn(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	ctx := context.Background()
	must := func(_ sql.Result, err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	must(conn.ExecContext(ctx, `CREATE TABLE r (pos INTEGER PRIMARY KEY, time INTEGER, kind TEXT, call_id TEXT, principal TEXT,
		session TEXT, surface TEXT, operation TEXT, level TEXT, outcome TEXT, correlation TEXT, salt BLOB, body BLOB,
		body_hash BLOB, hash BLOB) STRICT; CREATE INDEX c ON r (call_id, pos)`))
	insert, err := conn.PrepareContext(ctx, `INSERT INTO r VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)`)
	if err != nil {
		b.Fatal(err)
	}
	hash := make([]byte, 32)
	start := time.Now()
	for i := 0; i < n; i += size {
		must(conn.ExecContext(ctx, "BEGIN IMMEDIATE"))
		for k := i; k < min(i+size, n); k++ {
			r := audittest.Record(k)
			must(insert.ExecContext(ctx, k, k, r.Kind, r.CallID, r.Principal, r.Session, r.Surface, r.Operation, r.Level,
				r.Outcome, r.Correlation, hash[:16], r.Body, hash, hash))
		}
		must(conn.ExecContext(ctx, "COMMIT"))
	}
	return float64(n) / time.Since(start).Seconds()
}

// BenchmarkSequence measures what the sequencer costs per record: time that it keeps from the writer is in Append's
// figure, this is all of it.
func BenchmarkSequence(b *testing.B) {
	s := storetest.Open(b, storetest.SQLite(b))
	q := audit.NewSequencer(audit.New(s), audit.SequencerOptions{})
	b.StopTimer()
	b.ResetTimer()
	for done := 0; done < b.N; done += 4000 {
		n := min(4000, b.N-done)
		err := s.Write(b.Context(), func(tx *store.Tx) error {
			for i := range n {
				if err := audit.Append(tx, audittest.Record(done+i)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		if _, err := q.Step(b.Context()); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
	}
}
