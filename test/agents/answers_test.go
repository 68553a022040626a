package agents_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/canary"
)

// TestEdited: a person changes a call before it runs; what runs is what they
// approved, on every agent that is given edits (attack 16).
func TestEdited(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		w := connected(t, name)
		w.present()
		done := make(chan []string)
		go func() {
			results, _ := w.run(canary.Run{Reckless: true}, canary.Step{Command: "touch original.txt"})
			done <- results
		}()
		r := w.answerOr(done)
		edited := &api.EditResponse{}
		err := w.Client(w.credential).Do(context.Background(), "POST", "/v1/approvals/"+r.ID+"/edit",
			&api.EditRequest{Digest: r.Digest, Args: jsontext.Value(`{"command":"touch edited.txt"}`)}, edited)
		must(t, err)
		next := &struct {
			Digest string `json:"digest"`
		}{}
		must(t, w.Client(w.credential).Do(context.Background(), "GET", "/v1/approvals/"+edited.Request, nil, next))
		r.ID = edited.Request
		must(t, r.Digest.UnmarshalText([]byte(next.Digest)))
		w.approve(r)
		results := <-done
		if w.exists("original.txt") || !w.exists("edited.txt") {
			t.Errorf("the original ran: %t, the edited one: %t; the model saw %q", w.exists("original.txt"), w.exists("edited.txt"), results)
		}
		outcomes := w.records("outcome")
		if len(outcomes) == 0 || outcomes[0].Outcome != "succeeded" {
			t.Errorf("outcomes: %+v", outcomes)
		}
		// The transcript may tell of the one or the other; both came to the gate.
		if _, text := w.holds("--no-canary"); strings.Contains(text, "never came to the gate") {
			t.Errorf("doctor says %s", text)
		}
	})
}

// TestDeferred: a headless Claude Code ends while its question waits, and runs
// the call, once, when it is resumed after a person's yes; also when the gate was
// started anew in between.
func TestDeferred(t *testing.T) {
	t.Parallel()
	restart := func(w *world) { w.Stop(); w.Up() }
	for name, between := range map[string]struct{ asked, approved func(*world) }{
		"plain":                               {},
		"a restart before the approval":       {asked: restart},
		"a restart after the approval":        {approved: restart},
		"a gate killed before and afterwards": {asked: func(w *world) { w.Kill(); w.Up() }, approved: func(w *world) { w.Kill(); w.Up() }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := connected(t, "claude", "--defer")
			_, out := w.run(canary.Run{}, canary.Step{Command: "touch later.txt"})
			if w.exists("later.txt") || !strings.Contains(out.Stdout, "tool_deferred") {
				t.Fatalf("it ran: %t; %s", w.exists("later.txt"), out.Stdout)
			}
			var said struct {
				Session string `json:"session_id"`
			}
			must(t, json.Unmarshal([]byte(out.Stdout), &said))
			if between.asked != nil {
				between.asked(w)
			}
			w.approve(w.answerOr(nil))
			if between.approved != nil {
				between.approved(w)
			}
			resume := canary.Run{Args: []string{"--resume", said.Session}}
			if _, out = w.run(resume); !w.exists("later.txt") {
				t.Fatalf("it did not run when resumed: %s%s", out.Stdout, out.Stderr)
			}
			must(t, os.Remove(filepath.Join(w.dir, "later.txt")))
			// The answer is used up: the same call, made again, is asked about again.
			if w.run(resume, canary.Step{Command: "touch later.txt"}); w.exists("later.txt") {
				t.Error("one approval was good for two calls")
			}
			if allowed := strings.Count(w.bodies("call"), `"by":["ann"]`); allowed != 1 {
				t.Errorf("%d calls were let through by the approval", allowed)
			}
		})
	}
}

// TestPlanMode: in plan mode a read runs and nothing else does.
func TestPlanMode(t *testing.T) {
	t.Parallel()
	w := connected(t, "claude")
	w.write(filepath.Join(w.dir, "a.txt"), "the content of the file\n")
	results, _ := w.run(canary.Run{Args: []string{"--permission-mode", "plan"}},
		canary.Step{Command: "cat a.txt"}, canary.Step{Command: "touch planned.txt"})
	if !saw(results, "the content of the file") {
		t.Error("a read did not run")
	}
	if w.exists("planned.txt") || !saw(results, "plan mode") {
		t.Errorf("it ran: %t; the model saw %q", w.exists("planned.txt"), results)
	}
}

