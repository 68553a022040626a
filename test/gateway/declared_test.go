package gateway_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
)

// freer lets every tool go ahead, whatever it names, but for commands that may
// run in any way.
const freer = free + `
[profiles.free.capabilities]
"fs.read" = "AUTO_APPROVE"
"fs.write" = "AUTO_APPROVE"
"net.egress" = "AUTO_APPROVE"
"proc.exec" = "AUTO_APPROVE"
"proc.exec:confined" = "CONFIRM_SESSION"
[risk]
confirm_at = 101
`

// policy reads the state of the policy until it is as wanted: the gate notices
// files by itself.
func (h *house) policy(what string, is func(*admin.Policy) bool) *admin.Policy {
	h.t.Helper()
	for range 400 {
		got := &admin.Policy{}
		if err := h.Client(h.credential).Do(h.t.Context(), "GET", "/v1/policy", nil, got); err != nil {
			h.t.Fatal(err)
		}
		if is(got) {
			return got
		}
		time.Sleep(25 * time.Millisecond)
	}
	h.t.Fatalf("the policy never came to be %s", what)
	return nil
}

// declare writes the declarations of tools and waits until the gate has seen
// them: in force, or staged.
func (h *house) declare(text string) *admin.Policy {
	h.t.Helper()
	before := h.policy("read", func(*admin.Policy) bool { return true })
	if err := os.WriteFile(h.declared, []byte("gatehouse: 1\n"+text), 0o600); err != nil {
		h.t.Fatal(err)
	}
	return h.policy("another", func(p *admin.Policy) bool {
		return p.Hash != before.Hash || p.Staged != nil && (before.Staged == nil || p.Staged.Hash != before.Staged.Hash) || len(p.Broken) > 0
	})
}

// uses calls a tool and returns what the agent hears, and whether the call got
// to the upstream.
func (h *house) uses(session map[string]string, tool, args string) (heard string, ran bool) {
	h.t.Helper()
	before := len(h.upstreamHeard(`"tools/call"`))
	r := h.say("/mcp/files", toolCall("1", tool, args), session)
	return r.last(), len(h.upstreamHeard(`"tools/call"`)) > before
}

