package hook_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
	"github.com/seed-3ebc6b8a/gatehouse/internal/hook"
	"github.com/seed-3ebc6b8a/gatehouse/internal/session"
)

var update = flag.Bool("update", false, "rewrite what the hooks answer in testdata")

// script is a gate and a registry of sessions that answer as they are told and
// note what they were asked.
type script struct {
	answer gate.Answer
	bind   error
	noted  []string
	// until is how long the session may come back.
	until time.Time
}

func (s *script) note(format string, args ...any) {
	s.noted = append(s.noted, fmt.Sprintf(format, args...))
}

func (s *script) Submit(_ context.Context, sub gate.Submission) *gate.Answer {
	c := sub.Call
	s.note("submit %s %s %s in %q by %s plan=%t host_ask=%t", c.Surface, c.Operation, c.Args, c.Dir, c.Principal, sub.Plan, sub.HostAsk)
	ans := s.answer
	ans.CallID = "c_1"
	if ans.HostAsks && !sub.HostAsk {
		ans.HostAsks = false
	}
	return &ans
}

func (s *script) Finish(_ context.Context, id string, p call.Principal, outcome gate.Outcome, detail string) error {
	s.note("finish %s of %s: %s %s", id, p, outcome, detail)
	return nil
}

func (s *script) Bind(_ context.Context, b hook.Binding) (hook.Bound, error) {
	if s.bind != nil {
		return hook.Bound{}, s.bind
	}
	return hook.Bound{Principal: call.Principal{Agent: b.Agent, Session: "s_" + b.Ref}}, nil
}

func (s *script) Block(_ context.Context, id, why string) error {
	s.note("block %s: %s", id, why)
	return nil
}

func (s *script) End(_ context.Context, id, by string) error {
	s.note("end %s by %s", id, by)
	return nil
}

func (s *script) Defer(_ context.Context, agent, ref string, until time.Time) error {
	s.note("defer %s of %s", ref, agent)
	s.until = until
	return nil
}

func (s *script) Deferred(context.Context, string, string) (bool, error) {
	return time.Now().Before(s.until), nil
}

// answers are the verdicts that fixtures name.
var answers = map[string]gate.Answer{
	"allowed":  {Verdict: gate.Allowed, Message: "Allowed: shell (by policy)."},
	"denied":   {Verdict: gate.Denied, Message: "Denied: shell. Level DENY, because of a test."},
	"pending":  {Verdict: gate.Pending, Message: "Pending: shell needs a person's approval."},
	"host-ask": {Verdict: gate.Pending, HostAsks: true, Message: "Gatehouse asks: shell."},
	"edited":   {Verdict: gate.Allowed, Message: "Allowed: shell (by ann).", Edited: &call.Call{ID: "c_2", Args: jsontext.Value(`{"command":"ls -l"}`)}},
}

func peer() session.Peer {
	return session.Peer{Chain: []session.Process{
		{PID: 30, Start: 3, UID: 1000, Exe: "/usr/bin/gatehouse-hook"}, {PID: 20, Start: 2, UID: 1000, Exe: "/usr/bin/agent"},
	}}
}

func newHooks(s *script) *hook.Hooks {
	return hook.New(hook.Options{Gate: s, Sessions: s, HostAsk: func(string, *call.Call) bool { return true }})
}

// TestWire holds every agent's exchanges against what is written down. A file
// of testdata is one session of an agent: each event names the verdict that the
// gate gives, and is followed by what was asked of the gate and what the agent
// reads.
func TestWire(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) != len(hook.Names()) {
		t.Fatalf("%d files for %d agents: %v", len(files), len(hook.Names()), err)
	}
	for _, file := range files {
		host := strings.TrimSuffix(filepath.Base(file), ".txtar")
		t.Run(host, func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := replay(t, host, archive)
			if *update {
				if err := os.WriteFile(file, txtar.Format(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(txtar.Format(archive)), string(txtar.Format(got))); diff != "" {
				t.Errorf("(-written down +answered; go test ./internal/hook -update rewrites it)\n%s", diff)
			}
		})
	}
}

// replay sends the events of an archive and returns it with the answers.
func replay(t *testing.T, host string, in *txtar.Archive) *txtar.Archive {
	t.Helper()
	out := &txtar.Archive{Comment: in.Comment}
	s := &script{}
	h := newHooks(s)
	for _, f := range in.Files {
		words := strings.Fields(f.Name)
		if words[0] == "answer" {
			continue
		}
		s.noted = nil
		if len(words) > 1 {
			ans, known := answers[words[1]]
			if !known {
				t.Fatalf("%q is no verdict of this test", words[1])
			}
			s.answer = ans
		}
		r := h.Handle(t.Context(), &hook.Request{Host: host, Peer: peer(), Event: f.Data, Wait: time.Second, Defer: len(words) > 2 && words[2] == "defer"})
		text := strings.Join(append(s.noted, ""), "\n") + fmt.Sprintf("exit %d\nstdout %sstderr %s", r.Exit, line(r.Stdout), line(r.Stderr))
		out.Files = append(out.Files, f, txtar.File{Name: "answer", Data: []byte(text)})
	}
	return out
}

func line(b []byte) string {
	if len(b) == 0 {
		return "-\n"
	}
	return string(b)
}