// TestHostAsks: with nobody to be reached, the question is left to the host,
// and recorded as what it is. Headless, the host's answer is no.
func TestHostAsks(t *testing.T) {
	t.Parallel()
	w := connected(t, "claude")
	w.run(canary.Run{}, canary.Step{Command: "touch asked.txt"})
	if w.exists("asked.txt") {
		t.Error("it ran though nobody said yes")
	}
	body := w.bodies("call")
	if !strings.Contains(body, `"channel":["host, unverified"]`) || !strings.Contains(body, `"by":["host"]`) {
		t.Errorf("on record: %s", body)
	}
	// An operator who does not want it gets a denial, and a request.
	w.write(filepath.Join(w.Home, "policy.toml"), policyText+"[hosts.claude]\nhost_ask = false\n")
	w.Stop()
	w.Up()
	results, _ := w.run(canary.Run{}, canary.Step{Command: "touch asked.txt"})
	if w.exists("asked.txt") || !saw(results, "needs a person's approval") {
		t.Errorf("the model saw %q", results)
	}
}

// TestTools: other tools than the shell come to the gate under their own names,
// are judged as what they are, and their ends are told with the same input.
func TestTools(t *testing.T) {
	t.Parallel()
	type step struct{ tool, input, operation string }
	tools := map[string][]step{
		"claude":  {{"Read", `{"file_path":"DIR/a.txt"}`, "file.read"}, {"Write", `{"file_path":"DIR/never-b.txt","content":"x"}`, "file.write"}},
		"gemini":  {{"read_file", `{"file_path":"DIR/a.txt"}`, "file.read"}, {"write_file", `{"file_path":"DIR/never-b.txt","content":"x"}`, "file.write"}},
		"copilot": {{"view", `{"path":"DIR/a.txt"}`, "file.read"}, {"create", `{"path":"DIR/never-b.txt","file_text":"x"}`, "file.write"}},
		"grok":    {{"read_file", `{"target_file":"DIR/a.txt"}`, "file.read"}},
	}
	for name, steps := range tools {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := connected(t, name)
			w.write(filepath.Join(w.dir, "a.txt"), "the content of the file\n")
			w.write(filepath.Join(w.Home, "policy.toml"), policyText+"[hosts."+name+"]\nhost_ask = false\n")
			w.Stop()
			w.Up()
			dir, err := filepath.EvalSymlinks(w.dir)
			must(t, err)
			var script []canary.Step
			for _, s := range steps {
				script = append(script, canary.Step{Tool: s.tool, Input: jsontext.Value(strings.ReplaceAll(s.input, "DIR", dir))})
			}
			results, _ := w.run(canary.Run{Reckless: true}, script...)
			if !saw(results, "the content of the file") {
				t.Errorf("the read did not run: %q", results)
			}
			if _, err := os.Stat(filepath.Join(dir, "never-b.txt")); err == nil {
				t.Error("a write ran that nobody approved")
			}
			var got []string
			calls := w.records("call")
			for i := range calls {
				got = append(got, calls[len(calls)-1-i].Operation)
			}
			for _, s := range steps {
				if !strings.Contains(strings.Join(got, " "), s.operation) {
					t.Errorf("%s is not on record as %s: %q", s.tool, s.operation, got)
				}
			}
			if strings.Contains(w.Log(), "something else than what was allowed") {
				t.Error("the host reports another input than it was allowed")
			}
		})
	}
}

// TestHeartbeat: a call that an agent made past the gate is found in its
// transcript, also one that was made before it by the gate.
func TestHeartbeat(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		w := connected(t, name)
		must(t, os.MkdirAll(filepath.Join(w.home, ".grok", "sessions"), 0o755)) // where a person's Grok has its own
		reckless := name != "claude"
		w.run(canary.Run{Reckless: reckless}, canary.Step{Command: "echo by the gate"})
		if holds, text := w.holds(); holds != "advisory" || strings.Contains(text, "write_stdin") != (name == "codex") {
			t.Errorf("with every call at the gate: %s (%s)", holds, text)
		}
		args, back := w.past()
		results, _ := w.run(canary.Run{Reckless: reckless, Args: args}, canary.Step{Command: "echo past the gate"})
		back()
		if !saw(results, "past the gate") {
			t.Fatalf("it did not run: %q", results)
		}
		if holds, text := w.holds(); holds != "not held" || !strings.Contains(text, "never came to the gate") {
			t.Errorf("with a call past the gate: %s (%s)", holds, text)
		}
	})
}

