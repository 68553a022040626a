package e2e_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/test/gatetest"
	sdk "github.com/seed-3ebc6b8a/gatehouse/tool"
)

// TestToolAsksAPerson: a tool asks in the middle of its work, and gets each of
// the four answers a person can give.
func TestToolAsksAPerson(t *testing.T) {
	t.Parallel()
	g := gatetest.Start(t)
	credential, file := g.Enrol("ann")
	// Somebody watches, so that questions wait for an answer.
	watch, stop := context.WithCancel(t.Context())
	defer stop()
	go func() { _ = g.Client(credential).Watch(watch, func() error { return nil }) }()

	var got sdk.Answer
	deploy := sdk.New(sdk.Spec{Name: "deploy", Policy: &sdk.Policy{Risk: sdk.High}}, func(ctx context.Context, env *sdk.Env, _ struct{}) (string, error) {
		var err error
		got, err = env.Ask(ctx, "Deploy to production?", map[string]string{"version": "1.2"})
		return string(got.Decision), err
	})
	gate, err := sdk.Connect(sdk.GateOptions{Home: g.Home})
	if err != nil {
		t.Fatal(err)
	}
	a, err := sdk.NewAgent(sdk.AgentSpec{Name: "releaser", Tools: []*sdk.Tool{deploy}, Gate: gate})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name    string
		answer  func(id string)
		want    sdk.Decision
		payload string
		text    string
	}{
		{"approved", func(id string) { g.Must("approvals", "approve", id, "--credential-file", file) }, sdk.Approved, `{"version":"1.2"}`, ""},
		{"rejected", func(id string) { g.Must("approvals", "deny", id, "--credential-file", file) }, sdk.Rejected, "", ""},
		{"responded", func(id string) { g.Must("approvals", "respond", id, "wait until Monday", "--credential-file", file) }, sdk.Responded, "", "wait until Monday"},
		{"edited", func(id string) {
			g.Must("approvals", "edit", id, `{"title":"Deploy to production?","payload":{"version":"1.1"}}`, "--credential-file", file)
			answerNext(t, g, credential, "deploy.question", func(id string) { g.Must("approvals", "approve", id, "--credential-file", file) })
		}, sdk.Edited, `{"version":"1.1"}`, ""},
	} {
		done := make(chan sdk.Outcome, 1)
		go func() { done <- a.Invoke().Call(t.Context(), "deploy", json.RawMessage(`{}`)) }()
		answerNext(t, g, credential, "deploy", func(id string) { g.Must("approvals", "approve", id, "--credential-file", file) })
		answerNext(t, g, credential, "deploy.question", tc.answer)
		out := <-done
		if got.Decision != tc.want || string(got.Payload) != tc.payload || got.Text != tc.text {
			t.Errorf("%s: %+v (%+v)", tc.name, got, out)
		}
	}
}

// answerNext waits for a request of an operation and answers it.
func answerNext(t *testing.T, g *gatetest.Gate, credential, operation string, answer func(id string)) {
	t.Helper()
	found := ""
	err := g.Client(credential).Watch(t.Context(), func() error {
		var list api.ApprovalList
		if err := g.Client(credential).Do(t.Context(), "GET", "/v1/approvals?state=pending", nil, &list); err != nil {
			return err
		}
		for _, r := range list.Requests {
			if r.Call.Operation == operation {
				found = r.ID
				return context.Canceled
			}
		}
		return nil
	})
	if found == "" {
		t.Fatalf("no request for %s: %v", operation, err)
	}
	answer(found)
}
