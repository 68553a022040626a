package declare_test

import (
	"strings"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/tool/declare"
)

// TestLint: what is allowed and deserves a second look is named.
func TestLint(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		text string
		want string
	}{
		"a raw shell":          {"tools: [{name: x, policy: {risk: low, exec: [bash]}}]", "raw shell tool: bash"},
		"a shell by its path":  {"tools: [{name: x, policy: {risk: low, exec: [/bin/sh]}}]", "raw shell tool: /bin/sh"},
		"an interpreter":       {"tools: [{name: x, policy: {risk: low, exec: [python3]}}]", "raw shell tool: python3"},
		"any program":          {"tools: [{name: x, policy: {risk: low, exec: all}}]", "may start any program"},
		"a command line":       {"tools: [{name: x, policy: {risk: low}, arguments: {c: command}}]", "takes a command line in c"},
		"no policy":            {"tools: [{name: x}]", "declares no policy"},
		"an unknown risk":      {"tools: [{name: x, policy: {exec: none}}]", "its risk is unknown"},
		"tokens":               {"agents: [{name: a, tools: [], budget: {maxTokens: 1}}]", "does not see maxTokens"},
		"nothing":              {"tools: [{name: x, policy: {risk: low, exec: [git]}}]", ""},
		"a budget that counts": {"agents: [{name: a, tools: [], budget: {maxToolCalls: 1}}]", ""},
	} {
		set, err := declare.Parse([]byte("gatehouse: 1\n" + tc.text + "\n"))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := strings.Join(set.Lint(), "\n"); !strings.Contains(got, tc.want) || (tc.want == "") != (got == "") {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
