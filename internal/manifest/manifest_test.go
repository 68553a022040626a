package manifest_test

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/seed-3ebc6b8a/gatehouse/internal/manifest"
	"github.com/seed-3ebc6b8a/gatehouse/tool/declare"
)

// everything is a set in which every part of the format is used.
const everything = `
gatehouse: 1
enforcePolicies: true
tools:
  - name: write_report
    description: Write a report
    policy:
      risk: medium
      filesystem: {read: none, write: ["/srv/**"]}
      network: ["*.example.com"]
      environment: [LANG, HOME]
      exec: [git, make]
    capabilities: ["fs.write:/srv/**"]
    arguments: {path: write, note: text}
    constraints: {maxInvocations: 3, onlyAfter: [fetch], requiresApproval: true, cooldown: 30s, consecutiveDenials: 2}
    schema: {type: object, properties: {path: {type: string}}}
  - name: fetch
    policy: {risk: low, filesystem: {read: none, write: none}, network: [api.example.com], environment: none, exec: none}
  - name: danger
    policy: {risk: high, exec: none}
    constraints: {forbidden: true}
agents:
  - name: helper
    tools: [fetch, write_report]
    grants: {allow: [fetch], confirm: [write_report], confirmWith: person}
    approvals: [write_report]
    redact: [token]
    budget: {maxToolCalls: 20, maxTokens: 1000}
    provider: {name: local, model: small, baseURL: "http://localhost:1/", hasKey: true}
    interceptors: 2
`

func parse(t testing.TB, text string) *declare.Set {
	t.Helper()
	set, err := declare.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return set
}

var servers = []manifest.Server{{Name: "files", InstructionsSHA256: "i1", Tools: []manifest.Pin{{Name: "read", SHA256: "a"}, {Name: "list", SHA256: "b"}}}}

func build(t testing.TB, set *declare.Set, servers ...manifest.Server) *manifest.Manifest {
	t.Helper()
	m, err := manifest.New("test", set, servers...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestReadsBack(t *testing.T) {
	t.Parallel()
	m := build(t, parse(t, everything), servers...)
	text, err := m.JSON()
	if err != nil {
		t.Fatal(err)
	}
	back, err := manifest.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	again, err := back.JSON()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(text), string(again)); diff != "" {
		t.Errorf("(-first +second):\n%s", diff)
	}
	if f := manifest.Verify(m, back); len(f) != 0 {
		t.Errorf("a manifest differs from itself: %v", f)
	}
	view, err := m.YAML()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"sha256: " + m.SHA256, "name: write_report", "- /srv/**"} {
		if !strings.Contains(string(view), want) {
			t.Errorf("the YAML view lacks %q:\n%s", want, view)
		}
	}
	if strings.Contains(string(text), "localhost:1") == false || strings.Contains(string(text), "apiKey") {
		t.Error("the provider is shown, its key is not")
	}
}

func TestOrderDoesNotMatter(t *testing.T) {
	t.Parallel()
	want := build(t, parse(t, everything), servers...).SHA256
	rapid.Check(t, func(rt *rapid.T) {
		set := parse(t, everything)
		set.Tools = rapid.Permutation(set.Tools).Draw(rt, "tools")
		set.Agents[0].Tools = rapid.Permutation(set.Agents[0].Tools).Draw(rt, "of the agent")
		srv := []manifest.Server{servers[0]}
		srv[0].Tools = rapid.Permutation(slices.Clone(servers[0].Tools)).Draw(rt, "pins")
		if got := build(t, set, srv...).SHA256; got != want {
			rt.Errorf("the hash depends on the order: %s", got)
		}
	})
}

