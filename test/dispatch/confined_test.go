package dispatch_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/canary"
)

// bodies are the whole records of a kind about a surface, any for "".
func (h *house) bodies(kind, surface string) (out []string) {
	h.t.Helper()
	for _, r := range h.records(kind) {
		if surface != "" && r.Surface != surface {
			continue
		}
		full := &admin.Record{}
		if err := h.Client(h.credential).Do(context.Background(), "GET", "/v1/log/"+r.ID, nil, full); err != nil {
			h.t.Fatal(err)
		}
		out = append(out, string(full.Body))
	}
	return out
}

// TestConfinedCLI: each real CLI runs in the sandbox when the request says so. It
// reaches its model and its directory; what the gate lets through and nobody
// analysed the kernel holds; its calls are on record as held, and what holds it
// is, too. It is gone on with in the sandbox as well.
func TestConfinedCLI(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		h := newHouse(t, name, cli(t, name).Program)
		outside := t.TempDir()
		write(t, outside+"/secret.txt", "what nobody should read\n")
		write(t, h.dir+"/a.txt", "what a.txt holds\n")
		write(t, h.dir+"/try.sh", "cat "+outside+"/secret.txt\nls "+h.Home+"\ntouch "+outside+"/made.txt\ncurl -sS -m 5 "+h.URL+"/v1/health\n"+
			"curl -sS -m 5 --unix-socket "+h.Socket()+" http://gatehouse/v1/health\necho here > inside.txt\necho over\n")
		h.present()
		h.model.Play(canary.Step{Command: "cat a.txt"}, canary.Step{Command: "touch never.txt"}, canary.Step{Command: "sh ./try.sh"})
		done := make(chan answer, 1)
		go func() { done <- h.ask("Look around", "--sandbox", "--correlation-id", "inside") }()
		h.approve(done)
		a := <-done
		told := strings.Join(append(h.model.Results(), h.model.Prompts()...), "\n")
		if !a.Success || !a.Job.Confined || !a.Posture.Confined {
			t.Errorf("%+v", a)
		}
		if !strings.Contains(told, "what a.txt holds") || !strings.Contains(told, "over") || !h.exists("inside.txt") {
			t.Errorf("what was let through did not run: %q", cut(h.model.Results()))
		}
		if h.exists("never.txt") || !strings.Contains(told, "the test forbids it") {
			t.Error("what the policy denies ran, or the model was not told why")
		}
		if _, err := os.Stat(outside + "/made.txt"); err == nil || strings.Contains(told, "what nobody should read") || strings.Contains(told, "policy.toml") || strings.Contains(told, `"version"`) {
			t.Errorf("the sandbox does not hold: %s", told)
		}
		calls := h.bodies("call", "inrun:"+name)
		for _, body := range calls {
			if !strings.Contains(body, `"posture":"held"`) {
				t.Errorf("the record does not say held: %s", body)
			}
		}
		if receipts := h.bodies("receipt", ""); len(calls) < 3 || len(receipts) != 1 || !strings.Contains(receipts[0], `"seen"`) {
			t.Errorf("%d calls, receipts %q", len(calls), receipts)
		}
		h.model.Play()
		if again := h.ask("And what else", "--session", a.SessionID, "--sandbox"); !again.Success || !strings.Contains(strings.Join(h.model.Prompts(), "\n"), "Look around") {
			t.Errorf("gone on with: %+v", again)
		}
	})
}

// TestOperatorConfines: where the operator says so every run is confined, and a
// request cannot leave it out.
func TestOperatorConfines(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "confine = true\n")
	if a := d.ask(d.agent, "claude_request", args{"prompt": "stay inside", "sandbox": false}); a.Job == nil || !a.Job.Confined || d.runs() != 0 {
		t.Errorf("%+v", a)
	}
}

// TestProjectCodeInsideARun: code of the project runs confined inside a run whose
// channel takes another command, as it does behind a hook: granted once, held
// each time, with a receipt of the gate's own launcher.
func TestProjectCodeInsideARun(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "claude", cli(t, "claude").Program)
	outside := t.TempDir()
	write(t, h.dir+"/check.sh", "touch "+outside+"/made.txt\necho here >> inside.txt\necho checked\n")
	h.present()
	h.model.Play(canary.Step{Command: "sh ./check.sh"}, canary.Step{Command: "sh ./check.sh"})
	done := make(chan answer, 1)
	go func() { done <- h.ask("Check it") }()
	r := h.pending(done)
	if len(r.Offers) < 2 {
		t.Fatalf("nothing is offered for the session: %+v", r.Offers)
	}
	if err := h.Client(h.credential).Do(context.Background(), "POST", "/v1/approvals/"+r.ID+"/approve", &api.ApproveRequest{Digest: r.Digest, Offer: 1}, nil); err != nil {
		t.Fatal(err)
	}
	if a := <-done; !a.Success || strings.Count(strings.Join(h.model.Results(), "\n"), "checked") < 2 {
		t.Errorf("%+v, the model was told %q", a, h.model.Results())
	}
	if text, err := os.ReadFile(h.dir + "/inside.txt"); err != nil || strings.Count(string(text), "here") != 2 {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := os.Stat(outside + "/made.txt"); err == nil {
		t.Error("it wrote outside of its workspace")
	}
	if got := h.bodies("receipt", ""); len(got) != 2 || !strings.Contains(got[0], `"runs":"launcher"`) {
		t.Errorf("receipts: %q", got)
	}
	if len(h.records("call")) != 4 { // the request, the question, its answer, the second call
		t.Logf("%d records of calls", len(h.records("call")))
	}
}

// TestReceiptOfAnotherRun: attack. A process that is no part of a run, or part of
// another, cannot show a receipt for a call of it.
func TestReceiptOfAnotherRun(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "claude", cli(t, "claude").Program)
	write(t, h.dir+"/check.sh", "sleep 5\necho checked\n")
	h.present()
	h.model.Play(canary.Step{Command: "sh ./check.sh"})
	done := make(chan answer, 1)
	go func() { done <- h.ask("Check it") }()
	r := h.pending(done)
	if err := h.Client(h.credential).Do(context.Background(), "POST", "/v1/approvals/"+r.ID+"/approve", &api.ApproveRequest{Digest: r.Digest, Offer: 1}, nil); err != nil {
		t.Fatal(err)
	}
	// The test's own process is not below the run, and belongs to no session of
	// the asker, who came with a process of its own.
	stranger := h.Agent(h.credential, "stranger")
	err := h.Client(stranger).Do(context.Background(), "POST", "/v1/calls/"+r.CallID+"/receipt", &api.ReceiptRequest{Args: []byte(`{"command":["true"]}`), Dir: h.dir, Backend: "none"}, nil)
	if err == nil {
		t.Error("a stranger's receipt was taken")
	}
	<-done
}
