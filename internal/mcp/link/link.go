package link

import (
	"context"
	"errors"
	"net/http"

	"github.com/seed-3ebc6b8a/gatehouse/internal/mcp/wire"
)

// Out takes what an upstream says.
type Out interface {
	// Head tells how the answer begins: its HTTP status, and whether more than
	// one message may come. It comes before the first message, once.
	Head(status int, stream bool)
	// Event takes one message. An error ends the conversation.
	Event(e wire.Event) error
}

// Conn is a conversation with an upstream, for one client.
type Conn interface {
	// Send passes a message on. For a request it returns after the response
	// has gone to out; everything that belongs to the request goes there
	// before it. When the context ends the upstream is told to stop.
	Send(ctx context.Context, m *wire.Message, header http.Header, out Out) error
	// Listen passes on what belongs to no request, until the context ends.
	Listen(ctx context.Context, lastEvent string, out Out) error
	// Done is closed when the conversation is over for good.
	Done() <-chan struct{}
	// Close ends it.
	Close() error
}

// ErrGone says that the upstream is not there any more.
var ErrGone = errors.New("the upstream server ended")

// ErrNoStream says that an upstream has no stream of its own messages.
var ErrNoStream = errors.New("the upstream has no stream for messages of its own")
