package client

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"

	"github.com/seed-3ebc6b8a/gatehouse/internal/mcp/wire"
)

// MCP is a bridge between an agent's host, which speaks MCP over standard
// input and output, and the gate's endpoint. It forwards bytes and decides
// nothing.
type MCP struct {
	http   *http.Client
	socket string
	secret string
	name   string
	path   string
	dir    string // where the host started it, which is where the agent works

	mu       sync.Mutex
	out      io.Writer
	session  string
	hello    *wire.Message // what began the session, to begin another
	version  string
	inflight map[string]context.CancelFunc
	running  sync.WaitGroup

	renewing sync.Mutex      // held while a session is begun again
	life     context.Context // ends with the input; what is listened to outlives the request that began it
}

// NewMCP makes a bridge to the upstream with a name, or to all if it is "".
func NewMCP(socket, secret, name string) *MCP {
	c := Unix(socket, secret)
	b := &MCP{http: c.http, socket: socket, secret: secret, name: name, path: "/mcp", inflight: make(map[string]context.CancelFunc)}
	if name != "" {
		b.path += "/" + name
	}
	b.dir, _ = os.Getwd() // without one it works in no workspace
	return b
}

// Run serves until the input ends. With a command it starts that server and
// brings it to the gate first.
func (b *MCP) Run(ctx context.Context, command []string, in io.Reader, out, errs io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	b.out, b.life = out, ctx
	if len(command) > 0 {
		stop, err := b.bring(ctx, command, errs)
		if err != nil {
			return err
		}
		defer stop()
	}
	lines := bufio.NewReaderSize(in, 64<<10)
	for {
		line, err := wire.ReadLine(lines)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if len(bytes.TrimSpace(line)) > 0 {
			b.take(ctx, line)
		}
	}
	cancel() // whoever asked is gone
	b.running.Wait()
	return b.end()
}

