package policy

import (
	"fmt"
	"maps"
	"slices"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
)

// Change is one way in which a policy is looser than another, or may be.
type Change struct {
	// Setting is what changed, as a policy file calls it.
	Setting string `json:"setting"`
	// Old and New are the values, in words.
	Old string `json:"old"`
	New string `json:"new"`
}

// String writes the change in one line.
func (c Change) String() string { return fmt.Sprintf("%s: %s → %s", c.Setting, c.Old, c.New) }

// Loosens lists every way in which a new policy may let through what the old
// one held back. An empty list is a proof that it loosens nothing: whatever
// the new policy is asked, it answers at least as strictly. What cannot be
// decided counts as loosening.
func Loosens(old, new *Snapshot) []Change {
	switch {
	case new == nil || len(new.voters) == 0:
		return nil // it denies
	case old == nil || len(old.voters) == 0:
		return []Change{{Setting: "policy", Old: "none, which denies", New: "a policy"}}
	}
	changes := settingsLoosen(&old.Settings, &new.Settings)
	changes = append(changes, dispatchLoosens(&old.Settings.Dispatch, &new.Settings.Dispatch)...)
	changes = append(changes, profilesLoosen(old.profiles, new.profiles)...)
	changes = append(changes, rulesLoosen(old.rules, new.rules)...)
	changes = append(changes, operationsLoosen(old, new)...)
	changes = append(changes, declaredLoosen(old, new)...)
	return append(changes, capabilitiesLoosen(old, new)...)
}

// settingsLoosen compares the settings one by one, each by its own order.
func settingsLoosen(old, new *Settings) []Change {
	var changes []Change
	loosened := func(looser bool, key string, a, b any) {
		if looser {
			changes = append(changes, Change{Setting: key, Old: fmt.Sprint(a), New: fmt.Sprint(b)})
		}
	}
	loosened(offIsStricter(old.Observe, new.Observe), "mode", modes[0], modes[1])
	loosened(onIsStricter(old.Unattended, new.Unattended), "attendance", attendances[1], attendances[0])
	loosened(lessIsolated(old.Isolation, new.Isolation), "isolation", old.Isolation, new.Isolation)
	loosened(fewerIsStricter(old.RiskConfirmAt, new.RiskConfirmAt), "risk.confirm_at", old.RiskConfirmAt, new.RiskConfirmAt)
	loosened(deniesEarlier(old.RiskDenyAt, new.RiskDenyAt), "risk.deny_at", old.RiskDenyAt, new.RiskDenyAt)
	loosened(old.Irreversible.StricterThan(new.Irreversible), "risk.irreversible", old.Irreversible, new.Irreversible)
	loosened(fewerIsStricter(old.PendingPerSession, new.PendingPerSession), "limits.pending_per_session", old.PendingPerSession, new.PendingPerSession)
	loosened(fewerIsStricter(old.PendingPerPrincipal, new.PendingPerPrincipal), "limits.pending_per_principal", old.PendingPerPrincipal, new.PendingPerPrincipal)
	loosened(fewerIsStricter(old.AsksPerHour, new.AsksPerHour), "limits.asks_per_hour", old.AsksPerHour, new.AsksPerHour)
	loosened(fewerIsStricter(old.RequestLife, new.RequestLife), "limits.request_life", old.RequestLife, new.RequestLife)
	loosened(fewerIsStricter(old.GrantLife, new.GrantLife), "limits.grant_life", old.GrantLife, new.GrantLife)
	loosened(fewerIsStricter(old.SessionGrantLife, new.SessionGrantLife), "limits.session_grant_life", old.SessionGrantLife, new.SessionGrantLife)
	loosened(moreIsStricter(old.TaintLife, new.TaintLife), "limits.taint_life", old.TaintLife, new.TaintLife)
	loosened(moreIsStricter(old.RestorePointMiB, new.RestorePointMiB), "limits.restore_point_mib", old.RestorePointMiB, new.RestorePointMiB)
	loosened(moreIsStricter(old.RestoreTotalMiB, new.RestoreTotalMiB), "limits.restore_total_mib", old.RestoreTotalMiB, new.RestoreTotalMiB)
	loosened(moreIsStricter(old.RestorePoints, new.RestorePoints), "limits.restore_points", old.RestorePoints, new.RestorePoints)
	loosened(moreIsStricter(old.RestoreAge, new.RestoreAge), "limits.restore_age", old.RestoreAge, new.RestoreAge)
	loosened(laterIsStricter(strictnesses)(old.Strictness, new.Strictness), "danger.strictness", old.Strictness, new.Strictness)
	loosened(laterIsStricter(tolerances)(old.RiskTolerance, new.RiskTolerance), "autonomy.risk_tolerance", old.RiskTolerance, new.RiskTolerance)
	loosened(fewerIsStricter(old.MaxSteps, new.MaxSteps), "autonomy.max_steps", old.MaxSteps, new.MaxSteps)
	for _, name := range HostNames() {
		loosened(hostAsk(old, name) < hostAsk(new, name), "hosts."+name+".host_ask", hostAskWords[hostAsk(old, name)], hostAskWords[hostAsk(new, name)])
	}
	outputLoosens(old, new, loosened)
	for _, field := range old.RedactFields {
		loosened(!slices.Contains(new.RedactFields, field), "redact.fields", field, "stored")
	}
	// Whether one operation is easier than another depends on its arguments.
	loosened(!maps.Equal(old.Tools, new.Tools), "tools", old.Tools, new.Tools)
	// A place more is told what agents do; a place less is told nothing.
	loosened(!slices.Equal(old.Notify, new.Notify), "notify", places(old.Notify), places(new.Notify))
	return changes
}

