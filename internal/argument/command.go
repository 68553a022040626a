package argument

import (
	"errors"
	"fmt"
	"net"
	"path"
	"strconv"
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
	"github.com/seed-3ebc6b8a/gatehouse/internal/shell"
	"github.com/seed-3ebc6b8a/gatehouse/tool/declare"
)

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

// command judges a command line: every program in it must be listed, what it
// names of files and hosts must lie within their sides, and all of it must be
// readable. A lone program name is the shortest command line.
func (g *Gate) command(line string, links match.Linker) error {
	if !g.Engaged() {
		return nil
	}
	a := shell.Analyze(line, shell.Options{Cwd: g.base.Dir, Home: g.base.Home})
	if !a.Complete || len(a.Commands) == 0 {
		return fmt.Errorf("the policy cannot judge the command line, because it cannot be read whole: %s", match.Visible(line))
	}
	for i := range a.Commands {
		c := &a.Commands[i]
		if c.Program == "" && g.policy.Exec.Declared() && g.policy.Exec.Mode() != declare.ModeAll {
			return fmt.Errorf("the policy lets the tool start %s; which program %s starts cannot be known", g.policy.Exec, match.Visible(line[c.Span.Start:c.Span.End]))
		}
		if err := g.program(c.Word); err != nil {
			return err
		}
		for j := range c.Effects {
			if err := g.effect(c, &c.Effects[j], links); err != nil {
				return err
			}
		}
		for j := range c.Args {
			if err := g.word(c.Args[j].Text, links); err != nil {
				return err
			}
		}
	}
	return nil
}

// word holds a word of a command like a string without a role: no table knows
// every option that names a file ("--data=@/etc/passwd").
func (g *Gate) word(s string, links match.Linker) error {
	for {
		if candidate(s) {
			_, err := g.path("", s, links)
			return err
		}
		i := strings.IndexAny(s, "=@")
		if i < 0 {
			return nil
		}
		s = s[i+1:]
	}
}

// effect holds one effect of a command against the sides for files and hosts.
func (g *Gate) effect(c *shell.Command, e *shell.Effect, links match.Linker) error {
	switch e.Kind {
	case shell.KindRead:
		return g.touched(declare.RoleRead, e, links)
	case shell.KindWrite, shell.KindDelete:
		if e.Database {
			return nil // its server is an effect of its own
		}
		return g.touched(declare.RoleWrite, e, links)
	case shell.KindExecute, shell.KindOutside, shell.KindPrivilege, shell.KindUnknown:
		if e.Path.Value == "" {
			return nil // a program, which was held above
		}
		return g.touched("", e, links) // a script that is read, or a file that others run
	case shell.KindNetwork:
		if e.Host != "" {
			return g.reached(c.Program, e.Host)
		}
		restricted := g.policy.Network.Declared() && g.policy.Network.Mode() != declare.ModeAll
		if named := e.General && namesHost(c); restricted && !named {
			return fmt.Errorf("the policy lets the tool reach %s; which hosts %s reaches cannot be known", g.policy.Network, match.Visible(c.Program))
		}
	}
	return nil
}

// reached holds a host that a command names against the network side.
func (g *Gate) reached(program, host string) error {
	if h, err := match.ParseHost(host); err == nil && h.Port == 0 {
		host = net.JoinHostPort(h.Name, strconv.Itoa(shell.DefaultPort(program)))
	}
	return g.host(host)
}

// touched holds a path that a command names against a side.
func (g *Gate) touched(role declare.Role, e *shell.Effect, links match.Linker) error {
	name := e.Path.Text()
	switch {
	case g.side(role) == nil, e.Path.Scope == shell.ScopeNull, e.Path.Scope == shell.ScopeRemote:
		return nil
	case e.Path.Raw == "" && e.Path.Value == "" && role == declare.RoleRead:
		return nil // it names no file
	case !e.Path.Known || name == "":
		return fmt.Errorf("%w: it cannot be known", beyond(role, g.side(role), e.Path.Raw))
	case e.Path.Glob:
		// All that the pattern picks lies below the part without stars.
		name = e.Path.Value
		if i := strings.IndexAny(name, "*?[{"); i >= 0 {
			name = name[:strings.LastIndexByte(name[:i], '/')+1]
		}
		if name == "" {
			name = "."
		}
	}
	_, err := g.path(role, name, links)
	if err != nil && errors.Is(err, match.ErrNoBase) {
		return beyond(role, g.side(role), name)
	}
	return err
}

// namesHost says whether a command says itself what it contacts.
func namesHost(c *shell.Command) bool {
	for i := range c.Effects {
		if e := &c.Effects[i]; e.Kind == shell.KindNetwork && e.Host != "" {
			return true
		}
	}
	return false
}
