package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/place"
)

// Gate decides calls; [Connect] makes one of a running Gatehouse.
type Gate interface {
	// Submit puts a call before the gate and waits for a person where one can
	// be reached. An error denies.
	Submit(ctx context.Context, c Call) (Verdict, error)
	// Done reports how an allowed call ended: succeeded, failed, refused.
	Done(ctx context.Context, c Call, id, outcome, detail string) error
}

// Recorder is a gate that keeps a record of calls that the tool's own
// declaration denied, too.
type Recorder interface {
	Gate
	Refused(ctx context.Context, c Call, reason string) error
}

// Verdict is what the gate says. The zero value denies.
type Verdict struct {
	Allowed bool
	// ID names the call in the log.
	ID string
	// Message is for the model.
	Message string
	// Request is what waits for a person.
	Request string
	// State is how far the request got, Text what a person said about it.
	State, Text string
	// Args are other arguments that a person put in place.
	Args json.RawMessage
	// Budget is what the calls of a plan draw from.
	Budget string
}

// GateOptions say how a gate is reached. The zero value reaches this user's.
type GateOptions struct {
	// Home is the gate's directory.
	Home string
	// TokenFile holds an agent's token; without one the gate knows the caller
	// by its process.
	TokenFile string
	// Wait is how long a call waits for a person; 50 s if it is zero.
	Wait time.Duration
	// Dir is the working directory that calls are judged in.
	Dir string
}

// Connect returns a running Gatehouse as the gate of an agent. That none runs
// is found at the first call, which is then denied.
func Connect(o GateOptions) (Gate, error) {
	p, err := place.Find(o.Home)
	if err != nil {
		return nil, err
	}
	r := &remote{opts: o}
	if o.TokenFile != "" {
		token, err := os.ReadFile(o.TokenFile)
		if err != nil {
			return nil, fmt.Errorf("the agent's token cannot be read: %w", err)
		}
		r.token = strings.TrimSpace(string(token))
	}
	if r.opts.Wait == 0 {
		r.opts.Wait = 50 * time.Second
	}
	if r.opts.Dir, err = workspace(o.Dir); err != nil {
		return nil, err
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", p.Socket())
	}
	r.http = &http.Client{Transport: &http.Transport{DialContext: dial}}
	return r, nil
}

// remote speaks the gate's HTTP API. It has the few types it needs itself, so
// that a program of tools does not link the gate.
type remote struct {
	http  *http.Client
	token string
	opts  GateOptions
}

// Submit sends a call to the gate.
func (r *remote) Submit(ctx context.Context, c Call) (Verdict, error) {
	return r.submit(ctx, "/v1/calls", r.body(c, ""))
}

// Refused has a denied call put on record.
func (r *remote) Refused(ctx context.Context, c Call, reason string) error {
	_, err := r.submit(ctx, "/v1/calls", r.body(c, reason))
	return err
}

var _ Recorder = (*remote)(nil)

// body is a call as the gate reads it, with why it is denied already.
func (r *remote) body(c Call, denied string) map[string]any {
	return map[string]any{
		"kind": "external", "operation": c.Tool, "args": c.Args, "needs": c.Capabilities, "dir": r.opts.Dir, "path": c.Agent,
		"wait_ms": r.opts.Wait.Milliseconds(), "ask": c.Approval, "budget": c.Budget,
		"declared": map[string]any{"risk": c.Risk, "used": c.UsedDeclared, "inert": c.Inert, "denied": denied},
	}
}

// Done reports how a call ended.
func (r *remote) Done(ctx context.Context, c Call, id, outcome, detail string) error {
	return r.post(ctx, "/v1/calls/"+id+"/outcome", map[string]any{"outcome": outcome, "detail": detail, "path": c.Agent}, nil)
}

func (r *remote) post(ctx context.Context, path string, in, out any) error {
	return r.do(ctx, http.MethodPost, path, in, out)
}

func (r *remote) do(ctx context.Context, method, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://gatehouse"+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	if r.token != "" {
		req.Header.Set("Authorization", "Bearer "+r.token)
	}
	resp, err := r.http.Do(req)
	if err != nil {
		return fmt.Errorf("no gate answers: %w", err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 8<<20))
	switch {
	case err != nil:
		return err
	case resp.StatusCode/100 != 2:
		return fmt.Errorf("the gate refused the request (%s): %s", resp.Status, bytes.TrimSpace(text))
	case out == nil:
		return nil
	}
	return json.Unmarshal(text, out)
}
