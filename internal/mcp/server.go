package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"

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

// Options is what a server is made of.
type Options struct {
	Gate   *gate.Gate
	Effect Effect
	// Caller says who makes a request, and whether the gate holds them; an
	// error is answered with 401.
	Caller  func(*http.Request) (p call.Principal, held bool, err error)
	Version string
	Log     *slog.Logger
}

type server struct {
	opts Options
}

type callerKey struct{}

// caller is who makes a request.
type caller struct {
	principal call.Principal
	held      bool
}

// Handler serves MCP over HTTP. Every request says who makes it; there are no
// sessions of the protocol that could be taken over.
func Handler(opts Options) http.Handler {
	s := &server{opts: opts}
	protocol := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s.tools() },
		&sdk.StreamableHTTPOptions{Stateless: true, JSONResponse: true, MaxRequestBodyBytes: call.MaxArgs + 64<<10})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var who caller
		var err error
		who.principal, who.held, err = opts.Caller(r)
		if err != nil {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		protocol.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, who)))
	})
}

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
	who, ok := ctx.Value(callerKey{}).(caller)
	if !ok {
		return failed("Denied: nobody said who is calling."), nil
	}
	if op, known := call.LookupOperation(in.Operation); known && op.Endpoint == e && !s.opts.Effect.Serves(op.Name) {
		return failed(op.Name + " is not performed by this version of the gate; nothing was done."), nil
	}
	c := &call.Call{Kind: call.Native, Surface: "mcp", Principal: who.principal, Held: who.held, Operation: in.Operation, Endpoint: e, ElementType: in.ElementType, Args: in.Params}
	ans := s.opts.Gate.Submit(ctx, gate.Submission{Call: c, Runs: "gate"})
	if ans.Verdict != gate.Allowed {
		return failed(ans.Message), nil
	}
	out, err := s.opts.Effect.Run(ctx, c)
	outcome, detail := gate.Succeeded, ""
	if err != nil {
		outcome, detail = gate.Failed, err.Error()
	}
	if ferr := s.opts.Gate.Finish(context.WithoutCancel(ctx), ans.CallID, who.principal, outcome, detail); ferr != nil {
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
