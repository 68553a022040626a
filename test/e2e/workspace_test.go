package e2e_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
)

// in opens a session in a workspace, "" for none, and returns what makes calls
// in it.
func (k *keeper) in(workspace string) func(operation, args string) *api.CallRequest {
	k.t.Helper()
	s := &api.SessionResponse{}
	if err := k.agent.Do(context.Background(), "POST", "/v1/sessions", &api.SessionRequest{Workspace: workspace}, s); err != nil {
		k.t.Fatal(err)
	}
	return func(operation, args string) *api.CallRequest {
		c := callOf(operation, args)
		c.Session = s.Session
		return c
	}
}

// TestElementsBelongToTheWorkspace: what an agent puts in force counts in the
// workspace of that session and in no other. A session without a workspace is
// one of its own: from there nobody freezes, tightens or loosens the others.
func TestElementsBelongToTheWorkspace(t *testing.T) {
	t.Parallel()
	k := beginKeeper(t, map[string]string{
		"personas/nuclear.md": nuclear, "personas/guard.md": persona("guard", lockedDown), "personas/lax.md": persona("lax", "gatekeeper:\n  allow: [create_element]\n"),
	})
	nowhere, here, there := k.in(""), k.in(t.TempDir()), k.in(t.TempDir())
	make := func(in func(string, string) *api.CallRequest, name string) *api.CallRequest {
		return in("create_element", `{"element_type":"skill","name":"`+name+`","description":"d"}`)
	}
	activate := func(name string) string { return `{"element_type":"persona","name":"` + name + `"}` }

	// Loosened with a person's approval, where no workspace was shown.
	asked := k.want(gate.Pending, nowhere("activate_element", activate("lax")))
	k.grant(asked.Request)
	if got := k.want(gate.Allowed, nowhere("activate_element", activate("lax"))); got.Outcome != gate.Succeeded {
		t.Fatal(got.Error)
	}
	k.want(gate.Allowed, make(nowhere, "a"))
	k.want(gate.Pending, make(here, "b"))
	k.want(gate.Pending, make(there, "c"))

	// Frozen in one workspace.
	k.want(gate.Allowed, here("activate_element", activate("nuclear")))
	k.want(gate.Denied, make(here, "d"))
	k.want(gate.Pending, make(there, "e"))
	k.want(gate.Allowed, make(nowhere, "f"))

	// Frozen where there is none.
	k.want(gate.Allowed, nowhere("activate_element", activate("nuclear")))
	k.want(gate.Denied, make(nowhere, "g"))
	k.want(gate.Pending, make(there, "h"))
	if got := k.want(gate.Allowed, there("get_active_elements", "")); strings.Contains(string(got.Result), "nuclear") {
		t.Errorf("active elsewhere: %s", got.Result)
	}
	// Nor can it be taken out of force from elsewhere.
	if got := k.want(gate.Allowed, there("deactivate_element", activate("nuclear"))); got.Outcome != gate.Failed || !strings.Contains(got.Error, "active for you here") {
		t.Errorf("taken out of force from elsewhere: %s %s", got.Outcome, got.Error)
	}
	k.want(gate.Denied, make(nowhere, "i"))
	k.verify()
}

// TestWorkspaceOverMCP: an MCP client says where it works, and shares what is
// in force with the agent's other sessions there.
func TestWorkspaceOverMCP(t *testing.T) {
	t.Parallel()
	k := beginKeeper(t, map[string]string{"personas/guard.md": persona("guard", lockedDown)})
	dir := t.TempDir()
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	s, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{
		Endpoint: k.URL + "/mcp", HTTPClient: &http.Client{Transport: inWorkspace{bearer{k.token}, dir}}, DisableStandaloneSSE: true,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	plain := k.session
	k.session = s
	k.ok("activate_element", "persona", named("guard"))
	k.denied("delete_element", "skill", named("x"), "guard")
	k.session = plain
	k.pending("delete_element", "skill", named("x"))
	k.want(gate.Denied, k.in(dir)("delete_element", `{"element_type":"skill","name":"x"}`))
	k.want(gate.Pending, k.in(t.TempDir())("delete_element", `{"element_type":"skill","name":"x"}`))
}

// inWorkspace is a client that says where it works.
type inWorkspace struct {
	bearer
	dir string
}

// RoundTrip adds the workspace.
func (i inWorkspace) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Gatehouse-Workspace", i.dir)
	return i.bearer.RoundTrip(r)
}
