package store

import (
	"context"
	"crypto/rand"
	"database/sql/driver"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

const (
	// noticeChannel carries the notices of all topics: LISTEN needs no list that way.
	noticeChannel = "gatehouse"
	// maxPayload stays below the 8000 bytes PostgreSQL takes, with room for topic and sender.
	maxPayload = 7 << 10
	// relisten is how long the listener waits before it connects again.
	relisten = time.Second
)

// postgresDialect is a PostgreSQL server shared by several nodes.
type postgresDialect struct {
	opts   Options
	config *pgx.ConnConfig
	sender string // marks our own notices, which were delivered without the server
}

func newPostgres(opts Options) (*postgresDialect, error) {
	config, err := pgx.ParseConfig(opts.DSN)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = 5 * time.Second
	}
	set := func(name, value string) {
		if _, given := config.RuntimeParams[name]; !given {
			config.RuntimeParams[name] = value
		}
	}
	set("application_name", "gatehouse "+opts.Node)
	set("lock_timeout", strconv.FormatInt(opts.LockWait.Milliseconds(), 10))
	set("idle_in_transaction_session_timeout", strconv.FormatInt(2*opts.Timeout.Milliseconds(), 10))
	config.RuntimeParams["synchronous_commit"] = "on" // an answer means durable, whatever the server's default
	return &postgresDialect{opts: opts, config: config, sender: rand.Text()}, nil
}

func (d *postgresDialect) name() Dialect { return Postgres }

func (d *postgresDialect) connectors() (write, read driver.Connector, err error) {
	return stdlib.GetConnector(*d.config), stdlib.GetConnector(*d.config), nil
}

// beginWrite asks for READ COMMITTED by name: nodes serialise on the rows they lock (Tx.ForUpdate), and a statement
// that waited for a lock must see what the other node committed, which a snapshot from before would not.
func (d *postgresDialect) beginWrite() string {
	return "BEGIN ISOLATION LEVEL READ COMMITTED"
}

func (d *postgresDialect) beginRead() string {
	return "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
}

// savepoint sends both statements in one message.
func (d *postgresDialect) savepoint(first bool) []string {
	if first {
		return []string{"SAVEPOINT f"}
	}
	return []string{"RELEASE SAVEPOINT f; SAVEPOINT f"}
}

func (d *postgresDialect) cacheStatements() bool { return false }

func (d *postgresDialect) groupContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), d.opts.Timeout)
}

func (d *postgresDialect) migrations() (fs.FS, error) {
	return fs.Sub(migrationFiles, "migrations/postgres")
}

// lockSchema keeps two nodes that start at once from migrating at once. The number is arbitrary and ours.
func (d *postgresDialect) lockSchema() string { return "SELECT pg_advisory_xact_lock(7878002)" }

func (d *postgresDialect) hasTable() string {
	return `SELECT count(*) FROM pg_class WHERE oid = to_regclass($1)`
}

// notify sends what the hub delivers here to the other nodes, as part of the transaction.
func (d *postgresDialect) notify(tx *Tx, notices []Notice) error {
	for _, n := range notices {
		if len(n.Payload) > maxPayload {
			n.Payload = ""
		}
		message := strings.Join([]string{d.sender, n.Topic, n.Payload}, "\n")
		if _, err := tx.Exec(`SELECT pg_notify($1, $2)`, noticeChannel, message); err != nil {
			return err
		}
	}
	return nil
}

// listen hears the other nodes on a connection of its own, and comes back when it is lost.
func (d *postgresDialect) listen(ctx context.Context, s *Store) {
	for lost := false; ctx.Err() == nil; lost = true {
		err := d.listenOnce(ctx, s, lost)
		if ctx.Err() != nil {
			return
		}
		s.log.Warn("store: lost the connection that hears other nodes; connecting again", "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(relisten):
		}
	}
}

func (d *postgresDialect) listenOnce(ctx context.Context, s *Store, lost bool) error {
	conn, err := pgx.ConnectConfig(ctx, d.config.Copy())
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err := conn.Exec(ctx, "LISTEN "+noticeChannel); err != nil {
		return err
	}
	if lost {
		s.hub.wakeAll()
	}
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		sender, rest, _ := strings.Cut(n.Payload, "\n")
		topic, payload, _ := strings.Cut(rest, "\n")
		if sender != d.sender {
			s.hub.deliver([]Notice{{Topic: topic, Payload: payload}})
		}
	}
}
