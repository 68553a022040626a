package store_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store/storetest"
)

const createKept = `CREATE TABLE kept (n INTEGER PRIMARY KEY, body BLOB)`

func count(t *testing.T, s *store.Store) int {
	t.Helper()
	var n int
	err := s.Read(t.Context(), func(tx *store.Tx) error { return tx.QueryRow(`SELECT count(*) FROM kept`).Scan(&n) })
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func insert(n int) func(*store.Tx) error {
	return func(tx *store.Tx) error {
		_, err := tx.Exec(`INSERT INTO kept (n) VALUES ($1)`, n)
		return err
	}
}

// statements is a function that runs statements.
func statements(texts ...string) func(*store.Tx) error {
	return func(tx *store.Tx) error {
		for _, q := range texts {
			if _, err := tx.Exec(q); err != nil {
				return err
			}
		}
		return nil
	}
}

func wantErr(t *testing.T, what string, err error, want ...error) {
	t.Helper()
	for _, w := range want {
		if !errors.Is(err, w) {
			t.Errorf("%s: %v, want it to wrap %v", what, err, w)
		}
	}
}

func TestDatabaseFull(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.SQLite(t))
	write(t, s, createKept, `PRAGMA max_page_count = 250`)
	big := func(tx *store.Tx) error {
		_, err := tx.Exec(`INSERT INTO kept (body) VALUES ($1)`, make([]byte, 20_000))
		return err
	}
	kept := 0
	var err error
	for ; err == nil; kept++ {
		err = s.Write(t.Context(), big)
	}
	kept-- // the last one failed
	wantErr(t, "a write into a full database", err, store.ErrFull)
	if n := count(t, s); n != kept || n == 0 {
		t.Errorf("%d rows are left of %d", n, kept)
	}
	write(t, s, `PRAGMA max_page_count = 10000`)
	if err := s.Write(t.Context(), big); err != nil {
		t.Errorf("after there was room again: %v", err)
	}
}

// The disk of another process fills up: what it wrote before stays, and it goes on when there is room.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	opts := storetest.SQLite(t)
	s := storetest.Open(t, opts)
	write(t, s, createKept)
	out, _ := start(t, "fill the disk", opts.Dir)
	text := line(t, out)
	kept, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(text)
	}
	if n := count(t, s); n != kept || n == 0 {
		t.Errorf("%d rows are left of %d", n, kept)
	}
	var ok string
	err = s.Read(t.Context(), func(tx *store.Tx) error { return tx.QueryRow(`PRAGMA integrity_check`).Scan(&ok) })
	if err != nil || ok != "ok" {
		t.Errorf("integrity: %s, %v", ok, err)
	}
}

func TestReadOnlySQLite(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.SQLite(t))
	write(t, s, createKept)
	write(t, s, `INSERT INTO kept (n) VALUES (1)`)
	// With query_only even the clock cannot be saved, so that the write which sets it fails as well.
	wantErr(t, "the first write", s.Write(t.Context(), statements(`PRAGMA query_only = 1`)), store.ErrReadOnly, store.ErrCommit)
	wantErr(t, "the second write", s.Write(t.Context(), insert(2)), store.ErrReadOnly)
	if n := count(t, s); n != 1 {
		t.Errorf("%d rows, want 1", n)
	}
}

func TestReadOnlyPostgres(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.Postgres(t))
	write(t, s, `CREATE TABLE kept (n BIGINT PRIMARY KEY)`)
	err := s.Write(t.Context(), statements(`SET TRANSACTION READ ONLY`, `INSERT INTO kept (n) VALUES (1)`))
	wantErr(t, "a write", err, store.ErrReadOnly)
	if err := s.Write(t.Context(), insert(2)); err != nil {
		t.Error(err)
	}
	if n := count(t, s); n != 1 {
		t.Errorf("%d rows, want 1", n)
	}
}

