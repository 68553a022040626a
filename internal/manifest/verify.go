package manifest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/tool/declare"
)

// Severity is how much a finding matters.
type Severity uint8

// The severities. Everything above Info fails a verification.
const (
	Info Severity = iota
	Medium
	High
	Critical
)

var severityNames = [...]string{"info", "medium", "high", "critical"}

// String returns the name of the severity.
func (s Severity) String() string { return severityNames[s] }

// MarshalText writes the name of the severity.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Finding is one difference that a reviewer must know of.
type Finding struct {
	Code     string   `json:"code"`
	Severity Severity `json:"severity"`
	// Path is what it is about, such as "tools/fetch".
	Path    string `json:"path"`
	Message string `json:"message"`
}

// Widened reports whether any finding is more than information.
func Widened(findings []Finding) bool {
	return slices.ContainsFunc(findings, func(f Finding) bool { return f.Severity > Info })
}

// Verify returns in what the current manifest goes beyond the baseline, in a
// fixed order; nothing if it stays within.
func Verify(baseline, current *Manifest) []Finding {
	c := comparison{}
	if baseline.Version != current.Version {
		c.add("manifest.version.changed", Info, "manifest", "the format went from version %d to %d", baseline.Version, current.Version)
	}
	if baseline.EnforcePolicies && !current.EnforcePolicies {
		c.add("enforcement.disabled", Critical, "manifest", "the argument gate is switched off")
	}
	// A statement that was not there before, or another one, is what a profile
	// for isolated agents takes effect by. Only taking it back is narrower.
	if current.Isolation != baseline.Isolation && current.Isolation != "" && current.Isolation != "none" {
		c.add("isolation.changed", High, "manifest", "agents are said to run in %s, which was %q before", current.Isolation, baseline.Isolation)
	}
	if baseline.PolicySHA256 != current.PolicySHA256 {
		c.add("policy.changed", Info, "manifest", "another policy is in force; gatehouse policy explain shows it, and what loosened it was accepted by an approver")
	}
	each(baseline.Tools, current.Tools, func(t *Tool) string { return t.Name }, c.toolAdded,
		func(t *Tool) { c.add("tool.removed", Info, "tools/"+t.Name, "the tool is gone") }, c.tool)
	each(baseline.Agents, current.Agents, func(a *declare.Agent) string { return a.Name },
		func(a *declare.Agent) {
			c.add("agent.added", Medium, "agents/"+a.Name, "a new agent with the tools %s", strings.Join(a.Tools, ", "))
		},
		func(a *declare.Agent) { c.add("agent.removed", Info, "agents/"+a.Name, "the agent is gone") }, c.agent)
	each(baseline.Servers, current.Servers, func(s *Server) string { return s.Name },
		func(s *Server) {
			c.add("mcp.server.added", High, "mcpServers/"+s.Name, "a new MCP server with %d tools", len(s.Tools))
		},
		func(s *Server) { c.add("mcp.server.removed", Info, "mcpServers/"+s.Name, "the MCP server is gone") }, c.server)
	slices.SortStableFunc(c.out, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(b.Severity, a.Severity), cmp.Compare(a.Path, b.Path))
	})
	return c.out
}

type comparison struct{ out []Finding }

func (c *comparison) add(code string, s Severity, path, format string, args ...any) {
	c.out = append(c.out, Finding{Code: code, Severity: s, Path: path, Message: fmt.Sprintf(format, args...)})
}

// each pairs two lists by name.
func each[T any](was, now []T, name func(*T) string, added, removed func(*T), both func(was, now *T)) {
	old := map[string]*T{}
	for i := range was {
		old[name(&was[i])] = &was[i]
	}
	for i := range now {
		before := old[name(&now[i])]
		if before == nil {
			added(&now[i])
			continue
		}
		both(before, &now[i])
		delete(old, name(&now[i]))
	}
	for _, n := range slices.Sorted(maps.Keys(old)) {
		removed(old[n])
	}
}

func policyOf(t *Tool) declare.Policy {
	if t.Policy == nil {
		return declare.Policy{}
	}
	return *t.Policy
}

// toolAdded reports every new tool, whatever its risk says: a tool that may do
// everything can call itself harmless.
func (c *comparison) toolAdded(t *Tool) {
	p, path := policyOf(t), "tools/"+t.Name
	switch {
	case p.Risk == declare.Unknown:
		c.add("tool.risk.unknown", High, path, "a new tool whose risk nobody stated")
	case p.Risk >= declare.High:
		c.add("tool.added.high-risk", High, path, "a new tool of %s risk", p.Risk)
	}
	c.add("tool.added", Medium, path, "a new tool; it may %s", sentence(&p))
	c.waivers(path, nil, t.Waivers)
}

