package policy

import "github.com/seed-3ebc6b8a/gatehouse/internal/call"

// Holds says whether everything that one need reaches lies within another, as
// a grant for a scope must be able to tell. What cannot be told is not held:
// an empty scope is held by nothing and holds nothing.
func Holds(wide, narrow call.Need) bool {
	if wide.Capability != narrow.Capability || wide.Scope == "" || narrow.Scope == "" || wide.Root != narrow.Root {
		return false
	}
	if wide.Scope == narrow.Scope && wide.Inside == narrow.Inside {
		return true
	}
	p, err := compilePattern(scopeKind(wide.Capability, wide.Scope), wide.Scope, "")
	if err != nil {
		return false
	}
	// No workspace is given: a scope in the workspace holds what was observed
	// to lie in it, an absolute one holds absolute paths.
	t := newTarget(&narrow, "")
	return p.covers(&t)
}
