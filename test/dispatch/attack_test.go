package dispatch_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/canary"
	"github.com/seed-3ebc6b8a/gatehouse/internal/session"
)

// runners are a CLI with a channel and one with a hook, the fastest of each.
func runners(t *testing.T, fn func(t *testing.T, h *house)) {
	t.Parallel()
	t.Run("channel", func(t *testing.T) {
		t.Parallel()
		fn(t, newHouse(t, "grok", cli(t, "grok").Program))
	})
	t.Run("hook", func(t *testing.T) {
		t.Parallel()
		fn(t, newHouse(t, "mistral", vibeStandIn(t)))
	})
}

// TestAttack10BlockReachesRun: an agent that is blocked does not go on in a run
// that it asked for before.
func TestAttack10BlockReachesRun(t *testing.T) {
	runners(t, func(t *testing.T, h *house) {
		write(t, h.dir+"/a.txt", "what a.txt holds\n")
		write(t, h.dir+"/b.txt", "what b.txt holds\n")
		h.model.Play(canary.Step{Command: "cat a.txt"}, canary.Step{Make: func([]string) canary.Step {
			err := h.Client(h.credential).Do(context.Background(), "POST", "/v1/danger", &api.BlockRequest{Agent: h.agent(), Reason: "the test blocks it"}, nil)
			if err != nil {
				t.Error(err)
			}
			return canary.Step{Command: "cat b.txt"}
		}})
		h.ask("Read both")
		if told := h.model.Results(); !said(told, "what a.txt holds") || said(told, "what b.txt holds") {
			t.Errorf("the model was told %q", told)
		}
	})
}

// TestAttack10TaintOfRun: what a run took in is on whoever asked for it, so that
// neither can wash it off with the other.
func TestAttack10TaintOfRun(t *testing.T) {
	runners(t, func(t *testing.T, h *house) {
		write(t, h.dir+"/.env", "PASSWORD=hunter2hunter2\n")
		h.present()
		h.model.Play(canary.Step{Command: "cat .env"})
		done := make(chan answer, 1)
		go func() { done <- h.ask("Read the settings") }()
		h.approve(done)
		<-done
		list := &api.TaintList{}
		if err := h.Client(h.credential).Do(context.Background(), "GET", "/v1/taints", nil, list); err != nil {
			t.Fatal(err)
		}
		found := func(x session.Tainted) bool { return x.Agent == h.agent() && x.Workspace == real(t, h.dir) }
		if len(list.Taints) == 0 || !found(list.Taints[0]) {
			t.Errorf("taints: %+v", list.Taints)
		}
	})
}

// agent is who the requests come from: the newest call says it.
func (h *house) agent() string {
	h.t.Helper()
	for _, r := range h.records("call") {
		if strings.HasSuffix(r.Operation, "_request") {
			agent, _, _ := strings.Cut(r.Principal, "/")
			return agent
		}
	}
	h.t.Fatal("no request is on record")
	return ""
}

func real(t *testing.T, dir string) string {
	t.Helper()
	out, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestIdleClockStandsStill: a run that waits for a person is not idle, however
// long the person takes.
func TestIdleClockStandsStill(t *testing.T) {
	if testing.Short() {
		t.Skip("the shortest idle time is half a minute")
	}
	runners(t, func(t *testing.T, h *house) {
		h.present()
		h.model.Play(canary.Step{Command: "touch asked.txt"})
		done := make(chan answer, 1)
		go func() { done <- h.ask("Make asked.txt", "--idle-timeout-ms", "30000") }()
		r := h.pending(done)
		time.Sleep(35 * time.Second) // the person thinks
		h.yes(r)
		if a := <-done; !a.Success {
			t.Errorf("answered %+v", a)
		}
		if !h.exists("asked.txt") {
			t.Error("what was approved did not run")
		}
	})
}

// TestGrokOwnTables: the operator's own settings for Grok have the tables that
// the gate needs, too, and say the opposite. Every call is decided all the same.
func TestGrokOwnTables(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "grok", cli(t, "grok").Program)
	file := filepath.Join(h.Home, "dispatch", "cli", "grok", ".grok", "config.toml")
	own, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	write(t, file, "[ui]\npermission_mode = \"always-approve\"\ntheme = \"dark\"\n[permission]\nallow = [\"Bash\", \"Bash(*)\", \"Edit\"]\nask = [\"WebFetch\"]\n"+string(own))
	write(t, filepath.Join(filepath.Dir(file), "requirements.toml"), "[ui]\ndisable_bypass_permissions_mode = false\n")
	write(t, h.dir+"/a.txt", "what a.txt holds\n")
	h.model.Play(canary.Step{Command: "touch never.txt"}, canary.Step{Command: "cat a.txt"})
	a := h.ask("Make never.txt")
	if told := append(h.model.Results(), h.model.Prompts()...); h.exists("never.txt") || !said(told, "the test forbids it") || !said(told, "what a.txt holds") {
		t.Errorf("%+v, the model was told %q", a, told)
	}
	// What cannot be read is not passed on in the hope of the best.
	write(t, file, "[ui\n")
	if out, code := h.command("ask", "grok", "anything"); code == 0 || !strings.Contains(out, "config.toml") {
		t.Errorf("exit %d: %s", code, out)
	}
}
