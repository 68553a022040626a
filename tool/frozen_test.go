package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-3ebc6b8a/gatehouse/tool"
	"github.com/seed-3ebc6b8a/gatehouse/tool/declare"
)

// TestAttackWidenedAfterwards: code of the same program that changes what a
// tool or an agent was made of changes nothing that is enforced.
func TestAttackWidenedAfterwards(t *testing.T) {
	t.Parallel()
	dir := real(t)
	policy := &tool.Policy{Risk: tool.High, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.Only(dir + "/**")}, Exec: tool.None, Environment: tool.None, Network: tool.None}
	roles := map[string]tool.Role{"path": declare.RoleWrite}
	after := []string{"first"}
	var failed error
	reach := tool.New(tool.Spec{Name: "reach", Policy: policy, Roles: roles, Constraints: tool.Constraints{OnlyAfter: after}},
		func(_ context.Context, env *tool.Env, _ struct {
			Path string `json:"path"`
		}) (string, error) {
			_, failed = env.ReadFile("/etc/passwd")
			return "", nil
		})
	spec := tool.AgentSpec{
		Name: "x", Tools: []*tool.Tool{reach, step("first", tool.Constraints{}, false)}, Workspace: dir,
		Budget: map[string]int64{declare.MaxToolCalls: 2}, Grants: &tool.Grants{Allow: []string{"first"}, Confirm: []string{"reach"}, ConfirmWith: "person"},
		ConfirmWith: func(context.Context, tool.Call) (bool, error) { return true, nil },
	}
	a := agent(t, spec)
	before, err := a.Manifest(nil)
	if err != nil {
		t.Fatal(err)
	}
	widen := func(p *tool.Policy) {
		p.Filesystem, p.Exec = tool.Filesystem{Read: tool.Only("/**"), Write: tool.Only("/**")}, tool.All
	}
	widen(policy)
	widen(reach.Declaration().Policy)
	widen(a.Tools()[0].Policy)
	roles["path"] = declare.RoleText
	reach.Declaration().Arguments["path"] = declare.RoleText
	after[0] = "reach"
	delete(spec.Budget, declare.MaxToolCalls)
	spec.Grants.Confirm[0], spec.Grants.Allow[0] = "first", "reach"
	spec.Inert = true

	inv := a.Invoke()
	call := func(name, path string) tool.Outcome {
		return inv.Call(t.Context(), name, json.RawMessage(`{"path":"`+path+`"}`))
	}
	if out := call("reach", dir+"/a"); !out.Denied || !strings.Contains(out.Reason, "only run after first") {
		t.Errorf("the constraint went: %+v", out)
	}
	if out := inv.Call(t.Context(), "first", json.RawMessage(`{}`)); out.Denied {
		t.Fatalf("%+v", out)
	}
	if out := call("reach", "/etc/passwd"); !out.Denied {
		t.Errorf("the argument gate went: %+v", out)
	}
	if out := call("reach", dir+"/a"); out.Denied || !errors.Is(failed, tool.ErrBeyond) {
		t.Errorf("the handle gave what was not declared: %+v, %v", out, failed)
	}
	if out := call("reach", dir+"/a"); !out.Denied || !strings.Contains(out.Reason, "2 tool calls") {
		t.Errorf("the budget went: %+v", out)
	}
	now, err := a.Manifest(nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(before), string(now)); diff != "" {
		t.Errorf("the manifest went along:\n%s", diff)
	}
}

// TestArgumentGateComesFirst: an interceptor does not see a call that the
// declaration denies, and so cannot make another of it.
func TestArgumentGateComesFirst(t *testing.T) {
	t.Parallel()
	dir := real(t)
	seen := 0
	inv := agent(t, tool.AgentSpec{Tools: []*tool.Tool{writer(dir, tool.Constraints{})}, Interceptors: []tool.Interceptor{func(_ context.Context, c tool.Call) tool.Intercept {
		if seen++; c.Risk != tool.Medium || !c.UsedDeclared {
			t.Errorf("the interceptor is told %+v", c)
		}
		return tool.Rewrite(json.RawMessage(`{"path":"` + dir + `/b"}`))
	}}}).Invoke()
	if out := inv.Call(t.Context(), "write_report", json.RawMessage(`{"path":"/etc/passwd"}`)); !out.Denied || seen != 0 {
		t.Errorf("%+v, seen %d times", out, seen)
	}
	if out := inv.Call(t.Context(), "write_report", json.RawMessage(`{"path":"`+dir+`/a"}`)); out.Denied || seen != 1 {
		t.Errorf("%+v, seen %d times", out, seen)
	}
}

// capturing keeps what the gate is told.
type capturing struct {
	refusing
	calls []tool.Call
}

func (g *capturing) Submit(_ context.Context, c tool.Call) (tool.Verdict, error) {
	g.calls = append(g.calls, c)
	return tool.Verdict{Allowed: true, ID: "c"}, nil
}

// TestCapabilities: those declared go to the gate with every call, unless the
// tool computes them from the arguments.
func TestCapabilities(t *testing.T) {
	t.Parallel()
	type input struct {
		To string `json:"to"`
	}
	run := func(context.Context, *tool.Env, input) (string, error) { return "", nil }
	fixed := tool.New(tool.Spec{Name: "fixed", Capabilities: []string{"data.user"}}, run)
	computed := tool.Needs(tool.New(tool.Spec{Name: "computed", Capabilities: []string{"data.user"}}, run), func(in input) []string { return []string{"net.egress:" + in.To} })
	g := &capturing{}
	inv := agent(t, tool.AgentSpec{Tools: []*tool.Tool{fixed, computed}, Gate: g}).Invoke()
	for _, name := range []string{"fixed", "computed"} {
		if out := inv.Call(t.Context(), name, json.RawMessage(`{"to":"a.example"}`)); out.Denied {
			t.Errorf("%+v", out)
		}
	}
	if diff := cmp.Diff([][]string{{"data.user"}, {"net.egress:a.example"}}, [][]string{g.calls[0].Capabilities, g.calls[1].Capabilities}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if out := inv.Call(t.Context(), "computed", json.RawMessage(`{"to":1}`)); !out.Denied {
		t.Errorf("arguments from which nothing can be computed: %+v", out)
	}
}

// TestDirectoriesThatAreNotThere: what is declared is made, and a link that
// stands in its place is not followed out.
func TestDirectoriesThatAreNotThere(t *testing.T) {
	t.Parallel()
	dir, outside := real(t), real(t)
	inv := agent(t, tool.AgentSpec{Tools: []*tool.Tool{writer(dir+"/new/deep", tool.Constraints{})}}).Invoke()
	if out := inv.Call(t.Context(), "write_report", args(t, pathInput{Path: dir + "/new/deep/er/a", Text: "x"})); out.Denied || out.Err != nil {
		t.Errorf("%+v", out)
	}
	if err := os.RemoveAll(dir + "/new"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside+"/not/there", filepath.Join(dir, "new")); err != nil {
		t.Fatal(err)
	}
	if out := inv.Call(t.Context(), "write_report", args(t, pathInput{Path: dir + "/new/deep/a"})); !out.Denied {
		t.Errorf("%+v", out)
	}
	if left, err := os.ReadDir(outside); err != nil || len(left) > 0 {
		t.Errorf("something was made outside: %v, %v", left, err)
	}
}
