package policy

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/tool/declare"
)

// Explanation is a policy in force, each part with where it came from.
type Explanation struct {
	Hash       call.Digest        `json:"hash"`
	Layers     []LayerInfo        `json:"layers"`
	Settings   []ExplainedSetting `json:"settings"`
	Profiles   []ExplainedProfile `json:"profiles"`
	Rules      []ExplainedRule    `json:"rules,omitzero"`
	Operations []ExplainedEntry   `json:"operations,omitzero"`
	// Tools are the declarations of tools.
	Tools []ExplainedTool `json:"tools,omitzero"`
	// Agents are those with budgets, grants or approvals of their own.
	Agents []declare.Agent `json:"agents,omitzero"`
	// Ignored lists what a layer tried to loosen without the right to.
	Ignored Problems `json:"ignored,omitzero"`
}

// ExplainedTool is one declaration in force.
type ExplainedTool struct {
	declare.Tool
	// Inert says that the file switches the argument gate off.
	Inert  bool   `json:"inert,omitzero"`
	Source string `json:"source"`
}

// ExplainedSetting is one setting in force.
type ExplainedSetting struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Layer  string `json:"layer"`
	Source string `json:"source"`
}

// ExplainedProfile is one profile in force.
type ExplainedProfile struct {
	Name    string           `json:"name"`
	Source  string           `json:"source"`
	Refused string           `json:"refused,omitzero"`
	Entries []ExplainedEntry `json:"entries"`
}

// ExplainedEntry is one line of a profile or one denied operation.
type ExplainedEntry struct {
	Entry  string     `json:"entry"`
	Level  call.Level `json:"level"`
	Words  string     `json:"words"`
	Source string     `json:"source"`
}

// ExplainedRule is one rule in force.
type ExplainedRule struct {
	Rule
	Source string `json:"source"`
}

// Explain says what is in force and where each part of it came from.
func (s *Snapshot) Explain() Explanation {
	e := Explanation{Hash: s.Hash, Layers: s.layers, Settings: s.explainSettings(), Ignored: s.Ignored}
	for i := range s.profiles {
		e.Profiles = append(e.Profiles, s.profiles[i].explain())
	}
	for i := range s.rules {
		e.Rules = append(e.Rules, ExplainedRule{Rule: s.rules[i].spec, Source: s.rules[i].source})
	}
	for i := range s.operations {
		o := &s.operations[i]
		e.Operations = append(e.Operations, ExplainedEntry{Entry: o.rule, Level: call.Deny, Words: "the policy denies " + o.rule, Source: o.source})
	}
	for _, d := range s.Declared.All() {
		e.Tools = append(e.Tools, ExplainedTool{Tool: *d.Tool, Inert: d.Inert, Source: d.Source})
	}
	e.Agents = s.declarations().Agents
	return e
}

