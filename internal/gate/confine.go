package gate

import (
	"path"
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/facts"
	"github.com/seed-3ebc6b8a/gatehouse/internal/grant"
)

// requires are the guarantees that the effect of an allowed call must hold to.
// Code that a person approved as it stands, this one time, runs as it stands;
// what a grant for the session or the policy lets through runs confined.
func (t *trial) requires(used []grant.Grant) []call.Guarantee {
	if !t.in.Facts.Wrapped || len(used) == 0 {
		return t.decision.Requires
	}
	for _, g := range used {
		if g.Use != grant.Once {
			return t.decision.Requires
		}
	}
	return nil
}

// launch is the command line that runs a confined call: arguments of the
// gatehouse command, which the surface puts in place of the agent's command.
// It is nil for a call that runs as it stands.
func launch(f *facts.Facts, requires []call.Guarantee) []string {
	if !f.Wrapped || len(requires) == 0 {
		return nil
	}
	args := []string{"run"}
	for _, g := range requires {
		switch g.Name {
		case "write":
			args = append(args, "--write", g.Scope, "--read", g.Scope)
		case "read":
			args = append(args, "--read", g.Scope)
		case "hosts":
			args = append(args, "--net", g.Scope)
		case "protect":
			if p := protected(g.Scope, f.Workspace); p != "" {
				args = append(args, "--protect", p)
			}
		}
	}
	return append(args, "--", "bash", "-c", f.Script)
}

// protected is what the sandbox is told to leave alone for a pattern of a
// rule: a path, or names at any depth. What lies outside the workspace it
// cannot write anyway.
func protected(pattern, workspace string) string {
	p := strings.TrimSuffix(pattern, "/**")
	if name, anywhere := strings.CutPrefix(p, "**/"); anywhere {
		return name
	}
	if rel, inside := strings.CutPrefix(p, "./"); inside {
		return path.Join(workspace, rel)
	}
	if path.IsAbs(p) && strings.HasPrefix(p+"/", workspace+"/") {
		return p
	}
	return ""
}
