package store

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"time"
)

// clock answers Tx.Now. On PostgreSQL it asks the server, each time: a transaction may have waited for a lock since it
// began. On SQLite it is the highest of the wall clock, what it showed before, and the time since then, and its last
// reading is saved with every commit, so that setting the wall clock back neither revives what has expired nor stops
// time until the wall clock has caught up.
type clock struct {
	mu   sync.Mutex
	last time.Time // highest reading so far, without its monotonic part
	seen time.Time // wall and monotonic time of that reading

	wall func() time.Time // nil on PostgreSQL
}

// openClock reads the time of the last commit.
func (d *sqliteDialect) openClock(ctx context.Context, db *sql.DB) (*clock, error) {
	var micros int64
	if err := db.QueryRowContext(ctx, `SELECT micros FROM store_clock`).Scan(&micros); err != nil {
		return nil, fmt.Errorf("read the clock: %w", err)
	}
	return &clock{last: time.UnixMicro(micros).UTC(), seen: d.opts.Clock(), wall: d.opts.Clock}, nil
}

func (d *postgresDialect) openClock(context.Context, *sql.DB) (*clock, error) { return &clock{}, nil }

func (c *clock) now(tx *Tx) (time.Time, error) {
	if c.wall != nil {
		return c.reading(), nil
	}
	var micros int64
	err := tx.QueryRow(`SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint`).Scan(&micros)
	return time.UnixMicro(micros).UTC(), err
}

func (c *clock) reading() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.wall()
	if passed := now.Sub(c.seen); passed > 0 { // by the monotonic clock, where there is one
		c.last = c.last.Add(passed)
	}
	c.seen = now
	if wall := now.UTC().Truncate(time.Microsecond); wall.After(c.last) {
		c.last = wall
	}
	return c.last.Truncate(time.Microsecond)
}

// save makes the reading part of the commit.
func (c *clock) save(tx *Tx) error {
	if c.wall == nil {
		return nil
	}
	_, err := tx.Exec(`UPDATE store_clock SET micros = $1 WHERE micros < $1`, c.reading().UnixMicro())
	return err
}