func TestAnyEditIsFound(t *testing.T) {
	t.Parallel()
	m := build(t, parse(t, everything), servers...)
	text, err := m.JSON()
	if err != nil {
		t.Fatal(err)
	}
	for _, edit := range [][2]string{{`"/srv/**"`, `"/**"`}, {`"medium"`, `"low"`}, {`"enforcePolicies": true`, `"enforcePolicies": false`}, {`"confirm"`, `"allow2"`}, {`"a"`, `"c"`}, {`"sha256": "` + m.SHA256, `"sha256": "` + strings.Repeat("0", 64)}} {
		edited := strings.Replace(string(text), edit[0], edit[1], 1)
		if edited == string(text) {
			t.Fatalf("%s does not occur", edit[0])
		}
		if _, err := manifest.Parse([]byte(edited)); err == nil {
			t.Errorf("%s → %s was not noticed", edit[0], edit[1])
		}
	}
}

func TestSignature(t *testing.T) {
	t.Parallel()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	other, _, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	m := build(t, parse(t, everything))
	if m.SignedBy(public) {
		t.Error("signed before it was")
	}
	if err := m.Sign(private); err != nil {
		t.Fatal(err)
	}
	text, err := m.JSON()
	if err != nil {
		t.Fatal(err)
	}
	back, err := manifest.Parse(text)
	if err != nil || !back.SignedBy(public) || back.SignedBy(other) {
		t.Errorf("the signature is not read back: %v", err)
	}
	forged := bytes.Replace(text, []byte(m.Signature.Value[:8]), []byte("AAAAAAAA"), 1)
	if _, err := manifest.Parse(forged); !errors.Is(err, manifest.ErrSignature) {
		t.Errorf("a forged signature: %v", err)
	}
}

// TestOlderSections: what an older manifest did not have is unspecified.
func TestOlderSections(t *testing.T) {
	t.Parallel()
	old := build(t, parse(t, "gatehouse: 1\ntools: [{name: x, policy: {risk: low}}]\n"))
	p := old.Tools[0].Policy
	for _, side := range declare.Sides() {
		if p.Stance(side).Declared() {
			t.Errorf("%s is declared", side)
		}
	}
}

