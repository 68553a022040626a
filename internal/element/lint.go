package element

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
)

// linter reads a policy and keeps what is wrong with it.
type linter struct {
	offset   int // lines in front of the metadata
	problems []Problem
}

// problem notes something that is wrong at a node.
func (l *linter) problem(n *yaml.Node, fatal bool, format string, args ...any) {
	p := Problem{Text: fmt.Sprintf(format, args...), Fatal: fatal}
	if n != nil && n.Line > 0 {
		p.Line = n.Line + l.offset
	}
	l.problems = append(l.problems, p)
}

// policy reads the member gatekeeper of an element's metadata.
func (l *linter) policy(meta *yaml.Node) Element {
	var e Element
	if n := member(meta, "externalRestrictions"); n != nil {
		l.problem(n, true, "externalRestrictions belongs under gatekeeper")
	}
	n := member(meta, "gatekeeper")
	if n == nil {
		return e
	}
	for key, v := range l.members(n, "gatekeeper", "allow", "confirm", "deny", "scopeRestrictions", "externalRestrictions") {
		switch key {
		case "allow":
			e.Lists.Allow = l.operations(key, v)
		case "confirm":
			e.Lists.Confirm = l.operations(key, v)
		case "deny":
			e.Lists.Deny = l.operations(key, v)
		case "scopeRestrictions":
			l.scope(v, &e.Scope)
		case "externalRestrictions":
			l.external(v, &e.External)
		}
	}
	return e
}

// members reads a mapping whose keys are known, in the order of the text.
func (l *linter) members(n *yaml.Node, where string, known ...string) func(yield func(string, *yaml.Node) bool) {
	return func(yield func(string, *yaml.Node) bool) {
		if n.Kind != yaml.MappingNode {
			l.problem(n, true, "%s must be a mapping with the keys %s", where, strings.Join(known, ", "))
			return
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, v := n.Content[i], resolveAlias(n.Content[i+1])
			if !slices.Contains(known, key.Value) {
				l.problem(key, true, "%s has no key %q%s", where, key.Value, suggest(key.Value, known))
				continue
			}
			if !yield(key.Value, v) {
				return
			}
		}
	}
}

