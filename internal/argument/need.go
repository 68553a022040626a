package argument

import (
	"fmt"
	"path"
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
	"github.com/seed-3ebc6b8a/gatehouse/tool/declare"
)

// Roles calls f for every string of the arguments that has a role.
func (g *Gate) Roles(args []byte, f func(where, text string, roles declare.RoleSet)) {
	w := newWalk(g, args, nil)
	defer w.done()
	w.each = func(where, text string, roles declare.RoleSet) {
		if roles != 0 {
			f(where, text, roles)
		}
	}
	_ = w.value() // what cannot be read is what Check reports
}

// CheckNeed holds something that a call needs against the declaration: what the
// gate found out by itself, whatever the arguments' roles are. Guessed says
// that a path may be read or written, nobody knows which. The workspace is what
// scopes that start with "./" are relative to.
func (g *Gate) CheckNeed(n *call.Need, guessed bool, workspace string) error {
	switch n.Capability {
	case call.FSRead:
		return g.place(declare.RoleRead, n.Scope, guessed, workspace)
	case call.FSWrite, call.FSDelete:
		return g.place(declare.RoleWrite, n.Scope, guessed, workspace)
	case call.NetEgress:
		if n.Scope == "" && g.policy.Network.Declared() && g.policy.Network.Mode() != declare.ModeAll {
			return fmt.Errorf("the policy lets the tool reach %s, and which hosts the call reaches cannot be known", g.policy.Network)
		}
		return g.host(n.Scope)
	case call.ProcExec:
		return g.starts(n.Scope)
	case call.SecretsAccess:
		if name, ok := strings.CutPrefix(n.Scope, "$"); ok {
			return g.variable(name)
		}
		if n.Scope == "environment" && g.policy.Environment.Declared() {
			return fmt.Errorf("the policy lets the tool see the variables %s, and the call sees all of them", g.policy.Environment)
		}
	}
	return nil
}

// Grants reports whether the declaration grants anything of the kind that a
// capability is about.
func (g *Gate) Grants(c call.Capability) bool {
	switch c {
	case call.FSRead:
		return g.policy.Filesystem.Read.Grants()
	case call.FSWrite, call.FSDelete:
		return g.policy.Filesystem.Write.Grants()
	case call.NetEgress:
		return g.policy.Network.Grants()
	case call.ProcExec:
		return g.policy.Exec.Grants()
	}
	return false
}

// place holds the scope of a path, or of all below one, against a side.
func (g *Gate) place(role declare.Role, scope string, guessed bool, workspace string) error {
	if guessed {
		role = ""
	}
	side := g.side(role)
	if side == nil {
		return nil
	}
	switch {
	case scope == "":
		return fmt.Errorf("%w, and which files cannot be known", beyond(role, side, "any"))
	case strings.HasPrefix(scope, "."):
		scope = path.Join(workspace, scope)
	case !strings.HasPrefix(scope, "/"):
		return nil // no file: a database on a server, which is reached
	}
	if _, ok := side.Match(scope); ok {
		return nil
	}
	if strings.HasSuffix(scope, "/**") {
		narrow, err := match.CompileSet(match.Base{}, scope)
		if err == nil && match.Covers(*side, narrow) == match.Yes {
			return nil
		}
	}
	return beyond(role, side, scope)
}

// starts holds a program, with the words that were proven, against the exec
// side. What runs confined may be any program.
func (g *Gate) starts(scope string) error {
	stance := g.policy.Exec
	if !stance.Declared() || stance.Mode() == declare.ModeAll {
		return nil
	}
	name, _, _ := strings.Cut(scope, " ")
	if name == "" || scope == call.Confined {
		return fmt.Errorf("the policy lets the tool start %s, and what the call starts cannot be known", stance)
	}
	return g.program(name)
}
