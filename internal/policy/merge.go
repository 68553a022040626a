package policy

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
)

// scalars merges the settings that have one value. Each says how a file
// states it and which of two values is the stricter.
func (m *merger) scalars() {
	set := &m.s.Settings
	merge(m, "mode", &set.Observe, func(f *File) (bool, bool) { return f.Mode == "observe", f.Mode != "" }, offIsStricter)
	merge(m, "attendance", &set.Unattended, func(f *File) (bool, bool) { return f.Attendance == "unattended", f.Attendance != "" }, onIsStricter)
	merge(m, "isolation", &set.Isolation, func(f *File) (string, bool) { return f.Isolation, f.Isolation != "" }, lessIsolated)
	merge(m, "risk.confirm_at", &set.RiskConfirmAt, number(func(f *File) *int { return ifSet(f.Risk, func(r *Risk) *int { return r.ConfirmAt }) }), fewerIsStricter)
	merge(m, "risk.deny_at", &set.RiskDenyAt, number(func(f *File) *int { return ifSet(f.Risk, func(r *Risk) *int { return r.DenyAt }) }), deniesEarlier)
	merge(m, "risk.irreversible", &set.Irreversible, number(func(f *File) *call.Level { return ifSet(f.Risk, func(r *Risk) *call.Level { return r.Irreversible }) }), call.Level.StricterThan)
	merge(m, "danger.strictness", &set.Strictness, word(func(f *File) *string { return ifSet(f.Danger, func(d *Danger) *string { return &d.Strictness }) }), laterIsStricter(strictnesses))
	merge(m, "autonomy.risk_tolerance", &set.RiskTolerance, word(func(f *File) *string { return ifSet(f.Autonomy, func(a *Autonomy) *string { return &a.RiskTolerance }) }), laterIsStricter(tolerances))
	merge(m, "autonomy.max_steps", &set.MaxSteps, number(func(f *File) *int { return ifSet(f.Autonomy, func(a *Autonomy) *int { return a.MaxSteps }) }), fewerIsStricter)
	limit := func(key string, dst *int, field func(*Limits) *int) {
		merge(m, key, dst, number(func(f *File) *int { return ifSet(f.Limits, field) }), fewerIsStricter)
	}
	limit("limits.pending_per_session", &set.PendingPerSession, func(l *Limits) *int { return l.PendingPerSession })
	limit("limits.pending_per_principal", &set.PendingPerPrincipal, func(l *Limits) *int { return l.PendingPerPrincipal })
	limit("limits.asks_per_hour", &set.AsksPerHour, func(l *Limits) *int { return l.AsksPerHour })
	life := func(key string, dst *time.Duration, field func(*Limits) *Duration) {
		merge(m, key, dst, number(func(f *File) *time.Duration { return (*time.Duration)(ifSet(f.Limits, field)) }), fewerIsStricter)
	}
	life("limits.request_life", &set.RequestLife, func(l *Limits) *Duration { return l.RequestLife })
	life("limits.grant_life", &set.GrantLife, func(l *Limits) *Duration { return l.GrantLife })
	life("limits.session_grant_life", &set.SessionGrantLife, func(l *Limits) *Duration { return l.SessionGrantLife })
	m.kept(set)
}

// kept merges how long something counts and how much is kept: there more is
// stricter.
func (m *merger) kept(set *Settings) {
	long := func(key string, dst *time.Duration, field func(*Limits) *Duration) {
		merge(m, key, dst, number(func(f *File) *time.Duration { return (*time.Duration)(ifSet(f.Limits, field)) }), moreIsStricter)
	}
	much := func(key string, dst *int, field func(*Limits) *int) {
		merge(m, key, dst, number(func(f *File) *int { return ifSet(f.Limits, field) }), moreIsStricter)
	}
	long("limits.taint_life", &set.TaintLife, func(l *Limits) *Duration { return l.TaintLife })
	much("limits.restore_point_mib", &set.RestorePointMiB, func(l *Limits) *int { return l.RestorePointMiB })
	much("limits.restore_total_mib", &set.RestoreTotalMiB, func(l *Limits) *int { return l.RestoreTotalMiB })
	much("limits.restore_points", &set.RestorePoints, func(l *Limits) *int { return l.RestorePoints })
	long("limits.restore_age", &set.RestoreAge, func(l *Limits) *Duration { return l.RestoreAge })
}

