package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// What can be wrong with a store. Every error of this package that comes from the database wraps one of these where
// the cause is known, next to the driver's own error.
var (
	// ErrBusy refuses a write because too many are waiting already.
	ErrBusy = errors.New("store: too many writes are waiting")
	// ErrClosed refuses everything after Close.
	ErrClosed = errors.New("store: closed")
	// ErrCommit marks an error that befell the whole group: none of its functions may be taken as done.
	ErrCommit = errors.New("store: the transaction was not committed")
	// ErrInDoubt is an ErrCommit whose connection broke, or whose disk failed, before the answer was there: the writes may
	// have been kept. Take them as not done, and read before doing them again.
	ErrInDoubt = fmt.Errorf("%w, or its answer was lost", ErrCommit)
	// ErrConflict says that other nodes kept changing the same rows; the write was tried several times.
	ErrConflict = errors.New("store: other writers kept interfering")
	// ErrCorrupt says that the database file or its pages are damaged.
	ErrCorrupt = errors.New("store: the database is damaged")
	// ErrExists says that a row with this unique key is there already.
	ErrExists = errors.New("store: a row with this key exists")
	// ErrFull says that the disk, or the space given to the database, is used up.
	ErrFull = errors.New("store: no space left for the database")
	// ErrFuture refuses a schema written by a newer program.
	ErrFuture = errors.New("store: the schema is newer than this program")
	// ErrHistory refuses a schema whose migrations are not the ones this program knows.
	ErrHistory = errors.New("store: the schema was not built by this program's migrations")
	// ErrInUse says that another process holds the data directory.
	ErrInUse = errors.New("store: the data directory is in use")
	// ErrLocked says that another process or transaction kept its lock for longer than we wait.
	ErrLocked = errors.New("store: the database is locked")
	// ErrPanic reports that a function panicked; its writes were taken back.
	ErrPanic = errors.New("store: a function panicked inside its transaction")
	// ErrReadOnly says that the database refuses writes.
	ErrReadOnly = errors.New("store: the database is read-only")
	// ErrUnavailable says that the database cannot be reached: connection lost, server down, disk failing.
	ErrUnavailable = errors.New("store: the database cannot be reached")
)

// fault gives a driver's error the sentinel of its cause. The driver's error stays in the chain for its text.
func fault(err error) error {
	if err == nil || errors.Is(err, sql.ErrNoRows) {
		return err
	}
	sentinel := cause(err)
	if sentinel == nil || errors.Is(err, sentinel) {
		return err
	}
	return fmt.Errorf("%w: %w", sentinel, err)
}

func cause(err error) error {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return sqliteCause(e.Code())
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return postgresCause(e.Code)
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return ErrUnavailable
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return ErrUnavailable
	}
	for _, lost := range []error{
		driver.ErrBadConn, sql.ErrConnDone, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, context.DeadlineExceeded,
	} {
		if errors.Is(err, lost) {
			return ErrUnavailable
		}
	}
	return nil
}

// sqliteCause looks at the primary result code; the extended ones add detail that the driver's text already has.
func sqliteCause(code int) error {
	switch code {
	case sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_ROWID:
		return ErrExists
	}
	switch code & 0xff {
	case sqlite3.SQLITE_FULL:
		return ErrFull
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL:
		return ErrLocked
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH:
		return ErrReadOnly
	case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_NOMEM:
		return ErrUnavailable
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return ErrCorrupt
	}
	return nil
}

// postgresCause maps SQLSTATE codes, whole ones first, then their classes.
func postgresCause(state string) error {
	switch state {
	case "53100": // disk_full
		return ErrFull
	case "25006": // read_only_sql_transaction
		return ErrReadOnly
	case "55P03": // lock_not_available
		return ErrLocked
	case "40001", "40P01": // serialization_failure, deadlock_detected
		return ErrConflict
	case "23505": // unique_violation
		return ErrExists
	case "57014", "57P01", "57P02", "57P03", "57P05": // cancelled by a timeout, shutdown, crash, start-up, idle limit
		return ErrUnavailable
	case "XX001", "XX002": // data_corrupted, index_corrupted
		return ErrCorrupt
	}
	switch {
	case strings.HasPrefix(state, "08"), strings.HasPrefix(state, "53"), strings.HasPrefix(state, "58"):
		return ErrUnavailable // connection, resources, system errors
	}
	return nil
}
