package rules

import (
	"fmt"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/seed-3ebc6b8a/gatehouse/internal/connect"
)

// grokTools are the names that Grok's tables have for tools.
var grokTools = map[string]string{
	"bash": "Bash", "read": "Read", "edit": "Edit", "grep": "Grep", "mcp": "MCPTool", "webfetch": "WebFetch", "websearch": "WebSearch",
}

// readGrok reads the permissions of Grok, as lists or as tables.
func readGrok(f *Found, p connect.Place) error {
	text, err := readFile(within(p, ".grok", "config.toml"))
	if err != nil || text == nil {
		return err
	}
	var in struct {
		UI struct {
			Mode string `toml:"permission_mode"`
			Yolo bool   `toml:"yolo"`
		} `toml:"ui"`
		Permission struct {
			lists
			Rules []struct{ Action, Tool, Pattern string } `toml:"rules"`
		} `toml:"permission"`
	}
	if err := toml.Unmarshal(text, &in); err != nil {
		return fmt.Errorf("config.toml of Grok: %w", err)
	}
	in.Permission.each(f.grok)
	levels := map[string]string{"deny": deny, "ask": ask, "allow": allow}
	for _, r := range in.Permission.Rules {
		from := strings.TrimSpace(r.Action + " " + r.Tool + " " + r.Pattern)
		tool, level := grokTools[r.Tool], levels[r.Action]
		switch {
		case tool == "" || level == "":
			f.skip(from, notKnown)
		case r.Pattern == "":
			f.grok(from, level, tool)
		default:
			f.grok(from, level, tool+"("+r.Pattern+")")
		}
	}
	if in.UI.Mode != "" {
		f.skip("ui.permission_mode "+in.UI.Mode, elsewhere)
	}
	if in.UI.Yolo {
		f.skip("ui.yolo", elsewhere)
	}
	return nil
}

// grok translates one rule of Grok. Its commands match by their first
// characters, whole words or not; an approval is taken over for whole words.
func (f *Found) grok(from, level, rule string) {
	tool, what, narrowed, ok := split(rule)
	what = strings.TrimSuffix(what, ":*")
	switch {
	case !ok || strings.Contains(what, "["):
		f.skip(from, notKnown)
	case !narrowed && tool == "MCPTool":
		f.tool(from, level, "mcp__*")
	case !narrowed:
		f.claude(from, level, rule)
	case tool == "MCPTool" && strings.Contains(what, "__"):
		f.tool(from, level, "mcp__"+strings.TrimPrefix(what, "mcp__"))
	case tool == "Bash" && strings.Contains(what, "*"):
		f.glob(from, level, what)
	case tool == "Bash" && level == allow:
		f.prefix(from, level, what)
	case tool == "Bash":
		f.glob(from, level, what+"*")
	case tool == "Read" || tool == "Edit" || tool == "Write":
		f.path(from, level, tool, placePath(level, what))
	default:
		f.claude(from, level, rule)
	}
}
