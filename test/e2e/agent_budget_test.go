package e2e_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
	"github.com/seed-3ebc6b8a/gatehouse/internal/grant"
)

// as has a sub-agent make a call.
func as(path string, in *api.CallRequest) *api.CallRequest {
	in.Path = path
	return in
}

// over submits a call that must be denied because a budget is used up.
func (w *world) over(in *api.CallRequest, why string) {
	w.t.Helper()
	if got := w.submit(in); got.Verdict != gate.Denied || !strings.Contains(got.Message, why) {
		w.t.Errorf("%s as %q: %s: %s", in.Operation, in.Path, got.Verdict, got.Message)
	}
}

// TestAgentBudget: what is declared of an agent's calls is held by the gate,
// with undeclared tools, sub-agents, other directories and restarts counted in.
func TestAgentBudget(t *testing.T) {
	t.Parallel()
	w, _, in := declaring(t, `tools:
  - {name: a_tool}
agents:
  - {name: coder, tools: [a_tool], budget: {maxToolCalls: 5}}
  - {name: helper, tools: [a_tool], budget: {maxToolCalls: 2}}
`)
	w.done(w.want(gate.Allowed, in("a_tool", `{}`)))
	w.done(w.want(gate.Allowed, in("nobody_declared_it", `{}`)))
	w.want(gate.Allowed, as("helper", in("a_tool", `{}`)))
	w.want(gate.Allowed, as("other/helper", in("a_tool", `{}`)))
	w.over(as("third/helper", in("a_tool", `{}`)), "maxToolCalls: helper has used its 2 calls")
	w.Stop()
	w.Up()
	w.over(as("helper", in("nobody_declared_it", `{}`)), "helper has used its 2 calls")
	w.done(w.want(gate.Allowed, in("a_tool", `{}`)))
	w.over(in("a_tool", `{}`), "maxToolCalls: coder has used its 5 calls")
	elsewhere := in("nobody_declared_it", `{}`)
	elsewhere.Dir = t.TempDir()
	w.over(elsewhere, "coder has used its 5 calls")
	w.over(as("fresh", in("a_tool", `{}`)), "coder has used its 5 calls")
	// What the gate itself does is no tool call, and the way out stays open.
	w.want(gate.Allowed, callOf("list_elements", ""))
	if out := w.Must("uses", "list", "--credential-file", w.key); !strings.Contains(out, "nobody_declared_it") {
		t.Errorf("the uses do not show what counted:\n%s", out)
	}
	w.Must("uses", "clear", "coder", "--credential-file", w.key)
	w.done(w.want(gate.Allowed, in("a_tool", `{}`)))
}

// TestAgentBudgetInARowAndInTime: one tool in a row, and time since the first
// call.
func TestAgentBudgetInARowAndInTime(t *testing.T) {
	t.Parallel()
	w, _, in := declaring(t, `agents:
  - {name: coder, tools: [], budget: {maxConsecutiveSameTool: 2}}
`)
	w.done(w.want(gate.Allowed, in("a_tool", `{}`)))
	w.done(w.want(gate.Allowed, in("a_tool", `{}`)))
	w.over(in("a_tool", `{}`), "maxConsecutiveSameTool: a_tool was used 2 times in a row")
	w.done(w.want(gate.Allowed, in("b_tool", `{}`)))
	w.done(w.want(gate.Allowed, in("a_tool", `{}`)))

	before := w.settle("known", func(admin.Policy) bool { return true })
	write(t, filepath.Join(w.Home, "tools.yaml"), "gatehouse: 1\nagents:\n  - {name: coder, tools: [], budget: {maxConsecutiveSameTool: 2, maxDurationMillis: 0}}\n")
	if p := w.settle("tighter", func(p admin.Policy) bool { return p.Hash != before.Hash || len(p.Broken) > 0 }); p.Staged != nil || len(p.Broken) > 0 {
		t.Fatalf("one more limit waits for an approver: %+v", p)
	}
	w.over(in("b_tool", `{}`), "maxDurationMillis: coder began")
}

// TestAgentBudgetIsPolicy: a raised or dropped budget waits for an approver.
func TestAgentBudgetIsPolicy(t *testing.T) {
	t.Parallel()
	w, _, in := declaring(t, "agents:\n  - {name: coder, tools: [], budget: {maxToolCalls: 1}}\n")
	w.done(w.want(gate.Allowed, in("a_tool", `{}`)))
	for text, words := range map[string]string{
		"agents:\n  - {name: coder, tools: [], budget: {maxToolCalls: 2}}\n": "maxToolCalls: 1 → 2",
		"agents:\n  - {name: coder, tools: []}\n":                            "maxToolCalls: 1 → none",
		"tools: []\n": "not declared any more",
	} {
		write(t, filepath.Join(w.Home, "tools.yaml"), "gatehouse: 1\n"+text)
		p := w.settle("staged", func(p admin.Policy) bool {
			return p.Staged != nil && strings.Contains(strings.Join(p.Staged.Changes, "\n"), words) || len(p.Broken) > 0
		})
		if len(p.Broken) > 0 {
			t.Fatal(p.Broken)
		}
		w.over(in("a_tool", `{}`), "coder has used its 1 calls")
	}
	write(t, filepath.Join(w.Home, "tools.yaml"), "gatehouse: 1\nagents:\n  - {name: coder, tools: [], budget: {maxToolCals: 1}}\n")
	w.settle("broken", func(p admin.Policy) bool {
		return strings.Contains(strings.Join(p.Broken, "\n"), `did you mean "maxToolCalls"`)
	})
}

