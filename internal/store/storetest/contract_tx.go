package storetest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

func testWriteThenRead(t *testing.T, opts store.Options) {
	s := open(t, opts)
	mustWrite(t, s, put("a", 1))
	mustWrite(t, s, func(tx *store.Tx) error {
		n, err := tx.Exec(`UPDATE kv SET v = v + $2 WHERE k = $1`, "a", 6)
		if err == nil && n != 1 {
			err = fmt.Errorf("%d rows changed", n)
		}
		return err
	})
	wantRows(t, s, map[string]int{"a": 7})
	err := s.Read(t.Context(), func(tx *store.Tx) error {
		return tx.QueryRow(`SELECT v FROM kv WHERE k = $1`, "b").Scan(new(int))
	})
	if !errors.Is(err, sql.ErrNoRows) {
		t.Errorf("a row that is not there: %v, want sql.ErrNoRows", err)
	}
}

func testValues(t *testing.T, opts store.Options) {
	s := Open(t, opts)
	type row struct {
		N    int64
		Text string
		Blob []byte
		Yes  bool
		None *string
	}
	want := row{N: 1<<62 + 1, Text: "ä\n'\"$1", Blob: []byte{0, 255, 1}, Yes: true}
	blob := map[store.Dialect]string{store.SQLite: "BLOB", store.Postgres: "BYTEA"}[s.Dialect()]
	var got row
	mustWrite(t, s, func(tx *store.Tx) error {
		_, err := tx.Exec(`CREATE TABLE vals (n BIGINT, txt TEXT, bin ` + blob + `, yes BOOLEAN, none TEXT)`)
		if err != nil {
			return err
		}
		_, err = tx.Exec(`INSERT INTO vals (txt, n, bin, yes, none) VALUES ($2, $1, $3, $4, $5)`,
			want.N, want.Text, want.Blob, want.Yes, nil)
		if err != nil {
			return err
		}
		return tx.QueryRow(`SELECT n, txt, bin, yes, none FROM vals WHERE n = $1 AND n + 0 = $1`, want.N).
			Scan(&got.N, &got.Text, &got.Blob, &got.Yes, &got.None)
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("row (-want +got):\n%s", diff)
	}
}

func testReopen(t *testing.T, opts store.Options) {
	s, err := store.Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	mustWrite(t, s, func(tx *store.Tx) error {
		_, err := tx.Exec(`CREATE TABLE kv (k TEXT PRIMARY KEY, v BIGINT NOT NULL)`)
		return err
	})
	mustWrite(t, s, put("a", 1))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Write(t.Context(), put("b", 2)); !errors.Is(err, store.ErrClosed) {
		t.Errorf("a write after Close: %v, want ErrClosed", err)
	}
	if err := s.Read(t.Context(), func(*store.Tx) error { return nil }); !errors.Is(err, store.ErrClosed) {
		t.Errorf("a read after Close: %v, want ErrClosed", err)
	}
	wantRows(t, Open(t, opts), map[string]int{"a": 1})
}

func testFailedStatement(t *testing.T, opts store.Options) {
	s := open(t, opts)
	var second error
	err := s.Write(t.Context(), func(tx *store.Tx) error {
		if err := put("a", 1)(tx); err != nil {
			return err
		}
		_, _ = tx.Exec(`INSERT INTO nowhere VALUES (1)`)
		second = put("b", 2)(tx)
		return nil
	})
	if err == nil || second == nil {
		t.Errorf("a function that ignored its error: %v; its next statement: %v", err, second)
	}
	wantRows(t, s, map[string]int{})
}

func testOpenRows(t *testing.T, opts store.Options) {
	s := open(t, opts)
	mustWrite(t, s, put("a", 1))
	err := s.Read(t.Context(), func(tx *store.Tx) error {
		rows, err := tx.Query(`SELECT k FROM kv`)
		if err != nil {
			return err
		}
		defer rows.Close()
		return tx.QueryRow(`SELECT v FROM kv`).Scan(new(int))
	})
	if err == nil {
		t.Error("a second query went through while rows were open")
	}
	err = s.Read(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Query(`SELECT k FROM kv`) // left open
		return err
	})
	if err != nil {
		t.Error(err)
	}
	wantRows(t, s, map[string]int{"a": 1})
}

func testUseAfterEnd(t *testing.T, opts store.Options) {
	s := open(t, opts)
	var kept *store.Tx
	mustWrite(t, s, func(tx *store.Tx) error { kept = tx; return nil })
	if err := put("a", 1)(kept); err == nil {
		t.Error("a transaction was used after its end")
	}
	if _, err := kept.Now(); err == nil {
		t.Error("a transaction told the time after its end")
	}
	wantRows(t, s, map[string]int{})
}

func testSnapshot(t *testing.T, opts store.Options) {
	s := open(t, opts)
	mustWrite(t, s, put("a", 1))
	count := func(tx *store.Tx) (n int, err error) {
		err = tx.QueryRow(`SELECT count(*) FROM kv`).Scan(&n)
		return n, err
	}
	err := s.Read(t.Context(), func(tx *store.Tx) error {
		if n, err := count(tx); err != nil || n != 1 {
			return fmt.Errorf("%d rows at first: %w", n, err)
		}
		if err := s.Write(context.Background(), put("b", 2)); err != nil {
			return err
		}
		if n, err := count(tx); err != nil || n != 1 {
			return fmt.Errorf("%d rows after a write: %w", n, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	release := block(t, s) // a read does not wait for a writer
	wantRows(t, s, map[string]int{"a": 1, "b": 2})
	release()
}

func testReadOnly(t *testing.T, opts store.Options) {
	s := open(t, opts)
	if err := s.Read(t.Context(), put("a", 1)); !errors.Is(err, store.ErrReadOnly) {
		t.Errorf("a write in a read: %v, want ErrReadOnly", err)
	}
	wantRows(t, s, map[string]int{})
}

func testUnique(t *testing.T, opts store.Options) {
	s := open(t, opts)
	mustWrite(t, s, put("a", 1))
	if err := s.Write(t.Context(), put("a", 2)); !errors.Is(err, store.ErrExists) {
		t.Errorf("the same key: %v, want ErrExists", err)
	}
	mustWrite(t, s, func(tx *store.Tx) error {
		n, err := tx.Exec(`INSERT INTO kv (k, v) VALUES ($1, $2) ON CONFLICT (k) DO NOTHING`, "a", 3)
		if err == nil && n != 0 {
			err = fmt.Errorf("%d rows changed", n)
		}
		return err
	})
	wantRows(t, s, map[string]int{"a": 1})
}
