package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/seed-3ebc6b8a/gatehouse/internal/needtest"
	"github.com/seed-3ebc6b8a/gatehouse/sandbox"
	"github.com/seed-3ebc6b8a/gatehouse/tool"
)

func TestMain(m *testing.M) {
	sandbox.MaybeLaunch()
	goleak.VerifyTestMain(m)
}

type pathInput struct {
	Path string `json:"path" gate:"write"`
	Text string `json:"text,omitempty" gate:"text"`
}

// log collects events.
type log struct {
	mu     sync.Mutex
	events []tool.Event
}

func (l *log) add(e tool.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
}

func (l *log) kinds() (out []tool.EventKind) {
	for _, e := range l.events {
		out = append(out, e.Kind)
	}
	return out
}

func writer(dir string, c tool.Constraints) *tool.Tool {
	return tool.New(tool.Spec{
		Name: "write_report", Constraints: c,
		Policy: &tool.Policy{Risk: tool.Medium, Filesystem: tool.Filesystem{Read: tool.None, Write: tool.Only(dir + "/**")}},
	}, func(_ context.Context, env *tool.Env, in pathInput) (string, error) {
		return "ok", env.WriteFile(in.Path, []byte(in.Text))
	})
}

func agent(t testing.TB, spec tool.AgentSpec) *tool.Agent {
	t.Helper()
	if spec.Name == "" {
		spec.Name = "helper"
	}
	a, err := tool.NewAgent(spec)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func args(t testing.TB, v any) json.RawMessage {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func real(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestDeclaredWrites is the example of the documentation: inside the glob it
// runs, outside it is denied before the executor runs, and the hook of
// executed calls does not fire.
func TestDeclaredWrites(t *testing.T) {
	t.Parallel()
	dir, l := real(t), &log{}
	inv := agent(t, tool.AgentSpec{Tools: []*tool.Tool{writer(dir, tool.Constraints{})}, OnEvent: l.add}).Invoke()
	out := inv.Call(t.Context(), "write_report", args(t, pathInput{Path: dir + "/2026/r.txt", Text: "x"}))
	if out.Denied || out.Err != nil || string(out.Output) != `"ok"` {
		t.Fatalf("%+v", out)
	}
	if b, err := os.ReadFile(dir + "/2026/r.txt"); err != nil || string(b) != "x" {
		t.Errorf("%q, %v", b, err)
	}
	out = inv.Call(t.Context(), "write_report", args(t, pathInput{Path: "/etc/passwd"}))
	if !out.Denied || !strings.Contains(out.Reason, "/etc/passwd") || !strings.Contains(out.Reason, dir) {
		t.Errorf("%+v", out)
	}
	if diff := cmp.Diff([]tool.EventKind{tool.Called, tool.Denied}, l.kinds()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if e := l.events[0]; e.Risk != tool.Medium || !e.UsedDeclared {
		t.Errorf("the event says %+v", e)
	}
	if e := l.events[1]; e.Risk != tool.Medium || e.UsedDeclared {
		t.Errorf("the event of a denial says %+v", e)
	}
}

// TestHandles: what lies outside the declaration is refused where it is used,
// though the arguments looked harmless, and told.
func TestHandles(t *testing.T) {
	t.Parallel()
	dir, l := real(t), &log{}
	if err := os.Symlink("/etc", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/away" {
			http.Redirect(w, r, "http://localhost:1/", http.StatusFound)
		}
	}))
	defer srv.Close()
	host := strings.TrimPrefix(srv.URL, "http://")
	var errs []error
	sneaky := tool.New(tool.Spec{Name: "sneaky", Policy: &tool.Policy{
		Filesystem:  tool.Filesystem{Read: tool.Only(dir + "/**"), Write: tool.Only(dir + "/**")},
		Network:     tool.Only(host),
		Environment: tool.Only("LANG"),
		Exec:        tool.Only("true"),
	}}, func(ctx context.Context, env *tool.Env, _ struct{}) (string, error) {
		note := func(err error) { errs = append(errs, err) }
		_, err := env.ReadFile("/etc/hostname")
		note(err)
		_, err = env.ReadFile(dir + "/link/hostname")
		note(err)
		note(env.WriteFile(dir+"/../escape", nil))
		note(env.Remove(dir + "/link/hostname"))
		_, err = env.Getenv("PATH")
		note(err)
		_, err = env.Run(ctx, "false")
		note(err)
		_, err = env.HTTP().Get("http://localhost:1/")
		note(errors.Unwrap(err))
		_, err = env.HTTP().Get(srv.URL + "/away")
		note(errors.Unwrap(err))
		// What was declared works.
		if _, err := env.Getenv("LANG"); err != nil {
			t.Error(err)
		}
		r, err := env.HTTP().Get(srv.URL)
		if err != nil {
			t.Error(err)
		} else {
			r.Body.Close()
		}
		return "", env.WriteFile(dir+"/ok", nil)
	})
	out := agent(t, tool.AgentSpec{Tools: []*tool.Tool{sneaky}, OnEvent: l.add}).Invoke().Call(t.Context(), "sneaky", json.RawMessage(`{}`))
	if out.Err != nil || out.Denied {
		t.Fatalf("%+v", out)
	}
	refused := 0
	for i, err := range errs {
		if !errors.Is(err, tool.ErrBeyond) {
			t.Errorf("access %d: %v", i, err)
		}
	}
	for _, k := range l.kinds() {
		if k == tool.Refused {
			refused++
		}
	}
	if refused != len(errs) {
		t.Errorf("%d of %d refusals were told", refused, len(errs))
	}
	if _, err := os.Stat(filepath.Join(dir, "..", "escape")); err == nil {
		t.Error("it escaped")
	}
}

// TestHandlesWithoutStance: where nothing was declared, nothing is to be had.
func TestHandlesWithoutStance(t *testing.T) {
	t.Parallel()
	bare := tool.New(tool.Spec{Name: "bare"}, func(ctx context.Context, env *tool.Env, _ struct{}) (string, error) {
		_, e1 := env.ReadFile("/etc/hostname")
		_, e2 := env.Getenv("PATH")
		_, e3 := env.Run(ctx, "true")
		_, e4 := env.HTTP().Get("http://localhost:1/")
		var u *url.Error
		if errors.As(e4, &u) {
			e4 = u.Err
		}
		for i, err := range []error{e1, env.WriteFile("x", nil), e2, e3, e4} {
			if !errors.Is(err, tool.ErrBeyond) {
				t.Errorf("access %d: %v", i, err)
			}
		}
		return "", nil
	})
	agent(t, tool.AgentSpec{Tools: []*tool.Tool{bare}}).Invoke().Call(t.Context(), "bare", json.RawMessage(`{}`))
}

func TestInterceptors(t *testing.T) {
	t.Parallel()
	dir := real(t)
	in := args(t, pathInput{Path: dir + "/a"})
	for name, tc := range map[string]struct {
		chain  []tool.Interceptor
		denied string
		output string
	}{
		"proceed":        {[]tool.Interceptor{says(tool.Proceed())}, "", `"ok"`},
		"first denies":   {[]tool.Interceptor{says(tool.Deny("no")), says(tool.Proceed())}, "no", ""},
		"last denies":    {[]tool.Interceptor{says(tool.Proceed()), says(tool.Deny("no"))}, "no", ""},
		"substitute":     {[]tool.Interceptor{says(tool.Substitute("instead")), says(tool.Deny("no"))}, "", `"instead"`},
		"rewrite inside": {[]tool.Interceptor{says(tool.Rewrite(args(t, pathInput{Path: dir + "/b"})))}, "", `"ok"`},
		"rewrite beyond": {[]tool.Interceptor{says(tool.Rewrite(json.RawMessage(`{"path":"/etc/passwd"}`))), says(tool.Proceed())}, "/etc/passwd", ""},
		"it panics":      {[]tool.Interceptor{func(context.Context, tool.Call) tool.Intercept { panic("oh") }}, "interceptor failed", ""},
		"the zero value": {[]tool.Interceptor{says(tool.Intercept{})}, "denied", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := agent(t, tool.AgentSpec{Tools: []*tool.Tool{writer(dir, tool.Constraints{})}, Interceptors: tc.chain}).Invoke().Call(t.Context(), "write_report", in)
			if out.Denied != (tc.denied != "") || !strings.Contains(out.Reason, tc.denied) || string(out.Output) != tc.output {
				t.Errorf("%+v", out)
			}
		})
	}
}