// Another process holds the database for longer than we wait.
func TestLockedSQLite(t *testing.T) {
	t.Parallel()
	opts := storetest.SQLite(t)
	opts.LockWait = 20 * time.Millisecond
	s := storetest.Open(t, opts)
	write(t, s, createKept)
	write(t, s, `INSERT INTO kept (n) VALUES (1)`)
	out, cmd := start(t, "hold the database", opts.Dir)
	line(t, out)
	err := s.Write(t.Context(), insert(2))
	wantErr(t, "a write", err, store.ErrLocked, store.ErrCommit)
	if n := count(t, s); n != 1 {
		t.Errorf("%d rows, want 1; reads go on", n)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if err := s.Write(t.Context(), insert(3)); err != nil {
		t.Errorf("after the other process had died: %v", err)
	}
}

// Another node holds a row for longer than we wait; only the function that wants it fails.
func TestLockedPostgres(t *testing.T) {
	t.Parallel()
	opts := storetest.Postgres(t)
	opts.LockWait = 50 * time.Millisecond
	one := storetest.Open(t, opts)
	opts.Node = "two"
	two := storetest.Open(t, opts)
	write(t, one, `CREATE TABLE kept (n BIGINT PRIMARY KEY)`, `INSERT INTO kept VALUES (1)`)
	lockRow := func(tx *store.Tx) error {
		return tx.QueryRow(`SELECT n FROM kept WHERE n = 1` + tx.ForUpdate()).Scan(new(int))
	}
	held, free := make(chan struct{}), make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		err := one.Write(context.Background(), func(tx *store.Tx) error {
			if err := lockRow(tx); err != nil {
				return err
			}
			close(held)
			<-free
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
	<-held
	wantErr(t, "locking a locked row", two.Write(t.Context(), lockRow), store.ErrLocked)
	if err := two.Write(t.Context(), insert(2)); err != nil {
		t.Errorf("another row: %v", err)
	}
	close(free)
	done.Wait()
	if err := two.Write(t.Context(), lockRow); err != nil {
		t.Errorf("after the lock was given back: %v", err)
	}
}

// Two nodes add to the same row, read first and write later: locks make the sum come out right.
func TestNodesSerialiseOnRow(t *testing.T) {
	t.Parallel()
	opts := storetest.Postgres(t)
	nodes := []*store.Store{storetest.Open(t, opts), storetest.Open(t, opts)}
	write(t, nodes[0], `CREATE TABLE kept (n BIGINT PRIMARY KEY, v BIGINT)`, `INSERT INTO kept VALUES (1, 0), (2, 0)`)
	add := func(first, second int) func(*store.Tx) error {
		return func(tx *store.Tx) error {
			for _, n := range []int{first, second} { // in either order: deadlocks are met by trying again
				var v int
				if err := tx.QueryRow(`SELECT v FROM kept WHERE n = $1`+tx.ForUpdate(), n).Scan(&v); err != nil {
					return err
				}
				if _, err := tx.Exec(`UPDATE kept SET v = $1 WHERE n = $2`, v+1, n); err != nil {
					return err
				}
			}
			return nil
		}
	}
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			if err := nodes[i%2].Write(context.Background(), add(1+i/2%2, 2-i/2%2)); err != nil {
				t.Errorf("write %d: %v", i, err)
			}
		})
	}
	all.Wait()
	var one, two int
	err := nodes[0].Read(t.Context(), func(tx *store.Tx) error {
		return tx.QueryRow(`SELECT min(v), max(v) FROM kept`).Scan(&one, &two)
	})
	if err != nil || one != 40 || two != 40 {
		t.Errorf("sums %d and %d, want 40; %v", one, two, err)
	}
}

