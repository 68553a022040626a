package provider_test

import (
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"

	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch/provider"
)

// TestGrokConfig: whatever somebody's own settings say, Grok asks about every
// class of tools and approves nothing by itself; the rest of them stays.
func TestGrokConfig(t *testing.T) {
	t.Parallel()
	for _, own := range []string{
		"", "[ui]\npermission_mode = \"always-approve\"\ntheme = \"dark\"\n", "[permission]\nask = [\"WebFetch\"]\nallow = [\"Bash\"]\n[models]\ndefault = \"m\"\n",
		"ui = { permission_mode = \"bypassPermissions\" }\npermission = \"none\"\n", "[[hooks.PreToolUse]]\ncommand = \"x\"\n", "permission.ask = []\n",
	} {
		text, err := provider.GrokConfig(own)
		if err != nil {
			t.Errorf("%q: %v", own, err)
			continue
		}
		var got struct {
			UI         struct{ PermissionMode, Theme string } `toml:"ui"`
			Permission struct{ Ask, Allow []string }          `toml:"permission"`
			Models     struct{ Default string }               `toml:"models"`
			Hooks      map[string]any                         `toml:"hooks"`
		}
		var all map[string]any
		if err := toml.Unmarshal([]byte(text), &all); err != nil {
			t.Errorf("%q became what cannot be read: %v\n%s", own, err, text)
			continue
		}
		if err := toml.Unmarshal([]byte(text), &got); err != nil || all["ui"].(map[string]any)["permission_mode"] != "default" {
			t.Errorf("%q became %s, %v", own, text, err)
		}
		for _, class := range []string{"Bash", "Read", "Edit", "Grep", "MCPTool", "WebFetch", "WebSearch"} {
			if strings.Count(strings.Join(got.Permission.Ask, " ")+" ", class+" ") != 1 {
				t.Errorf("%q: asks %q", own, got.Permission.Ask)
			}
		}
		if strings.Contains(own, "theme") && got.UI.Theme != "dark" || strings.Contains(own, "models") && got.Models.Default != "m" || strings.Contains(own, "hooks") && got.Hooks["PreToolUse"] == nil {
			t.Errorf("%q lost something: %s", own, text)
		}
	}
	for _, own := range []string{"[ui\n", "[ui]\n[ui]\n", "x = "} {
		if text, err := provider.GrokConfig(own); err == nil {
			t.Errorf("%q was taken for settings: %s", own, text)
		}
		if _, err := provider.GrokRequirements(own); err == nil {
			t.Errorf("%q was taken for requirements", own)
		}
	}
}