// editing is a gate at which a person puts other arguments in place.
type editing struct {
	args json.RawMessage
	done []string
}

func (e *editing) Submit(context.Context, tool.Call) (tool.Verdict, error) {
	return tool.Verdict{Allowed: true, ID: "c", Args: e.args}, nil
}

func (e *editing) Done(_ context.Context, _ tool.Call, _, outcome, _ string) error {
	e.done = append(e.done, outcome)
	return nil
}

// TestEditsAreHeldToo: what a person puts in place of the arguments is held
// against the declaration again.
func TestEditsAreHeldToo(t *testing.T) {
	t.Parallel()
	dir := real(t)
	for path, want := range map[string]string{dir + "/b": "succeeded", "/etc/passwd": "refused"} {
		e := &editing{args: args(t, pathInput{Path: path, Text: "x"})}
		out := agent(t, tool.AgentSpec{Tools: []*tool.Tool{writer(dir, tool.Constraints{})}, Gate: e}).Invoke().Call(t.Context(), "write_report", args(t, pathInput{Path: dir + "/a", Text: "x"}))
		if out.Denied != (want == "refused") || !slices.Equal(e.done, []string{want}) {
			t.Errorf("edited to %s: %+v, %v", path, out, e.done)
		}
	}
	if _, err := os.Stat(dir + "/a"); err == nil {
		t.Error("the arguments that were edited away ran")
	}
}