// TestRefused: what is no event of the agent blocks, whatever it is, and does
// not reach the gate.
func TestRefused(t *testing.T) {
	t.Parallel()
	good := `{"session_id":"s","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls"},"cwd":"/w"}`
	tests := map[string]string{
		"nothing":             "",
		"no JSON":             "hello",
		"a list":              "[1]",
		"cut off":             good[:len(good)-3],
		"trailing data":       good + "{}",
		"a name twice":        `{"session_id":"a","session_id":"b","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{}}`,
		"a twin in the input": strings.Replace(good, `"command":"ls"`, `"command":"ls","command":"rm -rf /"`, 1),
		"invalid UTF-8":       strings.Replace(good, "ls", "l\xff", 1),
		"an unknown event":    strings.Replace(good, "PreToolUse", "PreToolUseX", 1),
		"another case":        strings.Replace(good, "PreToolUse", "pretooluse", 1),
		"no event":            strings.Replace(good, "hook_event_name", "hook_event", 1),
		"no session":          strings.Replace(good, "session_id", "sid", 1),
		"no tool":             strings.Replace(good, "tool_name", "tool", 1),
		"input no object":     strings.Replace(good, `{"command":"ls"}`, `"ls"`, 1),
		"too deep":            strings.Replace(good, `"ls"`, strings.Repeat("[", 100)+strings.Repeat("]", 100), 1),
		"too large":           strings.Replace(good, "ls", strings.Repeat("x", call.MaxArgs+1), 1),
	}
	for name, event := range tests {
		s := &script{answer: answers["allowed"]}
		r := newHooks(s).Handle(t.Context(), &hook.Request{Host: "claude", Peer: peer(), Event: []byte(event)})
		if r.Exit != 2 || len(r.Stdout) > 0 || len(r.Stderr) == 0 || len(s.noted) > 0 {
			t.Errorf("%s: exit %d, stdout %q, stderr %q, the gate was asked %q", name, r.Exit, r.Stdout, r.Stderr, s.noted)
		}
	}
	s := &script{answer: answers["allowed"]}
	if r := newHooks(s).Handle(t.Context(), &hook.Request{Host: "emacs", Peer: peer(), Event: []byte(good)}); r.Exit != 2 {
		t.Errorf("an unknown agent: %+v", r)
	}
	s.bind = errors.New("the session belongs to another process")
	if r := newHooks(s).Handle(t.Context(), &hook.Request{Host: "claude", Peer: peer(), Event: []byte(good)}); r.Exit != 2 || len(s.noted) > 0 {
		t.Errorf("a foreign session: %+v %q", r, s.noted)
	}
}

// TestConfinedOrNot: what was let through only confined runs in a sandbox of its
// own, or of the agent's, or not at all.
func TestConfinedOrNot(t *testing.T) {
	t.Parallel()
	const event = `{"session_id":"s","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"make"},"cwd":"/w"}`
	required := []call.Guarantee{{Name: "confined"}}
	tests := map[string]struct {
		answer gate.Answer
		inside bool
		exit   int
		stdout string
	}{
		"nothing confines it":       {gate.Answer{Verdict: gate.Allowed, Requires: required}, false, 2, ""},
		"the agent is in one":       {gate.Answer{Verdict: gate.Allowed, Requires: required}, true, 0, `"allow"`},
		"it is given its own":       {gate.Answer{Verdict: gate.Allowed, Requires: required, Run: []string{"run", "--", "bash", "-c", "make"}}, false, 0, "'/bin/gh' 'run' '--' 'bash' '-c' 'make'"},
		"nothing has to confine it": {gate.Answer{Verdict: gate.Allowed}, false, 0, `"allow"`},
	}
	for name, tt := range tests {
		s := &script{answer: tt.answer}
		h := hook.New(hook.Options{Gate: s, Sessions: s, HostAsk: func(string, *call.Call) bool { return true }, Launcher: func() []string { return []string{"/bin/gh"} }})
		r := h.Handle(t.Context(), &hook.Request{Host: "claude", Peer: peer(), Inside: tt.inside, Event: []byte(event)})
		if r.Exit != tt.exit || !strings.Contains(string(r.Stdout), tt.stdout) || tt.exit != 0 && !strings.Contains(strings.Join(s.noted, "\n"), "finish c_1 of") {
			t.Errorf("%s: exit %d, stdout %q, stderr %q, the gate was told %q", name, r.Exit, r.Stdout, r.Stderr, s.noted)
		}
	}
}

// FuzzEvent: no event makes a hook answer anything but a block where it does
// not ask the gate, for any agent.
func FuzzEvent(f *testing.F) {
	for _, host := range hook.Names() {
		archive, err := txtar.ParseFile("testdata/" + host + ".txtar")
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range archive.Files {
			if !strings.HasPrefix(file.Name, "answer") {
				f.Add(host, file.Data)
			}
		}
	}
	f.Fuzz(func(t *testing.T, host string, event []byte) {
		s := &script{answer: answers["denied"]}
		r := newHooks(s).Handle(t.Context(), &hook.Request{Host: host, Peer: peer(), Event: event})
		if strings.Contains(string(r.Stdout), "allow") {
			t.Fatalf("%s: %s", r.Stdout, event)
		}
		for _, n := range s.noted {
			if strings.HasPrefix(n, "submit") && r.Exit != 2 {
				t.Fatalf("a denied call was not blocked: %+v", r)
			}
		}
	})
}
