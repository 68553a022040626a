package store

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// Options say which database to open and how. The zero value of every field but Dir and DSN is a good default.
type Options struct {
	// DSN is a postgres:// URL, or empty for a SQLite file in Dir.
	DSN string
	// Dir is the data directory of the SQLite file. It is created with mode 0700.
	Dir string
	// Node names this process among those that share the database.
	Node string
	// Logger gets what nobody is there to be told; nil discards it.
	Logger *slog.Logger

	// Alone says that no other process writes to the SQLite file: the caller holds the [Lock] of its directory.
	Alone bool

	// Queue is how many writes may wait, Group how many share one commit, Readers how many reads run side by side.
	Queue, Group, Readers int
	// LockWait is how long a statement waits for another's lock before it fails with ErrLocked.
	LockWait time.Duration
	// Timeout bounds a group on PostgreSQL, where a silent network would hold it for ever.
	Timeout time.Duration

	// Clock replaces the wall clock of SQLite's Tx.Now, for tests.
	Clock func() time.Time
	// Wrap interposes on the driver, for tests that inject faults or count commits.
	Wrap func(driver.Connector) driver.Connector
	// Twice runs every function of Write once for nothing before it counts, so that tests find those that do not bear
	// being run again.
	Twice bool
	// Migrations replaces the embedded migrations, for tests of the migrator. It holds NNN_name.sql files.
	Migrations fs.FS
}

// withDefaults is the only place where defaults are written down.
func (o Options) withDefaults() Options {
	o.Node = cmp.Or(o.Node, "local")
	o.Queue = cmp.Or(o.Queue, 1024)
	o.Group = cmp.Or(o.Group, 256)
	o.Readers = cmp.Or(o.Readers, 4)
	o.LockWait = cmp.Or(o.LockWait, 5*time.Second)
	o.Timeout = cmp.Or(o.Timeout, 30*time.Second)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	return o
}

// Store is an open database. It is safe for concurrent use.
type Store struct {
	mu     sync.RWMutex // held for reading while a write is queued, so that Close never closes the queue under it
	closed bool

	opts    Options
	dialect dialect
	log     *slog.Logger
	clock   *clock
	hub     *hub
	writer  *writer
	readers *readers
	stop    context.CancelFunc // ends the listener and whoever holds the claim
	// replaced says that another process runs under this node's name.
	replaced atomic.Bool
	joined   sync.WaitGroup
	writeDB  *sql.DB
	readDB   *sql.DB
}

// Open connects to the database, brings its schema up to date and starts the writer. Close must be called.
func Open(ctx context.Context, opts Options) (*Store, error) {
	opts = opts.withDefaults()
	d, err := newDialect(opts)
	if err != nil {
		return nil, err
	}
	s := &Store{opts: opts, dialect: d, log: opts.Logger, hub: newHub()}
	if err := s.connect(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open store: %w", fault(err)), s.closeDBs())
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.stop = stop
	s.joined.Go(s.writer.loop)
	s.joined.Go(func() { d.listen(running, s) })
	return s, nil
}

func (s *Store) connect(ctx context.Context) error {
	write, read, err := s.dialect.connectors()
	if err != nil {
		return err
	}
	if s.opts.Wrap != nil {
		write, read = s.opts.Wrap(write), s.opts.Wrap(read)
	}
	s.writeDB, s.readDB = sql.OpenDB(write), sql.OpenDB(read)
	if err := s.replay(ctx); err != nil {
		return err
	}
	if err := s.migrate(ctx); err != nil {
		return err
	}
	if s.clock, err = s.dialect.openClock(ctx, s.writeDB); err != nil {
		return err
	}
	s.writer = newWriter(s)
	if err := s.prepareJournal(ctx, write); err != nil {
		return err
	}
	s.readers = newReaders(s.readDB, s.dialect, s.opts.Readers)
	return nil
}

// Close refuses new work, commits what is queued, and releases the database. Reads must have ended.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	close(s.writer.queue)
	close(s.writer.wake)
	s.mu.Unlock()

	s.stop()
	s.joined.Wait()
	s.hub.close()
	s.writer.turn.Lock() // it is not given back
	return errors.Join(s.writer.close(), s.readers.close(), s.closeDBs(), s.writer.index.close())
}

func (s *Store) closeDBs() error {
	var errs []error
	for _, db := range []*sql.DB{s.writeDB, s.readDB} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	return errors.Join(errs...)
}

// Alone says that no other process writes to the database: what was remembered of it is what is there.
func (s *Store) Alone() bool { return s.opts.Alone && s.Dialect() == SQLite }

// Node is the name of this process among those that share the database.
func (s *Store) Node() string { return s.opts.Node }

// Dialect says which database this is.
func (s *Store) Dialect() Dialect { return s.dialect.name() }

// Queued says how many writes wait.
func (s *Store) Queued() int { return len(s.writer.queue) }

// Read runs fn on a snapshot that no write changes and that changes nothing. Writers do not hold it up. The context
// bounds every statement of fn.
func (s *Store) Read(ctx context.Context, fn func(*Tx) error) error {
	s.mu.RLock()
	closed := s.closed
	s.mu.RUnlock()
	if closed {
		return ErrClosed
	}
	s.settle(ctx)
	se, err := s.readers.begin(ctx)
	if err != nil {
		return fmt.Errorf("read: %w", fault(err))
	}
	defer s.readers.end(se)
	tx := &Tx{store: s, ctx: ctx, session: se}
	return tx.call(fn)
}
