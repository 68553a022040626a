package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"
)

// errRowsOpen is what SQLite would silently get wrong with a statement that is still being read, and PostgreSQL
// refuses: one connection answers one question at a time.
var errRowsOpen = errors.New("store: the rows of the previous query are still open")

// Tx is a transaction, or a function's share of one. It is valid until the function it was given to returns, and is
// not safe for concurrent use.
//
// A failed statement ends the transaction, as PostgreSQL has it: later statements repeat its error and nothing is
// kept, even if the function returns nil. Use ON CONFLICT where a conflict is expected.
type Tx struct {
	store   *Store
	ctx     context.Context
	session *session
	group   *group // nil for a read

	changes  []change // for the journal
	err      error    // of the first statement that failed
	wrote    bool     // whether a statement may have changed something
	over     bool
	rows     *Rows
	notices  []Notice
	remember map[any]any
}

// Context is the context of the transaction's statements. It is not the caller's: once a write has joined a group,
// nobody's cancellation takes it out again.
func (tx *Tx) Context() context.Context { return tx.ctx }

// Dialect says which database this is.
func (tx *Tx) Dialect() Dialect { return tx.store.Dialect() }

// Alone is the store's.
func (tx *Tx) Alone() bool { return tx.store.Alone() }

// Node is the name of this process among those that share the database.
func (tx *Tx) Node() string { return tx.store.Node() }

// ForUpdate ends a SELECT whose rows this transaction is about to decide on: until it ends, no other node changes
// them. SQLite needs no words for it, since it has one writer.
func (tx *Tx) ForUpdate() string { return tx.locking(" FOR UPDATE") }

// ForShare is ForUpdate for rows that are only read: others may do the same at once, but not change them.
func (tx *Tx) ForShare() string { return tx.locking(" FOR SHARE") }

func (tx *Tx) locking(clause string) string {
	if tx.Dialect() == Postgres && tx.group != nil {
		return clause
	}
	return ""
}

// Now is the time by the database's clock, in UTC and whole microseconds: the server's own on PostgreSQL; on SQLite a
// clock that never shows less than it has shown before, in this process or an earlier one.
func (tx *Tx) Now() (time.Time, error) {
	if err := tx.ready(); err != nil {
		return time.Time{}, err
	}
	return tx.store.clock.now(tx)
}

// Exec runs a statement and returns how many rows it changed. Placeholders are $1, $2 …
func (tx *Tx) Exec(query string, args ...any) (int64, error) {
	if err := tx.ready(); err != nil {
		return 0, err
	}
	if err := tx.heavy(); err != nil {
		return 0, err
	}
	tx.wrote = true
	res, err := tx.session.exec(tx.ctx, query, args...)
	if err != nil {
		return 0, tx.fail(err)
	}
	n, err := res.RowsAffected()
	return n, tx.fail(err)
}

// Query runs a query. Its rows must be closed, or read to their end, before the next statement. Write a bound limit as
// LIMIT CAST($1 AS BIGINT): SQLite plans a statement anew for each value of a bare one.
func (tx *Tx) Query(query string, args ...any) (*Rows, error) {
	if err := tx.ready(); err != nil {
		return nil, err
	}
	if err := tx.heavy(); err != nil {
		return nil, err
	}
	tx.wrote = tx.wrote || !strings.HasPrefix(strings.TrimLeft(query, " \t\n"), "SELECT") // INSERT … RETURNING
	return tx.query(query, args...)
}

func (tx *Tx) query(query string, args ...any) (*Rows, error) {
	rows, err := tx.session.query(tx.ctx, query, args...)
	if err != nil {
		return nil, tx.fail(err)
	}
	tx.rows = &Rows{tx: tx, rows: rows}
	return tx.rows, nil
}

// QueryRow runs a query of which the first row counts. Scan of the result returns sql.ErrNoRows if there is none.
func (tx *Tx) QueryRow(query string, args ...any) *Row {
	rows, err := tx.Query(query, args...)
	return &Row{rows: rows, err: err}
}

// heavy says whether the function needs a transaction that is not there, see [Store.WriteLight].
func (tx *Tx) heavy() error {
	if tx.group == nil || !tx.group.light {
		return nil
	}
	return tx.fail(errHeavy)
}

// Settled is QueryRow for a table into which nothing is [Tx.Put]: it sees what was committed. Nothing changes that
// before this function's own writes are durable.
func (tx *Tx) Settled(query string, args ...any) *Row {
	if err := tx.ready(); err != nil {
		return &Row{err: err}
	}
	rows, err := tx.query(query, args...)
	return &Row{rows: rows, err: err}
}