func TestVerify(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name     string
		old, new string // a replacement in the set
		want     []string
	}{
		{"nothing", "", "", nil},
		// Narrowing passes, by meaning.
		{"a narrower tree", `write: ["/srv/**"]`, `write: ["/srv/a/**", "/srv/b"]`, nil},
		{"the same tree in other words", `write: ["/srv/**"]`, `write: ["/srv/{*,**}", "/srv/./**"]`, nil},
		{"a narrower host", `["*.example.com"]`, `["a.example.com:443"]`, nil},
		{"fewer variables", `[LANG, HOME]`, `[LANG]`, nil},
		{"no programs", `exec: [git, make]`, `exec: none`, nil},
		{"less risk", `risk: medium`, `risk: low`, nil},
		{"tighter constraints", `maxInvocations: 3`, `maxInvocations: 2`, nil},
		{"a smaller budget", `maxToolCalls: 20`, `maxToolCalls: 19`, nil},
		{"confirmed instead of allowed", `allow: [fetch], confirm: [write_report]`, `confirm: [fetch, write_report]`, nil},
		// The reference's codes.
		{"risk up", `risk: medium`, `risk: critical`, []string{"tool.risk.increased"}},
		{"exec widened", `exec: [git, make]`, `exec: all`, []string{"tool.exec.widened"}},
		{"exec from none", `environment: none, exec: none`, `environment: none, exec: [sh]`, []string{"tool.exec.widened"}},
		{"network widened", `["*.example.com"]`, `all`, []string{"tool.network.widened"}},
		{"a host more", `[api.example.com]`, `[api.example.com, evil.example]`, []string{"tool.network.widened"}},
		{"write widened", `write: ["/srv/**"]`, `write: ["/**"]`, []string{"tool.filesystem.write.widened"}},
		{"read widened", `read: none, write: none`, `read: ["/etc/passwd"], write: none`, []string{"tool.filesystem.read.widened"}},
		{"environment widened", `[LANG, HOME]`, `[LANG, "AWS_*"]`, []string{"tool.environment.widened"}},
		{"a high tool", `  - name: danger`, "  - {name: boom, policy: {risk: critical}}\n  - name: danger", []string{"tool.added.high-risk", "tool.added"}},
		// What the reference does not see.
		{"a low tool that may do everything", `  - name: danger`, "  - {name: boom, policy: {risk: low, exec: all}}\n  - name: danger", []string{"tool.added"}},
		{"a tool of unknown risk", `  - name: danger`, "  - {name: boom}\n  - name: danger", []string{"tool.risk.unknown", "tool.added"}},
		{"a tool gone", "  - name: danger\n    policy: {risk: high, exec: none}\n    constraints: {forbidden: true}\n", "", []string{"tool.removed"}},
		{"risk taken back", `risk: medium`, `risk: unknown`, []string{"tool.risk.unknown"}},
		{"a stance taken back", `      exec: [git, make]`, ``, []string{"tool.exec.unspecified"}},
		{"the network stance taken back", `      network: ["*.example.com"]`, ``, []string{"tool.network.unspecified"}},
		{"the policy taken back", "    policy: {risk: low, filesystem: {read: none, write: none}, network: [api.example.com], environment: none, exec: none}\n", "",
			[]string{"policy.removed", "tool.risk.unknown", "tool.filesystem.write.unspecified", "tool.network.unspecified", "tool.exec.unspecified", "tool.filesystem.read.unspecified", "tool.environment.unspecified"}},
		{"exec from nothing said", "policy: {risk: high, exec: none}", "policy: {risk: high, exec: none, network: [a.example]}", []string{"tool.network.widened"}},
		{"more invocations", `maxInvocations: 3`, `maxInvocations: 4`, []string{"constraint.loosened"}},
		{"no limit", `maxInvocations: 3, `, ``, []string{"constraint.loosened"}},
		{"no prerequisite", `onlyAfter: [fetch], `, ``, []string{"constraint.loosened"}},
		{"no approval", `requiresApproval: true, `, ``, []string{"constraint.loosened"}},
		{"a shorter cooldown", `cooldown: 30s`, `cooldown: 1s`, []string{"constraint.loosened"}},
		{"more denials", `consecutiveDenials: 2`, `consecutiveDenials: 9`, []string{"constraint.loosened"}},
		{"no longer forbidden", "    constraints: {forbidden: true}\n", "", []string{"constraint.loosened"}},
		{"approval removed", "    approvals: [write_report]\n", "", []string{"approval.removed"}},
		{"redaction removed", "    redact: [token]\n", "", []string{"redaction.removed"}},
		{"guardrail removed", "interceptors: 2", "interceptors: 1", []string{"guardrail.removed"}},
		{"a larger budget", `maxToolCalls: 20`, `maxToolCalls: 21`, []string{"budget.raised"}},
		{"a budget gone", `, maxTokens: 1000`, ``, []string{"budget.raised"}},
		{"allowed instead of confirmed", `allow: [fetch], confirm: [write_report], confirmWith: person`, `allow: [fetch, write_report]`, []string{"grant.widened", "grant.widened"}},
		{"grants gone", "    grants: {allow: [fetch], confirm: [write_report], confirmWith: person}\n", "", []string{"grant.widened"}},
		{"another provider", `baseURL: "http://localhost:1/"`, `baseURL: "http://evil.example/"`, []string{"provider.changed"}},
		{"an agent's new tool", "tools: [fetch, write_report]\n    grants: {allow: [fetch]", "tools: [fetch, write_report, danger]\n    grants: {allow: [fetch, danger]", []string{"grant.widened", "agent.tool.added"}},
		{"enforcement off", `enforcePolicies: true`, `enforcePolicies: false`, []string{"enforcement.disabled"}},
		{"a role taken back", `arguments: {path: write, note: text}`, `arguments: {path: text, note: text}`, []string{"tool.role.removed"}},
		{"a path made text", `arguments: {path: write, note: text}`, `arguments: {path: write, note: text, other: text}`, []string{"tool.role.removed"}},
		{"a path made a path", `arguments: {path: write, note: text}`, `arguments: {path: write, note: text, other: write}`, nil},
		{"a capability more", `capabilities: ["fs.write:/srv/**"]`, `capabilities: ["fs.write:/srv/**", "data.user"]`, []string{"capability.added"}},
		{"another schema", `path: {type: string}`, `path: {type: number}`, []string{"tool.schema.changed"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			text := strings.Replace(everything, tc.old, tc.new, 1)
			if text == everything && tc.name != "nothing" {
				t.Fatalf("%q does not occur", tc.old)
			}
			findings := manifest.Verify(build(t, parse(t, everything)), build(t, parse(t, text)))
			var got []string
			for _, f := range findings {
				got = append(got, f.Code)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s\n%v", diff, findings)
			}
			info := slices.Contains([]string{"a tool gone", "another schema"}, tc.name)
			if manifest.Widened(findings) != (tc.want != nil && !info) {
				t.Errorf("widened: %v", manifest.Widened(findings))
			}
		})
	}
}

