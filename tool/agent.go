package tool

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/seed-3ebc6b8a/gatehouse/internal/argument"
	"github.com/seed-3ebc6b8a/gatehouse/internal/content"
	"github.com/seed-3ebc6b8a/gatehouse/internal/manifest"
	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
	"github.com/seed-3ebc6b8a/gatehouse/tool/declare"
)

type (
	// Grants say which tools an agent uses freely and which need a yes.
	Grants = declare.Grants
	// Provider is the model behind an agent.
	Provider = declare.Provider
)

// AgentSpec is what an agent is made of.
type AgentSpec struct {
	Name  string
	Tools []*Tool
	// Grants, if given, must cover every tool; see ConfirmWith.
	Grants *Grants
	// Approvals names tools that a person approves call by call.
	Approvals []string
	// Redact names arguments whose values events do not carry.
	Redact []string
	// Budget holds limits by name, held per invocation; see
	// [declare.MaxToolCalls] and those beside it.
	Budget   map[string]int64
	Provider *Provider
	// Interceptors look at every call, in order, before it runs.
	Interceptors []Interceptor
	// ConfirmWith answers for the tools that Grants confirms. Without it they
	// are denied.
	ConfirmWith func(ctx context.Context, c Call) (bool, error)
	// Inert switches the argument gate off. It is in the manifest.
	Inert bool
	// Workspace is what relative paths are relative to; the working directory
	// if it is empty.
	Workspace string
	// Gate is asked about every call; see [Connect]. Without one the
	// declarations alone decide, and what needs a person is denied.
	Gate Gate
	// OnEvent is told of every call, from any goroutine.
	OnEvent func(Event)
}

// Agent is a set of tools with what each may be used for. It does not change
// after it was made.
type Agent struct {
	spec  AgentSpec
	set   declare.Set
	tools map[string]*bound
	base  match.Base
	// redactor takes secrets out of what events carry.
	redactor *content.Redactor
}

// bound is a tool with its declaration compiled for the agent's workspace.
type bound struct {
	*Tool
	gate     *argument.Gate
	approval bool // a person is asked before every run
	confirm  bool // ConfirmWith is asked
}

// NewAgent checks everything that is declared and reports all that is wrong at
// once: unknown names, contradictions, tools that are not granted.
func NewAgent(spec AgentSpec) (*Agent, error) {
	dir, err := workspace(spec.Workspace)
	if err != nil {
		return nil, err
	}
	spec = spec.frozen()
	home, _ := os.UserHomeDir() // without one, patterns that need it are refused
	a := &Agent{spec: spec, tools: map[string]*bound{}, base: match.Base{Dir: dir, Home: home}, redactor: content.NewRedactor(content.RedactorConfig{Names: spec.Redact})}
	a.set = declare.Set{Inert: spec.Inert, Agents: []declare.Agent{{
		Name: spec.Name, Grants: spec.Grants, Approvals: spec.Approvals, Redact: spec.Redact, Budget: spec.Budget,
		Provider: spec.Provider, Interceptors: len(spec.Interceptors),
	}}}
	var errs []error
	for _, t := range spec.Tools {
		if t.err != nil {
			errs = append(errs, fmt.Errorf("tool %s: %w", t.decl.Name, t.err))
		}
		a.set.Tools = append(a.set.Tools, t.decl)
		a.set.Agents[0].Tools = append(a.set.Agents[0].Tools, t.decl.Name)
	}
	errs = append(errs, a.set.Check(), a.set.CheckBudgets())
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	for _, t := range spec.Tools {
		g, err := argument.New(&t.decl, a.base)
		if err != nil {
			return nil, fmt.Errorf("tool %s: %w", t.decl.Name, err)
		}
		a.tools[t.decl.Name] = &bound{
			Tool: t, gate: g,
			approval: t.decl.Constraints.RequiresApproval || slices.Contains(spec.Approvals, t.decl.Name),
			confirm:  spec.Grants != nil && slices.Contains(spec.Grants.Confirm, t.decl.Name),
		}
	}
	if spec.Inert && spec.OnEvent != nil {
		spec.OnEvent(Event{Kind: Unenforced, Agent: spec.Name, Reason: "the argument gate is switched off"})
	}
	return a, nil
}

// frozen is the spec without anything that its maker can still change: what is
// enforced is what was checked and is in the manifest.
func (s AgentSpec) frozen() AgentSpec {
	s.Tools, s.Approvals, s.Redact, s.Interceptors = slices.Clone(s.Tools), slices.Clone(s.Approvals), slices.Clone(s.Redact), slices.Clone(s.Interceptors)
	s.Budget = maps.Clone(s.Budget)
	if s.Grants != nil {
		g := *s.Grants
		g.Allow, g.Confirm = slices.Clone(g.Allow), slices.Clone(g.Confirm)
		s.Grants = &g
	}
	if s.Provider != nil {
		p := *s.Provider
		s.Provider = &p
	}
	return s
}

func workspace(dir string) (string, error) {
	if dir == "" {
		return os.Getwd()
	}
	return dir, nil
}

// Name returns the agent's name.
func (a *Agent) Name() string { return a.spec.Name }

// Tools returns the declarations of the tools that the model may see.
func (a *Agent) Tools() []declare.Tool {
	var out []declare.Tool
	for _, t := range a.set.Tools {
		if !t.Constraints.Forbidden {
			out = append(out, t.Clone())
		}
	}
	return out
}

// Manifest returns the agent's permission manifest as JSON. Waivers are those
// of the vet checker, by tool; see package tooltest.
func (a *Agent) Manifest(waivers map[string][]string) ([]byte, error) {
	set := a.set
	set.Tools = slices.Clone(a.set.Tools)
	for i := range set.Tools {
		set.Tools[i].Waivers = waivers[set.Tools[i].Name]
	}
	m, err := manifest.New(a.spec.Name, &set)
	if err != nil {
		return nil, err
	}
	return m.JSON()
}

// names lists what the model may call.
func (a *Agent) names() []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(a.tools)) {
		if !a.tools[name].decl.Constraints.Forbidden {
			out = append(out, name)
		}
	}
	return out
}
