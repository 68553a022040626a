package dispatch_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch"
	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch/flight"
)

// cached stands in for a CLI whose model read most of its input from a cache.
const cached = `#!/bin/sh
cat >/dev/null
echo '{"type":"result","subtype":"success","is_error":false,"result":"the answer text","session_id":"s-1","stop_reason":"end_turn","usage":{"input_tokens":10,"output_tokens":5,"cache_read_input_tokens":1000,"cache_creation_input_tokens":20},"modelUsage":{"claude-sonnet-4-5":{}}}'
`

// TestCacheResources: an agent reads the cache state of its own requests over
// MCP in both spellings, and finds tokens, hashes and sums and no text; another
// agent finds nothing of it. All of it is there after kill -9, and so is the
// trace, for the agent and for an operator.
func TestCacheResources(t *testing.T) {
	t.Parallel()
	w := newWard(t, cached, "[dispatch]\ncli_effects = \"classic\"\n[cache_awareness]\nwarn_on_ttl_expiry = true\n")
	credential, file := w.Enrol("ann")
	coder, other := w.Agent(credential, "coder"), w.Agent(credential, "other")
	dir := t.TempDir()
	tool := func(token, name string, args map[string]any, answer any) {
		t.Helper()
		session := connect(t, w, token)
		result, err := session.CallTool(context.Background(), &sdk.CallToolParams{Name: name, Arguments: args})
		if err != nil {
			t.Fatal(err)
		}
		text := result.Content[0].(*sdk.TextContent).Text
		if err := json.Unmarshal([]byte(text), answer); err != nil {
			t.Fatalf("%s: %v in %s", name, err, text)
		}
	}
	var got struct {
		Success  bool   `json:"success"`
		Error    string `json:"error"`
		Response string `json:"response"`
	}
	tool(coder, "claude_request", map[string]any{"promptParts": map[string]any{"system": "You review.", "task": "Look at the words"}, "workingDir": dir, "correlationId": "traced"}, &got)
	if got.Response != "the answer text" {
		t.Fatalf("%+v", got)
	}
	var page flight.Page
	tool(coder, "approval_list", map[string]any{"cli": "claude", "status": "approved", "maxScore": 5}, &page)
	if len(page.Approvals) != 1 || page.Approvals[0].PrefixHash == "" || page.Approvals[0].Usage == nil || page.Approvals[0].CorrelationID != "traced" {
		t.Fatalf("%+v", page)
	}
	prefix := page.Approvals[0].PrefixHash
	w.Kill()
	w.Up()
	for _, uri := range []string{"cache_state://global", "cache-state://global", "cache_state://prefix/" + prefix, "cache-state://session/" + page.Approvals[0].SessionID} {
		text := read(t, connect(t, w, coder), uri)
		if !strings.Contains(text, `"totalCacheReadTokens":1000`) || !strings.Contains(text, `"hitRate":1`) {
			t.Errorf("%s: %s", uri, text)
		}
		for _, word := range []string{"words", "You review", "answer text"} {
			if strings.Contains(text, word) {
				t.Errorf("%s shows %q: %s", uri, word, text)
			}
		}
	}
	if text := read(t, connect(t, w, other), "cache_state://global"); !strings.Contains(text, `"requestCount":0`) {
		t.Errorf("another agent's: %s", text)
	}
	if text := read(t, connect(t, w, other), "cache_state://prefix/"+prefix); text != "" {
		t.Errorf("another agent's prefix: %s", text)
	}
	var refused struct {
		Error string `json:"error"`
	}
	tool(other, "dispatch_trace", map[string]any{"correlationId": "traced"}, &refused)
	if !strings.Contains(refused.Error, "nothing of yours") {
		t.Errorf("another agent's trace: %+v", refused)
	}
	var trace dispatch.Trace
	tool(coder, "dispatch_trace", map[string]any{"correlationId": "traced"}, &trace)
	if len(trace.Requests) != 1 || trace.Requests[0].State != "completed" || trace.Requests[0].Usage.CacheReadTokens != 1000 || len(trace.Records) < 2 {
		t.Errorf("%+v", trace)
	}
	out := w.Must("trace", "traced", "--credential-file", file)
	for _, want := range []string{"claude_request by coder: approved, score 0 (balanced)", "1000 from the cache", "completed, exit code 0", page.Approvals[0].ID, "allowed", "succeeded"} {
		if !strings.Contains(out, want) {
			t.Errorf("gatehouse trace does not say %q:\n%s", want, out)
		}
	}
	if logs, err := filepath.Glob(filepath.Join(w.Home, "jobs", "*.out")); err != nil || len(logs) != 1 {
		t.Errorf("%v %v", logs, err)
	} else if fi, err := os.Stat(logs[0]); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", fi.Mode(), err)
	}
}

// read reads a resource; "" if there is none.
func read(t *testing.T, s *sdk.ClientSession, uri string) string {
	t.Helper()
	got, err := s.ReadResource(context.Background(), &sdk.ReadResourceParams{URI: uri})
	if err != nil {
		if strings.Contains(err.Error(), "not found") {
			return ""
		}
		t.Fatalf("%s: %v", uri, err)
	}
	return got.Contents[0].Text
}

// connect opens an agent's MCP session, which ends with the test.
func connect(t *testing.T, w *ward, token string) *sdk.ClientSession {
	t.Helper()
	own := &http.Transport{}
	session, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(context.Background(), &sdk.StreamableClientTransport{
		Endpoint: w.URL + "/mcp", HTTPClient: &http.Client{Transport: withToken{own, token}}, DisableStandaloneSSE: true,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = session.Close() // the gate may have been killed in between
		own.CloseIdleConnections()
	})
	return session
}

type withToken struct {
	http.RoundTripper
	token string
}

func (b withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return b.RoundTripper.RoundTrip(r)
}
