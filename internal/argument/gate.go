package argument

import (
	"errors"
	"fmt"
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
	"github.com/seed-3ebc6b8a/gatehouse/tool/declare"
)

// Gate is one tool's declaration, compiled for a workspace. It is immutable
// and safe for concurrent use.
type Gate struct {
	policy declare.Policy
	base   match.Base
	roles  declare.RoleFinder
	// read, write and either are the globs of each side and of both.
	read, write, either match.PathSet
	hosts               []match.HostPattern
}

// New compiles a declaration. Relative globs and paths are bound to base.Dir.
// A policy of nil engages nothing.
func New(t *declare.Tool, base match.Base) (*Gate, error) {
	g := &Gate{base: base, roles: declare.FindRoles(t.Arguments)}
	if t.Policy == nil {
		return g, nil
	}
	g.policy = *t.Policy
	if err := g.policy.Check(); err != nil {
		return nil, err
	}
	var errs []error
	set := func(patterns ...string) match.PathSet {
		s, err := match.CompileSet(base, patterns...)
		errs = append(errs, err)
		return s
	}
	read, write := g.policy.Filesystem.Read.Items(), g.policy.Filesystem.Write.Items()
	g.read, g.write, g.either = set(read...), set(write...), set(append(read, write...)...)
	for _, h := range g.policy.Network.Items() {
		p, err := match.CompileHost(h)
		errs = append(errs, err)
		g.hosts = append(g.hosts, p)
	}
	return g, errors.Join(errs...)
}

// In returns the gate for arguments whose relative paths are relative to dir.
// The globs stay bound to the workspace.
func (g *Gate) In(dir string) *Gate {
	in := *g
	in.base.Dir = dir
	return &in
}

// Engaged reports whether the declaration says anything that arguments can be
// held against.
func (g *Gate) Engaged() bool { return g.policy.Declared() }

// Check returns what in the arguments goes beyond the declaration, in the
// order it stands there; nothing if the call stays within. Links may be nil:
// then paths are compared as they are written.
func (g *Gate) Check(args []byte, links match.Linker) []call.Evidence {
	if !g.Engaged() || len(args) == 0 {
		return nil
	}
	w := newWalk(g, args, links)
	defer w.done()
	if err := w.value(); err != nil {
		w.found(fmt.Sprintf("the arguments cannot be read: %v", err))
	}
	return w.out
}

// Uses reports whether the arguments name anything that the declaration
// grants: a path within its globs, a host, a variable, a program.
func (g *Gate) Uses(args []byte) bool {
	if !g.policy.Grants() || len(args) == 0 {
		return false
	}
	w := newWalk(g, args, nil)
	defer w.done()
	return w.value() == nil && w.granted
}

// CheckPath holds one path against the read or the write side, for a tool that
// opens a file by its handle.
func (g *Gate) CheckPath(role declare.Role, name string, links match.Linker) (real string, err error) {
	return g.path(role, name, links)
}

// CheckHost holds a URL or a host against the network side.
func (g *Gate) CheckHost(word string) error { return g.host(word) }

// CheckVariable holds a variable's name against the environment side.
func (g *Gate) CheckVariable(name string) error { return g.variable(name) }

// CheckProgram holds the name or path of one program against the exec side.
func (g *Gate) CheckProgram(name string) error { return g.program(name) }

// path holds one path against its side; see [declare.Policy.Paths].
func (g *Gate) path(role declare.Role, name string, links match.Linker) (string, error) {
	side := g.side(role)
	if side == nil {
		return name, nil
	}
	p, err := match.CleanPath(g.base, name)
	if err != nil {
		return "", fmt.Errorf("the policy cannot judge the path %s: %w", match.Visible(name), err)
	}
	if p.Magic {
		return "", fmt.Errorf("the policy cannot judge the path %s: %w", match.Visible(name), match.ErrMagicLink)
	}
	real := p.Clean
	if links != nil {
		if real, err = within(role, side, p.Raw, links); err != nil || p.Raw == p.Clean {
			return real, err
		}
		// The kernel takes ".." after a link for the parent of where that
		// leads. Programs that tidy a path first do not get there.
		_, err := within(role, side, p.Clean, links)
		return real, err
	}
	if _, ok := side.Match(real); !ok {
		return "", beyond(role, side, real)
	}
	return real, nil
}

// within follows the links of a path and holds what it leads to against a side.
func within(role declare.Role, side *match.PathSet, name string, links match.Linker) (string, error) {
	r, err := match.Resolve(name, links)
	if err != nil {
		return "", fmt.Errorf("the policy cannot judge the path %s: %w", match.Visible(name), err)
	}
	if _, ok := side.Match(r.Path); !ok {
		return "", beyond(role, side, r.Path)
	}
	return r.Path, nil
}

// side returns the globs that paths with a role must lie within, nil if there
// are none to hold them against.
func (g *Gate) side(role declare.Role) *match.PathSet {
	read, write := g.policy.Filesystem.Read.Declared(), g.policy.Filesystem.Write.Declared()
	switch {
	case !read && !write:
		return nil
	case role == declare.RoleRead && read:
		return &g.read
	case role == declare.RoleWrite && write:
		return &g.write
	}
	return &g.either
}

func beyond(role declare.Role, side *match.PathSet, what string) error {
	verb := string(role)
	if verb == "" {
		verb = "touch"
	}
	return fmt.Errorf("the policy lets the tool %s %s, not %s", verb, listed(side), match.Visible(what))
}

// listed returns the globs of a set in words.
func listed(s *match.PathSet) string {
	var out []string
	for _, g := range s.Globs() {
		out = append(out, g.String())
	}
	return declare.Only(out...).String()
}

// url judges a URL: a file URL is a path that is read.
func (g *Gate) url(s string, links match.Linker) error {
	if len(s) >= 5 && strings.EqualFold(s[:5], "file:") {
		_, err := g.path(declare.RoleRead, s, links)
		return err
	}
	return g.host(s)
}

func (g *Gate) host(s string) error {
	stance := g.policy.Network
	if stance.Mode() == declare.Unspecified || stance.Mode() == declare.ModeAll {
		return nil
	}
	h, err := match.ParseHost(s)
	if err != nil {
		return fmt.Errorf("the policy cannot judge the %w", err)
	}
	for _, p := range g.hosts {
		if p.Match(h) {
			return nil
		}
	}
	return fmt.Errorf("the policy lets the tool reach %s, not %s", stance, h)
}

func (g *Gate) variable(name string) error {
	stance := g.policy.Environment
	if !stance.Declared() || declare.Covers(declare.Environment, stance, declare.Only(name)) && !strings.HasSuffix(name, "*") {
		return nil
	}
	return fmt.Errorf("the policy lets the tool see the variables %s, not %s", stance, match.Visible(name))
}