// A function that other nodes always interfere with is given up after a while, and fails alone.
func TestConflictGivenUp(t *testing.T) {
	t.Parallel()
	d := &storetest.Driver{}
	opts := storetest.Postgres(t)
	opts.Wrap = d.Wrap
	s := storetest.Open(t, opts)
	write(t, s, `CREATE TABLE kept (n BIGINT PRIMARY KEY)`)
	d.Before(func(query string) error {
		if query == "SELECT 'unlucky'" {
			return &pgconn.PgError{Code: "40001"}
		}
		return nil
	})
	begun, hold := make(chan struct{}), make(chan struct{})
	var once sync.Once
	answers := make([]error, 3)
	var all sync.WaitGroup
	all.Go(func() {
		answers[0] = s.Write(context.Background(), func(tx *store.Tx) error {
			once.Do(func() { close(begun); <-hold })
			return insert(0)(tx)
		})
	})
	<-begun
	all.Go(func() { answers[1] = s.Write(context.Background(), statements(`SELECT 'unlucky'`)) })
	all.Go(func() { answers[2] = s.Write(context.Background(), insert(2)) })
	for s.Queued() != 2 {
		runtime.Gosched()
	}
	close(hold)
	all.Wait()
	if answers[0] != nil || answers[2] != nil {
		t.Errorf("the others: %v, %v", answers[0], answers[2])
	}
	wantErr(t, "the unlucky one", answers[1], store.ErrConflict)
	if n := count(t, s); n != 2 {
		t.Errorf("%d rows, want 2", n)
	}
}

// The server dies between statements, and again while idle; nothing that was committed is lost.
func TestServerKilled(t *testing.T) {
	t.Parallel()
	c := storetest.NewCluster(t)
	s := storetest.Open(t, store.Options{DSN: c.DSN("postgres"), Node: "test"})
	write(t, s, `CREATE TABLE kept (n BIGINT PRIMARY KEY)`)
	write(t, s, `INSERT INTO kept VALUES (1)`)
	heard := s.Subscribe(t.Context(), "topic")
	killed := false
	err := s.Write(t.Context(), func(tx *store.Tx) error {
		if err := insert(2)(tx); err != nil {
			return err
		}
		if !killed {
			killed = true
			c.Kill()
		}
		return insert(3)(tx)
	})
	wantErr(t, "the write whose server died", err, store.ErrUnavailable)
	wantErr(t, "the next write", s.Write(t.Context(), insert(4)), store.ErrUnavailable)
	wantErr(t, "a read", s.Read(t.Context(), func(tx *store.Tx) error {
		return tx.QueryRow(`SELECT 1`).Scan(new(int))
	}), store.ErrUnavailable)
	c.Start(t)
	if err := s.Write(t.Context(), insert(5)); err != nil {
		t.Errorf("after the server was back: %v", err)
	}
	if n := count(t, s); n != 2 {
		t.Errorf("%d rows, want 2", n)
	}
	if n := <-heard; n.Payload != "" { // the listener is back, and says that something may have been missed
		t.Errorf("notice %v", n)
	}
	c.Kill()
	c.Start(t)
	if err := s.Write(t.Context(), insert(6)); err != nil {
		t.Errorf("the connection died while idle: %v", err)
	}
	if n := count(t, s); n != 3 {
		t.Errorf("%d rows, want 3", n)
	}
}

// The connection breaks with the answer to COMMIT on its way: the writes are there, and nobody may say they are not.
func TestCommitInDoubt(t *testing.T) {
	t.Parallel()
	d := &storetest.Driver{}
	opts := storetest.Postgres(t)
	opts.Wrap = d.Wrap
	s := storetest.Open(t, opts)
	write(t, s, `CREATE TABLE kept (n BIGINT PRIMARY KEY)`)
	d.After(func(query string) error {
		if query == "COMMIT" {
			return io.ErrUnexpectedEOF
		}
		return nil
	})
	wantErr(t, "the write", s.Write(t.Context(), insert(1)), store.ErrInDoubt, store.ErrCommit, store.ErrUnavailable)
	d.After(nil)
	if n := count(t, s); n != 1 {
		t.Errorf("%d rows; it was committed", n)
	}
	if err := s.Write(t.Context(), insert(2)); err != nil {
		t.Error(err)
	}
}

