package rules

import (
	"fmt"
	"maps"
	"slices"

	"github.com/pelletier/go-toml/v2"

	"github.com/seed-3ebc6b8a/gatehouse/internal/connect"
)

// vibeTool is what Mistral Vibe's settings say about one tool.
type vibeTool struct {
	Permission string   `toml:"permission"`
	Allow      []string `toml:"allowlist"`
	Deny       []string `toml:"denylist"`
	Standalone []string `toml:"denylist_standalone"`
	Sensitive  []string `toml:"sensitive_patterns"`
}

// vibeFiles are the tools of Vibe whose lists are patterns of paths.
var vibeFiles = map[string]bool{"read_file": true, "read": true, "write_file": true, "write": true, "edit": true, "search_replace": true, "grep": true, "glob": true}

// readVibe reads the tools' permissions of Mistral Vibe.
func readVibe(f *Found, p connect.Place) error {
	text, err := readFile(within(p, ".vibe", "config.toml"))
	if err != nil || text == nil {
		return err
	}
	var in struct {
		Tools    map[string]vibeTool `toml:"tools"`
		Disabled []string            `toml:"disabled_tools"`
		Enabled  []string            `toml:"enabled_tools"`
	}
	if err := toml.Unmarshal(text, &in); err != nil {
		return fmt.Errorf("config.toml of Vibe: %w", err)
	}
	for _, name := range in.Disabled {
		f.tool("disabled_tools "+name, deny, name)
	}
	for _, name := range in.Enabled {
		f.skip("enabled_tools "+name, "a list of the only tools there are is the agent's to keep")
	}
	for _, name := range slices.Sorted(maps.Keys(in.Tools)) {
		f.vibe(name, in.Tools[name])
	}
	return nil
}

func (f *Found) vibe(name string, t vibeTool) {
	if t.Permission == "ask" && (name == "bash" || len(t.Allow) > 0) {
		f.skip("tools."+name+" permission ask", elsewhere) // of what its lists do not name
	} else if level, ok := map[string]string{"never": deny, "ask": ask, "always": allow}[t.Permission]; ok {
		f.tool("tools."+name+" permission "+t.Permission, level, name)
	} else if t.Permission != "" {
		f.skip("tools."+name+" permission "+t.Permission, notKnown)
	}
	for _, list := range []struct {
		name, level string
		rules       []string
	}{{"denylist", deny, t.Deny}, {"sensitive_patterns", ask, t.Sensitive}, {"allowlist", allow, t.Allow}} {
		for _, rule := range list.rules {
			from := "tools." + name + " " + list.name + " " + rule
			switch {
			case name == "bash":
				f.prefix(from, list.level, rule)
			case vibeFiles[name]:
				f.path(from, list.level, name, placePath(list.level, rule))
			default:
				f.skip(from, notKnown)
			}
		}
	}
	for _, command := range t.Standalone {
		f.glob("tools."+name+" denylist_standalone "+command, deny, command)
	}
}