func suggest(name string, known []string) string {
	if near, ok := match.Nearest(name, known); ok {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}

// list reads a list of texts.
func (l *linter) list(key string, n *yaml.Node) []string {
	if n.Kind != yaml.SequenceNode {
		if n.Tag != "!!null" {
			l.problem(n, true, "%s must be a list", key)
		}
		return nil
	}
	for _, v := range n.Content {
		if v = resolveAlias(v); v.Kind != yaml.ScalarNode || v.Tag != "!!str" {
			l.problem(v, true, "%s holds something that is no text", key)
		}
	}
	return texts(n)
}

// operations reads a list of operations and checks that each entry means one.
func (l *linter) operations(key string, n *yaml.Node) []string {
	list := l.list(key, n)
	for i, entry := range list {
		at := n.Content[i]
		if _, err := path.Match(entry, ""); err != nil {
			l.problem(at, true, "%s: %q is not a pattern", key, entry)
			continue
		}
		found := false
		for _, op := range call.Operations() {
			if !names(entry, op.Name, op.Aliases) {
				continue
			}
			found = true
			if exact := entry == op.Name || slices.Contains(op.Aliases, entry); exact {
				l.pointless(at, key, &op)
			}
		}
		if found {
			continue
		}
		if slices.Contains(elsewhere, entry) {
			l.problem(at, false, "%s: %s is an operation of another server; it means nothing here", key, entry)
			continue
		}
		l.problem(at, true, "%s: no operation matches %q%s", key, entry, suggest(entry, call.OperationNames()))
	}
	return list
}

// pointless remarks on an entry that names an operation and cannot reach it.
func (l *linter) pointless(at *yaml.Node, key string, op *call.Operation) {
	switch {
	case op.Ungatable:
		l.problem(at, false, "%s: %s is on the recovery path, which no list reaches", key, op.Name)
	case key == "allow" && op.Name == freezeMarker:
		l.problem(at, false, "allow: %s needs no allow", op.Name)
	case key == "allow" && !op.CanBeElevated:
		l.problem(at, false, "allow: %s is confirmed every time, whatever a list says", op.Name)
	}
}

// elsewhere are operations of the server whose elements these are, which the
// gate does not have: files that name them load.
var elsewhere = strings.Fields(`install_collection_content submit_collection_content init_portfolio sync_portfolio portfolio_element_manager
	setup_github_auth configure_oauth import_persona beetlejuice_beetlejuice_beetlejuice render open_portfolio_browser open_logs open_metrics
	open_permissions open_setup open_console open_management_console open_dollhouse_console open_dollhouse_mcp open_dollhouse_mcp_console
	open_web_console open_dollhouse_logs open_dollhouse_mcp_logs open_log_viewer browse_collection search_collection search_collection_enhanced
	get_collection_content get_collection_cache_health portfolio_status portfolio_config search_portfolio search_all check_github_auth
	oauth_helper_status dollhouse_config convert_skill_format get_cache_budget_report find_similar_elements get_element_relationships
	search_by_verb get_relationship_stats`)

func (l *linter) scope(n *yaml.Node, s *Scope) {
	types := func(key string, v *yaml.Node) []string {
		list := l.list(key, v)
		for i, t := range list {
			if !slices.Contains(call.ElementTypes(), call.SingularType(t)) {
				l.problem(v.Content[i], true, "%s: there is no element type %q%s", key, t, suggest(t, call.ElementTypes()))
			}
		}
		return list
	}
	for key, v := range l.members(n, "scopeRestrictions", "allowedTypes", "blockedTypes") {
		if key == "allowedTypes" {
			s.AllowedTypes = types(key, v)
		} else {
			s.BlockedTypes = types(key, v)
		}
	}
}

// maxExternal is the longest external pattern.
const maxExternal = 500

func (l *linter) external(n *yaml.Node, x *External) {
	if n.Kind == yaml.MappingNode && strings.TrimSpace(text(n, "description")) == "" {
		l.problem(n, true, "externalRestrictions.description is missing: say what the patterns are for")
	}
	for key, v := range l.members(n, "externalRestrictions", "description", "denyPatterns", "confirmPatterns", "allowPatterns", "approvalPolicy") {
		switch key {
		case "denyPatterns":
			x.Deny = l.patterns(key, v)
		case "confirmPatterns":
			x.Confirm = l.patterns(key, v)
		case "allowPatterns":
			x.Allow = l.patterns(key, v)
		case "approvalPolicy":
			l.approval(v, x)
		}
	}
}

// patterns reads patterns over external calls. A tool that nobody has is an
// error where it looks like a slip of the pen; else it may be another
// server's.
func (l *linter) patterns(key string, n *yaml.Node) []string {
	list := l.list(key, n)
	var tools []string
	for name := range call.HostTools() {
		tools = append(tools, name)
	}
	slices.Sort(tools)
	for i, src := range list {
		at := n.Content[i]
		tool, _, colon := strings.Cut(src, ":")
		switch _, err := compilePattern(src); {
		case len(src) > maxExternal:
			l.problem(at, true, "%s: a pattern is longer than %d bytes", key, maxExternal)
		case err != nil || strings.TrimSpace(src) != src:
			l.problem(at, true, "%s: %q is not a pattern: write \"Tool:glob\", without blanks around it", key, src)
		case !colon && strings.ContainsAny(src, " /"):
			l.problem(at, true, "%s: %q names no tool; did you mean %q?", key, src, "Bash:"+src)
		case strings.ContainsAny(tool, "*?") || slices.Contains(tools, tool) || strings.HasPrefix(tool, "mcp_"):
		default:
			if near, slip := match.Nearest(tool, tools); slip {
				l.problem(at, true, "%s: no tool is called %q; did you mean %q?", key, tool, near)
			} else {
				l.problem(at, false, "%s: the gate knows no tool %q; the pattern matches only a tool of that very name", key, tool)
			}
		}
	}
	return list
}

func (l *linter) approval(n *yaml.Node, x *External) {
	for key, v := range l.members(n, "approvalPolicy", "requireApproval", "defaultScope", "ttlSeconds") {
		switch key {
		case "requireApproval":
			x.Require = l.list(key, v)
			for i, class := range x.Require {
				if known := []string{"moderate", "dangerous"}; !slices.Contains(known, class) {
					l.problem(v.Content[i], true, "requireApproval: %q is none of moderate, dangerous%s", class, suggest(class, known))
				}
			}
		case "defaultScope":
			x.Scope = v.Value
			if known := []string{scopeSingle, scopeSession}; !slices.Contains(known, v.Value) {
				l.problem(v, true, "defaultScope: %q is none of single, tool_session%s", v.Value, suggest(v.Value, known))
			}
		case "ttlSeconds":
			ttl, err := strconv.Atoi(v.Value)
			if err != nil || ttl < 30 || ttl > 3600 {
				l.problem(v, true, "ttlSeconds must be a number from 30 to 3600")
				continue
			}
			x.Life = ttl
		}
	}
}
