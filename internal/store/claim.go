package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// claimSpace is the first half of the advisory locks that stand for the names of nodes. The number is arbitrary and
// ours; the second half is the name's hash.
const claimSpace = 7878003

// ClaimNode claims the node's name among those that share the database, until the store is closed. Two processes of
// one name would take each other's open work for their own. It fails with [ErrInUse] while another process holds it;
// one that has just ended is waited for. A SQLite file has one process, which the lock of its directory sees to.
func (s *Store) ClaimNode(ctx context.Context) error {
	d, ok := s.dialect.(*postgresDialect)
	if !ok {
		return nil
	}
	var conn *pgx.Conn
	for start := time.Now(); ; {
		var held bool
		var err error
		if conn, held, err = d.claim(ctx); err != nil {
			return fmt.Errorf("claim the node's name: %w", fault(err))
		}
		if held {
			break
		}
		if time.Since(start) > s.opts.LockWait {
			return fmt.Errorf("%w: another process runs as node %q on this database; give this one another name", ErrInUse, s.opts.Node)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(100 * time.Millisecond):
		}
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		stop()
		return errors.Join(ErrClosed, conn.Close(context.WithoutCancel(ctx)))
	}
	before := s.stop
	s.stop = func() { before(); stop() }
	s.joined.Go(func() { d.hold(running, s, conn) })
	return nil
}

// claim connects and tries to get the lock, which lives as long as the connection.
func (d *postgresDialect) claim(ctx context.Context) (conn *pgx.Conn, held bool, err error) {
	if conn, err = pgx.ConnectConfig(ctx, d.config.Copy()); err != nil {
		return nil, false, err
	}
	err = conn.QueryRow(ctx, `SELECT pg_try_advisory_lock($1, hashtext($2))`, claimSpace, d.opts.Node).Scan(&held)
	if err != nil || !held {
		_ = conn.Close(context.WithoutCancel(ctx)) // it was of no use
		return nil, false, err
	}
	return conn, true, nil
}

// hold keeps the claim, and gets it back when the connection was lost. While another process has it, nothing is
// written: that one has taken this node's place.
func (d *postgresDialect) hold(ctx context.Context, s *Store, conn *pgx.Conn) {
	for ctx.Err() == nil {
		if conn != nil {
			_, _ = conn.WaitForNotification(ctx) // none comes: it returns when the connection is lost
			_ = conn.Close(context.WithoutCancel(ctx))
		}
		if ctx.Err() != nil {
			return
		}
		next, held, err := d.claim(ctx)
		if conn = next; err == nil {
			if taken := !held; s.replaced.Swap(taken) != taken && taken {
				s.log.Error("store: another process runs under this node's name; nothing is written any more", "node", d.opts.Node)
			}
		}
		if conn == nil {
			select {
			case <-ctx.Done():
			case <-time.After(relisten):
			}
		}
	}
}
