package gatetest

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	_ "modernc.org/sqlite" // the driver, to look at the database as whoever can read the file would
)

// Database opens the gate's SQLite file beside the daemon, as its owner could.
func (g *Gate) Database() *sql.DB {
	g.t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(g.Home, "gatehouse.db")+"?_pragma=busy_timeout(10000)")
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { db.Close() })
	return db
}

// Edit changes the database behind the gate's back and returns how many rows
// it changed; none is a mistake of the test.
func (g *Gate) Edit(statement string, args ...any) {
	g.t.Helper()
	res, err := g.Database().Exec(statement, args...)
	if err != nil {
		g.t.Fatalf("%s: %v", statement, err)
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		g.t.Fatalf("%s: changed %d rows, %v", statement, n, err)
	}
}

// Dump writes every row of the tables as text, one line each, in order. Two
// dumps are equal if and only if nothing changed.
func Dump(t testing.TB, db *sql.DB, tables ...string) string {
	t.Helper()
	var b strings.Builder
	for _, table := range tables {
		for _, row := range Rows(t, db, "SELECT * FROM "+table+" ORDER BY 1, 2") {
			fmt.Fprintf(&b, "%s %q\n", table, row)
		}
	}
	return b.String()
}

// Rows runs a query and returns each row as text.
func Rows(t testing.TB, db *sql.DB, query string, args ...any) (out [][]string) {
	t.Helper()
	rows, err := db.Query(query, args...)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		values, dest := make([]sql.RawBytes, len(columns)), make([]any, len(columns))
		for i := range values {
			dest[i] = &values[i]
		}
		if err := rows.Scan(dest...); err != nil {
			t.Fatal(err)
		}
		row := make([]string, len(columns))
		for i, v := range values {
			row[i] = string(v)
		}
		out = append(out, row)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// Tables lists the tables of the database.
func Tables(t testing.TB, db *sql.DB) (out []string) {
	t.Helper()
	for _, row := range Rows(t, db, `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name`) {
		out = append(out, row[0])
	}
	return out
}
