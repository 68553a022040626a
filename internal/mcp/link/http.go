package link

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"sync"

	"github.com/seed-3ebc6b8a/gatehouse/internal/mcp/wire"
)

// HTTP is a conversation over Streamable HTTP.
type HTTP struct {
	pool *Pool
	url  string
	to   place // for the pool, if it can
	// header is what is sent with every message besides, such as a credential;
	// it is asked for anew each time.
	header func(context.Context) (http.Header, error)

	mu      sync.Mutex
	session string
	done    chan struct{}
	closed  bool
}

// NewHTTP makes a conversation with the server at a URL.
// header, if it is not nil, says what is sent with every message besides.
func NewHTTP(pool *Pool, url string, header func(context.Context) (http.Header, error)) *HTTP {
	return &HTTP{pool: pool, url: url, to: pool.place(url), header: header, done: make(chan struct{})}
}

// Done is closed when the conversation was closed.
func (h *HTTP) Done() <-chan struct{} { return h.done }

// Send posts a message and passes the answer on as it comes.
func (h *HTTP) Send(ctx context.Context, m *wire.Message, header http.Header, out Out) error {
	all, err := h.headers(ctx, header)
	if err != nil {
		return err
	}
	all["Content-Type"] = jsonType
	resp, err := h.post(ctx, all, m.Raw)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if m.Method == "initialize" {
		if id := resp.Header.Get(sessionHeader); id != "" {
			h.mu.Lock()
			h.session = id
			h.mu.Unlock()
		}
	}
	return pass(resp, m.Kind() == wire.Request, out)
}

// post sends a message over a connection of the pool, or as the client does it.
func (h *HTTP) post(ctx context.Context, header http.Header, body []byte) (*http.Response, error) {
	if h.to != (place{}) && len(body) <= maxDirect {
		return h.pool.post(ctx, h.to, header, body)
	}
	return h.do(ctx, http.MethodPost, header, bytes.NewReader(body))
}

func (h *HTTP) do(ctx context.Context, method string, header http.Header, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, h.url, body)
	if err != nil {
		return nil, err
	}
	req.Header = header
	return h.pool.client.Do(req)
}

// Listen opens the stream of messages that belong to no request.
func (h *HTTP) Listen(ctx context.Context, lastEvent string, out Out) error {
	header, err := h.headers(ctx, nil)
	if err != nil {
		return err
	}
	header.Set("Accept", "text/event-stream")
	if lastEvent != "" {
		header.Set("Last-Event-ID", lastEvent)
	}
	resp, err := h.do(ctx, http.MethodGet, header, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusMethodNotAllowed || resp.StatusCode == http.StatusNotFound {
		return ErrNoStream
	}
	return pass(resp, false, out)
}

// What goes with every message. Nobody changes a header's values.
const sessionHeader = "Mcp-Session-Id"

var (
	jsonType = []string{"application/json"}
	accepts  = []string{"application/json, text/event-stream"}
)

// headers are those of a message: what is handed on, then ours, which count.
func (h *HTTP) headers(ctx context.Context, header http.Header) (http.Header, error) {
	all := make(http.Header, len(header)+4)
	maps.Copy(all, header)
	if h.header != nil {
		own, err := h.header(ctx)
		if err != nil {
			return nil, err
		}
		maps.Copy(all, own)
	}
	all["Accept"] = accepts
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.session != "" {
		all[sessionHeader] = []string{h.session}
	}
	return all, nil
}

// Close ends the session at the upstream.
func (h *HTTP) Close() error {
	h.mu.Lock()
	id, was := h.session, h.closed
	h.closed = true
	h.mu.Unlock()
	if was {
		return nil
	}
	close(h.done)
	if id == "" {
		return nil
	}
	header, err := h.headers(context.Background(), nil)
	if err != nil {
		return err
	}
	resp, err := h.do(context.Background(), http.MethodDelete, header, nil)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// statusError says that an upstream answered with a status and no message.
type statusError struct{ status int }

// Error names the status.
func (e *statusError) Error() string {
	return fmt.Sprintf("the upstream answered with HTTP status %d", e.status)
}

// Status returns the HTTP status that an upstream answered with instead of a
// message, 0 if the error is another.
func Status(err error) int {
	var s *statusError
	if errors.As(err, &s) {
		return s.status
	}
	return 0
}

// pass hands an answer on: one message, or a stream of them.
func pass(resp *http.Response, wanted bool, out Out) error {
	kind := resp.Header.Get("Content-Type")
	if kind != jsonType[0] {
		kind, _, _ = mime.ParseMediaType(kind) // what is no media type is no message
	}
	switch {
	case kind == "text/event-stream" && resp.StatusCode < http.StatusBadRequest:
		out.Head(resp.StatusCode, true)
		return passEvents(wire.NewReader(resp.Body), out)
	case kind == "application/json":
		body, err := io.ReadAll(io.LimitReader(resp.Body, wire.MaxEvent+1))
		if err != nil {
			return err
		}
		if len(body) > wire.MaxEvent {
			return wire.ErrTooLarge
		}
		out.Head(resp.StatusCode, false)
		return out.Event(wire.Event{Data: body})
	case resp.StatusCode >= http.StatusBadRequest:
		return &statusError{resp.StatusCode}
	case wanted:
		return fmt.Errorf("the upstream answered %s with %q, which is no message", resp.Status, kind)
	}
	out.Head(resp.StatusCode, false)
	return nil
}

func passEvents(in *wire.Reader, out Out) error {
	for {
		e, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := out.Event(e); err != nil {
			return err
		}
	}
}
