package e2e_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
)

// keeper is a world whose agent speaks MCP.
type keeper struct {
	*world
	session *sdk.ClientSession
	codes   *authenticator
}

// beginKeeper starts a gate, and an agent's MCP session with it. Elements are
// files that are there before it starts, by path below the library.
func beginKeeper(t *testing.T, elements map[string]string) *keeper {
	t.Helper()
	w := begin(t)
	k := &keeper{world: w}
	for path, text := range elements {
		k.element(path, text)
	}
	k.connect("")
	return k
}

// connect opens an MCP session.
func (k *keeper) connect(query string) {
	k.t.Helper()
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	s, err := client.Connect(context.Background(), &sdk.StreamableClientTransport{
		Endpoint: k.URL + "/mcp" + query, HTTPClient: &http.Client{Transport: bearer{k.token}}, DisableStandaloneSSE: true,
	}, nil)
	if err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(func() { _ = s.Close() })
	k.session = s
}

// element writes an element's file.
func (k *keeper) element(path, text string) {
	k.t.Helper()
	full := filepath.Join(k.Home, "elements", path)
	if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
		k.t.Fatal(err)
	}
	write(k.t, full, text)
}

// persona is the file of a persona with a policy.
func persona(name, policy string) string {
	return "---\nname: " + name + "\ndescription: a test\n" + policy + "---\n\nBe brief.\n"
}

// said is what a tool answered.
type said struct {
	Text    string
	IsError bool
	Told    gate.Told
	Raw     json.RawMessage
}

// tool calls a tool with any arguments.
func (k *keeper) tool(name string, args any) said {
	k.t.Helper()
	res, err := k.session.CallTool(context.Background(), &sdk.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		k.t.Fatalf("%s: %v", name, err)
	}
	out := said{IsError: res.IsError, Text: res.Content[0].(*sdk.TextContent).Text}
	if out.Raw, err = json.Marshal(res.StructuredContent); err != nil {
		k.t.Fatal(err)
	}
	_ = json.Unmarshal(out.Raw, &out.Told) // what is not an answer of the gate leaves it empty
	return out
}

// endpoints says which tool an operation belongs to.
var endpoints = map[string]string{
	"create_element": "create", "import_element": "create", "addEntry": "create", "activate_element": "update", "deactivate_element": "update",
	"edit_element": "update", "set_config": "update", "delete_element": "delete", "clear": "delete", "clear_github_auth": "delete",
	"approve_cli_permission": "execute", "confirm_operation": "execute", "execute_agent": "execute", "verify_challenge": "create", "release_deadlock": "create",
}

// op calls an operation by the tool it belongs to.
func (k *keeper) op(operation, elementType string, params map[string]any) said {
	k.t.Helper()
	endpoint := endpoints[operation]
	if endpoint == "" {
		endpoint = "read"
	}
	args := map[string]any{"operation": operation}
	if elementType != "" {
		args["element_type"] = elementType
	}
	if params != nil {
		args["params"] = params
	}
	return k.tool("mcp_aql_"+endpoint, args)
}

// named is the parameter that most operations take.
func named(name string) map[string]any { return map[string]any{"name": name} }

// ok calls an operation that must be performed.
func (k *keeper) ok(operation, elementType string, params map[string]any) said {
	k.t.Helper()
	out := k.op(operation, elementType, params)
	if out.IsError {
		k.t.Fatalf("%s %v: %s", operation, params, out.Text)
	}
	return out
}

// denied calls an operation that must be denied for good, with these words.
func (k *keeper) denied(operation, elementType string, params map[string]any, words ...string) said {
	k.t.Helper()
	return k.expect(gate.Denied, k.op(operation, elementType, params), operation, words...)
}

// pending calls an operation that must wait for a person.
func (k *keeper) pending(operation, elementType string, params map[string]any) said {
	k.t.Helper()
	return k.expect(gate.Pending, k.op(operation, elementType, params), operation)
}

func (k *keeper) expect(v gate.Verdict, out said, what string, words ...string) said {
	k.t.Helper()
	if !out.IsError || out.Told.Verdict != v {
		k.t.Fatalf("%s: %s, want %s", what, out.Text, v)
	}
	for _, w := range words {
		if !strings.Contains(out.Text, w) {
			k.t.Errorf("%s: the answer does not say %q: %s", what, w, out.Text)
		}
	}
	return out
}

// grant approves a request; a pinned one with a fresh code.
func (k *keeper) grant(id string) {
	k.t.Helper()
	r := k.look(id)
	in := &api.ApproveRequest{Digest: r.Digest}
	if r.Pinned {
		in.Code = k.code()
	}
	if err := k.person.Do(context.Background(), "POST", "/v1/approvals/"+id+"/approve", in, nil); err != nil {
		k.t.Fatalf("approve %s: %v", id, err)
	}
}

// code is a fresh code of the approver's second factor.
func (k *keeper) code() string {
	k.t.Helper()
	if k.codes == nil {
		k.codes = k.factor()
	}
	return k.codes.next()
}

// approved calls an operation, has it approved, and calls it again.
func (k *keeper) approved(operation, elementType string, params map[string]any) said {
	k.t.Helper()
	k.grant(k.pending(operation, elementType, params).Told.Request)
	return k.ok(operation, elementType, params)
}

// file reads a file of the library, "" if it is not there.
func (k *keeper) file(path string) string {
	data, err := os.ReadFile(filepath.Join(k.Home, "elements", path))
	if err != nil {
		return ""
	}
	return string(data)
}

// requests lists the requests that wait.
func (k *keeper) requests() []admin.Request {
	k.t.Helper()
	out := &api.ApprovalList{}
	k.do("GET", "/v1/approvals?state=pending", nil, out)
	return out.Requests
}