// TestDeclaredToolsAreHeld: a tool of any MCP server that is declared in YAML
// is held to it by the gate, whatever the policy lets through: paths, links,
// hosts, variables, programs, and none of them.
func TestDeclaredToolsAreHeld(t *testing.T) {
	t.Parallel()
	h := newHouse(t, freer)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, sub := range []string{"out", "in", "secret"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(dir, "secret"), filepath.Join(dir, "out", "link")); err != nil {
		t.Fatal(err)
	}
	session := h.begin("/mcp/files", `{}`)
	if _, ran := h.uses(session, "echo", `{"to":"`+dir+`/secret/x"}`); !ran {
		t.Fatal("undeclared, and the policy lets everything through, yet it did not run: the rest of this test shows nothing")
	}
	h.declare(fmt.Sprintf(`tools:
  - name: mcp__files__echo
    policy:
      risk: high
      filesystem: {read: ["%[1]s/in/**"], write: ["%[1]s/out/**"]}
      network: [api.example.com:443]
      environment: [LANG]
      exec: [git]
    arguments: {from: read, to: write, url: url, var: env, cmd: command, note: text, "all[].to": write}
  - name: mcp__files__look
    policy: {risk: low, filesystem: {read: none, write: none}, network: none, environment: none, exec: none}
    arguments: {var: env, cmd: command, url: url}
`, dir))
	at := func(p string) string { return dir + "/" + p }
	for _, tc := range []struct {
		tool, args string
		ran        bool
	}{
		{"echo", `{"from":"` + at("in/a") + `","to":"` + at("out/b") + `","var":"LANG","note":"/srv/anything","all":[{"to":"` + at("out/c") + `"}]}`, true},
		{"echo", `{"to":"` + at("secret/x") + `"}`, false},
		{"echo", `{"to":"` + at("in/a") + `"}`, false},
		{"echo", `{"from":"` + at("out/b") + `"}`, false},
		{"echo", `{"to":"` + at("out/../secret/x") + `"}`, false},
		{"echo", `{"to":"` + at("out/link/x") + `"}`, false},
		{"echo", `{"all":[{"to":"` + at("out/a") + `"},{"to":"` + at("secret/a") + `"}]}`, false},
		{"echo", `{"other":"` + at("secret/x") + `"}`, false},
		{"echo", `{"other":{"deep":["file://` + at("secret/x") + `"]}}`, false},
		{"echo", `{"to":"` + at("out/a") + `\u0000/x"}`, false},
		{"echo", `{"to":"relative"}`, false}, // the server's directory is not known
		{"echo", `{"url":"https://evil.example.net/"}`, false},
		{"echo", `{"target":"https://evil.example.net/"}`, false}, // no role, and still a host
		{"echo", `{"url":"http://api.example.com:8080/"}`, false},
		{"echo", `{"var":"AWS_SECRET_ACCESS_KEY"}`, false},
		{"echo", `{"cmd":"curl https://api.example.com"}`, false},
		{"echo", `{"cmd":"git status; rm -rf x"}`, false},
		{"look", `{"say":"hello"}`, true},
		{"look", `{"say":"/anything"}`, false},
		{"look", `{"url":"https://api.example.com"}`, false},
		{"look", `{"var":"LANG"}`, false},
		{"look", `{"cmd":"git"}`, false},
	} {
		heard, ran := h.uses(session, tc.tool, tc.args)
		if ran != tc.ran {
			t.Errorf("%s %s: ran %t, want %t: %s", tc.tool, tc.args, ran, tc.ran, heard)
		}
		if !tc.ran && !strings.Contains(heard, "beyond what the tool declares") {
			t.Errorf("%s %s: the agent is not told why: %s", tc.tool, tc.args, heard)
		}
	}
	// What is declared does not make a call more trusted: a host and a command
	// that were declared are asked about like others.
	for _, args := range []string{`{"url":"https://api.example.com/x"}`, `{"cmd":"git status"}`} {
		if heard, ran := h.uses(session, "echo", args); ran || !strings.Contains(heard, "Pending") {
			t.Errorf("%s: ran %t: %s", args, ran, heard)
		}
	}
	// The record has the tool's risk and whether the call used what it grants.
	for operation, want := range map[string]string{
		"mcp__files__echo": `"tools":[{"name":"mcp__files__echo","risk":"high","used":true}]`,
		"mcp__files__look": `"tools":[{"name":"mcp__files__look","risk":"low"}]`,
	} {
		if records := h.records(operation); !strings.Contains(records, want) {
			t.Errorf("no record has %s:\n%s", want, records)
		}
	}
}

// records returns the records of an operation, whole.
func (h *house) records(operation string) string {
	h.t.Helper()
	var page, one = &api.LogPage{}, &admin.Record{}
	c := h.Client(h.credential)
	if err := c.Do(h.t.Context(), "GET", "/v1/log?operation="+operation, nil, page); err != nil {
		h.t.Fatal(err)
	}
	var text strings.Builder
	for _, r := range page.Records {
		if err := c.Do(h.t.Context(), "GET", "/v1/log/"+r.ID, nil, one); err != nil {
			h.t.Fatal(err)
		}
		fmt.Fprintf(&text, "%s\n", one.Body)
	}
	return text.String()
}

