package e2e_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
)

// pausedRun is a run whose last step failed.
func pausedRun(t *testing.T) (w *world, a *authenticator, m *model, id, challenge string) {
	t.Helper()
	w, a, m, id = beginRun(t, "", nil)
	w.sessionOK(m, "record_execution_step", stepOf(id))
	failed := stepOf(id)
	failed["outcome"] = "failure"
	got := m.ok("record_execution_step", failed)
	if challenge = got.str("challenge", "challenge_id"); got.str("state") != "paused" || challenge == "" {
		t.Fatalf("a failed step: %s", got.text)
	}
	return w, a, m, id, challenge
}

// TestW10PauseHoldsTheAgent: while an execution is paused the agent does
// nothing beyond reads: not by another tool, not as a sub-agent, not in another
// session, not in a new execution, not by passing the paused one to itself, and
// not after a restart. A person lets it go on.
func TestW10PauseHoldsTheAgent(t *testing.T) {
	t.Parallel()
	w, _, m, id, ch := pausedRun(t)
	dir := t.TempDir()
	stopped := func(when string) {
		t.Helper()
		for _, in := range []*api.CallRequest{
			create("x"), callOf("Write", `{"file_path":"a","content":"x"}`), callOf("Bash", `{"command":"make"}`), callOf("Bash", `{"command":"curl https://example.com"}`),
		} {
			in.Dir = dir
			if got := w.want(gate.Denied, in); !strings.Contains(got.Message, id) || !strings.Contains(got.Message, "paused") {
				t.Errorf("%s: %s %s: %s", when, in.Operation, in.Args, got.Message)
			}
			in.Path = "helper"
			w.want(gate.Denied, in)
		}
		s := &api.SessionResponse{}
		if err := w.agent.Do(context.Background(), "POST", "/v1/sessions", &api.SessionRequest{Workspace: t.TempDir()}, s); err != nil {
			t.Fatal(err)
		}
		elsewhere := create("x")
		elsewhere.Session = s.Session
		w.want(gate.Denied, elsewhere)
		m.refused("paused", "execute_agent", map[string]any{"name": "builder", "goal": "the same in another run"})
		w.want(gate.Allowed, callOf("list_elements", ""))
		w.want(gate.Allowed, callOf("Read", `{"file_path":"`+dir+`/a"}`))
	}
	stopped("at once")
	w.Kill()
	w.Up()
	m = w.model(t, w.token)
	stopped("after a restart")

	// To pass it to oneself changes nothing.
	token := w.sessionOK(m, "prepare_handoff", map[string]any{"execution_id": id}).str("handoff")
	stopped("passed on")
	if token == "" {
		t.Error("there is no handoff")
	}
	w.Must("approvals", "release", ch, "--credential-file", w.key)
	w.want(gate.Pending, create("x"))
	other := w.Client(w.Gate.Agent(w.credential, "other"))
	if got := submit(t, other, create("y")); got.Verdict != gate.Pending {
		t.Errorf("another agent: %s", got.Message)
	}
	w.verify()
}

// TestPauseLeavesHooksAlone: sessions of hooks have no steps, and are stopped
// by the danger zone alone. The same agent's other calls are held.
func TestPauseLeavesHooksAlone(t *testing.T) {
	t.Parallel()
	w := beginWith(t, "version = 1\n[hosts.claude]\nhost_ask = false\n")
	(&keeper{world: w}).element("agents/builder.md", builder)
	token := w.Gate.Agent(w.credential, fmt.Sprintf("claude-%d", os.Getuid()))
	a, m := w.factor(), w.model(t, token)
	failed := stepOf(w.confirmed(m, a, "execute_agent", map[string]any{"name": "builder", "goal": "build it"}).str("id"))
	failed["outcome"] = "failure"
	if got := w.sessionOK(m, "record_execution_step", failed); got.str("state") != "paused" {
		t.Fatalf("a failed step: %s", got.text)
	}
	if got := submit(t, w.Client(token), create("x")); got.Verdict != gate.Denied || !strings.Contains(got.Message, "paused") {
		t.Errorf("a call of the paused agent: %s", got.Message)
	}
	if out := w.hooked(t.TempDir()); !strings.Contains(out, "Pending") || strings.Contains(out, "paused") {
		t.Errorf("the hook says %s", out)
	}
}
