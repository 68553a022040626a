package link

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"sync"

	"github.com/seed-3ebc6b8a/gatehouse/internal/mcp/wire"
)

// Stream is one line of messages in each direction.
type Stream interface {
	// Read returns the next message.
	Read() ([]byte, error)
	// Write sends one message; it is called by one goroutine at a time.
	Write(ctx context.Context, message []byte) error
	Close() error
}

// Pipe is a conversation over a [Stream].
type Pipe struct {
	stream Stream
	// shared says that several clients use the stream, so that the ids and
	// progress tokens they choose have to be kept apart.
	shared bool

	writing sync.Mutex

	mu     sync.Mutex
	open   []*asked // in the order in which they were asked
	ears   []chan wire.Event
	kept   []wire.Event // what nobody was there to hear
	number int64
	err    error
	done   chan struct{}
}

// asked is a request that waits for its response.
type asked struct {
	id, sent       string // as the client wrote it, and as the upstream got it
	token, tokened string // its progress token, the same
	events         chan wire.Event
	gone           chan struct{}
}

// maxKept bounds what is kept for a listener that may come.
const maxKept = 256

// NewPipe makes a conversation over a stream and reads it until it ends.
func NewPipe(s Stream, shared bool) *Pipe {
	p := &Pipe{stream: s, shared: shared, done: make(chan struct{})}
	go p.read()
	return p
}

// Done is closed when the stream has ended.
func (p *Pipe) Done() <-chan struct{} { return p.done }

// Close ends the stream.
func (p *Pipe) Close() error { return p.stream.Close() }

// Send writes a message, and for a request passes on what belongs to it.
func (p *Pipe) Send(ctx context.Context, m *wire.Message, _ http.Header, out Out) error {
	if m.Kind() != wire.Request {
		raw := m.Raw
		if p.shared && m.Method == "notifications/cancelled" {
			raw = p.cancelled(m)
		}
		if err := p.write(ctx, raw); err != nil {
			return err
		}
		out.Head(http.StatusAccepted, false)
		return nil
	}
	a, raw := p.ask(m)
	defer p.forget(a)
	if err := p.write(ctx, raw); err != nil {
		return err
	}
	begun := false
	for {
		select {
		case e := <-a.events:
			last := isResponse(e.Data, a.id)
			if !begun {
				// A response that comes first is a plain answer.
				out.Head(http.StatusOK, !last)
				begun = true
			}
			if err := out.Event(e); err != nil || last {
				return err
			}
		case <-ctx.Done():
			p.cancel(a)
			return ctx.Err()
		case <-p.done:
			return p.ended()
		}
	}
}

// ask notes a request and returns it as the upstream gets it.
func (p *Pipe) ask(m *wire.Message) (*asked, []byte) {
	id, token := m.Value(m.ID), m.Value(m.Meta("progressToken"))
	a := &asked{id: string(id), sent: string(id), token: string(token), tokened: string(token), events: make(chan wire.Event, 64), gone: make(chan struct{})}
	raw := m.Raw
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shared {
		p.number++
		n := strconv.FormatInt(p.number, 10)
		a.sent = n
		edits := []wire.Edit{{Span: m.ID, New: []byte(n)}}
		if token != nil {
			a.tokened = n
			edits = append(edits, wire.Edit{Span: m.Meta("progressToken"), New: []byte(n)})
		}
		slices.SortFunc(edits, func(x, y wire.Edit) int { return x.Start - y.Start })
		raw = wire.Splice(m.Raw, edits...)
	}
	p.open = append(p.open, a)
	return a, raw
}

func (p *Pipe) forget(a *asked) {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(a.gone)
	p.open = slices.DeleteFunc(p.open, func(o *asked) bool { return o == a })
}

// cancel tells the upstream that nobody waits for the response any more.
func (p *Pipe) cancel(a *asked) {
	_ = p.write(context.Background(), []byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+a.sent+`,"reason":"the client is gone"}}`)) // if it cannot be told it is gone itself
}

