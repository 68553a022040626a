package rules

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/pelletier/go-toml/v2"

	"github.com/seed-3ebc6b8a/gatehouse/internal/connect"
)

// geminiShell is the Gemini CLI's tool for commands.
const geminiShell = "run_shell_command"

// readGemini reads the settings and the policies of the Gemini CLI.
func readGemini(f *Found, p connect.Place) error {
	if err := f.geminiSettings(within(p, ".gemini", "settings.json")); err != nil {
		return err
	}
	files, err := filepath.Glob(within(p, ".gemini", "policies", "*.toml"))
	if err != nil {
		return err
	}
	for _, file := range files {
		if err := f.geminiPolicy(file); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return nil
}

func (f *Found) geminiSettings(path string) error {
	text, err := readFile(path)
	if err != nil || text == nil {
		return err
	}
	var in struct {
		Tools struct {
			Core    []string `json:"core"`
			Allowed []string `json:"allowed"`
			Exclude []string `json:"exclude"`
		} `json:"tools"`
		Core    []string `json:"coreTools"`
		Allowed []string `json:"allowedTools"`
		Exclude []string `json:"excludeTools"`
		MCP     struct {
			Allowed  []string `json:"allowed"`
			Excluded []string `json:"excluded"`
		} `json:"mcp"`
		Servers map[string]struct {
			Trust   bool     `json:"trust"`
			Include []string `json:"includeTools"`
			Exclude []string `json:"excludeTools"`
		} `json:"mcpServers"`
		General struct {
			Mode string `json:"defaultApprovalMode"`
		} `json:"general"`
	}
	if err := json.Unmarshal(withoutComments(text), &in); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for _, rule := range slices.Concat(in.Tools.Exclude, in.Exclude) {
		f.gemini("tools.exclude "+rule, deny, rule)
	}
	for _, rule := range slices.Concat(in.Tools.Allowed, in.Allowed) {
		f.gemini("tools.allowed "+rule, allow, rule)
	}
	for _, rule := range slices.Concat(in.Tools.Core, in.Core) {
		f.skip("tools.core "+rule, "a list of the only tools there are is the agent's to keep")
	}
	for _, server := range in.MCP.Excluded {
		f.tool("mcp.excluded "+server, deny, "mcp__"+server+"__*")
	}
	for _, server := range in.MCP.Allowed {
		f.skip("mcp.allowed "+server, "a list of the only servers there are is the agent's to keep")
	}
	for _, name := range slices.Sorted(maps.Keys(in.Servers)) {
		s := in.Servers[name]
		for _, tool := range s.Exclude {
			f.tool("mcpServers."+name+".excludeTools "+tool, deny, "mcp__"+name+"__"+tool)
		}
		for _, tool := range s.Include {
			f.skip("mcpServers."+name+".includeTools "+tool, "a list of the only tools there are is the agent's to keep")
		}
		if s.Trust {
			f.tool("mcpServers."+name+".trust", allow, "mcp__"+name+"__*")
		}
	}
	if m := in.General.Mode; m != "" && m != "default" {
		f.skip("general.defaultApprovalMode "+m, elsewhere)
	}
	return nil
}

// gemini translates an entry of a list: a tool, or a tool with the beginning of
// a command. Tools of servers are written mcp_SERVER_TOOL there, which does not
// tell where the server's name ends.
func (f *Found) gemini(from, level, rule string) {
	tool, what, narrowed, ok := split(rule)
	switch {
	case !ok || strings.HasPrefix(tool, "mcp_"):
		f.skip(from, notKnown)
	case narrowed && (tool == geminiShell || tool == "ShellTool"):
		f.prefix(from, level, what)
	case narrowed:
		f.skip(from, notKnown)
	default:
		f.tool(from, level, tool)
	}
}

// geminiRule is a rule of a policy file. Conditions that the gate does not know
// would be lost, so a rule with one is not taken over.
type geminiRule struct {
	Tool        any    `toml:"toolName"`
	Server      string `toml:"mcpName"`
	Prefix      any    `toml:"commandPrefix"`
	Regex       string `toml:"commandRegex"`
	Args        string `toml:"argsPattern"`
	Subagent    string `toml:"subagent"`
	Annotations any    `toml:"toolAnnotations"`
	Modes       any    `toml:"modes"`
	Interactive *bool  `toml:"interactive"`
	Decision    string `toml:"decision"`
	Priority    int64  `toml:"priority"`
}

func (f *Found) geminiPolicy(file string) error {
	text, err := readFile(file)
	if err != nil {
		return err
	}
	var in struct {
		Rules    []geminiRule `toml:"rule"`
		Checkers []any        `toml:"safety_checker"`
	}
	if err := toml.Unmarshal(text, &in); err != nil {
		return err
	}
	for i := range in.Rules {
		f.geminiRule(filepath.Base(file), &in.Rules[i])
	}
	for range in.Checkers {
		f.skip(filepath.Base(file)+" safety_checker", "it runs a program of the agent's")
	}
	return nil
}

func (f *Found) geminiRule(file string, r *geminiRule) {
	tools, prefixes := words(r.Tool), words(r.Prefix)
	from := strings.TrimSpace(fmt.Sprintf("%s %s %s", file, r.Decision, strings.Join(slices.Concat([]string{r.Server}, tools, prefixes), " ")))
	level, ok := map[string]string{"deny": deny, "ask_user": ask, "allow": allow}[r.Decision]
	switch {
	case !ok:
		f.skip(from, notKnown)
	case r.Regex != "" || r.Args != "":
		f.skip(from, expression)
	case r.Subagent != "" || r.Annotations != nil || r.Modes != nil || r.Interactive != nil:
		f.skip(from, "it has a condition that the gate does not know")
	case r.Server != "":
		for _, tool := range orOne(tools, "*") {
			f.tool(from, level, "mcp__"+r.Server+"__"+tool)
		}
	case len(prefixes) > 0:
		for _, prefix := range prefixes {
			f.prefix(from, level, prefix)
		}
	default:
		for _, tool := range tools {
			f.gemini(from, level, tool)
		}
	}
}

// words reads what is a text or a list of texts.
func words(v any) (out []string) {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		for _, e := range v {
			if s, ok := e.(string); ok {
				out = append(out, s)
			}
		}
	}
	return out
}

func orOne(list []string, otherwise string) []string {
	if len(list) == 0 {
		return []string{otherwise}
	}
	return list
}
