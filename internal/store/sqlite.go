package store

import (
	"context"
	"database/sql/driver"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"modernc.org/sqlite"
)

// databaseFile is the name of the SQLite file in the data directory.
const databaseFile = "gatehouse.db"

// sqliteDialect is the embedded database: one file, one writing connection, any number of readers beside it.
type sqliteDialect struct{ opts Options }

func (d *sqliteDialect) name() Dialect { return SQLite }

func (d *sqliteDialect) connectors() (write, read driver.Connector, err error) {
	if err := os.MkdirAll(d.opts.Dir, 0o700); err != nil {
		return nil, nil, err
	}
	path := filepath.Join(d.opts.Dir, databaseFile)
	if err := createPrivate(path); err != nil {
		return nil, nil, err
	}
	if write, err = sqlite.NewConnector(d.dsn(path, "_txlock=immediate&_pragma=cache_size(-16384)")); err != nil {
		return nil, nil, err
	}
	read, err = sqlite.NewConnector(d.dsn(path, "_query_only=1&_pragma=cache_size(-8192)"))
	return write, read, err
}

// createPrivate makes the file before SQLite does, which would let the umask decide who can read it. A file that
// exists keeps its mode, and one that cannot be written is left for SQLite to complain about.
func createPrivate(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDONLY, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// dsn sets what must hold on every connection. WAL lets readers and the writer work side by side, FULL syncs at every
// commit. With recursive triggers, REPLACE fires delete triggers too, so that it is no way around them.
func (d *sqliteDialect) dsn(path, extra string) string {
	file := url.URL{Scheme: "file", Opaque: (&url.URL{Path: filepath.ToSlash(path)}).EscapedPath()}
	return fmt.Sprintf("%s?_busy_timeout=%d&_journal_mode=WAL&_synchronous=FULL&_foreign_keys=1&_dqs=0"+
		"&_pragma=recursive_triggers(1)&%s", file.String(), d.opts.LockWait.Milliseconds(), extra)
}

func (d *sqliteDialect) beginWrite() string { return "BEGIN IMMEDIATE" }
func (d *sqliteDialect) beginRead() string  { return "BEGIN" }

func (d *sqliteDialect) savepoint(first bool) []string {
	if first {
		return []string{"SAVEPOINT f"}
	}
	return []string{"RELEASE f", "SAVEPOINT f"}
}

func (d *sqliteDialect) cacheStatements() bool { return true }

// groupContext has no end: an interrupted statement takes back the whole transaction on SQLite, and none waits longer
// than the busy timeout.
func (d *sqliteDialect) groupContext() (context.Context, context.CancelFunc) {
	return context.Background(), func() {}
}

func (d *sqliteDialect) migrations() (fs.FS, error) {
	return fs.Sub(migrationFiles, "migrations/sqlite")
}
func (d *sqliteDialect) lockSchema() string { return "" }

func (d *sqliteDialect) hasTable() string {
	return `SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = $1`
}

func (d *sqliteDialect) notify(*Tx, []Notice) error     { return nil }
func (d *sqliteDialect) listen(context.Context, *Store) {}
