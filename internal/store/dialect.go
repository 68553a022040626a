package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"io/fs"
	"strings"
)

// Dialect names one of the two databases.
type Dialect string

// The databases a store can live in.
const (
	SQLite   Dialect = "sqlite"
	Postgres Dialect = "postgres"
)

// dialect is everything in which the two databases differ. One file implements it for each.
type dialect interface {
	name() Dialect
	// connectors reach the database for the writer and for the readers.
	connectors() (write, read driver.Connector, err error)
	// beginWrite and beginRead open a transaction; savepoint ends the previous function's savepoint, if there is one,
	// and starts the next.
	beginWrite() string
	beginRead() string
	savepoint(first bool) []string
	// cacheStatements says whether we keep prepared statements because the driver does not.
	cacheStatements() bool
	// groupContext bounds one group of writes.
	groupContext() (context.Context, context.CancelFunc)
	// migrations are the embedded files for this database; lockSchema is run first in their transaction.
	migrations() (fs.FS, error)
	lockSchema() string
	hasTable() string
	// openClock prepares what Tx.Now reads.
	openClock(ctx context.Context, db *sql.DB) (*clock, error)
	// notify sends notices to other nodes inside the transaction; listen hears those of others until ctx ends.
	notify(tx *Tx, notices []Notice) error
	listen(ctx context.Context, s *Store)
}

func newDialect(opts Options) (dialect, error) {
	switch {
	case strings.HasPrefix(opts.DSN, "postgres://"), strings.HasPrefix(opts.DSN, "postgresql://"):
		return newPostgres(opts)
	case opts.DSN != "":
		return nil, fmt.Errorf("open store: the DSN must be a postgres:// URL, or empty for SQLite")
	case opts.Dir == "":
		return nil, fmt.Errorf("open store: neither a DSN nor a data directory was given")
	}
	return &sqliteDialect{opts: opts}, nil
}
