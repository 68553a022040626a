// Package e2e_test drives the real binary from end to end.
package e2e_test

import (
	"context"
	"strings"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
)

// TestACallFromEndToEnd is the README's promise: a call waits, a person
// approves it, it goes through once, and the log proves that it happened.
func TestACallFromEndToEnd(t *testing.T) {
	t.Parallel()
	flow(t, begin(t))
}

func flow(t *testing.T, g *world) {
	t.Helper()
	agent, person, key := g.agent, g.person, g.key
	ctx := context.Background()
	submit := &api.CallRequest{Operation: "create_element", Args: []byte(`{"element_type":"skill","name":"notes","description":"what changed"}`)}

	asked := &api.CallResponse{}
	if err := agent.Do(ctx, "POST", "/v1/calls", submit, asked); err != nil {
		t.Fatal(err)
	}
	if asked.Verdict != gate.Pending || asked.Request == "" {
		t.Fatalf("got %+v, want a pending request", asked)
	}
	waiting := &admin.Request{}
	if err := person.Do(ctx, "GET", "/v1/approvals/"+asked.Request, nil, waiting); err != nil {
		t.Fatal(err)
	}
	g.Must("approvals", "approve", asked.Request, "--credential-file", key)

	allowed := &api.CallResponse{}
	if err := agent.Do(ctx, "POST", "/v1/calls", submit, allowed); err != nil {
		t.Fatal(err)
	}
	if allowed.Verdict != gate.Allowed {
		t.Fatalf("after the approval: %+v, want allowed", allowed)
	}
	if allowed.Outcome != gate.Succeeded || !strings.Contains(string(allowed.Result), "notes") {
		t.Errorf("it was not performed: %s %s %s", allowed.Outcome, allowed.Result, allowed.Error)
	}
	if err := agent.Do(ctx, "POST", "/v1/calls/"+allowed.CallID+"/outcome", &api.OutcomeRequest{Outcome: gate.Succeeded}, nil); err == nil {
		t.Error("an outcome was taken twice")
	}

	again := &api.CallResponse{}
	if err := agent.Do(ctx, "POST", "/v1/calls", submit, again); err != nil {
		t.Fatal(err)
	}
	if again.Verdict != gate.Pending {
		t.Errorf("a single-use approval was used twice: %+v", again)
	}

	records := &api.LogPage{}
	if err := person.Do(ctx, "GET", "/v1/log/calls/"+allowed.CallID, nil, records); err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, r := range records.Records {
		kinds = append(kinds, r.Kind+" "+r.Outcome)
	}
	if got, want := strings.Join(kinds, ", "), "call allowed, outcome succeeded"; got != want {
		t.Errorf("the call left %q, want %q", got, want)
	}
	if out := g.Must("audit", "verify", "--credential-file", key); !strings.Contains(out, "Verified") {
		t.Errorf("audit verify said %q", out)
	}
}
