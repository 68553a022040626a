package link

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/seed-3ebc6b8a/gatehouse/internal/mcp/wire"
)

// sse is the older HTTP transport: one long answer with server-sent events
// comes down, and messages go up to an address that its first event names.
type sse struct {
	client *http.Client
	header http.Header
	post   string
	body   io.ReadCloser
	in     *wire.Reader
	cancel context.CancelFunc
}

// DialSSE opens a stream to a server that speaks the older HTTP transport.
func DialSSE(client *http.Client, at string, header http.Header) (Stream, error) {
	ctx, cancel := context.WithCancel(context.Background())
	s, err := dialSSE(ctx, client, at, header)
	if err != nil {
		cancel()
		return nil, err
	}
	s.cancel = cancel
	return s, nil
}

func dialSSE(ctx context.Context, client *http.Client, at string, header http.Header) (*sse, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return nil, err
	}
	for name, values := range header {
		req.Header[name] = values
	}
	req.Header.Set("Accept", "text/event-stream")
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		return nil, &statusError{resp.StatusCode}
	}
	s := &sse{client: client, header: header, body: resp.Body, in: wire.NewReader(resp.Body)}
	first, err := s.in.Next()
	if err == nil && first.Name != "endpoint" {
		err = errors.New("the upstream does not begin with the address for messages")
	}
	if err == nil {
		s.post, err = sameOrigin(at, string(first.Data))
	}
	if err != nil {
		return nil, errors.Join(err, resp.Body.Close())
	}
	return s, nil
}

// sameOrigin resolves the address for messages. It must be the server's own:
// the credential goes there.
func sameOrigin(at, ref string) (string, error) {
	base, err := url.Parse(at)
	if err != nil {
		return "", err
	}
	to, err := base.Parse(ref)
	if err != nil {
		return "", err
	}
	if to.Scheme != base.Scheme || to.Host != base.Host {
		return "", fmt.Errorf("the upstream wants messages sent elsewhere (%s)", to.Host)
	}
	return to.String(), nil
}

// Read returns the next message.
func (s *sse) Read() ([]byte, error) {
	for {
		e, err := s.in.Next()
		if err != nil {
			return nil, err
		}
		if e.Name == "" || e.Name == "message" {
			return e.Data, nil
		}
	}
}

// Write posts a message.
func (s *sse) Write(ctx context.Context, message []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.post, bytes.NewReader(message))
	if err != nil {
		return err
	}
	for name, values := range s.header {
		req.Header[name] = values
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := s.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= http.StatusMultipleChoices {
		return &statusError{resp.StatusCode}
	}
	return nil
}

// Close ends the stream.
func (s *sse) Close() error {
	s.cancel()
	return s.body.Close()
}
