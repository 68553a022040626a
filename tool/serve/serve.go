package serve

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/seed-3ebc6b8a/gatehouse/tool"
	"github.com/seed-3ebc6b8a/gatehouse/tool/declare"
)

// Stdio serves one client on standard input and output, until it goes.
func Stdio(ctx context.Context, a *tool.Agent) error {
	return server(a).Run(ctx, &mcp.StdioTransport{})
}

// HTTP serves any number of clients.
func HTTP(a *tool.Agent) http.Handler {
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server(a) }, nil)
}

// server makes a server with an invocation of its own.
func server(a *tool.Agent) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: a.Name(), Version: "1"}, nil)
	inv := a.Invoke()
	for _, t := range a.Tools() {
		s.AddTool(&mcp.Tool{Name: t.Name, Description: t.Description, InputSchema: t.Schema, Annotations: annotations(&t)},
			func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return result(inv.Call(ctx, t.Name, req.Params.Arguments)), nil
			})
	}
	return s
}

// annotations are true: a tool that may write, talk or start programs is not
// read-only.
func annotations(t *declare.Tool) *mcp.ToolAnnotations {
	p := t.Policy
	acts := p == nil || p.Filesystem.Write.Mode() != declare.ModeNone || p.Exec.Mode() != declare.ModeNone || p.Network.Mode() != declare.ModeNone
	open := p == nil || p.Network.Mode() != declare.ModeNone
	return &mcp.ToolAnnotations{ReadOnlyHint: !acts, DestructiveHint: &acts, OpenWorldHint: &open}
}

func result(out tool.Outcome) *mcp.CallToolResult {
	switch {
	case out.Denied:
		return text("Denied: "+out.Reason, true)
	case out.Err != nil:
		return text(out.Err.Error(), true)
	}
	r := text(string(out.Output), false)
	var object map[string]json.RawMessage
	if json.Unmarshal(out.Output, &object) == nil {
		r.StructuredContent = out.Output
	}
	return r
}

func text(s string, failed bool) *mcp.CallToolResult {
	return &mcp.CallToolResult{IsError: failed, Content: []mcp.Content{&mcp.TextContent{Text: s}}}
}