func (s *Snapshot) explainSettings() []ExplainedSetting {
	set := &s.Settings
	mode, attendance := modes[0], attendances[0]
	if set.Observe {
		mode = modes[1]
	}
	if set.Unattended {
		attendance = attendances[1]
	}
	denyAt := "never"
	if set.RiskDenyAt > 0 {
		denyAt = fmt.Sprint(set.RiskDenyAt)
	}
	values := map[string]string{
		"profile": set.Profile, "mode": mode, "attendance": attendance, "isolation": set.Isolation,
		"risk.confirm_at": fmt.Sprint(set.RiskConfirmAt), "risk.deny_at": denyAt, "risk.irreversible": set.Irreversible.String(),
		"danger.strictness":                     set.Strictness,
		"dispatch.profile":                      set.Dispatch.Profile,
		"dispatch.policy":                       set.Dispatch.Policy,
		"dispatch.over":                         set.Dispatch.Over,
		"dispatch.cli_effects":                  set.Dispatch.CLIEffects,
		"dispatch.confine":                      strconv.FormatBool(set.Dispatch.Confine),
		"dispatch.max_running":                  fmt.Sprint(set.Dispatch.MaxRunning),
		"dispatch.max_running_per_cli":          fmt.Sprint(set.Dispatch.MaxRunningPerCLI),
		"dispatch.max_queued":                   fmt.Sprint(set.Dispatch.MaxQueued),
		"autonomy.risk_tolerance":               set.RiskTolerance,
		"autonomy.max_steps":                    fmt.Sprint(set.MaxSteps),
		"limits.pending_per_session":            fmt.Sprint(set.PendingPerSession),
		"limits.pending_per_principal":          fmt.Sprint(set.PendingPerPrincipal),
		"limits.asks_per_hour":                  fmt.Sprint(set.AsksPerHour),
		"limits.request_life":                   set.RequestLife.String(),
		"limits.grant_life":                     set.GrantLife.String(),
		"limits.session_grant_life":             set.SessionGrantLife.String(),
		"limits.taint_life":                     set.TaintLife.String(),
		"limits.restore_point_mib":              fmt.Sprint(set.RestorePointMiB),
		"limits.restore_total_mib":              fmt.Sprint(set.RestoreTotalMiB),
		"limits.restore_points":                 fmt.Sprint(set.RestorePoints),
		"limits.restore_age":                    set.RestoreAge.String(),
		"cache_awareness.warn_on_ttl_expiry":    fmt.Sprint(set.Cache.Warn),
		"cache_awareness.anthropic_ttl_seconds": fmt.Sprint(int(set.Cache.TTL.Seconds())),
	}
	for name, ask := range set.HostAsk {
		values["hosts."+name] = fmt.Sprintf("host_ask %t", ask)
	}
	if set.Output != "" {
		values["output.default"] = set.Output
	}
	for name, way := range set.OutputOf {
		values["output.servers."+name] = way
	}
	if len(set.RedactFields) > 0 {
		values["redact.fields"] = strings.Join(set.RedactFields, ", ")
	}
	if len(set.Notify) > 0 {
		values["notify"] = places(set.Notify)
	}
	for name, op := range set.Tools {
		values["tools."+name] = op
	}
	for c, def := range set.Capabilities {
		values["capabilities."+string(c)] = sentence(c, "", set.Capabilities) + def.words()
	}
	var out []ExplainedSetting
	for _, key := range slices.Sorted(maps.Keys(values)) {
		o := s.origins[key]
		out = append(out, ExplainedSetting{Key: key, Value: values[key], Layer: o.scope, Source: o.source})
	}
	return out
}

// words lists what implies the capability.
func (d CapabilityDef) words() string {
	globs := slices.Concat(d.Paths, d.Fields, d.Tools, d.Variables)
	if len(globs) == 0 {
		return ""
	}
	return ", implied by " + strings.Join(globs, ", ")
}

func (p *profile) explain() ExplainedProfile {
	e := ExplainedProfile{Name: p.name, Source: p.source, Refused: p.refused}
	for _, class := range slices.Sorted(maps.Keys(p.classes)) {
		c := p.classes[class]
		e.Entries = append(e.Entries, ExplainedEntry{Entry: c.rule, Level: c.level, Words: c.reason, Source: c.source})
	}
	var entries []capRule
	for _, r := range p.plain {
		entries = append(entries, r)
	}
	for _, scoped := range p.scoped {
		entries = append(entries, scoped...)
	}
	slices.SortFunc(entries, func(a, b capRule) int { return strings.Compare(a.rule, b.rule) })
	for _, r := range entries {
		e.Entries = append(e.Entries, ExplainedEntry{Entry: r.rule, Level: r.level, Words: r.reason, Source: r.source})
	}
	return e
}

