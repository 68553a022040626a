package argument

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
	"github.com/seed-3ebc6b8a/gatehouse/internal/shell"
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
	w := walk{gate: g, links: links, dec: jsontext.NewDecoder(bytes.NewBuffer(args))} // a Buffer is read in place
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
	w := walk{gate: g, dec: jsontext.NewDecoder(bytes.NewBuffer(args))}
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

// CheckCommand holds a command line or a program against the exec side.
func (g *Gate) CheckCommand(line string) error { return g.command(line) }

// CheckProgram holds the name or path of one program against the exec side.
func (g *Gate) CheckProgram(name string) error { return g.program(name) }

// walk goes through the arguments once.
type walk struct {
	gate  *Gate
	links match.Linker
	dec   *jsontext.Decoder
	at    declare.Place
	index []int // of the items, for messages
	out   []call.Evidence
	// granted says that something fell under what the declaration grants.
	granted bool
}

func (w *walk) value() error {
	switch w.dec.PeekKind() {
	case '{':
		return w.object()
	case '[':
		return w.array()
	case '"':
		tok, err := w.dec.ReadToken()
		if err != nil {
			return err
		}
		w.text(tok.String())
		return nil
	}
	return w.dec.SkipValue()
}

func (w *walk) object() error {
	if _, err := w.dec.ReadToken(); err != nil {
		return err
	}
	for w.dec.PeekKind() != '}' {
		key, err := w.dec.ReadToken()
		if err != nil {
			return err
		}
		w.at = append(w.at, declare.Part{Name: key.String()})
		w.index = append(w.index, -1)
		if err := w.value(); err != nil {
			return err
		}
		w.at, w.index = w.at[:len(w.at)-1], w.index[:len(w.index)-1]
	}
	_, err := w.dec.ReadToken()
	return err
}

func (w *walk) array() error {
	if _, err := w.dec.ReadToken(); err != nil {
		return err
	}
	for i := 0; w.dec.PeekKind() != ']'; i++ {
		w.at = append(w.at, declare.Part{Item: true})
		w.index = append(w.index, i)
		if err := w.value(); err != nil {
			return err
		}
		w.at, w.index = w.at[:len(w.at)-1], w.index[:len(w.index)-1]
	}
	_, err := w.dec.ReadToken()
	return err
}

// text judges one string.
func (w *walk) text(s string) {
	g := w.gate
	role, has := g.roles.Role(w.at)
	var err error
	side := declare.Stance{} // what the value is held against
	switch {
	case has && role == declare.RoleText:
	case has && role == declare.RoleURL:
		side, err = g.policy.Network, g.url(s, w.links)
	case has && role == declare.RoleEnv:
		side, err = g.policy.Environment, g.variable(s)
	case has && role == declare.RoleCommand:
		side, err = g.policy.Exec, w.argv(s)
	case has || candidate(s):
		side = g.policy.Filesystem.Read
		if !side.Grants() || role == declare.RoleWrite {
			side = g.policy.Filesystem.Write
		}
		_, err = g.path(role, s, w.links)
	}
	if err != nil {
		w.found(err.Error())
		return
	}
	w.granted = w.granted || side.Grants()
}

// argv judges a value with the role of a command: a line, or the words of an
// array, of which only the first names a program.
func (w *walk) argv(s string) error {
	if n := len(w.index); n > 0 && w.index[n-1] >= 0 {
		if w.index[n-1] > 0 {
			return nil
		}
		return w.gate.program(s)
	}
	return w.gate.command(s)
}

// candidate says whether a string without a role is looked at.
func candidate(s string) bool {
	return strings.HasPrefix(s, "/") || s == "~" || strings.HasPrefix(s, "~/") || len(s) >= 5 && strings.EqualFold(s[:5], "file:")
}

func (w *walk) found(text string) {
	var where strings.Builder
	for i, part := range w.at {
		where.WriteByte('/')
		if part.Item {
			where.WriteString(strconv.Itoa(w.index[i]))
			continue
		}
		where.WriteString(strings.NewReplacer("~", "~0", "/", "~1").Replace(part.Name))
	}
	w.out = append(w.out, call.Evidence{Where: where.String(), Text: text})
}

// path holds one path against its side. Without a role, or where the tool
// takes no stance on the role's side but on the other, it must lie within
// either.
func (g *Gate) path(role declare.Role, name string, links match.Linker) (string, error) {
	read, write := &g.policy.Filesystem.Read, &g.policy.Filesystem.Write
	allowed, verb := &g.either, "touch"
	switch {
	case !read.Declared() && !write.Declared():
		return name, nil
	case role == declare.RoleRead && read.Declared():
		allowed, verb = &g.read, "read"
	case role == declare.RoleWrite && write.Declared():
		allowed, verb = &g.write, "write"
	}
	p, err := match.CleanPath(g.base, name)
	if err != nil {
		return "", fmt.Errorf("the policy cannot judge the path %s: %w", match.Visible(name), err)
	}
	real := p.Clean
	if links != nil {
		r, err := match.Resolve(p.Raw, links)
		if err != nil {
			return "", fmt.Errorf("the policy cannot judge the path %s: %w", match.Visible(name), err)
		}
		real = r.Path
	} else if p.Magic {
		return "", fmt.Errorf("the policy cannot judge the path %s: %w", match.Visible(name), match.ErrMagicLink)
	}
	if _, ok := allowed.Match(real); !ok {
		return "", fmt.Errorf("the policy lets the tool %s %s, not %s", verb, listed(allowed), match.Visible(real))
	}
	return real, nil
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

// program judges the name or path of one program.
func (g *Gate) program(name string) error {
	stance := g.policy.Exec
	switch stance.Mode() {
	case declare.Unspecified, declare.ModeAll:
		return nil
	}
	for _, item := range stance.Items() {
		if item == name || path.IsAbs(name) && path.Clean(name) == item {
			return nil
		}
	}
	return fmt.Errorf("the policy lets the tool start %s, not %s", stance, match.Visible(name))
}

// command judges a command line: every program in it must be listed, and all
// of it must be readable. A lone program name is the shortest command line.
func (g *Gate) command(line string) error {
	stance := g.policy.Exec
	if stance.Mode() == declare.Unspecified || stance.Mode() == declare.ModeAll {
		return nil
	}
	a := shell.Analyze(line, shell.Options{})
	if !a.Complete || len(a.Commands) == 0 {
		return fmt.Errorf("the policy lets the tool start %s; the command line cannot be read whole: %s", stance, match.Visible(line))
	}
	for i := range a.Commands {
		c := &a.Commands[i]
		if c.Program == "" {
			return fmt.Errorf("the policy lets the tool start %s; which program %s starts cannot be known", stance, match.Visible(line[c.Span.Start:c.Span.End]))
		}
		if err := g.program(c.Word); err != nil {
			return err
		}
	}
	return nil
}
