package e2e_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/test/gatetest"
)

// bearer adds a token to every request.
type bearer struct{ token string }

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if b.token != "" {
		r.Header.Set("Authorization", "Bearer "+b.token)
	}
	return http.DefaultTransport.RoundTrip(r)
}

func connectMCP(t *testing.T, g *gatetest.Gate, token string) (*sdk.ClientSession, error) {
	t.Helper()
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(context.Background(), &sdk.StreamableClientTransport{
		Endpoint: g.URL + "/mcp", HTTPClient: &http.Client{Transport: bearer{token}}, DisableStandaloneSSE: true,
	}, nil)
	if err == nil {
		t.Cleanup(func() { session.Close() })
	}
	return session, err
}

// TestMCPEndpoint drives /mcp with the official client: every call passes the
// gate, and what is not allowed is told to the model.
func TestMCPEndpoint(t *testing.T) {
	t.Parallel()
	g := gatetest.Start(t)
	credential, _ := g.Enrol("ann")
	token := g.Agent(credential, "coder")
	if _, err := connectMCP(t, g, ""); err == nil {
		t.Error("the endpoint answers a stranger")
	}
	if _, err := connectMCP(t, g, credential); err == nil {
		t.Error("the endpoint takes an approver's credential")
	}
	session, err := connectMCP(t, g, token)
	if err != nil {
		t.Fatal(err)
	}
	tools, err := session.ListTools(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	own := slices.DeleteFunc(slices.Clone(tools.Tools), func(tool *sdk.Tool) bool { return !strings.HasPrefix(tool.Name, "mcp_aql") })
	for _, tool := range own {
		if tool.Annotations.ReadOnlyHint != (tool.Name == "mcp_aql_read") {
			t.Errorf("%s says that it reads only: %v", tool.Name, tool.Annotations.ReadOnlyHint)
		}
	}
	if len(own) != 5 {
		t.Errorf("%d tools, want one per endpoint", len(own))
	}
	tests := []struct {
		tool, operation string
		wantError       bool
		want            string
	}{
		{"mcp_aql_read", "introspect", false, `"name":"delete_element"`},
		{"mcp_aql_read", "get_permission_authority", false, "advisory"},
		{"mcp_aql_create", "introspect", true, "READ endpoint"},
		{"mcp_aql_read", "introspekt", true, `did you mean "introspect"`},
		{"mcp_aql_delete", "delete_element", true, `lack "name"`},
	}
	for _, tt := range tests {
		res, err := session.CallTool(context.Background(), &sdk.CallToolParams{Name: tt.tool, Arguments: map[string]any{"operation": tt.operation}})
		if err != nil {
			t.Errorf("%s %s: %v", tt.tool, tt.operation, err)
			continue
		}
		text := res.Content[0].(*sdk.TextContent).Text
		if res.IsError != tt.wantError || !strings.Contains(text, tt.want) {
			t.Errorf("%s %s: error %v, %s; want error %v, %q", tt.tool, tt.operation, res.IsError, text, tt.wantError, tt.want)
		}
	}
	records := &api.LogPage{}
	if err := g.Client(credential).Do(context.Background(), "GET", "/v1/log?surface=mcp&operation=introspect", nil, records); err != nil {
		t.Fatal(err)
	}
	if len(records.Records) == 0 {
		t.Error("the calls left no record")
	}
}
