package policy

import "github.com/seed-3ebc6b8a/gatehouse/internal/call"

// Watches says whether a rule, or an entry of a profile that asks or denies,
// may be about reading a path. It is how whoever looks at a directory knows
// which of the files in it matter.
func (s *Snapshot) Watches(scope, workspace string, inside bool) bool {
	n := call.Need{Capability: call.FSRead, Scope: scope, Inside: inside}
	t := newTarget(&n, workspace)
	for i := range s.rules {
		if r := &s.rules[i]; r.path != nil && r.spec.Level != call.AutoApprove && r.path.meets(&t) != misses {
			return true
		}
	}
	for i := range s.profiles {
		for j := range s.profiles[i].scoped[call.FSRead] {
			if r := &s.profiles[i].scoped[call.FSRead][j]; r.level != call.AutoApprove && r.pattern.meets(&t) != misses {
				return true
			}
		}
	}
	return false
}
