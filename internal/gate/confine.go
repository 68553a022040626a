package gate

import (
	"path"
	"slices"
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/facts"
	"github.com/seed-3ebc6b8a/gatehouse/internal/grant"
)

// requires are the guarantees that the effect of an allowed call must hold to.
// Code that a person approved as it stands, this one time, runs as it stands;
// what a grant for the session or the policy lets through runs confined, and so
// does what was asked for in a sandbox.
func (t *trial) requires(used []grant.Grant) []call.Guarantee {
	if t.in.Facts.Confined || len(used) == 0 {
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
func launch(id string, f *facts.Facts, requires []call.Guarantee) []string {
	if !f.Wrapped || len(requires) == 0 {
		return nil
	}
	args := []string{"run", "--call", id}
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
	return append(append(args, "--"), wrapper(f.Script)...)
}

// wrapper is the command that runs the text of a wrapped call.
func wrapper(script string) []string { return []string{"bash", "-c", script} }

// wrapped returns the text that a wrapped call must run.
func wrapped(requires []call.Guarantee) (script string, ok bool) {
	for _, g := range requires {
		if g.Name == "exec" {
			return g.Scope, true
		}
	}
	return "", false
}

// heldTo says why a run that is about to start is not the wrapped call it says
// it is, nil if it is: it runs the text, in a sandbox that lets through no more
// than was required.
func heldTo(requires []call.Guarantee, c *call.Call) error {
	run, err := call.ParseRun(c.Args)
	if err != nil {
		return err
	}
	script, _ := wrapped(requires)
	if !slices.Equal(run.Command, wrapper(script)) || c.Operation != call.OpRun {
		return &RefusedError{Reason: "this is not what was let through"}
	}
	if run.Unconfined || run.Public || run.Ask {
		return &RefusedError{Reason: "it was let through only confined, and this is wider"}
	}
	for _, p := range run.Write {
		if !lies(p, requires, "write") {
			return &RefusedError{Reason: "it may not write " + p}
		}
	}
	for _, p := range run.Read {
		if !lies(p, requires, "write") && !lies(p, requires, "read") {
			return &RefusedError{Reason: "it may not read " + p}
		}
	}
	for _, h := range run.Hosts {
		if !slices.Contains(requires, call.Guarantee{Name: "hosts", Scope: h}) {
			return &RefusedError{Reason: "it may not reach " + h}
		}
	}
	return nil
}

// lies says whether a declared root lies in one that is required.
func lies(root string, requires []call.Guarantee, name string) bool {
	dir := strings.TrimSuffix(root, "/**")
	for _, g := range requires {
		in := strings.TrimSuffix(g.Scope, "/**")
		if g.Name == name && in != "" && (dir == in || strings.HasPrefix(dir, strings.TrimSuffix(in, "/")+"/")) {
			return true
		}
	}
	return false
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
