package provider

import (
	"fmt"
	"slices"

	"github.com/pelletier/go-toml/v2"
)

// grokAsks are all classes of tools that Grok has rules for.
var grokAsks = []string{"Bash", "Read", "Edit", "Grep", "MCPTool", "WebFetch", "WebSearch"}

// GrokConfig is the config.toml of Grok's home: somebody's own, made to ask about
// what Grok would run by itself. An ask is stronger than any allow there is.
func GrokConfig(own string) (string, error) {
	return grokFile("config.toml", own, func(table func(string) map[string]any) {
		table("ui")["permission_mode"] = "default"
		permission := table("permission")
		var asks []any
		if own, ok := permission["ask"].([]any); ok {
			asks = own
		}
		for _, class := range grokAsks {
			if !slices.Contains(asks, any(class)) {
				asks = append(asks, class)
			}
		}
		permission["ask"] = asks
	})
}

// GrokRequirements is the requirements.toml of Grok's home: somebody's own, made
// to keep a repository's settings, or a prompt, from having everything approved.
func GrokRequirements(own string) (string, error) {
	return grokFile("requirements.toml", own, func(table func(string) map[string]any) {
		table("ui")["disable_bypass_permissions_mode"] = true
	})
}

func grokFile(name, own string, change func(table func(string) map[string]any)) (string, error) {
	settings := map[string]any{}
	if err := toml.Unmarshal([]byte(own), &settings); err != nil {
		return "", fmt.Errorf("the own %s of Grok cannot be read: %w", name, err)
	}
	change(func(name string) map[string]any {
		t, ok := settings[name].(map[string]any)
		if !ok {
			t = map[string]any{}
			settings[name] = t
		}
		return t
	})
	text, err := toml.Marshal(settings)
	return string(text), err
}