func TestFaultsOfPostgres(t *testing.T) {
	t.Parallel()
	d := &storetest.Driver{}
	opts := storetest.Postgres(t)
	opts.Wrap = d.Wrap
	s := storetest.Open(t, opts)
	write(t, s, `CREATE TABLE kept (n BIGINT PRIMARY KEY)`)
	for code, want := range map[string]error{
		"53100": store.ErrFull, "53300": store.ErrUnavailable, "57P01": store.ErrUnavailable, "08006": store.ErrUnavailable,
		"25006": store.ErrReadOnly, "55P03": store.ErrLocked, "58030": store.ErrUnavailable, "XX001": store.ErrCorrupt,
	} {
		d.Before(func(query string) error {
			if strings.HasPrefix(query, "INSERT") {
				return &pgconn.PgError{Code: code}
			}
			return nil
		})
		wantErr(t, code, s.Write(t.Context(), insert(1)), want)
	}
	d.Before(nil)
	if err := s.Write(t.Context(), insert(1)); err != nil {
		t.Errorf("after the faults: %v", err)
	}
}

// An error at any statement, BEGIN and COMMIT included, leaves earlier writes as they were and later ones possible.
func TestEveryStatementFails(t *testing.T) {
	t.Parallel()
	storetest.BothOptions(t, func(t *testing.T, opts store.Options) {
		d := &storetest.Driver{}
		opts.Wrap = d.Wrap
		s := storetest.Open(t, opts)
		write(t, s, `CREATE TABLE kept (n BIGINT PRIMARY KEY)`)
		broken := errors.New("broken")
		kept := 0
		for at := 1; ; at++ {
			statement := 0
			d.Before(func(query string) error {
				if statement++; statement == at {
					return fmt.Errorf("%s: %w", query, broken)
				}
				return nil
			})
			err := s.Write(t.Context(), func(tx *store.Tx) error {
				return errors.Join(insert(2*at)(tx), insert(2*at+1)(tx))
			})
			d.Before(nil)
			if err == nil {
				kept += 2
			} else {
				wantErr(t, "the write", err, broken)
			}
			if n := count(t, s); n != kept {
				t.Fatalf("with statement %d failing: %d rows, want %d; the answer was %v", at, n, kept, err)
			}
			if err := s.Write(t.Context(), insert(-at)); err != nil {
				t.Fatalf("after statement %d had failed: %v", at, err)
			}
			kept++
			if statement < at {
				return // there was no such statement any more
			}
		}
	})
}

// A process that is killed at random moments loses nothing that it said was durable.
func TestKilledWriter(t *testing.T) {
	t.Parallel()
	opts := storetest.SQLite(t)
	s := storetest.Open(t, opts)
	write(t, s, createKept)
	acknowledged := 0
	for range 8 {
		out, cmd := start(t, "write until killed", opts.Dir)
		for range 1 + rand.IntN(60) {
			n, err := strconv.Atoi(line(t, out))
			if err != nil {
				t.Fatal(out.Text())
			}
			acknowledged = n
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for out.Scan() { // what it said before it died
			if n, err := strconv.Atoi(out.Text()); err == nil {
				acknowledged = n
			}
		}
		var last, rows int
		err := s.Read(t.Context(), func(tx *store.Tx) error {
			return tx.QueryRow(`SELECT max(n), count(*) FROM kept`).Scan(&last, &rows)
		})
		if err != nil {
			t.Fatal(err)
		}
		if last < acknowledged || rows != last {
			t.Fatalf("%d was acknowledged; there are %d rows, the last is %d", acknowledged, rows, last)
		}
	}
}

func TestDirectoryInUse(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	out, cmd := start(t, "hold the directory", dir)
	line(t, out)
	_, err := store.Lock(dir)
	wantErr(t, "locking a locked directory", err, store.ErrInUse)
	if err != nil && !strings.Contains(err.Error(), fmt.Sprintf("process %d", cmd.Process.Pid)) {
		t.Errorf("%v does not name process %d", err, cmd.Process.Pid)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	release, err := store.Lock(dir)
	if err != nil {
		t.Fatalf("after its holder had died: %v", err)
	}
	if err := release(); err != nil {
		t.Error(err)
	}
	if release, err = store.Lock(dir); err != nil {
		t.Fatalf("after it was given back: %v", err)
	}
	if err := release(); err != nil {
		t.Error(err)
	}
}
