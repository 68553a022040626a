package e2e_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
)

// TestNativeOverHTTP: the gate's own operations are performed over the API as
// they are over MCP: what is allowed was done, what failed says so, what waits
// or is denied was not done, and nobody is asked about what cannot run.
func TestNativeOverHTTP(t *testing.T) {
	t.Parallel()
	k := beginKeeper(t, map[string]string{"personas/guard.md": persona("guard", lockedDown)})
	asked := k.want(gate.Pending, create("notes"))
	if k.file("skills/notes.md") != "" || asked.Outcome != "" || asked.Result != nil {
		t.Errorf("it was done before it was approved: %s %s", asked.Outcome, asked.Result)
	}
	k.approve(asked.Request)
	made := k.want(gate.Allowed, create("notes"))
	if made.Outcome != gate.Succeeded || !strings.Contains(string(made.Result), `"name":"notes"`) || k.file("skills/notes.md") == "" {
		t.Errorf("approved: %s %s %s", made.Outcome, made.Result, made.Error)
	}
	if !strings.Contains(k.ok("get_element", "skill", named("notes")).Text, "notes") {
		t.Error("what the API made is not there over MCP")
	}
	if err := k.agent.Do(t.Context(), "POST", "/v1/calls/"+made.CallID+"/outcome", map[string]any{"outcome": "failed"}, nil); status(err) != http.StatusConflict {
		t.Errorf("an outcome for what the gate performed: %v", err)
	}
	k.approve(k.want(gate.Pending, create("notes")).Request)
	if again := k.want(gate.Allowed, create("notes")); again.Outcome != gate.Failed || !strings.Contains(again.Error, "already") || again.Result != nil {
		t.Errorf("a name that is taken: %s %s %s", again.Outcome, again.Result, again.Error)
	}
	// What is in force over one surface is in force over the other.
	k.want(gate.Allowed, callOf("activate_element", `{"element_type":"persona","name":"guard"}`))
	if !strings.Contains(k.ok("get_active_elements", "", nil).Text, "guard") {
		t.Error("what the API activated is not active over MCP")
	}
	if no := k.want(gate.Denied, remove("notes")); no.Outcome != "" || k.file("skills/notes.md") == "" {
		t.Errorf("denied, and yet: %s", no.Outcome)
	}
	// Nobody is asked about a call that cannot run.
	err := k.agent.Do(t.Context(), "POST", "/v1/calls", callOf("create_element", `{"element_type":"skill","nam":"x","description":"d"}`), nil)
	if status(err) != http.StatusBadRequest || !strings.Contains(err.Error(), "name") || len(k.requests()) != 0 {
		t.Errorf("a parameter that it does not take: %v; %d requests wait", err, len(k.requests()))
	}
	if got := k.want(gate.Allowed, callOf("list_elements", "")); !strings.Contains(string(got.Result), "notes") {
		t.Errorf("a read: %s", got.Result)
	}
	k.verify()
}
