package manifest_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-3ebc6b8a/gatehouse/internal/manifest"
	"github.com/seed-3ebc6b8a/gatehouse/tool/declare"
)

// TestRarerCodes has the findings that no line of YAML brings about alone.
func TestRarerCodes(t *testing.T) {
	t.Parallel()
	tool := func(change func(*declare.Tool)) *declare.Set {
		one := declare.Tool{Name: "t", Policy: &declare.Policy{Risk: declare.Low, Exec: declare.Only("git")}, Command: []string{"git", "status"}}
		change(&one)
		return &declare.Set{Tools: []declare.Tool{one, {Name: "u", Policy: &declare.Policy{Risk: declare.Low}}}}
	}
	plain := func() *declare.Set { return tool(func(*declare.Tool) {}) }
	server := func(s manifest.Server) *manifest.Manifest {
		s.Name, s.Command = "files", []string{"serve"}
		return build(t, plain(), s)
	}
	with := func(change func(*manifest.Manifest)) *manifest.Manifest {
		m := build(t, plain())
		change(m)
		return m
	}
	agents := func(names ...string) *manifest.Manifest {
		set := plain()
		for _, n := range names {
			set.Agents = append(set.Agents, declare.Agent{Name: n, Tools: []string{"t"}})
		}
		return build(t, set)
	}
	for _, tc := range []struct {
		code     string
		was, now *manifest.Manifest
		widened  bool
	}{
		{"agent.added", agents("a"), agents("a", "b"), true},
		{"agent.removed", agents("a", "b"), agents("a"), false},
		{"isolation.changed", build(t, &declare.Set{}), build(t, &declare.Set{Isolation: "vm"}), true},
		{"manifest.version.changed", with(func(m *manifest.Manifest) { m.Version-- }), with(func(*manifest.Manifest) {}), false},
		{"mcp.server.unconfined", server(manifest.Server{Confined: true}), server(manifest.Server{}), true},
		{"mcp.server.workspace.changed", server(manifest.Server{}), server(manifest.Server{Workspace: "/"}), true},
		{"mcp.server.workspace.changed", server(manifest.Server{Workspace: "/srv"}), server(manifest.Server{Workspace: "/"}), true},
		{"", server(manifest.Server{Workspace: "/"}), server(manifest.Server{}), false},
		{"mcp.tool.removed", server(manifest.Server{Tools: []manifest.Pin{{Name: "x", SHA256: "1"}}}), server(manifest.Server{}), false},
		{"policy.changed", with(func(m *manifest.Manifest) { m.PolicySHA256 = "1" }), with(func(m *manifest.Manifest) { m.PolicySHA256 = "2" }), false},
		{"tool.command.changed", build(t, plain()), build(t, tool(func(t *declare.Tool) { t.Command = []string{"git", "push"} })), true},
		{"tool.part.added", build(t, plain()), build(t, tool(func(t *declare.Tool) { t.Parts = []string{"u"} })), true},
		{"tool.risk.raised", build(t, plain()), build(t, tool(func(t *declare.Tool) { t.Policy.Risk = declare.Medium })), false},
		{"vet.waiver.added", build(t, plain()), build(t, tool(func(t *declare.Tool) { t.Waivers = []string{"exec: reviewed"} })), true},
	} {
		findings := manifest.Verify(tc.was, tc.now)
		var got []string
		for _, f := range findings {
			got = append(got, f.Code)
		}
		want := []string{tc.code}
		if tc.code == "" {
			want = nil
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.code, diff)
		}
		if manifest.Widened(findings) != tc.widened {
			t.Errorf("%s: widened %t, want %t", tc.code, !tc.widened, tc.widened)
		}
	}
}

// TestEveryCodeIsTested: a finding that no test brings about may never come.
func TestEveryCodeIsTested(t *testing.T) {
	t.Parallel()
	read := func(name string) string {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	tests := read("manifest_test.go") + read("codes_test.go")
	source := read("verify.go")
	var codes []string
	for _, m := range regexp.MustCompile(`c\.add\("([a-z.-]+)"`).FindAllStringSubmatch(source, -1) {
		codes = append(codes, m[1])
	}
	for _, side := range []string{"filesystem.read", "filesystem.write", "network", "environment", "exec"} {
		codes = append(codes, "tool."+side+".widened", "tool."+side+".unspecified")
	}
	slices.Sort(codes)
	codes = slices.Compact(codes)
	if len(codes) < 48 {
		t.Errorf("only %d codes were found in the source", len(codes))
	}
	for _, code := range codes {
		if !strings.Contains(tests, `"`+code+`"`) {
			t.Errorf("no test expects %s", code)
		}
	}
	doc := read("../../docs/tools.md")
	for _, code := range codes {
		if sided := strings.HasSuffix(code, ".widened") || strings.HasSuffix(code, ".unspecified"); !sided && !strings.Contains(doc, "`"+code+"`") {
			t.Errorf("docs/tools.md does not tell of %s", code)
		}
	}
}
