package declare

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Loosens says, in words, each way in which the second set of declarations
// holds less against its tools than the first; nothing if whatever it lets
// through the first let through too. What cannot be decided counts as less.
//
// This is not what a review asks (package manifest): there a new tool is news,
// while here a tool that was not declared was not held to anything. A tool may
// be declared more than once, in several files; all of it holds.
func Loosens(was, now *Set) []string {
	var out []string
	if !was.Inert && now.Inert {
		out = append(out, "enforcePolicies: the argument gate is switched off")
	}
	for i := range was.Tools {
		old := &was.Tools[i]
		best := []string{"it is not declared any more"}
		for j := range now.Tools {
			if now.Tools[j].Name != old.Name {
				continue
			}
			less := old.loosened(&now.Tools[j])
			if len(less) == 0 {
				best = nil
				break
			}
			best = less
		}
		for _, words := range best {
			out = append(out, fmt.Sprintf("tool %s: %s", old.Name, words))
		}
	}
	for i := range was.Agents {
		out = append(out, was.Agents[i].loosened(now.Agents)...)
	}
	return append(out, stepsLoosened(was, now)...)
}

// stepsLoosened says whose calls are counted differently from now on: all calls
// of an agent that is declared are steps, of others those of declared tools. A
// tool that is forced at a step is then forced at another call.
func stepsLoosened(was, now *Set) []string {
	if !slices.ContainsFunc(was.Tools, func(t Tool) bool { return t.Constraints.ForceAtStep > 0 }) {
		return nil
	}
	var out []string
	for i := range now.Agents {
		name := now.Agents[i].Name
		if !slices.ContainsFunc(was.Agents, func(a Agent) bool { return a.Name == name }) {
			out = append(out, fmt.Sprintf("agent %s: all its calls are counted as steps now, not only those of declared tools", name))
		}
	}
	return out
}

// loosened says in what now holds less against a tool than t does.
func (t *Tool) loosened(now *Tool) []string {
	var out []string
	less := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	was, is := Policy{}, Policy{}
	if t.Policy != nil {
		was = *t.Policy
	}
	if now.Policy != nil {
		is = *now.Policy
	}
	for _, side := range []Side{Network, Environment, Exec} {
		if !Covers(side, was.Stance(side), is.Stance(side)) {
			less("%s: %s → %s", side, was.Stance(side), is.Stance(side))
		}
	}
	for _, role := range []Role{RoleRead, RoleWrite, ""} {
		if a, b := was.Paths(role), is.Paths(role); !Covers(Read, a, b) {
			less("paths %s: %s → %s", roleVerbs[role], a, b)
		}
	}
	for _, words := range now.Constraints.Loosened(&t.Constraints) {
		less("%s", words)
	}
	for _, c := range t.Capabilities {
		if !slices.Contains(now.Capabilities, c) {
			less("it does not say any more that it needs %s", c)
		}
	}
	if !slices.Equal(t.Command, now.Command) && len(t.Command) > 0 {
		less("its command line: %s → %s", strings.Join(t.Command, " "), strings.Join(now.Command, " "))
	}
	out = append(out, rolesLoosened(t.Arguments, now.Arguments)...)
	return out
}

var roleVerbs = map[Role]string{RoleRead: "to read", RoleWrite: "to write", "": "without a role"}

// rolesLoosened compares roles by key. A role that another replaces, and one
// that is given to a string which was looked at as a path without it, may mean
// less; a path that got a role means more.
func rolesLoosened(was, now map[string]Role) []string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(was)) {
		if was[key] != RoleText && now[key] != was[key] {
			out = append(out, fmt.Sprintf("argument %s: %s → %s", key, was[key], orRole(now[key])))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(now)) {
		role := now[key]
		if _, had := was[key]; !had && role != RoleRead && role != RoleWrite {
			out = append(out, fmt.Sprintf("argument %s: no role → %s", key, role))
		}
	}
	return out
}

func orRole(r Role) string {
	if r == "" {
		return "no role"
	}
	return string(r)
}

// loosened says in what the agent of the same name may do more.
func (a *Agent) loosened(among []Agent) []string {
	i := slices.IndexFunc(among, func(b Agent) bool { return b.Name == a.Name })
	var out []string
	less := func(format string, args ...any) {
		out = append(out, fmt.Sprintf("agent %s: %s", a.Name, fmt.Sprintf(format, args...)))
	}
	if i < 0 {
		less("it is not declared any more")
		return out
	}
	now := &among[i]
	for _, words := range budgetLoosened(a.Budget, now.Budget) {
		less("%s", words)
	}
	for _, t := range a.Approvals {
		if !slices.Contains(now.Approvals, t) {
			less("%s is not approved by a person any more", t)
		}
	}
	switch {
	case a.Grants == nil:
	case now.Grants == nil:
		less("its grants are gone, so every tool is free to use")
	default:
		for _, t := range now.Grants.Allow {
			if !slices.Contains(a.Grants.Allow, t) {
				less("%s needs no yes any more", t)
			}
		}
		for _, t := range now.Grants.Confirm {
			if !slices.Contains(a.Grants.Allow, t) && !slices.Contains(a.Grants.Confirm, t) {
				less("%s was not granted before", t)
			}
		}
	}
	return out
}
