package vet

import (
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/tool/declare"
)

// A capability is one of the five sides of a policy, or that the code cannot
// be analysed.
type capability uint8

const (
	reads       = capability(declare.Read)
	writes      = capability(declare.Write)
	network     = capability(declare.Network)
	environment = capability(declare.Environment)
	executes    = capability(declare.Exec)
	opaque      = executes + 1
	kinds       = opaque + 1
)

// caps is a set of capabilities.
type caps uint8

func set(cs ...capability) caps {
	var s caps
	for _, c := range cs {
		s |= 1 << c
	}
	return s
}

func (s caps) has(c capability) bool { return s&(1<<c) != 0 }

// waiverWord is how a capability is spelt in codes and waivers.
func (c capability) waiverWord() string {
	return [...]string{"read", "write", "network", "environment", "exec", "opaque"}[c]
}

// words says what a capability is, after "can".
func (c capability) words() string {
	return [...]string{"read files", "write files", "use the network", "read the environment", "start programs", "do what cannot be analysed"}[c]
}

// A path is how a capability is reached: functions from the outside in, the
// last one the standard library's or the reason why it cannot be analysed.
type path []string

func (p path) String() string { return strings.Join(p, " → ") }

// maxPath bounds what a fact carries.
const maxPath = 8

func (p path) behind(name string) path {
	if len(p) >= maxPath {
		p = append(path{"…"}, p[len(p)-maxPath+2:]...)
	}
	return append(path{name}, p...)
}

// summary is what a function can reach.
type summary struct {
	has caps
	via [kinds]path
}

// add notes a way to a capability; the first one found is kept.
func (s *summary) add(c capability, via path) bool {
	if s.has.has(c) {
		return false
	}
	s.has |= 1 << c
	s.via[c] = via
	return true
}

// join adds all that another function reaches, as called under a name.
func (s *summary) join(name string, o *summary) bool {
	changed := false
	for c := range kinds {
		if o.has.has(c) && !s.has.has(c) {
			changed = s.add(c, o.via[c].behind(name)) || changed
		}
	}
	return changed
}

// reaches is the fact about a function of another package.
type reaches struct{ Ways map[uint8][]string }

// AFact marks the type as one that is passed between packages.
func (*reaches) AFact() {}

// String returns the fact in words.
func (f *reaches) String() string {
	var out []string
	for c := range kinds {
		if _, ok := f.Ways[uint8(c)]; ok {
			out = append(out, c.waiverWord())
		}
	}
	return "reaches " + strings.Join(out, ", ")
}

func (s *summary) fact() *reaches {
	f := &reaches{Ways: map[uint8][]string{}}
	for c := range kinds {
		if s.has.has(c) {
			f.Ways[uint8(c)] = s.via[c]
		}
	}
	return f
}

func (f *reaches) summary() *summary {
	s := &summary{}
	for c := range kinds {
		if way, ok := f.Ways[uint8(c)]; ok {
			s.add(c, way)
		}
	}
	return s
}

// analysed is the fact that a package's functions have facts; one without then
// reaches nothing.
type analysed struct{ Done bool }

// AFact marks the type as one that is passed between packages.
func (*analysed) AFact() {}

// String returns the fact in words.
func (*analysed) String() string { return "analysed" }

// grants is the fact about a package-level policy of another package.
type grants struct{ Known, Granted uint8 }

// AFact marks the type as one that is passed between packages.
func (*grants) AFact() {}

// String returns the fact in words.
func (*grants) String() string { return "policy" }
