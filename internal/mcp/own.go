package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/seed-3ebc6b8a/gatehouse/internal/aql"
)

type server struct {
	opts Options
}

type callerKey struct{}

// ownCaller is who uses the gate's own tools, and in which mode.
type ownCaller struct {
	aql.Caller
	single bool
}

// as is the context in which the gate's own tools know their caller.
func (x *exchange) as(ctx context.Context) context.Context {
	return context.WithValue(ctx, callerKey{}, &ownCaller{
		Caller: aql.Caller{Principal: x.who.Principal, Held: x.who.Held, Surface: "mcp"},
		single: x.request.URL.Query().Get("mode") == single,
	})
}

// ownTools serves the gate's own operations, as an upstream within this
// process. Every request says who makes it; there are no sessions of the
// protocol that could be taken over. Who may address the gate is checked at its
// own door.
func ownTools(opts Options) http.Handler {
	s := &server{opts: opts}
	return sdk.NewStreamableHTTPHandler(func(r *http.Request) *sdk.Server {
		who, ok := r.Context().Value(callerKey{}).(*ownCaller)
		return s.tools(ok && who.single)
	}, &sdk.StreamableHTTPOptions{Stateless: true, JSONResponse: true, MaxRequestBodyBytes: maxBody, DisableLocalhostProtection: true})
}

// inProcess is a transport to a handler in this process.
type inProcess struct{ handler http.Handler }

// RoundTrip lets the handler answer. The answer begins when the handler says
// so and goes on while it writes.
func (t inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	read, write := io.Pipe()
	w := &pipeWriter{out: write, header: http.Header{}, begun: make(chan struct{})}
	go func() {
		t.handler.ServeHTTP(w, r)
		w.WriteHeader(http.StatusOK)
		write.Close()
	}()
	stop := context.AfterFunc(r.Context(), func() { read.CloseWithError(r.Context().Err()) })
	select {
	case <-w.begun:
		return &http.Response{
			StatusCode: w.status, Status: http.StatusText(w.status), Header: w.sent,
			Body: &stopOnClose{read, stop}, Request: r, ProtoMajor: 1, ProtoMinor: 1, ContentLength: -1,
		}, nil
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

type stopOnClose struct {
	io.ReadCloser
	stop func() bool
}

func (s *stopOnClose) Close() error {
	s.stop()
	return s.ReadCloser.Close()
}

// pipeWriter is a response that is read while it is written.
type pipeWriter struct {
	out          *io.PipeWriter
	header, sent http.Header
	status       int
	once         sync.Once
	begun        chan struct{}
}

// Header returns the headers that will be sent.
func (w *pipeWriter) Header() http.Header { return w.header }

// WriteHeader begins the answer.
func (w *pipeWriter) WriteHeader(status int) {
	w.once.Do(func() {
		w.status, w.sent = status, w.header.Clone()
		close(w.begun)
	})
}

// Write writes to whoever reads.
func (w *pipeWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.out.Write(p)
}

// Flush does nothing: what is written is read at once.
func (w *pipeWriter) Flush() {}

// single is the mode in which one tool takes the operations of all endpoints.
const single = "single"

// tools makes the server with the gate's own tools.
func (s *server) tools(oneEndpoint bool) *sdk.Server {
	opts := &sdk.ServerOptions{
		Instructions: "The gate's own operations. Call operation \"introspect\" for the list. " +
			"A call may be denied or wait for a person; the answer says so and what you may do next.",
	}
	if s.opts.Resources != nil {
		opts.Capabilities = &sdk.ServerCapabilities{Resources: &sdk.ResourceCapabilities{}}
	}
	srv := sdk.NewServer(&sdk.Implementation{Name: "gatehouse", Version: s.opts.Version}, opts)
	if s.opts.Resources != nil {
		srv.AddReceivingMiddleware(ownResources(s.opts.Resources))
	}
	for _, t := range s.opts.Tools.List(oneEndpoint) {
		srv.AddTool(&sdk.Tool{
			Name: t.Name, Description: t.Description, InputSchema: json.RawMessage(t.InputSchema),
			Annotations: &sdk.ToolAnnotations{ReadOnlyHint: t.ReadOnly, DestructiveHint: &t.Destructive, IdempotentHint: t.ReadOnly},
		}, func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			who, ok := ctx.Value(callerKey{}).(*ownCaller)
			if !ok {
				return nil, errors.New("nobody said who is calling")
			}
			r := s.opts.Tools.Call(ctx, who.Caller, t.Name, jsontext.Value(req.Params.Arguments))
			result := &sdk.CallToolResult{IsError: r.IsError, Content: []sdk.Content{&sdk.TextContent{Text: r.Text}}}
			if r.Structured != nil {
				result.StructuredContent = json.RawMessage(r.Structured)
			}
			return result, nil
		})
	}
	return srv
}