// cancelled puts the upstream's id into a client's own cancellation.
func (p *Pipe) cancelled(m *wire.Message) []byte {
	at := m.Param("requestId")
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range p.open {
		if !at.IsZero() && a.id == string(m.Value(at)) {
			return wire.Splice(m.Raw, wire.Edit{Span: at, New: []byte(a.sent)})
		}
	}
	return m.Raw
}

func (p *Pipe) write(ctx context.Context, raw []byte) error {
	p.writing.Lock()
	defer p.writing.Unlock()
	return p.stream.Write(ctx, wire.OneLine(raw))
}

func (p *Pipe) ended() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return errors.Join(ErrGone, p.err)
}

// read reads the stream and gives each message to whom it belongs.
func (p *Pipe) read() {
	defer close(p.done)
	for {
		raw, err := p.stream.Read()
		if err != nil {
			err = errors.Join(err, p.stream.Close()) // a process is waited for
			p.mu.Lock()
			p.err = err
			p.mu.Unlock()
			return
		}
		if len(bytes.TrimSpace(raw)) == 0 {
			continue
		}
		m, err := wire.Parse(raw)
		if err != nil {
			continue // a server that prints to its standard output is common; it is not heard
		}
		p.deliver(m)
	}
}

func (p *Pipe) deliver(m *wire.Message) {
	p.mu.Lock()
	to, raw := p.owner(m)
	if to != nil {
		p.mu.Unlock()
		select {
		case to.events <- wire.Event{Data: raw}:
		case <-to.gone:
		}
		return
	}
	defer p.mu.Unlock()
	if m.Kind() == wire.Response {
		return // to a request that nobody waits for
	}
	e := wire.Event{Data: m.Raw}
	for _, ear := range p.ears {
		select {
		case ear <- e:
			return
		default: // it does not keep up
		}
	}
	if len(p.kept) < maxKept {
		p.kept = append(p.kept, e)
	}
}

// subscriptionID is the metadata that ties a notification to the request that
// subscribed to it.
const subscriptionID = "io.modelcontextprotocol/subscriptionId"

// owner finds the request that a message belongs to, nil for none, and writes
// the message as that request's client knows it.
func (p *Pipe) owner(m *wire.Message) (*asked, []byte) {
	by := func(at wire.Span, sent, own func(*asked) string) (*asked, []byte) {
		for _, a := range p.open {
			if sent(a) != "" && sent(a) == string(m.Value(at)) {
				return a, wire.Splice(m.Raw, wire.Edit{Span: at, New: []byte(own(a))})
			}
		}
		return nil, nil
	}
	if m.Kind() == wire.Response {
		return by(m.ID, func(a *asked) string { return a.sent }, func(a *asked) string { return a.id })
	}
	if at := m.Param("progressToken"); m.Method == "notifications/progress" && !at.IsZero() {
		return by(at, func(a *asked) string { return a.tokened }, func(a *asked) string { return a.token })
	}
	if at := m.Meta(subscriptionID); !at.IsZero() {
		return by(at, func(a *asked) string { return a.sent }, func(a *asked) string { return a.id })
	}
	switch n := len(p.open); {
	case n == 1 || n > 0 && len(p.ears) == 0:
		return p.open[n-1], m.Raw
	}
	return nil, nil
}

// Listen passes on what belongs to no request.
func (p *Pipe) Listen(ctx context.Context, _ string, out Out) error {
	ear := make(chan wire.Event, maxKept)
	p.mu.Lock()
	for _, e := range p.kept {
		ear <- e
	}
	p.kept = nil
	p.ears = append(p.ears, ear)
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.ears = slices.DeleteFunc(p.ears, func(c chan wire.Event) bool { return c == ear })
	}()
	out.Head(http.StatusOK, true)
	for {
		select {
		case e := <-ear:
			if err := out.Event(e); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		case <-p.done:
			return p.ended()
		}
	}
}

// isResponse says whether a message is the response to the request with an id.
func isResponse(raw []byte, id string) bool {
	m, err := wire.Parse(raw)
	return err == nil && m.Kind() == wire.Response && string(m.Value(m.ID)) == id
}
