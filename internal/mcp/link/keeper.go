package link

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/mcp/wire"
)

// Keeper is a conversation that is begun again after it broke. The first start
// is at once; after a break there is a pause that doubles with every break and
// shrinks back once the upstream has held for a while.
type Keeper struct {
	// Open begins a conversation.
	Open func() (Conn, error)

	mu     sync.Mutex
	conn   Conn
	began  time.Time
	pause  time.Duration
	next   time.Time
	closed bool
	done   chan struct{}
	// greeting is the client's own handshake, to be repeated.
	greeting, greeted *wire.Message
	header            http.Header
}

const (
	firstPause = 250 * time.Millisecond
	maxPause   = 30 * time.Second
	held       = time.Minute // after which a break counts as the first
)

// NewKeeper makes a conversation that open begins when it is first needed.
func NewKeeper(open func() (Conn, error)) *Keeper {
	return &Keeper{Open: open, done: make(chan struct{})}
}

// Done is closed when the keeper was closed.
func (k *Keeper) Done() <-chan struct{} { return k.done }

// Close ends the conversation for good.
func (k *Keeper) Close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return nil
	}
	k.closed = true
	close(k.done)
	if k.conn == nil {
		return nil
	}
	return k.conn.Close()
}

// Restart ends the conversation that runs; the next message begins another.
func (k *Keeper) Restart() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.conn != nil {
		_ = k.conn.Close() // how it ended does not matter
		k.conn = nil
	}
}

// Send passes a message on, beginning the conversation where need be.
func (k *Keeper) Send(ctx context.Context, m *wire.Message, header http.Header, out Out) error {
	conn, err := k.get(ctx, m.Method == "initialize")
	if err != nil {
		return err
	}
	switch m.Method {
	case "initialize":
		k.mu.Lock()
		k.greeting, k.header = m, header
		k.mu.Unlock()
	case "notifications/initialized":
		k.mu.Lock()
		k.greeted = m
		k.mu.Unlock()
	}
	return conn.Send(ctx, m, header, out)
}

// Listen passes on what belongs to no request; after a break it goes on with
// the new conversation.
func (k *Keeper) Listen(ctx context.Context, lastEvent string, out Out) error {
	once := &headOnce{Out: out}
	for {
		conn, err := k.get(ctx, false)
		if err == nil {
			err = conn.Listen(ctx, lastEvent, once)
		}
		if ctx.Err() != nil || !errors.Is(err, ErrGone) && !errors.Is(err, errPause) {
			return err
		}
		select {
		case <-time.After(firstPause):
		case <-ctx.Done():
			return ctx.Err()
		case <-k.done:
			return ErrGone
		}
	}
}

type headOnce struct {
	Out
	told bool
}

func (h *headOnce) Head(status int, stream bool) {
	if !h.told {
		h.told = true
		h.Out.Head(status, stream)
	}
}

var errPause = errors.New("the upstream server ended and is being started again; try again in a moment")

// get returns the conversation, begun again if it has ended.
func (k *Keeper) get(ctx context.Context, greets bool) (Conn, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return nil, ErrGone
	}
	if k.conn != nil {
		select {
		case <-k.conn.Done():
			k.broke()
		default:
			return k.conn, nil
		}
	}
	if time.Now().Before(k.next) {
		return nil, errPause
	}
	conn, err := k.Open()
	if err != nil {
		k.broke()
		return nil, fmt.Errorf("the upstream server cannot be reached: %w", err)
	}
	k.conn, k.began = conn, time.Now()
	if k.greeting != nil && !greets {
		if err := k.greet(ctx); err != nil {
			err = errors.Join(err, conn.Close())
			k.broke()
			return nil, fmt.Errorf("the upstream server did not take the handshake again: %w", err)
		}
	}
	return conn, nil
}

// broke notes a break and when the next try is due.
func (k *Keeper) broke() {
	if k.conn != nil && time.Since(k.began) > held {
		k.pause = 0
	}
	k.conn = nil
	k.next = time.Now().Add(k.pause)
	k.pause = min(max(2*k.pause, firstPause), maxPause)
}

// greet repeats the client's handshake.
func (k *Keeper) greet(ctx context.Context) error {
	if err := k.conn.Send(ctx, k.greeting, k.header, Discard{}); err != nil {
		return err
	}
	if k.greeted == nil {
		return nil
	}
	return k.conn.Send(ctx, k.greeted, k.header, Discard{})
}

// Discard is an [Out] that nobody reads.
type Discard struct{}

// Head does nothing.
func (Discard) Head(int, bool) {}

// Event does nothing.
func (Discard) Event(wire.Event) error { return nil }
