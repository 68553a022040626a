package daemon_test

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"io"
	"math"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/daemon"
	"github.com/seed-3ebc6b8a/gatehouse/internal/place"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store/storetest"
)

const (
	benchCallers = 64
	benchRounds  = 5
)

// BenchmarkDurableDecisions measures decisions through the unix socket, each
// durable before it is answered, against a bare loop that writes the same rows
// in transactions of the same size into the same kind of database.
func BenchmarkDurableDecisions(b *testing.B) {
	// The quickest of a few rounds of each, in turns: whatever else the machine
	// does only adds to them, and hardly ever to all rounds of one. Both begin
	// with an empty database, since a fuller one is slower to write to.
	took, bare, group := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64), 0
	b.ResetTimer()
	for range benchRounds {
		b.StopTimer()
		d := &storetest.Driver{}
		home := startDaemon(b, d)
		before := d.Commits()
		b.StartTimer()
		t := drive(b, filepath.Join(home, "gatehouse.sock"), benchCallers, b.N)
		b.StopTimer()
		group = max(1, b.N/int(max(1, d.Commits()-before)))
		took, bare = min(took, t), min(bare, bareLoop(b, home, b.N, group))
	}
	b.ReportMetric(float64(b.N)/took.Seconds(), "decisions/s")
	b.ReportMetric(float64(group), "rows/commit")
	b.ReportMetric(bare.Seconds()/took.Seconds(), "x-bare-loop")
}

// BenchmarkGroupedCommits measures what grouping is worth where a sync is
// slow: 64 callers against one at a time, both with 5 ms added per commit.
func BenchmarkGroupedCommits(b *testing.B) {
	d := &storetest.Driver{}
	home := startDaemon(b, d)
	d.Before(func(query string) error {
		if query == "COMMIT" || query == storetest.JournalSync {
			time.Sleep(5 * time.Millisecond)
		}
		return nil
	})
	socket := filepath.Join(home, "gatehouse.sock")
	single := drive(b, socket, 1, 50) / 50
	b.ResetTimer()
	took := drive(b, socket, benchCallers, b.N)
	b.StopTimer()
	b.ReportMetric(float64(single)*float64(b.N)/float64(took), "x-ungrouped")
}

// startDaemon runs a daemon in this process until the benchmark ends.
func startDaemon(b *testing.B, d *storetest.Driver) (home string) {
	b.Helper()
	home = shortDir(b)
	runDaemon(b, daemon.Options{Place: place.Place{Home: home}, WrapDriver: d.Wrap})
	return home
}

// drive submits n calls from several callers and returns how long they took.
func drive(b *testing.B, socket string, callers, n int) time.Duration {
	b.Helper()
	var next atomic.Int64
	var wg sync.WaitGroup
	start := time.Now()
	for range callers {
		wg.Go(func() {
			if err := caller(socket, n, &next); err != nil {
				b.Error(err)
			}
		})
	}
	wg.Wait()
	return time.Since(start)
}

// caller is an agent with one connection: as little client as HTTP allows, so
// that the gate is measured and not the client.
func caller(socket string, n int, next *atomic.Int64) error {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return err
	}
	defer conn.Close()
	body := `{"operation":"TodoWrite","args":{"todos":[]}}`
	request := fmt.Sprintf("POST /v1/calls HTTP/1.1\r\nHost: gatehouse\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	answers := bufio.NewReader(conn)
	for next.Add(1) <= int64(n) {
		if _, err := io.WriteString(conn, request); err != nil {
			return err
		}
		text, err := readAnswer(answers)
		if err != nil {
			return err
		}
		if !bytes.Contains(text, []byte(`"verdict":"allowed"`)) {
			return fmt.Errorf("not allowed: %s", text)
		}
	}
	return nil
}

// readAnswer reads the body of an answer of stated length.
func readAnswer(r *bufio.Reader) ([]byte, error) {
	length := 0
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return nil, err
		}
		if text, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(text))); err != nil {
				return nil, err
			}
		}
		if len(bytes.TrimSpace(line)) == 0 {
			break
		}
	}
	text := make([]byte, length)
	_, err := io.ReadFull(r, text)
	return text, err
}

// bareLoop writes the rows that the daemon wrote once more, in transactions of
// the given size, with the same settings, and returns how long that takes.
func bareLoop(b *testing.B, home string, n, group int) time.Duration {
	b.Helper()
	src := openSQLite(b, filepath.Join(home, "gatehouse.db"), false)
	for settled := 0; settled < n; time.Sleep(10 * time.Millisecond) { // the last rows are on their way from the journal
		if err := src.QueryRow("SELECT count(*) FROM open_call").Scan(&settled); err != nil {
			b.Fatal(err)
		}
	}
	records, calls := readRows(b, src, "audit_record", n), readRows(b, src, "open_call", n)
	dir := b.TempDir()
	fresh, err := store.Open(context.Background(), store.Options{Dir: dir})
	if err != nil {
		b.Fatal(err)
	}
	if err := fresh.Close(); err != nil {
		b.Fatal(err)
	}
	db := openSQLite(b, filepath.Join(dir, "gatehouse.db"), true)
	start := time.Now()
	for i := 0; i < len(records); i += group {
		tx, err := db.Begin()
		if err != nil {
			b.Fatal(err)
		}
		recordStmt, callStmt := prepare(b, tx, "audit_record", len(records[0])), prepare(b, tx, "open_call", len(calls[0]))
		for j := i; j < min(i+group, len(records)); j++ {
			if _, err := recordStmt.Exec(records[j]...); err != nil {
				b.Fatal(err)
			}
			if _, err := callStmt.Exec(calls[j]...); err != nil {
				b.Fatal(err)
			}
		}
		if err := tx.Commit(); err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(start)
}

func openSQLite(b *testing.B, path string, write bool) *sql.DB {
	b.Helper()
	dsn := "file:" + path + "?_txlock=immediate&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)"
	if !write {
		dsn = "file:" + path + "?mode=ro"
	}
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		b.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	b.Cleanup(func() { db.Close() })
	return db
}

func readRows(b *testing.B, db *sql.DB, table string, n int) [][]any {
	b.Helper()
	where := ""
	if table == "audit_record" {
		where = " WHERE kind = 'call'"
	}
	rows, err := db.Query(fmt.Sprintf("SELECT * FROM %s%s LIMIT %d", table, where, n))
	if err != nil {
		b.Fatal(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		b.Fatal(err)
	}
	var out [][]any
	for rows.Next() {
		row, ptrs := make([]any, len(columns)), make([]any, len(columns))
		for i := range row {
			ptrs[i] = &row[i]
		}
		if err := rows.Scan(ptrs...); err != nil {
			b.Fatal(err)
		}
		out = append(out, row)
	}
	if err := rows.Err(); err != nil || len(out) != n {
		b.Fatalf("%s: %d rows, want %d (%v)", table, len(out), n, err)
	}
	return out
}

func prepare(b *testing.B, tx *sql.Tx, table string, columns int) *sql.Stmt {
	b.Helper()
	stmt, err := tx.Prepare("INSERT INTO " + table + " VALUES (?" + strings.Repeat(",?", columns-1) + ")")
	if err != nil {
		b.Fatal(err)
	}
	return stmt
}
