package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/seed-3ebc6b8a/gatehouse/internal/aql"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
)

// Options is what a server is made of.
type Options struct {
	// Tools are the gate's own operations.
	Tools *aql.Tools
	// Caller says who makes a request, and whether the gate holds them; an
	// error is answered with 401.
	Caller  func(*http.Request) (p call.Principal, held bool, err error)
	Version string
}

type server struct {
	opts Options
}

type callerKey struct{}

// Handler serves MCP over HTTP. Every request says who makes it; there are no
// sessions of the protocol that could be taken over.
func Handler(opts Options) http.Handler {
	s := &server{opts: opts}
	protocol := sdk.NewStreamableHTTPHandler(func(r *http.Request) *sdk.Server { return s.tools(r.URL.Query().Get("mode") == single) },
		&sdk.StreamableHTTPOptions{Stateless: true, JSONResponse: true, MaxRequestBodyBytes: call.MaxArgs + 64<<10})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if mode := r.URL.Query().Get("mode"); mode != "" && mode != single {
			http.Error(w, fmt.Sprintf("there is no mode %q: leave it out for a tool per endpoint, or use mode=single for one", mode), http.StatusBadRequest)
			return
		}
		principal, held, err := opts.Caller(r)
		if err != nil {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		protocol.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, aql.Caller{Principal: principal, Held: held, Surface: "mcp"})))
	})
}

// single is the mode in which one tool takes the operations of all endpoints.
const single = "single"

// tools makes the server with the gate's own tools.
func (s *server) tools(oneEndpoint bool) *sdk.Server {
	srv := sdk.NewServer(&sdk.Implementation{Name: "gatehouse", Version: s.opts.Version}, &sdk.ServerOptions{
		Instructions: "The gate's own operations. Call operation \"introspect\" for the list. " +
			"A call may be denied or wait for a person; the answer says so and what you may do next.",
	})
	for _, t := range s.opts.Tools.List(oneEndpoint) {
		srv.AddTool(&sdk.Tool{
			Name: t.Name, Description: t.Description, InputSchema: json.RawMessage(t.InputSchema),
			Annotations: &sdk.ToolAnnotations{ReadOnlyHint: t.ReadOnly, DestructiveHint: &t.Destructive, IdempotentHint: t.ReadOnly},
		}, func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			who, ok := ctx.Value(callerKey{}).(aql.Caller)
			if !ok {
				return nil, errors.New("nobody said who is calling")
			}
			r := s.opts.Tools.Call(ctx, who, t.Name, jsontext.Value(req.Params.Arguments))
			return &sdk.CallToolResult{
				IsError: r.IsError, Content: []sdk.Content{&sdk.TextContent{Text: r.Text}}, StructuredContent: json.RawMessage(r.Structured),
			}, nil
		})
	}
	return srv
}
