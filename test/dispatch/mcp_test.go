package dispatch_test

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch"
)

// bearer adds a token to every request.
type bearer struct{ token string }

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return http.DefaultTransport.RoundTrip(r)
}

// TestToolsOverMCP: the tools are on the MCP front beside the gate's own, all of
// them together under 20 KB, and a request goes the same way there.
func TestToolsOverMCP(t *testing.T) {
	d := newDesk(t, "")
	session, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(context.Background(), &sdk.StreamableClientTransport{
		Endpoint: d.URL + "/mcp", HTTPClient: &http.Client{Transport: bearer{d.agent}}, DisableStandaloneSSE: true,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	defer session.Close()
	list, err := session.ListTools(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	if len(text) >= 20_000 {
		t.Errorf("tools/list takes %d bytes", len(text))
	}
	t.Logf("%d tools, %d bytes", len(list.Tools), len(text))
	for _, c := range []struct {
		tool    string
		args    args
		isError bool
		status  string
		score   int
	}{
		{"claude_request", args{"prompt": "Refactor auth module", "approvalPolicy": "strict"}, false, "approved", 0},
		{"codex_request", args{"prompt": "Delete all test fixtures", "fullAuto": true, "dangerouslyBypassApprovalsAndSandbox": true, "approvalPolicy": "strict"}, true, "denied", 10},
	} {
		got, err := session.CallTool(context.Background(), &sdk.CallToolParams{Name: c.tool, Arguments: c.args})
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(got.StructuredContent)
		if err != nil {
			t.Fatal(err)
		}
		a := &dispatch.Answer{}
		if err := json.Unmarshal(raw, a); err != nil || a.Approval == nil {
			t.Fatalf("%s: %s, %v", c.tool, raw, err)
		}
		if got.IsError != c.isError || a.Approval.Status != c.status || a.Approval.Score != c.score {
			t.Errorf("%s: %+v", c.tool, a.Approval)
		}
	}
	got, err := session.CallTool(context.Background(), &sdk.CallToolParams{Name: "gemini_request", Arguments: args{"prompt": "x", "disallowedTools": []string{"Write"}}})
	if err != nil || !got.IsError {
		t.Errorf("disallowedTools on Gemini: %+v, %v", got, err)
	}
}