// Put adds a row, of integers, texts, bytes and nil. It is as durable as everything else when the write is, and
// whoever reads it finds it; but it must be one that the table takes, since it may go there only then.
func (tx *Tx) Put(t *Table, row ...any) error {
	if err := tx.ready(); err != nil {
		return err
	}
	if len(row) != t.width {
		return tx.fail(fmt.Errorf("store: %d values for %d columns of %s", len(row), t.width, t.name))
	}
	if tx.group != nil && tx.group.light {
		tx.changes = append(tx.changes, change{table: t, row: row})
		return nil
	}
	_, err := tx.Exec(t.one, row...)
	return err
}

// Drop takes out the row with a key, which must be there.
func (tx *Tx) Drop(t *Table, key any) error {
	if err := tx.ready(); err != nil {
		return err
	}
	if tx.group != nil && tx.group.light {
		tx.changes = append(tx.changes, change{table: t, row: []any{key}, drop: true})
		return nil
	}
	_, err := tx.Exec(t.drop, key)
	return err
}

// ready says whether another statement may run.
func (tx *Tx) ready() error {
	switch {
	case tx.over:
		return errors.New("store: the transaction has ended")
	case tx.err != nil:
		return tx.err
	case tx.rows != nil:
		return errRowsOpen
	}
	return nil
}

// fail notes the first error that ended the transaction.
func (tx *Tx) fail(err error) error {
	if err == nil {
		return nil
	}
	err = fault(err)
	if tx.err == nil {
		tx.err = err
	}
	return err
}

// call runs fn and contains its panic. A failed statement outweighs what fn made of it.
func (tx *Tx) call(fn func(*Tx) error) (err error) {
	finished := false
	defer func() {
		tx.over = true
		if tx.rows != nil {
			_ = tx.rows.Close() // fn has returned; what it left open is not its error any more
		}
		if finished {
			return
		}
		what := recover() // nil after runtime.Goexit, which ends the goroutine all the same
		tx.store.log.Error("store: function panicked", "panic", what, "stack", string(debug.Stack()))
		err = fmt.Errorf("%w: %v", ErrPanic, what)
	}()
	err = fn(tx)
	finished = true
	if err == nil {
		err = tx.err
	}
	return err
}

// Remember keeps a value in memory with the fate of this write: later functions recall it if the write is committed,
// and nobody does if it is not. It saves reading back what only this process writes. All that is remembered is
// forgotten when a statement fails, so a value must be one that can be read again. To remember nil is to forget.
func (tx *Tx) Remember(key, value any) {
	if tx.remember == nil {
		tx.remember = make(map[any]any)
	}
	tx.remember[key] = value
}

// Recall returns what this function, one before it in its group, or an earlier group remembered under key; nil if
// nothing, and always nil in a read.
func (tx *Tx) Recall(key any) any {
	if v, ok := tx.remember[key]; ok || tx.group == nil {
		return v
	}
	return tx.group.recall(key)
}

// Share keeps a value for the functions that follow in this transaction, and no longer: a row that was read and locked
// here is the same for all of them. Whoever changes the row shares nil.
func (tx *Tx) Share(key, value any) {
	if tx.group == nil {
		return
	}
	if tx.group.shared == nil {
		tx.group.shared = make(map[any]any)
	}
	tx.group.shared[key] = value
}

// Shared returns what a function of this transaction shared under key; nil if none did, and always nil in a read.
func (tx *Tx) Shared(key any) any {
	if tx.group == nil {
		return nil
	}
	return tx.group.shared[key]
}

// Rows is the result of a query.
type Rows struct {
	tx   *Tx
	rows *sql.Rows
}

// Next moves to the next row. It closes the rows at their end.
func (r *Rows) Next() bool {
	if r.rows.Next() {
		return true
	}
	r.release()
	return false
}

// Scan copies the current row's columns.
func (r *Rows) Scan(dest ...any) error { return r.rows.Scan(dest...) }

// Err is the error that ended the rows early, if any.
func (r *Rows) Err() error { return r.tx.fail(r.rows.Err()) }

// Close ends the rows. Closing twice does nothing.
func (r *Rows) Close() error {
	r.release()
	return r.tx.fail(r.rows.Close())
}

func (r *Rows) release() {
	if r.tx.rows == r {
		r.tx.rows = nil
	}
}

// Row is the first row of a query.
type Row struct {
	rows *Rows
	err  error
}

// Scan copies the row's columns, or returns sql.ErrNoRows, or the query's error.
func (r *Row) Scan(dest ...any) error {
	if r.err != nil {
		return r.err
	}
	defer r.rows.Close()
	if !r.rows.Next() {
		if err := r.rows.Err(); err != nil {
			return err
		}
		return sql.ErrNoRows
	}
	if err := r.rows.Scan(dest...); err != nil {
		return err
	}
	return r.rows.Close()
}

// All runs a query and turns each row into a T.
func All[T any](tx *Tx, scan func(*Rows) (T, error), query string, args ...any) ([]T, error) {
	rows, err := tx.Query(query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []T
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, rows.Err()
}
