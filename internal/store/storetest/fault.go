package storetest

import (
	"context"
	"database/sql/driver"
	"sync/atomic"
)

// Driver stands between a store and its database: it counts commits, and lets a test fail, delay or watch any
// statement. Its zero value only counts. Give its Wrap to [store.Options].
type Driver struct {
	commits       atomic.Int64
	before, after atomic.Pointer[func(query string) error]
}

// Commits is how many commits the database has confirmed. On SQLite with synchronous=FULL each is one sync, and a sync
// of the journal counts as one.
func (d *Driver) Commits() int64 { return d.commits.Load() }

// Before calls hook with the text of each statement before it runs; an error takes the place of running it. The hook
// may be called by several goroutines. Nil removes it.
func (d *Driver) Before(hook func(query string) error) { set(&d.before, hook) }

// After calls hook after each statement that succeeded; an error takes the place of its result, as when a connection
// breaks with the answer on its way.
func (d *Driver) After(hook func(query string) error) { set(&d.after, hook) }

func set(at *atomic.Pointer[func(string) error], hook func(string) error) {
	if hook == nil {
		at.Store(nil)
		return
	}
	at.Store(&hook)
}

// Wrap is a value for the Wrap field of the store's options.
func (d *Driver) Wrap(c driver.Connector) driver.Connector { return connector{c, d} }

// run calls statement between the hooks.
func (d *Driver) run(query string, statement func() error) error {
	if hook := d.before.Load(); hook != nil {
		if err := (*hook)(query); err != nil {
			return err
		}
	}
	if err := statement(); err != nil {
		return err
	}
	if query == "COMMIT" || query == JournalSync {
		d.commits.Add(1)
	}
	if hook := d.after.Load(); hook != nil {
		return (*hook)(query)
	}
	return nil
}

type connector struct {
	driver.Connector
	d *Driver
}

func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	inner, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return conn{inner, c.d}, nil
}

// JournalSync is the text by which the hooks know a sync of the store's journal.
const JournalSync = "JOURNAL"

// Sync stands between the store and the sync of its journal.
func (c connector) Sync(run func() error) error { return c.d.run(JournalSync, run) }

// conn passes on the optional interfaces that both drivers implement.
type conn struct {
	driver.Conn
	d *Driver
}

func (c conn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	inner, err := c.Conn.(driver.ConnPrepareContext).PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	return stmt{inner, query, c.d}, nil
}

func (c conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (res driver.Result, err error) {
	err = c.d.run(query, func() error {
		res, err = c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
		return err
	})
	return res, err
}

func (c conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (rows driver.Rows, err error) {
	err = c.d.run(query, func() error {
		rows, err = c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
		return err
	})
	return rows, err
}

func (c conn) ResetSession(ctx context.Context) error {
	return c.Conn.(driver.SessionResetter).ResetSession(ctx)
}

func (c conn) CheckNamedValue(v *driver.NamedValue) error {
	if checker, ok := c.Conn.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

type stmt struct {
	driver.Stmt
	query string
	d     *Driver
}

func (s stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (res driver.Result, err error) {
	err = s.d.run(s.query, func() error {
		res, err = s.Stmt.(driver.StmtExecContext).ExecContext(ctx, args)
		return err
	})
	return res, err
}

func (s stmt) QueryContext(ctx context.Context, args []driver.NamedValue) (rows driver.Rows, err error) {
	err = s.d.run(s.query, func() error {
		rows, err = s.Stmt.(driver.StmtQueryContext).QueryContext(ctx, args)
		return err
	})
	return rows, err
}