// TestDeclarationsArePolicy: a narrower declaration acts at once, a wider one,
// or one that is gone, waits for an approver, at a restart too; one that does
// not load leaves the last one in force.
func TestDeclarationsArePolicy(t *testing.T) {
	t.Parallel()
	h := newHouse(t, freer)
	session := h.begin("/mcp/files", `{}`)
	declared := func(stance string) string {
		return "tools:\n  - name: mcp__files__echo\n    policy: {risk: low, network: " + stance + "}\n    arguments: {url: url}\n"
	}
	call := func() bool {
		_, ran := h.uses(session, "echo", `{"url":"a.example.com"}`)
		return ran
	}
	if !call() {
		t.Fatal("undeclared, and it did not run")
	}
	if p := h.declare(declared("[a.example.com, b.example.com]")); p.Staged != nil {
		t.Fatalf("a declaration where there was none is staged: %v", p.Staged.Changes)
	}
	if p := h.declare(declared("[b.example.com]")); p.Staged != nil || call() {
		t.Errorf("a narrower declaration does not act at once: %+v", p.Staged)
	}
	p := h.declare(declared("all"))
	if p.Staged == nil || call() {
		t.Fatal("a wider declaration acted without an approver")
	}
	if text := strings.Join(p.Staged.Changes, "\n"); !strings.Contains(text, "mcp__files__echo") || !strings.Contains(text, "b.example.com") {
		t.Errorf("what is staged does not say what: %s", text)
	}
	h.Stop()
	h.Up()
	session = h.begin("/mcp/files", `{}`)
	if call() {
		t.Error("a restart took the wider declaration over")
	}
	if err := os.Remove(h.declared); err != nil {
		t.Fatal(err)
	}
	h.policy("staged", func(p *admin.Policy) bool {
		return p.Staged != nil && strings.Contains(fmt.Sprint(p.Staged.Changes), "not declared any more")
	})
	if call() {
		t.Error("taking the file away took the declaration away")
	}
	if p := h.declare("tools:\n  - name: mcp__files__echo\n    polcy: {}\n"); !strings.Contains(strings.Join(p.Broken, "\n"), "did you mean \"policy\"") || call() {
		t.Errorf("a file that does not load: %v", p.Broken)
	}
	if p := h.declare(declared("[b.example.com]") + "enforcePolicies: false\n"); p.Staged == nil || !strings.Contains(fmt.Sprint(p.Staged.Changes), "echo") || call() {
		t.Error("the argument gate was switched off without an approver")
	}
}

// TestDeclaredConstraints: how often, after what and with whose yes a declared
// tool runs is counted by the gate, over sessions, sub-agents, restarts and
// calls that come at once.
func TestDeclaredConstraints(t *testing.T) {
	t.Parallel()
	h := newHouse(t, free)
	h.declare(`tools:
  - {name: mcp__files__echo, constraints: {maxInvocations: 3}}
  - {name: mcp__files__look, constraints: {onlyAfter: [mcp__files__length], cooldown: 1h}}
  - {name: mcp__files__length}
  - {name: mcp__files__page, constraints: {forbidden: true}}
  - {name: mcp__files__noisy, constraints: {requiresApproval: true}}
  - name: mcp__files__steps
    policy: {network: none}
    arguments: {url: url}
    constraints: {consecutiveDenials: 2}
`)
	session := h.begin("/mcp/files", `{}`)
	// What would be denied now is not even listed.
	listed := h.say("/mcp/files", `{"jsonrpc":"2.0","id":5,"method":"tools/list"}`, session).last()
	for tool, want := range map[string]bool{"echo": true, "length": true, "noisy": true, "page": false, "look": false} {
		if strings.Contains(listed, `"name":"`+tool+`"`) != want {
			t.Errorf("%s is listed: %t, want %t: %s", tool, !want, want, listed)
		}
	}
	expect := func(tool, args, reason string) {
		t.Helper()
		heard, ran := h.uses(session, tool, args)
		if ran != (reason == "") || !strings.Contains(heard, reason) {
			t.Errorf("%s %s: ran %t, want %q: %s", tool, args, ran, reason, heard)
		}
	}
	expect("page", `{}`, "forbidden by its constraints")
	expect("look", `{}`, "may only run after mcp__files__length")
	expect("length", `{}`, "")
	expect("look", `{}`, "")
	expect("look", `{}`, "cooldown of 1h")
	expect("steps", `{}`, "")
	expect("steps", `{"url":"a.example.com"}`, "beyond what the tool declares")
	expect("steps", `{"url":"a.example.com"}`, "beyond what the tool declares")
	expect("steps", `{}`, "denied 2 times in a row")

	// Ten at once, in sessions of their own: three of them run.
	var wg sync.WaitGroup
	for i := range 10 {
		wg.Go(func() {
			own := h.begin("/mcp/files", `{}`)
			h.say("/mcp/files", toolCall("1", "echo", fmt.Sprintf(`{"concurrent":%d}`, i)), own)
		})
	}
	wg.Wait()
	if got := h.upstreamHeard(`"concurrent"`); len(got) != 3 {
		t.Errorf("of ten calls at once %d ran, of a tool that may run 3 times", len(got))
	}
	h.Stop()
	h.Up()
	session = h.begin("/mcp/files", `{}`)
	expect("echo", `{"after":"restart"}`, "may run 3 times, and has")

	// A person is asked, whatever the policy says; a person ends the counting.
	expect("noisy", `{}`, "has a person asked before every run")
	h.approve()
	expect("noisy", `{}`, "")
	expect("noisy", `{}`, "has a person asked before every run")
	list := &api.UseList{}
	if err := h.Client(h.credential).Do(t.Context(), "GET", "/v1/uses", nil, list); err != nil {
		t.Fatal(err)
	}
	var tools []string
	for _, u := range list.Uses {
		tools = append(tools, fmt.Sprintf("%s %d", u.Tool, u.Runs))
	}
	if want := "mcp__files__echo 3"; !slices.Contains(tools, want) {
		t.Errorf("the uses %q lack %q", tools, want)
	}
	h.Must("uses", "clear", "coder", "--credential-file", h.key)
	expect("echo", `{"after":"clear"}`, "")
	expect("steps", `{}`, "")
}