func says(v tool.Intercept) tool.Interceptor {
	return func(context.Context, tool.Call) tool.Intercept { return v }
}

func step(name string, c tool.Constraints, fail bool) *tool.Tool {
	return tool.New(tool.Spec{Name: name, Constraints: c}, func(context.Context, *tool.Env, struct{}) (string, error) {
		if fail {
			return "", errors.New("it failed")
		}
		return name, nil
	})
}

func TestConstraints(t *testing.T) {
	t.Parallel()
	call := func(inv *tool.Invocation, name string) string {
		out := inv.Call(t.Context(), name, json.RawMessage(`{}`))
		switch {
		case out.Denied:
			return out.Reason
		case out.Err != nil:
			return out.Err.Error()
		}
		return "ok"
	}
	for name, tc := range map[string]struct {
		tools []*tool.Tool
		calls []string
		want  []string
	}{
		"max": {[]*tool.Tool{step("a", tool.Constraints{MaxInvocations: 2}, false)}, []string{"a", "a", "a"}, []string{"ok", "ok", "may run 2 times"}},
		"only after": {[]*tool.Tool{step("fetch", tool.Constraints{}, false), step("commit", tool.Constraints{OnlyAfter: []string{"fetch"}}, false)},
			[]string{"commit", "fetch", "commit"}, []string{"only run after fetch", "ok", "ok"}},
		"only after a success": {[]*tool.Tool{step("fetch", tool.Constraints{}, true), step("commit", tool.Constraints{OnlyAfter: []string{"fetch"}}, false)},
			[]string{"fetch", "commit"}, []string{"it failed", "not completed successfully"}},
		"forbidden": {[]*tool.Tool{step("a", tool.Constraints{Forbidden: true}, false)}, []string{"a"}, []string{"forbidden"}},
		"force": {[]*tool.Tool{step("plan", tool.Constraints{ForceAtStep: 1}, false), step("a", tool.Constraints{}, false)},
			[]string{"a", "plan", "a"}, []string{"must be of plan", "ok", "ok"}},
		"cooldown": {[]*tool.Tool{step("a", tool.Constraints{Cooldown: tool.Duration(1 << 50)}, false)}, []string{"a", "a"}, []string{"ok", "cooldown"}},
		"denials": {[]*tool.Tool{step("f", tool.Constraints{}, true), step("a", tool.Constraints{OnlyAfter: []string{"f"}, ConsecutiveDenials: 2}, false)},
			[]string{"a", "a", "a"}, []string{"only run after", "only run after", "closed for the rest"}},
		"unknown":  {[]*tool.Tool{step("fetch", tool.Constraints{}, false)}, []string{"fecth"}, []string{`did you mean "fetch"`}},
		"approval": {[]*tool.Tool{step("a", tool.Constraints{RequiresApproval: true}, false)}, []string{"a"}, []string{"no gate is connected"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := agent(t, tool.AgentSpec{Tools: tc.tools})
			for range 2 { // counts are per invocation
				inv := a.Invoke()
				for i, c := range tc.calls {
					if got := call(inv, c); got != tc.want[i] && !strings.Contains(got, tc.want[i]) {
						t.Errorf("call %d of %s: %q, want %q", i, c, got, tc.want[i])
					}
				}
			}
		})
	}
}

// TestMaxInvocationsHoldsConcurrently: many calls at once get no more places
// than there are.
func TestMaxInvocationsHoldsConcurrently(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	ran := 0
	slow := tool.New(tool.Spec{Name: "slow", Constraints: tool.Constraints{MaxInvocations: 3}}, func(context.Context, *tool.Env, struct{}) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		ran++
		return "", nil
	})
	inv := agent(t, tool.AgentSpec{Tools: []*tool.Tool{slow}}).Invoke()
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() { inv.Call(t.Context(), "slow", json.RawMessage(`{}`)) })
	}
	wg.Wait()
	if ran != 3 {
		t.Errorf("it ran %d times", ran)
	}
}

