package e2e_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
)

// model is an agent that speaks MCP. It keeps everything it was told.
type model struct {
	t       testing.TB
	session *sdk.ClientSession

	mu    sync.Mutex
	heard strings.Builder
}

// model connects an agent to the MCP endpoint.
func (w *world) model(t *testing.T, token string) *model {
	t.Helper()
	s, err := connectMCP(t, w.Gate, token)
	if err != nil {
		t.Fatal(err)
	}
	return &model{t: t, session: s}
}

// reply is what an operation answered.
type reply struct {
	text   string
	failed bool
	fields map[string]any
}

// op calls an operation by its endpoint.
func (m *model) op(operation string, params map[string]any) reply {
	m.t.Helper()
	endpoint := "mcp_aql_read"
	if row, ok := call.LookupOperation(operation); ok {
		endpoint = "mcp_aql_" + strings.ToLower(row.Endpoint.String())
	}
	args := map[string]any{"operation": operation}
	if params != nil {
		args["params"] = params
	}
	return m.call(endpoint, args)
}

// call calls a tool.
func (m *model) call(tool string, args map[string]any) reply {
	m.t.Helper()
	res, err := m.session.CallTool(context.Background(), &sdk.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		m.t.Fatalf("%s %v: %v", tool, args, err)
	}
	r := reply{text: res.Content[0].(*sdk.TextContent).Text, failed: res.IsError}
	structured, err := json.Marshal(res.StructuredContent, json.Deterministic(true))
	if err != nil {
		m.t.Fatal(err)
	}
	r.fields, _ = res.StructuredContent.(map[string]any)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.heard.WriteString(r.text + "\n" + string(structured) + "\n")
	return r
}

// ok is op for what has to succeed.
func (m *model) ok(operation string, params map[string]any) reply {
	m.t.Helper()
	r := m.op(operation, params)
	if r.failed {
		m.t.Fatalf("%s %v: %s", operation, params, r.text)
	}
	return r
}

// refused is op for what has to fail, with words in the answer.
func (m *model) refused(words, operation string, params map[string]any) reply {
	m.t.Helper()
	r := m.op(operation, params)
	if !r.failed || !strings.Contains(r.text, words) {
		m.t.Errorf("%s %v: failed %v, %s; want a refusal with %q", operation, params, r.failed, r.text, words)
	}
	return r
}

// str is a field of the answer, by its path.
func (r reply) str(path ...string) string {
	var v any = r.fields
	for _, p := range path {
		m, _ := v.(map[string]any)
		v = m[p]
	}
	s, _ := v.(string)
	return s
}

// is says whether a field is true.
func (r reply) is(path ...string) bool {
	var v any = r.fields
	for _, p := range path {
		m, _ := v.(map[string]any)
		v = m[p]
	}
	b, _ := v.(bool)
	return b
}

// codes looks at what waits for a code, as an approver.
func (w *world) codes() []admin.Challenge {
	w.t.Helper()
	got := &api.ChallengeList{}
	w.do("GET", "/v1/challenges", nil, got)
	return got.Challenges
}

// code is the code of one challenge.
func (w *world) code(id string) string {
	w.t.Helper()
	for _, c := range w.codes() {
		if c.ID == id {
			return c.Code
		}
	}
	w.t.Fatalf("no challenge %s waits", id)
	return ""
}

// confirmed has a pinned call approved and made: it asks, a person approves
// with a second factor, and the call is made again.
func (w *world) confirmed(m *model, a *authenticator, operation string, params map[string]any) reply {
	w.t.Helper()
	asked := m.op(operation, params)
	id := asked.str("request")
	if id == "" {
		w.t.Fatalf("%s asks nobody: %s", operation, asked.text)
	}
	if err := w.answer(id, "approve", func(r *admin.Request) any { return &api.ApproveRequest{Digest: r.Digest, Code: a.next()} }); err != nil {
		w.t.Fatalf("approve %s: %v", operation, err)
	}
	return m.ok(operation, params)
}

// sessionOK approves an operation for the session.
func (w *world) sessionOK(m *model, operation string, params map[string]any) reply {
	w.t.Helper()
	asked := m.op(operation, params)
	if !asked.failed {
		return asked
	}
	id := asked.str("request")
	if id == "" {
		w.t.Fatalf("%s asks nobody: %s", operation, asked.text)
	}
	if err := w.answer(id, "approve", func(r *admin.Request) any { return &api.ApproveRequest{Digest: r.Digest, Offer: len(r.Offers) - 1} }); err != nil {
		w.t.Fatalf("approve %s: %v", operation, err)
	}
	return m.ok(operation, params)
}