// TestManifestOfTheGate: the running gate tells its permission manifest, with
// the servers and the definitions that were accepted and no secret; its hash
// is on every record; and what goes beyond a baseline is found.
func TestManifestOfTheGate(t *testing.T) {
	t.Parallel()
	h := newHouse(t, free+"[redact]\nfields = [\"pin\"]\n", "--env", "SHOUT=very-secret-value")
	file := filepath.Join(t.TempDir(), "gate.json")
	h.declare("tools:\n  - {name: mcp__files__echo, policy: {risk: low, network: none}, constraints: {maxInvocations: 9}}\n")
	session := h.begin("/mcp/files", `{}`)
	if _, ran := h.uses(session, "echo", `{}`); !ran {
		t.Fatal("it did not run")
	}
	generate := func() string {
		return h.Must("manifest", "generate", "--from-gate", "--credential-file", h.key)
	}
	verify := func() (string, int) {
		out, stderr, code := h.Run("manifest", "verify", "--from-gate", "--credential-file", h.key, "--baseline", file)
		return out + stderr, code
	}
	now := generate()
	for _, want := range []string{`"mcp__files__echo"`, `"maxInvocations": 9`, `"name": "files"`, `"name": "echo"`, `"SHOUT"`, `"redact": [`, `"pin"`, `"asksPerHour": 60`, `"enforcePolicies": true`, `"policySHA256"`} {
		if !strings.Contains(now, want) {
			t.Errorf("the manifest lacks %s:\n%s", want, now)
		}
	}
	if strings.Contains(now, "very-secret-value") {
		t.Error("the manifest tells the value of a variable")
	}
	h.Must("manifest", "accept", "--from-gate", "--credential-file", h.key, "--baseline", file)
	if out, code := verify(); code != 0 {
		t.Fatalf("exit %d: %s", code, out)
	}
	// Every record carries the hash of what was in force.
	_, hash, _ := strings.Cut(now, `"sha256": "`)
	for i := strings.Count(hash, `"sha256": "`); i > 0; i-- { // the manifest's own comes last
		_, hash, _ = strings.Cut(hash, `"sha256": "`)
	}
	hash = hash[:64]
	if _, ran := h.uses(session, "echo", `{"again":1}`); !ran {
		t.Fatal("it did not run")
	}
	if records := h.records("mcp__files__echo"); !strings.Contains(records, `"manifest":"`+hash+`"`) {
		t.Errorf("no record carries %s:\n%s", hash, records)
	}
	// Another server is a finding, and another hash.
	h.add("more")
	out, code := verify()
	if code != 1 || !strings.Contains(out, "mcp.server.added") {
		t.Errorf("another server: exit %d\n%s", code, out)
	}
	if _, _, code := h.Run("manifest", "verify", "--from-gate", "--baseline", file); code == 0 {
		t.Error("without a credential the gate told its manifest")
	}
}