var hostAskWords = []string{"false", "left to the installation", "true"}

// hostAsk ranks what a policy says about a host's own prompt, the strictest
// first. Saying nothing may mean either.
func hostAsk(s *Settings, name string) int {
	ask, said := s.HostAsk[name]
	switch {
	case !said:
		return 1
	case ask:
		return 2
	}
	return 0
}

func places(notices []Notice) string {
	words := "none"
	for i, n := range notices {
		if i == 0 {
			words = ""
		} else {
			words += ", "
		}
		words += n.Kind
		if n.URL != "" {
			words += " " + n.URL
		}
	}
	return words
}

// profilesLoosen compares what is in force together. It holds if each of the
// old profiles has one in the new policy that loosens nothing in it.
func profilesLoosen(old, new []profile) []Change {
	refused := func(p profile) bool { return p.refused != "" }
	switch {
	case slices.ContainsFunc(new, refused):
		return nil // it denies whatever needs anything
	case slices.ContainsFunc(old, refused):
		return []Change{{Setting: "profile", Old: old[0].name + ", which refused for want of isolation", New: new[0].name}}
	}
	var changes []Change
	for i := range old {
		var least []Change
		for j := range new {
			c := profileLoosens(&old[i], &new[j])
			if j == 0 || len(c) < len(least) {
				least = c
			}
		}
		changes = append(changes, least...)
	}
	confines := func(p profile) bool { return p.confines }
	if slices.ContainsFunc(old, confines) && !slices.ContainsFunc(new, confines) {
		changes = append(changes, Change{Setting: "requires_isolation", Old: "project code must run confined", New: "it need not"})
	}
	return changes
}

// profileLoosens compares two profiles: for every need and every class the
// new one must be at least as strict.
func profileLoosens(old, new *profile) []Change {
	var changes []Change
	for _, class := range Classes() {
		if a, b := old.voteClass(class).Level, new.voteClass(class).Level; a.StricterThan(b) {
			changes = append(changes, levelChange("classes."+class, a, b))
		}
	}
	all := make(map[call.Capability]bool)
	for _, p := range []*profile{old, new} {
		for c := range p.plain {
			all[c] = true
		}
		for c := range p.scoped {
			all[c] = true
		}
	}
	for _, c := range slices.Sorted(maps.Keys(all)) {
		changes = append(changes, capabilityLoosens(c, old, new)...)
	}
	return changes
}

func levelChange(setting string, old, new call.Level) Change {
	return Change{Setting: setting, Old: old.String(), New: new.String()}
}

