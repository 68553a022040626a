package client

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"

	"github.com/go-json-experiment/json"

	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
)

// ErrNoDaemon says that no daemon answers.
var ErrNoDaemon = errors.New("no gate is running here: start it with `gatehouse up`")

// Client is a way to a daemon.
type Client struct {
	http   *http.Client
	base   string
	secret string
}

// Unix makes a client for a unix socket.
func Unix(socket, secret string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", socket)
	}
	return &Client{http: &http.Client{Transport: &http.Transport{DialContext: dial}}, base: "http://gatehouse", secret: secret}
}

// Secret reads a credential or a token from a file, or from standard input if
// the file is "-".
func Secret(file string) (string, error) {
	if file == "" {
		return "", nil
	}
	in := os.Stdin
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return "", fmt.Errorf("the credential cannot be read: %w", err)
		}
		defer f.Close()
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, 4096))
	return strings.TrimSpace(string(data)), err
}

// Do makes one request. A nil in sends no body, a nil out reads none.
func (c *Client) Do(ctx context.Context, method, path string, in, out any) error {
	resp, err := c.send(ctx, method, path, in)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if out == nil {
		return nil
	}
	return json.UnmarshalRead(resp.Body, out)
}

// Raw makes a request with headers and a body of the caller's own, and returns
// the answer whatever its status is.
func (c *Client) Raw(ctx context.Context, method, path string, header http.Header, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, err
	}
	req.Header = header
	return c.http.Do(req)
}

// Stream copies an answer as it comes.
func (c *Client) Stream(ctx context.Context, path string, w io.Writer) error {
	resp, err := c.send(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(w, resp.Body)
	return err
}

// Watch calls fn at once and whenever something may have changed, until the
// context ends or fn fails.
func (c *Client) Watch(ctx context.Context, fn func() error) error {
	resp, err := c.send(ctx, http.MethodGet, "/v1/events", nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if !strings.HasPrefix(lines.Text(), "data:") {
			continue
		}
		if err := fn(); err != nil {
			if ctx.Err() != nil {
				return nil // it was told to end while fn was at work
			}
			return err
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return cmpErr(lines.Err(), errors.New("the gate went away"))
}

func cmpErr(err, instead error) error {
	if err != nil {
		return err
	}
	return instead
}

func (c *Client) send(ctx context.Context, method, path string, in any) (*http.Response, error) {
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, err
	}
	if c.secret != "" {
		req.Header.Set("Authorization", "Bearer "+c.secret)
	}
	resp, err := c.http.Do(req)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return nil, ErrNoDaemon
	}
	if err != nil {
		return nil, err
	}
	if resp.StatusCode >= http.StatusBadRequest {
		defer resp.Body.Close()
		return nil, readError(resp)
	}
	return resp, nil
}

// readError makes an error of a failed answer.
func readError(resp *http.Response) error {
	e := &api.Error{Status: resp.StatusCode}
	if err := json.UnmarshalRead(io.LimitReader(resp.Body, 1<<20), e); err != nil || e.Text == "" {
		e.Text = "the gate answered " + resp.Status
	}
	return e
}
