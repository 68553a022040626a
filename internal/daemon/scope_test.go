package daemon_test

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
)

// tool is a call of a host's tool.
func (h *house) tool(name, args string) *call.Call {
	return &call.Call{Kind: call.External, Surface: "api", Principal: h.agent, Operation: name, Args: jsontext.Value(args), Dir: h.dir}
}

// A grant for a place covers what lies there and nothing else, and is offered
// with the earlier calls that it would have covered.
func TestGrantsByScope(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "")
	first := h.want(gate.Pending, h.tool("Write", `{"file_path":"src/a.go","content":"x"}`))
	second := h.want(gate.Pending, h.tool("Edit", `{"file_path":"src/deep/er/b.go","old_string":"a","new_string":"b"}`))
	elsewhere := h.want(gate.Pending, h.tool("Write", `{"file_path":"docs/a.md","content":"x"}`))
	r := h.request(second.Request)
	if len(r.Offers) != 3 || r.Offers[1].Words != "writes under ./src/deep for this session" || r.Offers[2].Words != "writes anywhere in the workspace for this session" {
		t.Fatalf("offers are %+v", r.Offers)
	}
	if len(r.History) != 3 || len(r.History[0]) != 0 || len(r.History[1]) != 0 || len(r.History[2]) != 2 {
		t.Errorf("history is %+v; the widest offer would have covered two earlier calls, the others none", r.History)
	}
	r = h.request(first.Request)
	if got := r.Offers[1].Words; got != "writes under ./src for this session" {
		t.Errorf("the narrow offer is %q", got)
	}
	if len(r.History[1]) != 1 || !strings.Contains(r.History[1][0].Words, "./src/deep/er/b.go") {
		t.Errorf("history of the narrow offer is %+v", r.History[1])
	}
	h.approve(first.Request, 1)
	h.want(gate.Allowed, h.tool("Write", `{"file_path":"src/a.go","content":"x"}`))
	h.want(gate.Allowed, h.tool("Edit", `{"file_path":"src/deep/er/b.go","old_string":"a","new_string":"b"}`))
	if again := h.want(gate.Pending, h.tool("Write", `{"file_path":"docs/a.md","content":"x"}`)); again.Request != elsewhere.Request {
		t.Error("the call elsewhere waits twice")
	}
	for _, out := range []string{"src/../docs/b.md", "../src/a.go", "/etc/src/a.go", "src2/a.go"} {
		h.want(gate.Pending, h.tool("Write", `{"file_path":"`+out+`","content":"y"}`))
		h.withdrawAll()
	}
	// Start-up files and a repository's own settings run code later, wherever
	// they lie.
	for _, later := range []string{"src/.git/hooks/pre-commit", "src/.vscode/tasks.json"} {
		if ans := h.want(gate.Pending, h.tool("Write", `{"file_path":"`+later+`","content":"y"}`)); ans.Decision.Level != call.ConfirmSingleUse {
			t.Errorf("writing %s is %s", later, ans.Decision.Level)
		}
		h.withdrawAll()
	}
	if err := h.Desk.ClearGrants(t.Context(), h.alice, h.agent.Session); err != nil {
		t.Fatal(err)
	}
	h.want(gate.Pending, h.tool("Write", `{"file_path":"src/a.go","content":"x"}`))
}

func (h *house) withdrawAll() {
	h.t.Helper()
	for _, r := range h.requests("pending") {
		if err := h.Gate.Withdraw(h.t.Context(), h.agent.Agent, r.ID); err != nil {
			h.t.Fatal(err)
		}
	}
}

// ATTACKS row 20: a grant holds in the directory it was given for, not in
// another that is put in its place.
func TestAttack20ScopesKeepTheirRoot(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "")
	c := func() *call.Call { return h.tool("Write", `{"file_path":"src/a.go","content":"x"}`) }
	h.approve(h.want(gate.Pending, c()).Request, 1)
	h.want(gate.Allowed, c())
	h.swap(h.dir)
	h.want(gate.Pending, c())
}

// ATTACKS row 10: taint is not washed off by a new session or a sub-agent, and
// ends by a person.
func TestAttack10TaintFollows(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "")
	h.write(".env", "KEY=1")
	fetch := func() *call.Call { return h.tool("WebFetch", `{"url":"https://docs.example.com/x"}`) }
	level := func(c *call.Call) call.Level {
		t.Helper()
		ans := h.submit(c)
		h.withdrawAll()
		return ans.Decision.Level
	}
	if got := level(fetch()); got != call.ConfirmSession {
		t.Fatalf("before anything was read a fetch is %s", got)
	}
	secret := func() *call.Call { return h.tool("Read", `{"file_path":".env"}`) }
	h.approve(h.want(gate.Pending, secret()).Request, 0)
	if got := level(fetch()); got != call.ConfirmSession {
		t.Errorf("an approval is not a read: a fetch is %s", got)
	}
	h.want(gate.Allowed, secret())
	if got := level(fetch()); got != call.ConfirmSingleUse {
		t.Errorf("after secrets were read a fetch is %s", got)
	}
	main := h.agent
	h.agent.Path = "helper"
	if got := level(fetch()); got != call.ConfirmSingleUse {
		t.Errorf("for a sub-agent a fetch is %s", got)
	}
	main = h.again(main)
	h.agent = main
	if got := level(fetch()); got != call.ConfirmSingleUse {
		t.Errorf("in a new session a fetch is %s", got)
	}
	h.agent = h.enter("other")
	if got := level(fetch()); got != call.ConfirmSingleUse {
		t.Errorf("for another agent in the workspace a fetch is %s", got)
	}
	h.agent = main
	if err := h.Desk.ClearTaints(t.Context(), h.alice, main.Agent); err != nil {
		t.Fatal(err)
	}
	if got := level(fetch()); got != call.ConfirmSession {
		t.Errorf("after a person ended it a fetch is %s", got)
	}
}