// capabilityLoosens compares what two profiles say about one capability.
//
// For a need that no scope covers the plain entries count, so those must not
// get looser. An old scoped entry must live on in a new one that reaches at
// least as far, unless nothing in the new profile is looser anyway. A new
// scoped entry must not take a need away from a stricter plain entry, unless
// an old one had taken it already.
func capabilityLoosens(c call.Capability, old, new *profile) []Change {
	var changes []Change
	if a, b := old.plainLevel(c), new.plainLevel(c); a.StricterThan(b) {
		changes = append(changes, levelChange(string(c), a, b))
	}
	for _, o := range old.scoped[c] {
		kept := slices.ContainsFunc(new.scoped[c], func(n capRule) bool {
			return !o.level.StricterThan(n.level) && objectsAsMuch(n.pattern, o.pattern)
		})
		if !kept && o.level.StricterThan(new.least(c)) {
			changes = append(changes, Change{Setting: o.rule, Old: o.level.String(), New: "not certain"})
		}
	}
	for _, n := range new.scoped[c] {
		level := n.level
		for _, other := range new.scoped[c] {
			if coversAsMuch(other.pattern, n.pattern) {
				level = call.Join(level, other.level)
			}
		}
		had := slices.ContainsFunc(old.scoped[c], func(o capRule) bool { return coversAsMuch(o.pattern, n.pattern) })
		if plain := old.plainOrClass(c); !had && plain.StricterThan(level) {
			changes = append(changes, levelChange(n.rule, plain, level))
		}
	}
	return changes
}

// plainLevel is the level of the plain entry; what is not there denies.
func (p *profile) plainLevel(c call.Capability) call.Level {
	if r, ok := p.plain[c]; ok {
		return r.level
	}
	return call.Deny
}

// plainOrClass is the strictest that a need can get which no scope covers,
// from the plain entry or the class of the command.
func (p *profile) plainOrClass(c call.Capability) call.Level {
	level := p.plainLevel(c)
	for _, class := range Classes() {
		if aboutClass(class, c) {
			level = call.Join(level, p.voteClass(class).Level)
		}
	}
	return level
}

// least is the most permissive level that any need of a capability can get.
// The class of a command may stand for a plain proc.exec that asks.
func (p *profile) least(c call.Capability) call.Level {
	if c == call.ProcExec && p.plainLevel(c) != call.Deny {
		return call.AutoApprove
	}
	return p.most(c)
}

// coversAsMuch says whether a wide pattern covers everything that a narrow
// one covers, trees included.
func coversAsMuch(wide, narrow *pattern) bool {
	if wide.kind != narrow.kind || wide.inside != narrow.inside {
		return false
	}
	switch wide.kind {
	case kindPath:
		return (wide.isTree || !narrow.isTree) && coversPaths(wide, narrow)
	case kindHost:
		return match.CoversHosts([]match.HostPattern{wide.host}, []match.HostPattern{narrow.host}) == match.Yes
	}
	return wide.text.Covers(narrow.text) == match.Yes
}

// objectsAsMuch says whether a wide pattern meets everything that a narrow one
// meets, and as certainly. About a tree a pattern is asked by its root, which
// is what it is by its spelling ("/[e]tc" starts at "/"), so the roots must
// fit too.
func objectsAsMuch(wide, narrow *pattern) bool {
	if wide.kind != kindPath {
		return coversAsMuch(wide, narrow)
	}
	return narrow.kind == kindPath && wide.inside == narrow.inside && coversPaths(wide, narrow) &&
		(wide.isTree && match.Within(wide.tree, narrow.root) || wide.root == narrow.root)
}

// coversPaths compares what two path patterns hold. Two that are spelled alike
// and start at the same place hold the same, which spares the comparison.
func coversPaths(wide, narrow *pattern) bool {
	return wide.src == narrow.src && wide.root == narrow.root || match.Covers(match.NewPathSet(wide.glob), match.NewPathSet(narrow.glob)) == match.Yes
}

// rulesLoosen compares pattern rules: each old objection must live on in a
// new rule, and each new approval must have been there before.
func rulesLoosen(old, new []rule) []Change {
	var changes []Change
	for i := range old {
		o := &old[i]
		if o.spec.Level == call.AutoApprove {
			continue
		}
		kept := slices.ContainsFunc(new, func(n rule) bool {
			return n.spec.Level != call.AutoApprove && !o.spec.Level.StricterThan(n.spec.Level) && n.objectsAsMuch(o)
		})
		if !kept {
			changes = append(changes, Change{Setting: "rules." + o.spec.Name, Old: o.spec.Level.String(), New: "not certain"})
		}
	}
	for i := range new {
		n := &new[i]
		if n.spec.Level != call.AutoApprove {
			continue
		}
		had := slices.ContainsFunc(old, func(o rule) bool { return o.spec.Level == call.AutoApprove && o.allowsAsMuch(n) })
		if !had {
			changes = append(changes, Change{Setting: "rules." + n.spec.Name, Old: "not certain", New: n.spec.Level.String()})
		}
	}
	return changes
}

