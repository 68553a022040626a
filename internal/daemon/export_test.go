package daemon

import (
	"context"
	"log/slog"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/approval"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
	"github.com/seed-3ebc6b8a/gatehouse/internal/rulebook"
	"github.com/seed-3ebc6b8a/gatehouse/internal/session"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// Parts is a daemon as it is wired, without its listeners and without what
// runs in the background.
type Parts struct {
	Store    *store.Store
	Gate     *gate.Gate
	Desk     *admin.Desk
	Sessions *session.Registry
	Book     *rulebook.Book
	Changes  *admin.Changes
	Expire   func(context.Context) error
}

// Open wires a daemon for a test. Whoever opens it closes the store.
func Open(ctx context.Context, opts Options) (*Parts, error) {
	opts.Log = slog.New(slog.DiscardHandler)
	d := &daemon{opts: opts, log: opts.Log, baseURL: "http://console.test", changes: admin.NewChanges(), channels: approval.NewChannels()}
	if err := d.open(ctx, "127.0.0.1:7133"); err != nil {
		return nil, err
	}
	return &Parts{Store: d.store, Gate: d.gate, Desk: d.admin, Sessions: d.sessions, Book: d.book, Changes: d.changes, Expire: d.expire}, nil
}