// String writes the explanation as text for a terminal.
func (e Explanation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "policy %s\n\nlayers, the strongest first\n", e.Hash)
	if len(e.Layers) == 0 {
		b.WriteString("  none; everything below is built in\n")
	}
	for _, l := range e.Layers {
		fmt.Fprintf(&b, "  %-8s %s%s\n", l.Scope, l.File, l.words())
	}
	b.WriteString("\nsettings\n")
	for _, s := range e.Settings {
		fmt.Fprintf(&b, "  %-30s %-20s %s\n", s.Key, s.Value, s.Source)
	}
	for _, p := range e.Profiles {
		fmt.Fprintf(&b, "\nprofile %s (%s)\n", p.Name, p.Source)
		if p.Refused != "" {
			fmt.Fprintf(&b, "  REFUSED: %s\n", p.Refused)
		}
		for _, entry := range p.Entries {
			fmt.Fprintf(&b, "  %-30s %-20s %s\n", entry.Entry, entry.Level, entry.Source)
		}
	}
	if len(e.Rules)+len(e.Operations) > 0 {
		b.WriteString("\nrules\n")
	}
	for i := range e.Rules {
		r := &e.Rules[i]
		fmt.Fprintf(&b, "  %-30s %-20s %s\n  %-30s %s\n", r.Name, r.Level, r.Source, "", r.Reason)
	}
	for _, o := range e.Operations {
		fmt.Fprintf(&b, "  %-30s %-20s %s\n", o.Entry, o.Level, o.Source)
	}
	if len(e.Tools) > 0 {
		b.WriteString("\ntools, as they are declared\n")
	}
	for i := range e.Tools {
		fmt.Fprintf(&b, "  %s\n", e.Tools[i].words())
	}
	if len(e.Agents) > 0 {
		b.WriteString("\nagents, as they are declared\n")
	}
	for i := range e.Agents {
		fmt.Fprintf(&b, "  %-30s %s\n", e.Agents[i].Name, agentWords(&e.Agents[i]))
	}
	if len(e.Ignored) > 0 {
		b.WriteString("\nignored, because the layer may not loosen it\n")
	}
	for _, p := range e.Ignored {
		fmt.Fprintf(&b, "  %s\n", p)
	}
	return b.String()
}

// words says what a layer may do.
func (l LayerInfo) words() string {
	var words []string
	if l.Scope == ScopeProject && !l.Trusted {
		words = append(words, "not trusted")
	}
	switch {
	case slices.Equal(l.MayLoosen, []string{"*"}):
		words = append(words, "may change everything")
	case len(l.MayLoosen) > 0:
		words = append(words, "may loosen "+strings.Join(l.MayLoosen, ", "))
	default:
		words = append(words, "may only tighten")
	}
	return " (" + strings.Join(words, "; ") + ")"
}

// agentWords says what an agent is held to.
func agentWords(a *declare.Agent) string {
	words := []string{"every call of it is a step"}
	for _, name := range slices.Sorted(maps.Keys(a.Budget)) {
		words = append(words, fmt.Sprintf("%s %d", name, a.Budget[name]))
	}
	if a.Grants != nil {
		words = append(words, "uses "+declare.Only(slices.Concat(a.Grants.Allow, a.Grants.Confirm)...).String())
	}
	if asked := slices.Concat(a.Approvals, confirmed(a.Grants)); len(asked) > 0 {
		words = append(words, "asks for "+declare.Only(asked...).String())
	}
	return strings.Join(words, "; ")
}

func confirmed(g *declare.Grants) []string {
	if g == nil {
		return nil
	}
	return g.Confirm
}

// words is the declaration in one line.
func (t *ExplainedTool) words() string {
	held := "nothing is held against it"
	if t.Policy != nil && !t.Inert {
		var sides []string
		for _, side := range declare.Sides() {
			sides = append(sides, fmt.Sprintf("%s %s", side, t.Policy.Stance(side)))
		}
		held = strings.Join(sides, "; ")
	}
	if t.Inert {
		held = "INERT: its policy is told and not enforced"
	}
	if !t.Constraints.IsZero() {
		held += "; with constraints"
	}
	return fmt.Sprintf("%-30s %-60s %s", t.Name, held, t.Source)
}