// ifSet reads a field of a table that may not be there.
func ifSet[T, F any](table *T, field func(*T) *F) *F {
	if table == nil {
		return nil
	}
	return field(table)
}

// number reads a value through a pointer.
func number[T any](get func(*File) *T) func(*File) (T, bool) {
	return func(f *File) (v T, ok bool) {
		if p := get(f); p != nil {
			return *p, true
		}
		return v, false
	}
}

// word reads a word through a pointer; the empty one says nothing.
func word(get func(*File) *string) func(*File) (string, bool) {
	return func(f *File) (string, bool) {
		if p := get(f); p != nil && *p != "" {
			return *p, true
		}
		return "", false
	}
}

// The ways in which one value is stricter than another.

func offIsStricter(a, b bool) bool               { return !a && b }
func onIsStricter(a, b bool) bool                { return a && !b }
func fewerIsStricter[T cmp.Ordered](a, b T) bool { return a < b }
func moreIsStricter[T cmp.Ordered](a, b T) bool  { return a > b }

// laterIsStricter: the words are listed from the loosest on.
func laterIsStricter(words []string) func(a, b string) bool {
	return func(a, b string) bool { return slices.Index(words, a) > slices.Index(words, b) }
}

// deniesEarlier: 0 never denies.
func deniesEarlier(a, b int) bool { return a != 0 && (b == 0 || a < b) }

// lessIsolated: stating an isolation is what lets looser profiles work.
func lessIsolated(a, b string) bool { return slices.Index(isolations, a) < slices.Index(isolations, b) }

// merge settles one setting. In each layer the files that may loosen it have
// their strictest value replace what is above; the others only tighten.
func merge[T any](m *merger, key string, dst *T, get func(*File) (T, bool), stricter func(a, b T) bool) {
	if _, ok := m.s.origins[key]; !ok {
		m.s.origins[key] = builtIn
	}
	path := strings.ReplaceAll(key, ".", "\x1f")
	for _, group := range m.groups {
		replaced := false
		for i := range group {
			p := &group[i]
			if v, ok := get(p.File); ok && m.mayLoosen(p, key) && (!replaced || stricter(v, *dst)) {
				*dst, replaced = v, true
				m.origin(key, p, path)
			}
		}
		for i := range group {
			p := &group[i]
			v, ok := get(p.File)
			switch {
			case !ok || m.mayLoosen(p, key):
			case stricter(v, *dst):
				*dst = v
				m.origin(key, p, path)
			case stricter(*dst, v):
				m.ignore(p, path, "%s stays as it is", key)
			}
		}
	}
}

// mayLoosen says whether a file may loosen a setting. What the operator said
// when starting the gate stands above every file but the machine's.
func (m *merger) mayLoosen(p *placed, key string) bool {
	return p.rights.has(key) && (key != "isolation" || !m.stated)
}

// statedIsolation takes over what the operator said when starting the gate,
// unless the machine's policy says something itself.
func (m *merger) statedIsolation() {
	for _, group := range m.groups {
		for i := range group {
			if group[i].Scope == ScopeMachine && group[i].File.Isolation != "" {
				return
			}
		}
	}
	if m.opts.Isolation != "" {
		m.stated = true
		m.s.Settings.Isolation = m.opts.Isolation
		m.s.origins["isolation"] = origin{scope: "operator", source: commandLine}
	}
}

// hosts merges the settings per agent host. A host that no file names is left
// to the kind of installation, so saying no tightens and saying yes loosens.
func (m *merger) hosts() {
	for _, name := range HostNames() {
		get := func(f *File) (bool, bool) { return number(func(f *File) *bool { return f.Hosts[name].HostAsk })(f) }
		key, ask := "hosts."+name, false
		said := false
		for _, group := range m.groups {
			replaced := false
			for i := range group {
				p := &group[i]
				if v, ok := get(p.File); ok && p.rights.has(key) && (!replaced || !v) {
					ask, said, replaced = v, true, true
					m.origin(key, p, join("hosts", name, "host_ask"))
				}
			}
			for i := range group {
				p := &group[i]
				v, ok := get(p.File)
				switch {
				case !ok || p.rights.has(key) || said && ask == v:
				case !v:
					ask, said = false, true
					m.origin(key, p, join("hosts", name, "host_ask"))
				default:
					m.ignore(p, join("hosts", name, "host_ask"), "host_ask of %s stays as it is", name)
				}
			}
		}
		if said {
			if m.s.Settings.HostAsk == nil {
				m.s.Settings.HostAsk = make(map[string]bool)
			}
			m.s.Settings.HostAsk[name] = ask
		}
	}
}