// sentence says in words what a policy lets through.
func sentence(p *declare.Policy) string {
	var parts []string
	for _, s := range declare.Sides() {
		switch st := p.Stance(s); {
		case st.Grants():
			parts = append(parts, fmt.Sprintf("use %s: %s", s, st))
		case !st.Declared():
			parts = append(parts, fmt.Sprintf("use %s as it likes, since nothing is said", s))
		}
	}
	if parts == nil {
		return "touch nothing"
	}
	return strings.Join(parts, "; ")
}

// sideSeverity: reads and variables leak, the others act.
func sideSeverity(s declare.Side) Severity {
	if s == declare.Read || s == declare.Environment {
		return Medium
	}
	return High
}

func (c *comparison) tool(was, now *Tool) {
	path := "tools/" + now.Name
	old, p := policyOf(was), policyOf(now)
	if was.Policy != nil && now.Policy == nil {
		c.add("policy.removed", High, path, "the tool no longer declares a policy, so nothing is held against it")
	}
	if p.Risk != old.Risk && p.Risk == declare.Unknown {
		c.add("tool.risk.unknown", High, path, "the risk went from %s to unknown", old.Risk)
	} else if p.Risk.Rank() > old.Risk.Rank() && p.Risk >= declare.High {
		c.add("tool.risk.increased", High, path, "the risk went from %s to %s", old.Risk, p.Risk)
	} else if p.Risk.Rank() > old.Risk.Rank() {
		c.add("tool.risk.raised", Info, path, "the risk went from %s to %s", old.Risk, p.Risk)
	}
	for _, side := range declare.Sides() {
		c.side(path, side, old.Stance(side), p.Stance(side))
	}
	for _, words := range now.Constraints.Loosened(&was.Constraints) {
		c.add("constraint.loosened", Medium, path, "%s", words)
	}
	for _, capability := range now.Capabilities {
		if !slices.Contains(was.Capabilities, capability) {
			c.add("capability.added", Medium, path, "it now needs %s", capability)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(was.Arguments)) {
		if role := was.Arguments[key]; role != declare.RoleText && now.Arguments[key] != role {
			c.add("tool.role.removed", Medium, path, "the argument %s was judged as %s and is not any more", key, role)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(now.Arguments)) {
		role := now.Arguments[key]
		if _, had := was.Arguments[key]; !had && role != declare.RoleRead && role != declare.RoleWrite {
			c.add("tool.role.removed", Medium, path, "the argument %s was looked at as a path would be and is %s now", key, role)
		}
	}
	if was.SchemaSHA256 != now.SchemaSHA256 {
		c.add("tool.schema.changed", Info, path, "the input schema changed")
	}
	if len(was.Command) > 0 && !slices.Equal(was.Command, now.Command) {
		c.add("tool.command.changed", High, path, "the command line changed from %q to %q", was.Command, now.Command)
	}
	for _, part := range now.Parts {
		if !slices.Contains(was.Parts, part) {
			c.add("tool.part.added", Medium, path, "it now calls %s", part)
		}
	}
	c.waivers(path, was.Waivers, now.Waivers)
}

// side compares one stance. A grant where nothing was said before is a
// widening to review, and so is taking a stance back.
func (c *comparison) side(path string, side declare.Side, was, now declare.Stance) {
	switch {
	case was.Declared() && !now.Declared():
		c.add(fmt.Sprintf("tool.%s.unspecified", side), sideSeverity(side), path, "%s was %s and is not declared any more", side, was)
	case now.Grants() && (!was.Declared() || !declare.Covers(side, was, now)):
		c.add(fmt.Sprintf("tool.%s.widened", side), sideSeverity(side), path, "%s went from %s to %s", side, was, now)
	}
}

func (c *comparison) waivers(path string, was, now []string) {
	for _, w := range now {
		if !slices.Contains(was, w) {
			c.add("vet.waiver.added", Medium, path, "the vet checker is told to overlook: %s", w)
		}
	}
}

func (c *comparison) agent(was, now *declare.Agent) {
	path := "agents/" + now.Name
	for _, t := range now.Tools {
		if !slices.Contains(was.Tools, t) {
			c.add("agent.tool.added", Medium, path, "it may now use %s", t)
		}
	}
	for _, t := range was.Approvals {
		if !slices.Contains(now.Approvals, t) && slices.Contains(now.Tools, t) {
			c.add("approval.removed", High, path, "%s is no longer approved by a person", t)
		}
	}
	for _, f := range was.Redact {
		if !slices.Contains(now.Redact, f) {
			c.add("redaction.removed", Medium, path, "the field %s is no longer redacted", f)
		}
	}
	if now.Interceptors < was.Interceptors {
		c.add("guardrail.removed", High, path, "%d interceptors look at a call where %d did", now.Interceptors, was.Interceptors)
	}
	c.budget(path, was.Budget, now.Budget)
	c.grants(path, was, now)
	switch {
	case now.Provider != nil && was.Provider != nil && *now.Provider != *was.Provider:
		c.add("provider.changed", Medium, path, "the provider went from %s to %s", describe(was.Provider), describe(now.Provider))
	case (now.Provider == nil) != (was.Provider == nil):
		c.add("provider.changed", Medium, path, "the provider went from %s to %s", describe(was.Provider), describe(now.Provider))
	}
}

func describe(p *declare.Provider) string {
	if p == nil {
		return "none"
	}
	return strings.TrimSpace(p.Name + " " + p.Model + " " + p.BaseURL)
}

func (c *comparison) budget(path string, was, now map[string]int64) {
	for _, name := range slices.Sorted(maps.Keys(was)) {
		if limit, kept := now[name]; !kept {
			c.add("budget.raised", Medium, path, "the limit %s of %d is gone", name, was[name])
		} else if limit > was[name] {
			c.add("budget.raised", Medium, path, "the limit %s went from %d to %d", name, was[name], limit)
		}
	}
}

// grants: freely allowed is wider than confirmed, and confirmed than not
// granted; no grants at all is widest.
func (c *comparison) grants(path string, was, now *declare.Agent) {
	if was.Grants == nil {
		return
	}
	if now.Grants == nil {
		c.add("grant.widened", High, path, "the grants are gone, so every tool is free to use")
		return
	}
	for _, t := range now.Grants.Allow {
		if !slices.Contains(was.Grants.Allow, t) {
			c.add("grant.widened", High, path, "%s needs no yes any more", t)
		}
	}
	for _, t := range now.Grants.Confirm {
		if !slices.Contains(was.Grants.Allow, t) && !slices.Contains(was.Grants.Confirm, t) {
			c.add("grant.widened", Medium, path, "%s was not granted before", t)
		}
	}
	if was.Grants.ConfirmWith != now.Grants.ConfirmWith {
		c.add("grant.widened", High, path, "who says yes went from %q to %q", was.Grants.ConfirmWith, now.Grants.ConfirmWith)
	}
}

func (c *comparison) server(was, now *Server) {
	path := "mcpServers/" + now.Name
	if !slices.Equal(was.Command, now.Command) || was.URL != now.URL {
		c.add("mcp.server.changed", High, path, "it was %s and is %s", reached(was), reached(now))
	}
	if was.Workspace != now.Workspace && now.Workspace != "" { // without one relative globs let nothing through
		c.add("mcp.server.workspace.changed", High, path, "relative paths were bound to %s and are to %s", orNowhere(was.Workspace), now.Workspace)
	}
	for _, v := range now.Environment {
		if !slices.Contains(was.Environment, v) {
			c.add("mcp.server.environment.widened", Medium, path, "it now gets the variable %s", v)
		}
	}
	if was.Confined && !now.Confined {
		c.add("mcp.server.unconfined", High, path, "it is no longer confined")
	}
	if !was.HasCredential && now.HasCredential {
		c.add("mcp.server.credential.added", Medium, path, "it now gets a credential")
	}
	if was.InstructionsSHA256 != now.InstructionsSHA256 {
		c.add("mcp.instructions.changed", High, path, "what the server tells the model changed")
	}
	each(was.Tools, now.Tools, func(p *Pin) string { return p.Name },
		func(p *Pin) { c.add("mcp.tool.added", High, path+"/"+p.Name, "a new tool of the server") },
		func(p *Pin) { c.add("mcp.tool.removed", Info, path+"/"+p.Name, "the tool is gone") },
		func(was, now *Pin) {
			if was.SHA256 != now.SHA256 {
				c.add("mcp.tool.changed", High, path+"/"+now.Name, "its definition changed")
			}
		})
}

func orNowhere(dir string) string {
	if dir == "" {
		return "nothing"
	}
	return dir
}

// reached says how a server is started or reached.
func reached(s *Server) string {
	if s.URL != "" {
		return s.URL
	}
	return fmt.Sprintf("%q", s.Command)
}
