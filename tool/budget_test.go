package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/tool"
	"github.com/seed-3ebc6b8a/gatehouse/tool/declare"
)

// TestBudget: each limit that a program can hold is held, per invocation.
func TestBudget(t *testing.T) {
	t.Parallel()
	a, b := step("a", tool.Constraints{}, false), step("b", tool.Constraints{}, false)
	waits := tool.New(tool.Spec{Name: "waits"}, func(ctx context.Context, _ *tool.Env, _ struct{}) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	})
	for name, tc := range map[string]struct {
		budget map[string]int64
		calls  []string
		want   []string
	}{
		"calls":    {map[string]int64{declare.MaxToolCalls: 2}, []string{"a", "b", "a"}, []string{"ok", "ok", "has used its 2 tool calls"}},
		"none":     {map[string]int64{declare.MaxToolCalls: 0}, []string{"a"}, []string{"has used its 0 tool calls"}},
		"in a row": {map[string]int64{declare.MaxConsecutiveSameTool: 2}, []string{"a", "a", "a", "b", "a"}, []string{"ok", "ok", "a was used 2 times in a row", "ok", "ok"}},
		"time":     {map[string]int64{declare.MaxDurationMillis: 0}, []string{"a", "b"}, []string{"ok", "may last 0s, and has"}},
		"one run":  {map[string]int64{declare.PerToolTimeoutMillis: 1}, []string{"waits"}, []string{context.DeadlineExceeded.Error()}},
		"the rest": {map[string]int64{declare.MaxTurns: 0, declare.MaxTokens: 0}, []string{"a"}, []string{"ok"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			agent := agent(t, tool.AgentSpec{Tools: []*tool.Tool{a, b, waits}, Budget: tc.budget})
			for range 2 { // nothing leaks from one invocation into the next
				inv := agent.Invoke()
				for i, c := range tc.calls {
					out := inv.Call(t.Context(), c, json.RawMessage(`{}`))
					got := "ok"
					switch {
					case out.Denied:
						got = out.Reason
					case out.Err != nil:
						got = out.Err.Error()
					}
					if !strings.Contains(got, tc.want[i]) {
						t.Errorf("call %d of %s: %q, want %q", i, c, got, tc.want[i])
					}
				}
			}
		})
	}
	for _, bad := range []map[string]int64{{"maxToolCals": 1}, {declare.MaxToolCalls: -1}, {declare.MaxConsecutiveSameTool: 0}} {
		if _, err := tool.NewAgent(tool.AgentSpec{Name: "x", Budget: bad}); err == nil {
			t.Errorf("%v was taken", bad)
		}
	}
}

// refusing is a gate that keeps what was denied, and lets all else through.
type refusing struct {
	told []string
	err  error
}

func (g *refusing) Submit(context.Context, tool.Call) (tool.Verdict, error) {
	return tool.Verdict{Allowed: true, ID: "c"}, nil
}
func (g *refusing) Done(_ context.Context, _ tool.Call, _, outcome, detail string) error {
	g.told = append(g.told, outcome+": "+detail)
	return nil
}
func (g *refusing) Refused(_ context.Context, c tool.Call, reason string) error {
	g.told = append(g.told, c.Tool+" "+c.Risk.String()+": "+reason)
	return g.err
}

// TestDenialsReachTheGate: every denial that the gate was not asked about is
// told to it, and stays one where telling fails.
func TestDenialsReachTheGate(t *testing.T) {
	t.Parallel()
	dir := real(t)
	g := &refusing{}
	inv := agent(t, tool.AgentSpec{
		Tools: []*tool.Tool{writer(dir, tool.Constraints{MaxInvocations: 1})}, Gate: g,
		Interceptors: []tool.Interceptor{func(_ context.Context, c tool.Call) tool.Intercept {
			if strings.Contains(string(c.Args), "stop") {
				return tool.Deny("stopped here")
			}
			return tool.Proceed()
		}},
	}).Invoke()
	for _, tc := range []struct{ name, path, want string }{
		{"nothing", dir + "/a", "nothing unknown: there is no tool nothing"},
		{"write_report", "/etc/passwd", "write_report medium: /path: the policy lets the tool write"},
		{"write_report", dir + "/stop", "write_report medium: stopped here"},
		{"write_report", dir + "/a", "succeeded: "},
		{"write_report", dir + "/a", "write_report medium: write_report may run 1 times"},
	} {
		g.told = nil
		inv.Call(t.Context(), tc.name, args(t, pathInput{Path: tc.path}))
		if got := strings.Join(g.told, "\n"); !strings.HasPrefix(got, tc.want) || len(g.told) != 1 {
			t.Errorf("%s %s: the gate heard %q, want %q", tc.name, tc.path, got, tc.want)
		}
	}
	g.err = errors.New("the disk is full")
	if out := inv.Call(t.Context(), "write_report", args(t, pathInput{Path: "/etc/passwd"})); !out.Denied || !strings.Contains(out.Reason, "the disk is full") {
		t.Errorf("%+v", out)
	}
}