// objectsAsMuch says whether the rule applies wherever a narrow one does.
func (r *rule) objectsAsMuch(narrow *rule) bool {
	return (r.operation == nil || r.coversTool(narrow)) &&
		(r.command == nil || coversText(r.spec.Command, narrow.spec.Command)) &&
		(r.path == nil || narrow.path != nil && objectsAsMuch(r.path, narrow.path)) &&
		(r.host == nil || narrow.host != nil && objectsAsMuch(r.host, narrow.host))
}

// allowsAsMuch says whether the rule approves and lowers wherever a narrow
// one does. What a rule speaks for depends on which matchers it has, so both
// must have the same ones.
func (r *rule) allowsAsMuch(narrow *rule) bool {
	same := (r.operation == nil) == (narrow.operation == nil) && (r.command == nil) == (narrow.command == nil) &&
		(r.path == nil) == (narrow.path == nil) && (r.host == nil) == (narrow.host == nil)
	return same && (r.named || !narrow.named) && (r.literal || !narrow.literal) &&
		(r.operation == nil || r.coversTool(narrow)) &&
		(r.command == nil || coversText(r.spec.Command, narrow.spec.Command)) &&
		(r.path == nil || coversAsMuch(r.path, narrow.path)) && (r.host == nil || coversAsMuch(r.host, narrow.host))
}

// coversTool says whether the rule is about every operation that a narrow one
// is about.
func (r *rule) coversTool(narrow *rule) bool {
	if narrow.named {
		return r.operation(narrow.tool)
	}
	return coversText(r.tool, narrow.tool)
}

// coversText compares globs over text. A rule without the narrow one applies
// even where there is no text at all, which no glob covers.
func coversText(wide, narrow string) bool {
	if narrow == "" || wide == narrow {
		return narrow != ""
	}
	w, err := match.CompileOp(wide)
	if err != nil {
		return false
	}
	n, err := match.CompileOp(narrow)
	return err == nil && w.Covers(n) == match.Yes
}

// operationsLoosen asks both policies about every native operation there is.
func operationsLoosen(old, new *Snapshot) []Change {
	denies := func(s *Snapshot, op string) bool {
		return slices.ContainsFunc(s.operations, func(o operationDeny) bool { return o.matches(op) })
	}
	var changes []Change
	ops := call.Operations()
	for i := range ops {
		if name := ops[i].Name; denies(old, name) && !denies(new, name) {
			changes = append(changes, Change{Setting: "operations." + name, Old: call.Deny.String(), New: "not denied"})
		}
	}
	return changes
}

// capabilitiesLoosen compares what implies capabilities. What implied one
// must go on doing so; something new must not make an unknown call easier.
func capabilitiesLoosen(old, new *Snapshot) []Change {
	all := make(map[call.Capability]bool)
	for c := range old.Settings.Capabilities {
		all[c] = true
	}
	for c := range new.Settings.Capabilities {
		all[c] = true
	}
	unknown := call.AutoApprove
	for i := range old.profiles {
		unknown = call.Join(unknown, old.profiles[i].voteClass(classUnknown).Level)
	}
	var changes []Change
	for _, c := range slices.Sorted(maps.Keys(all)) {
		a, b := old.Settings.Capabilities[c], new.Settings.Capabilities[c]
		if more := b.beyond(a); more != "" {
			known := call.AutoApprove
			for i := range new.profiles {
				known = call.Join(known, new.profiles[i].most(c))
			}
			if unknown.StricterThan(known) {
				changes = append(changes, Change{Setting: "capabilities." + string(c), Old: "unknown", New: "implied by " + more})
			}
		}
		if less := a.beyond(b); less != "" {
			changes = append(changes, Change{Setting: "capabilities." + string(c), Old: "implied by " + less, New: "not certain"})
		}
	}
	return changes
}

// beyond returns something that implies the capability here and not there.
func (d CapabilityDef) beyond(other CapabilityDef) string {
	for _, pair := range [][2][]string{{d.Paths, other.Paths}, {d.Fields, other.Fields}, {d.Tools, other.Tools}, {d.Variables, other.Variables}} {
		for _, glob := range pair[0] {
			if !slices.Contains(pair[1], glob) {
				return glob
			}
		}
	}
	return ""
}