func TestVerifyServers(t *testing.T) {
	t.Parallel()
	set := parse(t, "gatehouse: 1\n")
	base := build(t, set, servers...)
	for name, tc := range map[string]struct {
		now  []manifest.Server
		want []string
	}{
		"changed":         {[]manifest.Server{{Name: "files", InstructionsSHA256: "i1", Tools: []manifest.Pin{{Name: "read", SHA256: "X"}, {Name: "list", SHA256: "b"}}}}, []string{"mcp.tool.changed"}},
		"added":           {[]manifest.Server{{Name: "files", InstructionsSHA256: "i1", Tools: append([]manifest.Pin{{Name: "rm", SHA256: "X"}}, servers[0].Tools...)}}, []string{"mcp.tool.added"}},
		"instructions":    {[]manifest.Server{{Name: "files", InstructionsSHA256: "i2", Tools: servers[0].Tools}}, []string{"mcp.instructions.changed"}},
		"another command": {[]manifest.Server{{Name: "files", InstructionsSHA256: "i1", Tools: servers[0].Tools, Command: []string{"evil"}}}, []string{"mcp.server.changed"}},
		"another URL":     {[]manifest.Server{{Name: "files", InstructionsSHA256: "i1", Tools: servers[0].Tools, URL: "http://evil.example"}}, []string{"mcp.server.changed"}},
		"more of it": {
			[]manifest.Server{{Name: "files", InstructionsSHA256: "i1", Tools: servers[0].Tools, Environment: []string{"TOKEN"}, HasCredential: true}},
			[]string{"mcp.server.environment.widened", "mcp.server.credential.added"},
		},
		"a server": {append([]manifest.Server{{Name: "evil"}}, servers...), []string{"mcp.server.added"}},
		"gone":     {nil, []string{"mcp.server.removed"}},
	} {
		var got []string
		for _, f := range manifest.Verify(base, build(t, set, tc.now...)) {
			got = append(got, f.Code)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A manifest that newly says that agents run isolated lets a profile for such
// agents take effect: that is for a person to look at. Taking it back is not.
func TestIsolationIsReviewed(t *testing.T) {
	t.Parallel()
	of := func(isolation string) *manifest.Manifest {
		m, err := manifest.New("x", &declare.Set{Isolation: isolation})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	for _, tt := range []struct {
		was, now string
		widened  bool
	}{{"", "container", true}, {"none", "vm", true}, {"container", "vm", true}, {"vm", "container", true}, {"vm", "none", false}, {"container", "", false}, {"vm", "vm", false}} {
		if got := manifest.Widened(manifest.Verify(of(tt.was), of(tt.now))); got != tt.widened {
			t.Errorf("from %q to %q: widened %t", tt.was, tt.now, got)
		}
	}
	if _, err := manifest.New("x", &declare.Set{Isolation: "jail"}); err == nil {
		t.Error("an isolation that is none")
	}
}