// take passes one message on. Requests run beside each other; everything else
// keeps its order.
func (b *MCP) take(ctx context.Context, line []byte) {
	m, err := wire.Parse(line)
	if err != nil {
		b.write([]byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":` + string(wire.Quote(err.Error())) + `}}`))
		return
	}
	if m.Kind() != wire.Request {
		if m.Method == "notifications/cancelled" {
			b.cancel(string(m.Value(m.Param("requestId"))))
		}
		b.send(ctx, m)
		return
	}
	id := string(m.Value(m.ID))
	ctx, cancel := context.WithCancel(ctx)
	b.mu.Lock()
	b.inflight[id] = cancel
	b.mu.Unlock()
	work := func() {
		defer func() {
			cancel()
			b.mu.Lock()
			defer b.mu.Unlock()
			delete(b.inflight, id)
		}()
		b.send(ctx, m)
	}
	if m.Method == "initialize" {
		work() // the session's name is needed for what follows
		return
	}
	b.running.Go(work)
}

// cancel ends a request of the newer wire, where closing the stream is how a
// client says so.
func (b *MCP) cancel(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if stop := b.inflight[id]; stop != nil && b.session == "" {
		stop()
	}
}

// send posts a message and writes what comes back.
func (b *MCP) send(ctx context.Context, m *wire.Message) {
	err := b.post(ctx, m)
	if err == nil || m.Kind() != wire.Request || ctx.Err() != nil {
		return
	}
	b.write([]byte(`{"jsonrpc":"2.0","id":` + string(m.Value(m.ID)) + `,"error":{"code":-32603,"message":` + string(wire.Quote(err.Error())) + `}}`))
}

func (b *MCP) post(ctx context.Context, m *wire.Message) error {
	b.mu.Lock()
	session := b.session
	b.mu.Unlock()
	resp, err := b.do(ctx, m, session)
	if err != nil {
		return err
	}
	if resp.StatusCode == http.StatusNotFound && session != "" {
		// The gate was started anew, or knows better by now who we are: the
		// protocol has a client begin again.
		resp.Body.Close()
		if session, err = b.renew(ctx, session); err != nil {
			return err
		}
		if resp, err = b.do(ctx, m, session); err != nil {
			return err
		}
	}
	defer resp.Body.Close()
	if m.Method == "initialize" {
		b.begun(resp.Header.Get("Mcp-Session-Id"), m)
	}
	return b.copy(resp)
}

// do posts one message in a session.
func (b *MCP) do(ctx context.Context, m *wire.Message, session string) (*http.Response, error) {
	req, err := b.request(ctx, http.MethodPost, bytes.NewReader(m.Raw))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if session != "" {
		req.Header.Set("Mcp-Session-Id", session)
	} else {
		b.headers(req, m)
	}
	resp, err := b.http.Do(req)
	if err != nil {
		return nil, noDaemon(err)
	}
	return resp, nil
}

// begun notes the session that a message began, if it did.
func (b *MCP) begun(id string, hello *wire.Message) {
	if id == "" {
		return
	}
	b.mu.Lock()
	b.session, b.hello = id, hello
	b.mu.Unlock()
	b.running.Go(func() { b.listen(b.life) })
}

// renew begins a session in place of one that is over and returns it, or the one
// that another request has begun meanwhile. What the gate says about itself in
// doing so it has told the host before.
func (b *MCP) renew(ctx context.Context, over string) (string, error) {
	b.renewing.Lock()
	defer b.renewing.Unlock()
	b.mu.Lock()
	session, hello := b.session, b.hello
	b.mu.Unlock()
	if session != over {
		return session, nil
	}
	resp, err := b.do(ctx, hello, "")
	if err != nil {
		return "", err
	}
	resp.Body.Close()
	id := resp.Header.Get("Mcp-Session-Id")
	if id == "" {
		return "", fmt.Errorf("the gate began no new session: %s", resp.Status)
	}
	ready, err := wire.Parse([]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`))
	if err != nil {
		return "", err
	}
	if resp, err = b.do(ctx, ready, id); err != nil {
		return "", err
	}
	resp.Body.Close()
	b.begun(id, hello)
	return id, nil
}

// headers says on the newer wire what the message says.
func (b *MCP) headers(req *http.Request, m *wire.Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	version := wire.Text(m.Value(m.Meta("io.modelcontextprotocol/protocolVersion")))
	if version == "" {
		version = b.version // a notification need not carry it
	}
	if version == "" {
		return
	}
	b.version = version
	req.Header.Set("Mcp-Protocol-Version", version)
	req.Header.Set("Mcp-Method", m.Method)
	switch m.Method {
	case "tools/call", "prompts/get":
		req.Header.Set("Mcp-Name", wire.EncodeHeader(m.String("name")))
	case "resources/read":
		req.Header.Set("Mcp-Name", wire.EncodeHeader(m.String("uri")))
	}
}

// copy writes the messages of an answer.
func (b *MCP) copy(resp *http.Response) error {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")) // what is none is no message
	switch kind {
	case "text/event-stream":
		in := wire.NewReader(resp.Body)
		for {
			e, err := in.Next()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			b.write(e.Data)
		}
	case "application/json":
		body, err := io.ReadAll(io.LimitReader(resp.Body, wire.MaxEvent))
		if err == nil {
			b.write(body)
		}
		return err
	}
	if resp.StatusCode >= http.StatusBadRequest {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1000)) // the status says enough
		return fmt.Errorf("the gate answered %s: %s", resp.Status, strings.TrimSpace(string(text)))
	}
	return nil
}

// listen writes what the servers say by themselves.
func (b *MCP) listen(ctx context.Context) {
	req, err := b.request(ctx, http.MethodGet, nil)
	if err != nil {
		return
	}
	req.Header.Set("Accept", "text/event-stream")
	b.mu.Lock()
	req.Header.Set("Mcp-Session-Id", b.session)
	b.mu.Unlock()
	resp, err := b.http.Do(req)
	if err != nil {
		return // there is none, or the gate is gone, which the next request tells
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusOK {
		_ = b.copy(resp) // as above
	}
}

// end ends the session.
func (b *MCP) end() error {
	b.mu.Lock()
	id := b.session
	b.mu.Unlock()
	if id == "" {
		return nil
	}
	req, err := b.request(context.Background(), http.MethodDelete, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Mcp-Session-Id", id)
	resp, err := b.http.Do(req)
	if err != nil {
		return nil // a gate that is gone has ended it
	}
	return resp.Body.Close()
}

func (b *MCP) request(ctx context.Context, method string, body io.Reader) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://gatehouse"+b.path, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json, text/event-stream")
	if b.secret != "" {
		req.Header.Set("Authorization", "Bearer "+b.secret)
	}
	if b.dir != "" {
		req.Header.Set("Gatehouse-Workspace", b.dir)
	}
	return req, nil
}

// write writes one message as a line.
func (b *MCP) write(message []byte) {
	message = bytes.TrimSpace(message)
	if len(message) == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	_, _ = b.out.Write(append(wire.OneLine(message), '\n')) // a host that is gone ends our input too
}

// bring starts a server and connects its standard input and output to the
// gate, which serves it to this agent.
func (b *MCP) bring(ctx context.Context, command []string, errs io.Writer) (stop func(), err error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", b.socket)
	if err != nil {
		return nil, noDaemon(err)
	}
	text, err := json.Marshal(command)
	if err != nil {
		return nil, err
	}
	req, err := b.request(ctx, http.MethodPost, nil)
	if err != nil {
		return nil, err
	}
	req.URL.Path += "/serve"
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "gatehouse-mcp")
	req.Header.Set("Gatehouse-Command", string(text))
	if err := req.Write(conn); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	buffered := bufio.NewReader(conn)
	resp, err := http.ReadResponse(buffered, req)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		said, _ := io.ReadAll(io.LimitReader(resp.Body, 1000)) // the status says enough
		return nil, errors.Join(fmt.Errorf("the gate answered %s: %s", resp.Status, strings.TrimSpace(string(said))), conn.Close())
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stderr = errs
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	var pumps sync.WaitGroup
	pumps.Go(func() {
		_, _ = io.Copy(stdin, buffered) // either end closes the other
		stdin.Close()
	})
	pumps.Go(func() {
		_, _ = io.Copy(conn, stdout) // as above
		conn.Close()
	})
	return func() {
		conn.Close()
		pumps.Wait()
		_ = cmd.Wait() // how the server ended is its own affair
	}, nil
}