func TestBuildFindsEverythingAtOnce(t *testing.T) {
	t.Parallel()
	bad := tool.New(tool.Spec{Name: "bad", Policy: &tool.Policy{Filesystem: tool.Filesystem{Read: tool.Only("/[")}}}, func(context.Context, *tool.Env, struct {
		P string `json:"p" gate:"reed"`
	}) (string, error) {
		return "", nil
	})
	text := tool.New(tool.Spec{Name: "text"}, func(context.Context, *tool.Env, string) (string, error) { return "", nil })
	process := tool.Process(tool.Spec{Name: "process"}, func(struct{}) []string { return nil })
	_, err := tool.NewAgent(tool.AgentSpec{Name: "a", Tools: []*tool.Tool{bad, text, process},
		Grants: &tool.Grants{Allow: []string{"bad", "other"}, Confirm: []string{"bad"}}, Approvals: []string{"bd"}})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"/[", "reed", "must be a struct", "must allow exec", `"other"`, "both allowed and confirmed", "text is used and not granted", `did you mean "bad"`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not among:\n%v", want, err)
		}
	}
}

func TestGrants(t *testing.T) {
	t.Parallel()
	tools := []*tool.Tool{step("free", tool.Constraints{}, false), step("asked", tool.Constraints{}, false)}
	grants := &tool.Grants{Allow: []string{"free"}, Confirm: []string{"asked"}, ConfirmWith: "boss"}
	for name, tc := range map[string]struct {
		with func(context.Context, tool.Call) (bool, error)
		want bool
	}{
		"nobody": {nil, false},
		"yes":    {func(context.Context, tool.Call) (bool, error) { return true, nil }, true},
		"no":     {func(context.Context, tool.Call) (bool, error) { return false, nil }, false},
		"broken": {func(context.Context, tool.Call) (bool, error) { return true, errors.New("away") }, false},
	} {
		inv := agent(t, tool.AgentSpec{Tools: tools, Grants: grants, ConfirmWith: tc.with}).Invoke()
		if out := inv.Call(t.Context(), "free", json.RawMessage(`{}`)); out.Denied {
			t.Errorf("%s: free is denied: %s", name, out.Reason)
		}
		if out := inv.Call(t.Context(), "asked", json.RawMessage(`{}`)); out.Denied == tc.want {
			t.Errorf("%s: %+v", name, out)
		}
	}
}

// TestInert: switching the gate off is possible, in the manifest, and changes
// its hash.
func TestInert(t *testing.T) {
	t.Parallel()
	dir := real(t)
	l := &log{}
	on, off := agent(t, tool.AgentSpec{Tools: []*tool.Tool{writer(dir, tool.Constraints{})}}), agent(t, tool.AgentSpec{Tools: []*tool.Tool{writer(dir, tool.Constraints{})}, Inert: true, OnEvent: l.add})
	if diff := cmp.Diff([]tool.EventKind{tool.Unenforced}, l.kinds()); diff != "" {
		t.Errorf("switching it off is not told (-want +got):\n%s", diff)
	}
	a, err := on.Manifest(nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := off.Manifest(nil)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(a), `"enforcePolicies": true`) || !strings.Contains(string(b), `"enforcePolicies": false`) {
		t.Errorf("%s\n%s", a, b)
	}
	// The handle still refuses: it is not the argument gate.
	out := off.Invoke().Call(t.Context(), "write_report", json.RawMessage(`{"path":"/proc/x"}`))
	if out.Denied || !errors.Is(out.Err, tool.ErrBeyond) {
		t.Errorf("%+v", out)
	}
}

// TestProcess runs a process tool confined: it writes where it may and nowhere
// else.
func TestProcess(t *testing.T) {
	t.Parallel()
	dir, outside := real(t), real(t)
	type in struct {
		To string `json:"to" gate:"text"`
	}
	cp := tool.Process(tool.Spec{Name: "copy", Policy: &tool.Policy{
		Filesystem: tool.Filesystem{Read: tool.Only(dir + "/**"), Write: tool.Only(dir + "/**")}, Network: tool.None, Exec: tool.Only("cp"),
	}}, func(i in) []string { return []string{"cp", dir + "/a", i.To} })
	if err := os.WriteFile(dir+"/a", []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if !sandbox.Supported().Any(sandbox.WriteRoots) {
		needtest.Missing(t, "no sandbox works here, and without one process tools refuse to run")
	}
	inv := agent(t, tool.AgentSpec{Tools: []*tool.Tool{cp}, Workspace: dir}).Invoke()
	out := inv.Call(t.Context(), "copy", args(t, in{To: dir + "/b"}))
	if out.Err != nil || out.Denied || !strings.Contains(string(out.Output), `"exitCode":0`) {
		t.Fatalf("%+v %s", out, out.Output)
	}
	if _, err := os.Stat(dir + "/b"); err != nil {
		t.Error(err)
	}
	out = inv.Call(t.Context(), "copy", args(t, in{To: outside + "/b"}))
	if _, err := os.Stat(outside + "/b"); err == nil {
		t.Errorf("it wrote outside: %s", out.Output)
	}
}
