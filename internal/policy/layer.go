package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
)

// Scope is how far a layer reaches. The zero value reaches least.
type Scope uint8

// The scopes, from the weakest to the strongest.
const (
	ScopeSession Scope = iota
	ScopeProject
	ScopeUser
	ScopeMachine
)

var scopeNames = [...]string{ScopeSession: "session", ScopeProject: "project", ScopeUser: "user", ScopeMachine: "machine"}

// String returns the scope's name.
func (s Scope) String() string {
	if s > ScopeMachine {
		return "invalid"
	}
	return scopeNames[s]
}

// MarshalText writes the scope's name.
func (s Scope) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the exact name of a scope.
func (s *Scope) UnmarshalText(text []byte) error {
	i := slices.Index(scopeNames[:], string(text))
	if i < 0 {
		return fmt.Errorf("%q is not a layer: use one of %s", text, strings.Join(scopeNames[:], ", "))
	}
	*s = Scope(i)
	return nil
}

// Layer is a policy file in its place. Several files may have the same scope;
// they are peers, and the strictest counts.
type Layer struct {
	Scope Scope
	File  *File
	// Trusted says that a person accepted a project's file with this very
	// digest. Without it the file can only tighten. Other scopes need none.
	Trusted bool
}

// LayerInfo says what became of a layer.
type LayerInfo struct {
	Scope   Scope       `json:"scope"`
	File    string      `json:"file"`
	Digest  call.Digest `json:"digest,omitzero"`
	Trusted bool        `json:"trusted,omitzero"`
	// MayLoosen lists the settings that the layer may loosen; "*" is all.
	MayLoosen []string `json:"mayLoosen,omitzero"`
}

// rights are the settings that a layer may loosen.
type rights struct {
	all  bool
	keys []string
}

// has reports whether a setting, or the group it belongs to, may be loosened.
func (r rights) has(key string) bool {
	group, _, _ := strings.Cut(key, ".")
	return r.all || slices.Contains(r.keys, key) || slices.Contains(r.keys, group)
}

func (r rights) list() []string {
	if r.all {
		return []string{"*"}
	}
	return r.keys
}

// adjustableKeys are what a layer may hand on to the next. What can only ever
// tighten (operations, redact) is not among them.
func adjustableKeys() []string {
	return []string{
		"attendance", "autonomy", "autonomy.max_steps", "autonomy.risk_tolerance", "capabilities",
		"danger", "danger.strictness",
		"dispatch", "dispatch.bounds", "dispatch.cli_effects", "dispatch.confine", "dispatch.max_queued", "dispatch.max_running", "dispatch.max_running_per_cli",
		"dispatch.over", "dispatch.policy", "dispatch.profile", "dispatch.servers", "dispatch.weights", "hosts", "isolation",
		"limits", "limits.asks_per_hour", "limits.grant_life", "limits.pending_per_principal",
		"limits.pending_per_session", "limits.request_life", "limits.session_grant_life",
		"mode", "notify", "output", "profile",
		"risk", "risk.confirm_at", "risk.deny_at", "risk.irreversible", "rules", "tools",
	}
}

// placed is a layer with what it may loosen.
type placed struct {
	Layer
	rights rights
}

// place sorts layers from the strongest to the weakest and works out what
// each may loosen.
//
// The machine's and the user's files own what nobody above them says anything
// about: the first of them that exists may change every default. Everything
// below may loosen what the layer above it marked adjustable, and had the
// right to hand on.
func place(layers []Layer) ([][]placed, Problems) {
	var groups [][]placed
	var ignored Problems
	may := rights{all: true}
	for scope := ScopeMachine; ; scope-- {
		var group []placed
		if may.all && scope < ScopeUser {
			may = rights{}
		}
		for _, l := range layers {
			if l.Scope != scope {
				continue
			}
			p := placed{Layer: l, rights: may}
			if scope == ScopeProject && !l.Trusted {
				p.rights = rights{}
			}
			group = append(group, p)
		}
		if len(group) > 0 {
			slices.SortFunc(group, func(a, b placed) int {
				return cmp.Or(strings.Compare(a.File.name, b.File.name), strings.Compare(a.File.digest.String(), b.File.digest.String()))
			})
			groups = append(groups, group)
			may, ignored = handOn(group, ignored)
		}
		if scope == ScopeSession {
			return groups, ignored
		}
	}
}

// handOn is what the next layer may loosen: what every peer that says
// something about it marks adjustable.
func handOn(group []placed, ignored Problems) (rights, Problems) {
	var next rights
	said := false
	for _, p := range group {
		if len(p.File.Adjustable) == 0 {
			continue
		}
		var own []string
		for _, key := range p.File.Adjustable {
			if p.rights.has(key) {
				own = append(own, key)
				continue
			}
			ignored = append(ignored, p.File.problem("adjustable", "", "the %s layer may not make %s adjustable", p.Scope, key))
		}
		if said {
			keys := intersect(next, rights{keys: own})
			next = rights{keys: keys}
		} else {
			next, said = rights{keys: own}, true
		}
	}
	slices.Sort(next.keys)
	next.keys = slices.Compact(next.keys)
	return next, ignored
}

// intersect lists what both rights hold; a group and a setting in it share
// the setting.
func intersect(a, b rights) []string {
	var keys []string
	for _, k := range a.keys {
		if b.has(k) {
			keys = append(keys, k)
		}
	}
	for _, k := range b.keys {
		if a.has(k) {
			keys = append(keys, k)
		}
	}
	return keys
}
