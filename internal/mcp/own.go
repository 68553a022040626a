package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
)

// Effect performs what the gate let through.
type Effect interface {
	// Serves says whether an operation is performed here.
	Serves(operation string) bool
	// Run performs the operation of a call.
	Run(ctx context.Context, c *call.Call) (any, error)
}

type server struct {
	opts Options
}

type callerKey struct{}

// ownTools serves the gate's own operations, as an upstream within this
// process. Every request says who makes it; there are no sessions of the
// protocol that could be taken over. Who may address the gate is checked at its
// own door.
func ownTools(opts Options) http.Handler {
	s := &server{opts: opts}
	return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s.tools() },
		&sdk.StreamableHTTPOptions{Stateless: true, JSONResponse: true, MaxRequestBodyBytes: maxBody, DisableLocalhostProtection: true})
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

// tools makes the server with one tool per endpoint.
func (s *server) tools() *sdk.Server {
	srv := sdk.NewServer(&sdk.Implementation{Name: "gatehouse", Version: s.opts.Version}, &sdk.ServerOptions{
		Instructions: "The gate's own operations. Call mcp_aql_read with operation \"introspect\" for the list. " +
			"A call may be denied or wait for a person; the answer says so and what you may do next.",
	})
	for _, e := range call.Endpoints() {
		reads, destroys := e == call.Read, e != call.Read && e != call.Create
		srv.AddTool(&sdk.Tool{
			Name:        "mcp_aql_" + strings.ToLower(e.String()),
			Description: describe(e),
			InputSchema: json.RawMessage(inputSchema),
			Annotations: &sdk.ToolAnnotations{ReadOnlyHint: reads, DestructiveHint: &destroys, IdempotentHint: reads},
		}, func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return s.call(ctx, e, req.Params.Arguments)
		})
	}
	return srv
}

const inputSchema = `{"type":"object","required":["operation"],"additionalProperties":false,"properties":{
"operation":{"type":"string","description":"What to do; introspect lists the operations."},
"element_type":{"type":"string","description":"The type of element the operation is about."},
"params":{"type":"object","description":"The operation's parameters."}}}`

// describe lists the operations of an endpoint.
func describe(e call.Endpoint) string {
	var names []string
	for _, op := range call.Operations() {
		if op.Endpoint == e {
			names = append(names, op.Name)
		}
	}
	return fmt.Sprintf("%s operations of the gate (%s): %s", e, e.Base(), strings.Join(names, ", "))
}

// request is what a tool takes.
type request struct {
	Operation   string         `json:"operation"`
	ElementType string         `json:"element_type"`
	Params      jsontext.Value `json:"params"`
}

// call takes one tool call through the gate and performs it if it is allowed.
func (s *server) call(ctx context.Context, e call.Endpoint, args json.RawMessage) (*sdk.CallToolResult, error) {
	var in request
	if err := jsonv2.Unmarshal(args, &in, jsonv2.RejectUnknownMembers(true)); err != nil {
		return failed("The arguments are not what this tool takes (operation, element_type, params): " + err.Error()), nil
	}
	who, ok := ctx.Value(callerKey{}).(Who)
	if !ok {
		return failed("Denied: nobody said who is calling."), nil
	}
	if op, known := call.LookupOperation(in.Operation); known && op.Endpoint == e && !s.opts.Effect.Serves(op.Name) {
		return failed(op.Name + " is not performed by this version of the gate; nothing was done."), nil
	}
	c := &call.Call{Kind: call.Native, Surface: "mcp", Principal: who.Principal, Held: who.Held, Operation: in.Operation, Endpoint: e, ElementType: in.ElementType, Args: in.Params}
	ans := s.opts.Gate.Submit(ctx, gate.Submission{Call: c, Runs: "gate"})
	if ans.Verdict != gate.Allowed {
		return failed(ans.Message), nil
	}
	out, err := s.opts.Effect.Run(ctx, c)
	outcome, detail := gate.Succeeded, ""
	if err != nil {
		outcome, detail = gate.Failed, err.Error()
	}
	if ferr := s.opts.Gate.Finish(context.WithoutCancel(ctx), ans.CallID, who.Principal, outcome, detail); ferr != nil {
		s.opts.Log.Error("an outcome could not be recorded", "call", ans.CallID, "error", ferr)
	}
	if err != nil {
		return failed(err.Error()), nil
	}
	text, err := jsonv2.Marshal(out)
	if err != nil {
		return nil, err
	}
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(text)}}, StructuredContent: json.RawMessage(text)}, nil
}

// failed is a result that the model reads as a failure.
func failed(text string) *sdk.CallToolResult {
	return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: text}}}
}
