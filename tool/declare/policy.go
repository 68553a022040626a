package declare

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
)

// Policy is what a tool may touch.
type Policy struct {
	Risk       Risk       `json:"risk" yaml:"risk"`
	Filesystem Filesystem `json:"filesystem" yaml:"filesystem"`
	// Network lists hosts, as in "api.example.com:443" or "*.example.com".
	Network Stance `json:"network" yaml:"network"`
	// Environment lists variables.
	Environment Stance `json:"environment" yaml:"environment"`
	// Exec lists programs, by name or absolute path.
	Exec Stance `json:"exec" yaml:"exec"`
}

// Filesystem lists path globs. A relative glob is bound to the workspace, one
// that starts with "~/" to the home directory.
type Filesystem struct {
	Read  Stance `json:"read" yaml:"read"`
	Write Stance `json:"write" yaml:"write"`
}

// Declared reports whether the policy says anything about what is touched.
func (p *Policy) Declared() bool {
	return p.Filesystem.Read.Declared() || p.Filesystem.Write.Declared() || p.Network.Declared() || p.Environment.Declared() || p.Exec.Declared()
}

// Grants reports whether the policy lets anything be touched.
func (p *Policy) Grants() bool {
	return p.Filesystem.Read.Grants() || p.Filesystem.Write.Grants() || p.Network.Grants() || p.Environment.Grants() || p.Exec.Grants()
}

// Paths returns what a path with a role is held against. Without a role, or
// where the tool takes no stance on the role's side but on the other, that is
// everything that is read or written.
func (p *Policy) Paths(role Role) Stance {
	read, write := p.Filesystem.Read, p.Filesystem.Write
	switch {
	case !read.Declared() && !write.Declared():
		return Stance{}
	case role == RoleRead && read.Declared():
		return read
	case role == RoleWrite && write.Declared():
		return write
	}
	return Only(slices.Concat(read.items, write.items)...)
}

// symbolic is the base that patterns are checked and compared against when no
// workspace is known: two manifests from two machines mean the same.
var symbolic = match.Base{Dir: "/workspace", Home: "/home/user"}

// Check reports everything that is wrong with the policy, all at once.
func (p *Policy) Check() error {
	var errs []error
	sides := []struct {
		name string
		s    Stance
	}{{"filesystem.read", p.Filesystem.Read}, {"filesystem.write", p.Filesystem.Write}}
	for _, side := range sides {
		if side.s.mode == ModeAll {
			errs = append(errs, fmt.Errorf(`%s: "all" is no stance for files; name the tree, such as "/**"`, side.name))
		}
		if _, err := match.CompileSet(symbolic, side.s.items...); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", side.name, err))
		}
	}
	if _, err := compileHosts(p.Network); err != nil {
		errs = append(errs, fmt.Errorf("network: %w", err))
	}
	if p.Environment.mode == ModeAll {
		errs = append(errs, errors.New(`environment: "all" is no stance for variables; name them`))
	}
	for _, v := range p.Environment.items {
		if !validVariable(v) {
			errs = append(errs, fmt.Errorf("environment: %q is no variable name", v))
		}
	}
	for _, prog := range p.Exec.items {
		if err := checkProgram(prog); err != nil {
			errs = append(errs, fmt.Errorf("exec: %w", err))
		}
	}
	return errors.Join(errs...)
}

func compileHosts(s Stance) ([]match.HostPattern, error) {
	items := s.items
	if s.mode == ModeAll {
		items = []string{"*:*"}
	}
	var out []match.HostPattern
	var errs []error
	for _, h := range items {
		p, err := match.CompileHost(h)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		out = append(out, p)
	}
	return out, errors.Join(errs...)
}

// validVariable: letters, digits and "_", not starting with a digit; a "*" at
// the end stands for every variable with that prefix.
func validVariable(s string) bool {
	s = strings.TrimSuffix(s, "*")
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '_', c|0x20 >= 'a' && c|0x20 <= 'z', i > 0 && c >= '0' && c <= '9':
		default:
			return false
		}
	}
	return s != ""
}

func checkProgram(s string) error {
	switch {
	case s == "", strings.ContainsAny(s, " \t\n\x00*?[{"):
		return fmt.Errorf("%q is no program: use a name such as \"git\" or an absolute path", s)
	case strings.Contains(s, "/") && (!path.IsAbs(s) || path.Clean(s) != s):
		return fmt.Errorf("%q is neither a name nor a clean absolute path", s)
	}
	return nil
}

// A Side names one of the five kinds of access.
type Side uint8

// The sides of a policy.
const (
	Read Side = iota
	Write
	Network
	Environment
	Exec
)

var sideNames = [...]string{"filesystem.read", "filesystem.write", "network", "environment", "exec"}

// Sides returns all five.
func Sides() []Side { return []Side{Read, Write, Network, Environment, Exec} }

// String returns the side as it is spelt in findings.
func (s Side) String() string { return sideNames[s] }

// Stance returns what the policy says about a side.
func (p *Policy) Stance(s Side) Stance {
	return [...]Stance{p.Filesystem.Read, p.Filesystem.Write, p.Network, p.Environment, p.Exec}[s]
}

// Covers reports whether everything that narrow lets through on a side is let
// through by wide too, by meaning and not by spelling: "/srv/a/**" lies within
// "/srv/**". What cannot be decided is not covered.
func Covers(side Side, wide, narrow Stance) bool {
	switch {
	case narrow.mode == ModeNone:
		return true
	case narrow.mode == Unspecified: // nothing is held against it: as wide as can be
		return wide.mode == Unspecified
	case wide.mode == Unspecified || wide.mode == ModeAll:
		return true
	case wide.mode == ModeNone:
		return false
	}
	switch side {
	case Read, Write:
		w, errW := match.CompileSet(symbolic, wide.items...)
		n, errN := match.CompileSet(symbolic, narrow.items...)
		return errW == nil && errN == nil && match.Covers(w, n) == match.Yes
	case Network:
		w, errW := compileHosts(wide)
		n, errN := compileHosts(narrow)
		return errW == nil && errN == nil && match.CoversHosts(w, n) == match.Yes
	}
	if narrow.mode == ModeAll {
		return false
	}
	for _, n := range narrow.items {
		if !holdsName(wide.items, n) {
			return false
		}
	}
	return true
}

// holdsName: a name is in a list that has it, or a prefix of it with "*".
func holdsName(list []string, name string) bool {
	for _, item := range list {
		if prefix, wild := strings.CutSuffix(item, "*"); item == name || wild && strings.HasPrefix(strings.TrimSuffix(name, "*"), prefix) {
			return true
		}
	}
	return false
}
