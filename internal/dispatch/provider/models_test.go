package provider_test

import (
	"strings"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch/provider"
)

// TestModels: the table has a date and somebody who told of each CLI's models; an
// operator's own comes before it, CLI by CLI, and what is none is refused.
func TestModels(t *testing.T) {
	t.Parallel()
	built, err := provider.Models("")
	if err != nil || built.AsOf == "" {
		t.Fatalf("%+v, %v", built, err)
	}
	for _, cli := range call.CLIs() {
		if m := built.CLIs[cli]; len(m.Models) == 0 || m.By == "" {
			t.Errorf("%s: %+v", cli, m)
		}
	}
	own, err := provider.Models(`{"asOf":"2027-01-01","clis":{"grok":{"models":["grok-9"],"by":"me"}}}`)
	if err != nil || own.AsOf != "2027-01-01" || own.CLIs["grok"].Models[0] != "grok-9" || !strings.Contains(own.CLIs["grok"].By, "operator") || !strings.Contains(own.CLIs["codex"].By, built.AsOf) {
		t.Errorf("%+v, %v", own, err)
	}
	for _, bad := range []string{"{", `{"clis":{"gork":{"models":[]}}}`, `{"models":[]}`} {
		if got, err := provider.Models(bad); err == nil {
			t.Errorf("%s was taken for a table: %+v", bad, got)
		}
	}
	none := func(string) string { return "" }
	for _, c := range []struct {
		cli, file, text, want string
		extra                 []string
	}{
		{"codex", ".codex/config.toml", "model = \"a\"\n", "a", nil}, {"grok", ".grok/config.toml", "[models]\ndefault = \"b\"\n", "b", nil},
		{"gemini", ".gemini/settings.json", `{"model":{"name":"c"}}`, "c", nil}, {"mistral", ".vibe/config.toml", "active_model = \"d\"\n", "d", nil},
		{"claude", ".claude/settings.json", `{"model":"e"}`, "f", []string{"ANTHROPIC_MODEL=f"}}, {"codex", ".codex/config.toml", "model = 3", "", nil}, {"grok", "", "", "", nil},
	} {
		got, where := provider.Configured(c.cli, none, c.extra, map[string]string{c.file: c.text})
		if got != c.want || (got == "") != (where == "") {
			t.Errorf("%s: %q in %q", c.cli, got, where)
		}
	}
}