// TestW21SubAgentsDrawFromTheirShare: sub-agents that call in parallel cannot
// spend what is the parent's; what they were handed is reserved, and what they
// leave goes back.
func TestW21SubAgentsDrawFromTheirShare(t *testing.T) {
	t.Parallel()
	w, _, in := declaring(t, "agents:\n  - {name: coder, tools: [], budget: {maxToolCalls: 10}}\n")
	delegate := func(from, to string, calls int) (*grant.Budget, error) {
		b := &grant.Budget{}
		err := w.agent.Do(t.Context(), "POST", "/v1/budgets/declared/delegate", &api.DelegateRequest{
			Path: from, To: to, Needs: []api.PlannedNeed{{Need: "tool.calls", Uses: calls}},
		}, b)
		return b, err
	}
	left := func(path string) (total, left int) {
		t.Helper()
		b := &grant.Budget{}
		if err := w.agent.Do(t.Context(), "GET", "/v1/budgets/declared?path="+path, nil, b); err != nil {
			t.Fatal(err)
		}
		return b.Lines[0].Total, b.Lines[0].Left()
	}
	at := func(path string, total, rest int) {
		t.Helper()
		if a, b := left(path); a != total || b != rest {
			t.Errorf("%q has %d of %d left, want %d of %d", path, b, a, rest, total)
		}
	}
	must := func(from, to string, calls int) *grant.Budget {
		t.Helper()
		b, err := delegate(from, to, calls)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	w.want(gate.Allowed, as("h", in("before_the_share", `{}`))) // counts for the parent
	h := must("", "h", 4)
	must("", "h-2", 2) // beside it, though its name begins alike
	at("", 10, 3)
	at("h", 4, 4)
	must("h", "h/deep", 1)
	at("h", 4, 3)
	at("", 10, 3)
	for name, err := range map[string]func() error{
		"more than is left":   func() error { _, err := delegate("", "x", 4); return err },
		"upwards":             func() error { _, err := delegate("h", "", 1); return err },
		"sideways":            func() error { _, err := delegate("h", "h-3", 1); return err },
		"to itself":           func() error { _, err := delegate("h", "h", 1); return err },
		"none":                func() error { _, err := delegate("", "x", -1); return err },
		"twice":               func() error { _, err := delegate("", "h", 1); return err },
		"more than the share": func() error { _, err := delegate("h", "h/x", 4); return err },
	} {
		if err() == nil {
			t.Errorf("a sub-agent got a share: %s", name)
		}
	}
	// Thirty calls at once, of the parent and its sub-agents: each gets its own.
	var mine, theirs, deep atomic.Int32
	var wg sync.WaitGroup
	for i := range 10 {
		for path, n := range map[string]*atomic.Int32{"": &mine, "h": &theirs, "h/deep": &deep} {
			wg.Go(func() {
				if w.submit(as(path, in("a_tool", fmt.Sprintf(`{"n":%d}`, i)))).Verdict == gate.Allowed {
					n.Add(1)
				}
			})
		}
	}
	wg.Wait()
	if mine.Load() != 3 || theirs.Load() != 3 || deep.Load() != 1 {
		t.Errorf("let through: %d of the parent's 3, %d of the sub-agent's 3, %d of the one below's 1", mine.Load(), theirs.Load(), deep.Load())
	}
	w.over(in("a_tool", `{}`), "set aside for sub-agents")
	w.over(as("h", in("a_tool", `{}`)), "the 4 calls that were set aside for h are used")
	w.Stop()
	w.Up()
	w.over(in("a_tool", `{}`), "set aside for sub-agents")
	// Nobody but who is above takes a share back; what it left goes back.
	give := func(id, path string) error {
		return w.agent.Do(t.Context(), "POST", "/v1/budgets/"+id+"/return", &api.ReturnRequest{Path: path}, nil)
	}
	if give(h.ID, "h") == nil || give(h.ID, "h-2") == nil || give(h.ID, "h/deep") == nil {
		t.Error("a sub-agent ended a share that is not its to end")
	}
	if err := give(h.ID, ""); err != nil {
		t.Fatal(err)
	}
	at("", 10, 0) // all four were used
	w.want(gate.Allowed, as("h-2", in("a_tool", `{}`)))
	at("h-2", 2, 1)
	if log := w.Must("audit", "list", "--kind", "budget", "--json", "--credential-file", w.key); strings.Count(log, `"kind": "budget"`) != 3 {
		t.Errorf("three shares are not on record:\n%s", log)
	}
}
