package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
)

// maxStatements bounds the prepared statements a session keeps. Statements with lists of arguments come in as many
// texts as there are lengths, so a session that is full starts afresh.
const maxStatements = 256

// session is one connection with the statements prepared on it. It belongs to one transaction at a time.
type session struct {
	conn  *sql.Conn
	stmts map[string]*sql.Stmt // nil where the driver keeps its own
}

func openSession(ctx context.Context, db *sql.DB, cache bool) (*session, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	se := &session{conn: conn}
	if cache {
		se.stmts = make(map[string]*sql.Stmt)
	}
	return se, nil
}

// prepared returns the statement for query, or nil where the connection is to be asked directly.
func (se *session) prepared(ctx context.Context, query string) (*sql.Stmt, error) {
	if se.stmts == nil {
		return nil, nil
	}
	if st := se.stmts[query]; st != nil {
		return st, nil
	}
	if len(se.stmts) >= maxStatements {
		for q, st := range se.stmts {
			_ = st.Close() // frees memory only; the connection lives on
			delete(se.stmts, q)
		}
	}
	st, err := se.conn.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	se.stmts[query] = st
	return st, nil
}

func (se *session) exec(ctx context.Context, query string, args ...any) (sql.Result, error) {
	st, err := se.prepared(ctx, query)
	switch {
	case err != nil:
		return nil, err
	case st != nil:
		return st.ExecContext(ctx, args...)
	}
	return se.conn.ExecContext(ctx, query, args...)
}

func (se *session) query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	st, err := se.prepared(ctx, query)
	switch {
	case err != nil:
		return nil, err
	case st != nil:
		return st.QueryContext(ctx, args...)
	}
	return se.conn.QueryContext(ctx, query, args...)
}

// control runs statements that steer the transaction.
func (se *session) control(ctx context.Context, statements ...string) error {
	for _, q := range statements {
		if _, err := se.exec(ctx, q); err != nil {
			return err
		}
	}
	return nil
}

func (se *session) close() error {
	var errs []error
	for _, st := range se.stmts {
		errs = append(errs, st.Close())
	}
	if err := se.conn.Close(); !errors.Is(err, sql.ErrConnDone) {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// discard ends a session that is in an unknown state. Its connection is closed and not lent again: it may still hold a
// transaction, and with it locks that everyone else waits for.
func (se *session) discard() {
	for _, st := range se.stmts {
		_ = st.Close() // before its connection, and it is being thrown away because it is broken
	}
	_ = se.conn.Raw(func(any) error { return driver.ErrBadConn }) // what the pool takes for broken it closes
	_ = se.conn.Close()
}

// readers lends sessions to reads, at most as many as it has slots.
type readers struct {
	db      *sql.DB
	dialect dialect
	idle    chan *session
	slots   chan struct{}
}

func newReaders(db *sql.DB, d dialect, n int) *readers {
	return &readers{db: db, dialect: d, idle: make(chan *session, n), slots: make(chan struct{}, n)}
}

// begin lends a session with a read transaction open. Idle connections may have died with a server that is back by
// now, so each is tried, and a new one last.
func (r *readers) begin(ctx context.Context) (*session, error) {
	for {
		se, fresh, err := r.take(ctx)
		if err != nil {
			return nil, err
		}
		err = se.control(ctx, r.dialect.beginRead())
		if err == nil {
			return se, nil
		}
		r.discard(se)
		if fresh || ctx.Err() != nil {
			return nil, err
		}
	}
}

func (r *readers) take(ctx context.Context) (se *session, fresh bool, err error) {
	select {
	case se := <-r.idle:
		return se, false, nil
	default:
	}
	select {
	case se := <-r.idle:
		return se, false, nil
	case r.slots <- struct{}{}:
		se, err := openSession(ctx, r.db, r.dialect.cacheStatements())
		if err != nil {
			<-r.slots
		}
		return se, true, err
	case <-ctx.Done():
		return nil, false, context.Cause(ctx)
	}
}

// end takes a session back. The rollback does not use the caller's context, which may be why the read ended.
func (r *readers) end(se *session) {
	ctx, cancel := r.dialect.groupContext()
	defer cancel()
	if err := se.control(ctx, "ROLLBACK"); err != nil {
		r.discard(se)
		return
	}
	r.idle <- se
}

func (r *readers) discard(se *session) {
	se.discard()
	<-r.slots
}

func (r *readers) close() error {
	var errs []error
	for {
		select {
		case se := <-r.idle:
			errs = append(errs, se.close())
		default:
			return errors.Join(errs...)
		}
	}
}