// lists merges what grows: further fields to redact always, places to notify
// only from layers that may, since a notice tells someone what agents do.
func (m *merger) lists() {
	set := &m.s.Settings
	for _, group := range m.groups {
		for i := range group {
			p := &group[i]
			if p.File.Redact != nil {
				set.RedactFields = append(set.RedactFields, p.File.Redact.Fields...)
				m.origin("redact.fields", p, "redact")
			}
			for _, n := range p.File.Notify {
				if n.Kind == "webhook" && n.Format == "" {
					n.Format = "json"
				}
				if p.rights.has("notify") {
					set.Notify = append(set.Notify, n)
					m.origin("notify", p, "notify")
				} else if !slices.Contains(set.Notify, n) {
					m.ignore(p, "notify", "notices to %s are not sent", cmp.Or(n.URL, n.Kind))
				}
			}
		}
	}
	slices.Sort(set.RedactFields)
	set.RedactFields = slices.Compact(set.RedactFields)
	slices.SortFunc(set.Notify, func(a, b Notice) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.URL, b.URL), strings.Compare(a.Format, b.Format))
	})
	set.Notify = slices.Compact(set.Notify)
}

// tools merges what tools are. To say so makes an unknown tool known, so only
// a layer that may loosen can; what a layer above says stays.
func (m *merger) tools() {
	for _, group := range m.groups {
		for i := range group {
			p := &group[i]
			for _, name := range slices.Sorted(maps.Keys(p.File.Tools)) {
				if _, said := m.s.Settings.Tools[name]; said {
					continue
				}
				if !p.rights.has("tools") {
					m.ignore(p, join("tools", name), "%s stays a tool that the gate does not know", name)
					continue
				}
				if m.s.Settings.Tools == nil {
					m.s.Settings.Tools = make(map[string]string)
				}
				m.s.Settings.Tools[name] = p.File.Tools[name]
				m.origin("tools."+name, p, join("tools", name))
			}
		}
	}
}

// capabilities merges what implies a capability. Saying so adds a need to a
// call, which tightens, with one exception: a call about which nothing is
// known is judged as unknown, and a need that is let through more easily than
// that makes it known. Only a layer that may loosen can do that.
func (m *merger) capabilities(defs map[call.Capability]CapabilityDef) {
	for _, group := range m.groups {
		for i := range group {
			p := &group[i]
			for _, name := range slices.Sorted(maps.Keys(p.File.Capabilities)) {
				c, def := call.Capability(name), p.File.Capabilities[name]
				if def.implies() && !p.rights.has("capabilities") && !m.s.unknownCovers(c) {
					m.ignore(p, join("capabilities", name), "%s would make more calls known, and so easier", name)
					continue
				}
				defs[c] = defs[c].with(def)
				m.origin("capabilities."+name, p, join("capabilities", name))
			}
		}
	}
	m.s.Settings.Capabilities = defs
}

// unknownCovers says whether whatever needs the capability is judged at least
// as strictly as a call about which nothing is known.
func (s *Snapshot) unknownCovers(c call.Capability) bool {
	known, unknown := call.AutoApprove, call.AutoApprove
	for i := range s.profiles {
		known = call.Join(known, s.profiles[i].most(c))
		unknown = call.Join(unknown, s.profiles[i].voteClass(classUnknown).Level)
	}
	return !unknown.StricterThan(known)
}

// implies says whether the definition makes any call need the capability.
func (d CapabilityDef) implies() bool {
	return len(d.Paths)+len(d.Fields)+len(d.Tools)+len(d.Variables) > 0
}

// with adds what another definition says to imply the capability.
func (d CapabilityDef) with(more CapabilityDef) CapabilityDef {
	union := func(a, b []string) []string {
		u := slices.Concat(a, b)
		slices.Sort(u)
		return slices.Compact(u)
	}
	return CapabilityDef{
		Sentence: d.Sentence,
		Paths:    union(d.Paths, more.Paths), Fields: union(d.Fields, more.Fields),
		Tools: union(d.Tools, more.Tools), Variables: union(d.Variables, more.Variables),
	}
}
