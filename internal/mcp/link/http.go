package link

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"sync"

	"github.com/seed-3ebc6b8a/gatehouse/internal/mcp/wire"
)

// HTTP is a conversation over Streamable HTTP.
type HTTP struct {
	client *http.Client
	url    string
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
func NewHTTP(client *http.Client, url string, header func(context.Context) (http.Header, error)) *HTTP {
	return &HTTP{client: client, url: url, header: header, done: make(chan struct{})}
}

// Done is closed when the conversation was closed.
func (h *HTTP) Done() <-chan struct{} { return h.done }

// Send posts a message and passes the answer on as it comes.
func (h *HTTP) Send(ctx context.Context, m *wire.Message, header http.Header, out Out) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url, bytes.NewReader(m.Raw))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	if err := h.headers(req, header); err != nil {
		return err
	}
	resp, err := h.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if id := resp.Header.Get("Mcp-Session-Id"); id != "" && m.Method == "initialize" {
		h.mu.Lock()
		h.session = id
		h.mu.Unlock()
	}
	return pass(resp, m.Kind() == wire.Request, out)
}

// Listen opens the stream of messages that belong to no request.
func (h *HTTP) Listen(ctx context.Context, lastEvent string, out Out) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, h.url, nil)
	if err != nil {
		return err
	}
	if err := h.headers(req, nil); err != nil {
		return err
	}
	req.Header.Set("Accept", "text/event-stream")
	if lastEvent != "" {
		req.Header.Set("Last-Event-ID", lastEvent)
	}
	resp, err := h.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusMethodNotAllowed || resp.StatusCode == http.StatusNotFound {
		return ErrNoStream
	}
	return pass(resp, false, out)
}

func (h *HTTP) headers(req *http.Request, header http.Header) error {
	for name, values := range header {
		req.Header[name] = values
	}
	if h.header != nil {
		own, err := h.header(req.Context())
		if err != nil {
			return err
		}
		for name, values := range own {
			req.Header[name] = values // ours count
		}
	}
	req.Header.Set("Accept", "application/json, text/event-stream")
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.session != "" {
		req.Header.Set("Mcp-Session-Id", h.session)
	}
	return nil
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
	req, err := http.NewRequest(http.MethodDelete, h.url, nil)
	if err != nil {
		return err
	}
	if err := h.headers(req, nil); err != nil {
		return err
	}
	resp, err := h.client.Do(req)
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
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")) // what is no media type is no message
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