// past has the agent go past the gate: by an argument, or until it is taken
// back by settings.
func (w *world) past() (args []string, back func()) {
	w.t.Helper()
	switch w.cli.Name {
	case "claude":
		return []string{"--settings", `{"disableAllHooks":true}`}, func() {}
	case "codex":
		return []string{"-c", "features.hooks=false"}, func() {}
	case "gemini":
		w.write(filepath.Join(w.dir, ".gemini", "settings.json"), `{"hooksConfig":{"enabled":false}}`)
		return nil, func() { must(w.t, os.RemoveAll(filepath.Join(w.dir, ".gemini"))) }
	}
	file := w.settings()
	must(w.t, os.Rename(file, file+".away"))
	return nil, func() { must(w.t, os.Rename(file+".away", file)) }
}

// TestPermissionPromptTool: without any hook, Claude Code can be told to ask the
// gate's MCP endpoint instead of a person at its terminal.
func TestPermissionPromptTool(t *testing.T) {
	t.Parallel()
	w := begin(t, "claude")
	token := w.Agent(w.credential, "coder")
	config := filepath.Join(w.home, "mcp.json")
	w.write(config, `{"mcpServers":{"gate":{"type":"http","url":"`+w.URL+`/mcp","headers":{"Authorization":"Bearer `+token+`"}}}}`)
	run := canary.Run{Args: []string{"--mcp-config", config, "--strict-mcp-config", "--permission-prompt-tool", "mcp__gate__mcp_aql_read"}}
	results, _ := w.run(run, canary.Step{Command: "touch never.txt"})
	if w.exists("never.txt") || !saw(results, "the test forbids it") {
		t.Errorf("denied: it ran: %t; the model saw %q", w.exists("never.txt"), results)
	}
	// While somebody can be reached the prompt is held until the answer is there.
	w.present()
	done := make(chan []string)
	go func() {
		results, _ := w.run(run, canary.Step{Command: "touch asked.txt"})
		done <- results
	}()
	w.approve(w.answerOr(done))
	if results = <-done; !w.exists("asked.txt") {
		t.Errorf("what was approved did not run; the model saw %q", results)
	}
}

// TestCodexInput: what Codex types into a program that runs already is not
// shown to a hook (attack 24). Starting such a program asks every time, and the
// heartbeat finds what was typed. If Codex begins to show it, this fails, and
// docs/agents.md has good news.
func TestCodexInput(t *testing.T) {
	t.Parallel()
	w := connected(t, "codex")
	w.present()
	id := regexp.MustCompile(`session ID (\d+)`)
	typed := canary.Step{Make: func(results []string) canary.Step {
		found := id.FindStringSubmatch(results[0])
		if found == nil {
			return canary.Step{}
		}
		return canary.Step{Tool: "write_stdin", Input: jsontext.Value(`{"session_id":` + found[1] + `,"chars":"touch typed.txt\n","yield_time_ms":1500}`)}
	}}
	done := make(chan []string)
	go func() {
		results, _ := w.run(canary.Run{Reckless: true}, canary.Step{Tool: "exec_command", Input: jsontext.Value(`{"cmd":"bash","tty":true,"yield_time_ms":500}`)}, typed)
		done <- results
	}()
	w.approve(w.answerOr(done)) // an interactive shell is asked about
	results := <-done
	if len(results) != 2 {
		t.Fatalf("the model saw %q", results)
	}
	if len(w.records("call")) > 2 { // the question and its answer
		t.Errorf("the gate heard of the input: %+v", w.records("call"))
	}
	if holds, text := w.holds(); holds != "not held" || !strings.Contains(text, "the last by write_stdin") {
		t.Errorf("doctor says %s (%s)", holds, text)
	}
}
