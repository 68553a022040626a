package declare

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
)

// Tool is one tool with everything it says about itself.
type Tool struct {
	Name        string `json:"name" yaml:"name"`
	Description string `json:"description,omitempty,omitzero" yaml:"description,omitempty"`
	// Policy is nil for a tool that declares nothing at all.
	Policy *Policy `json:"policy,omitempty,omitzero" yaml:"policy,omitempty"`
	// Capabilities lists needs with their scopes, such as
	// "fs.write:./out/**" or "data.user".
	Capabilities []string    `json:"capabilities,omitempty,omitzero" yaml:"capabilities,omitempty"`
	Constraints  Constraints `json:"constraints,omitzero" yaml:"constraints,omitempty"`
	// Arguments gives roles to arguments. A key is a path such as "path",
	// "files[].name" or "options.*".
	Arguments map[string]Role `json:"arguments,omitempty,omitzero" yaml:"arguments,omitempty"`
	// Schema is the JSON Schema of the input.
	Schema json.RawMessage `json:"schema,omitempty,omitzero" yaml:"-"`
	// Command is the command line of a process tool; "{name}" stands for an
	// argument, as one word.
	Command []string `json:"command,omitempty,omitzero" yaml:"command,omitempty"`
	// Parts names the tools a composite tool calls.
	Parts []string `json:"parts,omitempty,omitzero" yaml:"parts,omitempty"`
	// Waivers are the vet checker's findings that a comment in the source
	// waives, with the reason given there.
	Waivers []string `json:"waivers,omitempty,omitzero" yaml:"waivers,omitempty"`
}

// Clone returns a copy that shares nothing that can be changed.
func (t Tool) Clone() Tool {
	if t.Policy != nil {
		p := *t.Policy
		t.Policy = &p
	}
	t.Capabilities, t.Command, t.Parts, t.Waivers = slices.Clone(t.Capabilities), slices.Clone(t.Command), slices.Clone(t.Parts), slices.Clone(t.Waivers)
	t.Constraints.OnlyAfter = slices.Clone(t.Constraints.OnlyAfter)
	t.Arguments, t.Schema = maps.Clone(t.Arguments), slices.Clone(t.Schema)
	return t
}

// Role is what an argument means.
type Role string

// The roles. A value without one is looked at only if it is an absolute path.
const (
	RoleRead    Role = "read"    // a path that is read
	RoleWrite   Role = "write"   // a path that is written, created or removed
	RoleURL     Role = "url"     // a URL or host that is connected to
	RoleEnv     Role = "env"     // the name of an environment variable
	RoleCommand Role = "command" // a program, or a command line
	RoleText    Role = "text"    // free text, never a path
)

// Roles returns all roles.
func Roles() []Role { return []Role{RoleRead, RoleWrite, RoleURL, RoleEnv, RoleCommand, RoleText} }

// Agent groups tools and says what each may be used for.
type Agent struct {
	Name  string   `json:"name" yaml:"name"`
	Tools []string `json:"tools" yaml:"tools"`
	// Grants, if given, must cover every tool.
	Grants *Grants `json:"grants,omitempty,omitzero" yaml:"grants,omitempty"`
	// Approvals names tools that a person approves call by call.
	Approvals []string `json:"approvals,omitempty,omitzero" yaml:"approvals,omitempty"`
	// Redact names fields whose values are never stored.
	Redact []string `json:"redact,omitempty,omitzero" yaml:"redact,omitempty"`
	// Budget holds limits by name; see [MaxToolCalls] and those beside it.
	Budget map[string]int64 `json:"budget,omitempty,omitzero" yaml:"budget,omitempty"`
	// Provider is the model behind the agent.
	Provider *Provider `json:"provider,omitempty,omitzero" yaml:"provider,omitempty"`
	// Interceptors is how many look at a call before it runs.
	Interceptors int `json:"interceptors,omitempty,omitzero" yaml:"interceptors,omitempty"`
}

// Grants say which tools an agent uses freely and which need a yes.
type Grants struct {
	Allow   []string `json:"allow,omitempty,omitzero" yaml:"allow,omitempty"`
	Confirm []string `json:"confirm,omitempty,omitzero" yaml:"confirm,omitempty"`
	// ConfirmWith names who says yes: "person", or another agent.
	ConfirmWith string `json:"confirmWith,omitempty,omitzero" yaml:"confirmWith,omitempty"`
}

// Provider is a model service. Its key is never written: HasKey says whether
// there is one.
type Provider struct {
	Name    string `json:"name" yaml:"name"`
	Model   string `json:"model,omitempty,omitzero" yaml:"model,omitempty"`
	BaseURL string `json:"baseURL,omitempty,omitzero" yaml:"baseURL,omitempty"`
	HasKey  bool   `json:"hasKey,omitempty,omitzero" yaml:"hasKey,omitempty"`
}

// Set is all that one program or file declares.
type Set struct {
	Tools  []Tool
	Agents []Agent
	// Inert switches the argument gate off. The zero value enforces.
	Inert bool
	// Isolation is what the program's agents run in: none, container or vm; ""
	// says nothing about it.
	Isolation string
}

// Isolations are what agents can run in, from the least on.
func Isolations() []string { return []string{"none", "container", "vm"} }

// Check reports everything that is wrong with the set, all at once.
func (s *Set) Check() error {
	var errs []error
	seen := map[string]*Tool{}
	for i := range s.Tools {
		t := &s.Tools[i]
		if err := t.check(); err != nil {
			errs = append(errs, fmt.Errorf("tool %s: %w", t.Name, err))
		}
		if seen[t.Name] != nil {
			errs = append(errs, fmt.Errorf("tool %s: declared twice", t.Name))
		}
		seen[t.Name] = t
	}
	if err := checkConstraints(s.Tools); err != nil {
		errs = append(errs, err)
	}
	if s.Isolation != "" && !slices.Contains(Isolations(), s.Isolation) {
		errs = append(errs, fmt.Errorf("isolation: %q is none; write %s", s.Isolation, strings.Join(Isolations(), ", ")))
	}
	for i := range s.Tools {
		for _, part := range s.Tools[i].Parts {
			if seen[part] == nil {
				errs = append(errs, fmt.Errorf("tool %s: its part %q is no tool here%s", s.Tools[i].Name, part, suggest(part, seen)))
			}
		}
	}
	agents := map[string]bool{}
	for i := range s.Agents {
		a := &s.Agents[i]
		if agents[a.Name] {
			errs = append(errs, fmt.Errorf("agent %s: declared twice", a.Name))
		}
		agents[a.Name] = true
		if err := a.check(seen); err != nil {
			errs = append(errs, fmt.Errorf("agent %s: %w", a.Name, err))
		}
	}
	return errors.Join(errs...)
}

func (t *Tool) check() error {
	var errs []error
	if !validName(t.Name) {
		errs = append(errs, errors.New("a name is 1 to 128 letters, digits, and _ - . /"))
	}
	if t.Policy != nil {
		if err := t.Policy.Check(); err != nil {
			errs = append(errs, err)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(t.Arguments)) {
		if !slices.Contains(Roles(), t.Arguments[key]) {
			errs = append(errs, fmt.Errorf("argument %s: %q is no role: use read, write, url, env, command or text", key, t.Arguments[key]))
		}
		if _, err := parseKey(key); err != nil {
			errs = append(errs, fmt.Errorf("argument %s: %w", key, err))
		}
	}
	if len(t.Command) > 0 && (t.Policy == nil || !t.Policy.Exec.Grants()) {
		errs = append(errs, errors.New("it has a command, so its policy must allow exec"))
	}
	return errors.Join(errs...)
}

func (a *Agent) check(tools map[string]*Tool) error {
	var errs []error
	known := func(what string, names []string) {
		for _, n := range names {
			if tools[n] == nil {
				errs = append(errs, fmt.Errorf("%s names %q, which is no tool here%s", what, n, suggest(n, tools)))
			}
		}
	}
	known("tools", a.Tools)
	known("approvals", a.Approvals)
	if g := a.Grants; g != nil {
		known("grants.allow", g.Allow)
		known("grants.confirm", g.Confirm)
		for _, n := range g.Allow {
			if slices.Contains(g.Confirm, n) {
				errs = append(errs, fmt.Errorf("grants: %s is both allowed and confirmed", n))
			}
		}
		for _, n := range a.Tools {
			if !slices.Contains(g.Allow, n) && !slices.Contains(g.Confirm, n) {
				errs = append(errs, fmt.Errorf("grants: %s is used and not granted", n))
			}
		}
		if len(g.Confirm) > 0 && g.ConfirmWith == "" {
			errs = append(errs, errors.New(`grants: confirm needs confirmWith: "person", or the agent that says yes`))
		}
	}
	return errors.Join(errs...)
}

func validName(s string) bool {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c|0x20 >= 'a' && c|0x20 <= 'z', c >= '0' && c <= '9', strings.IndexByte("_-./", c) >= 0:
		default:
			return false
		}
	}
	return s != "" && len(s) <= 128
}

func suggest[T any](name string, among map[string]T) string {
	if near, ok := match.Nearest(name, slices.Collect(maps.Keys(among))); ok {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}

// shells are programs that run whatever they are given.
var shells = []string{"sh", "bash", "dash", "zsh", "ksh", "fish", "busybox", "env", "xargs", "python", "python3", "node", "perl", "ruby", "pwsh", "cmd"}

// Lint returns what is allowed and still deserves a second look.
func (s *Set) Lint() []string {
	var out []string
	warn := func(t *Tool, format string, args ...any) {
		out = append(out, fmt.Sprintf("tool %s: %s", t.Name, fmt.Sprintf(format, args...)))
	}
	for i := range s.Agents {
		for _, name := range slices.Sorted(maps.Keys(s.Agents[i].Budget)) {
			if !budgetNames[name] {
				out = append(out, fmt.Sprintf("agent %s: the gate does not see %s, so that limit is for review only", s.Agents[i].Name, name))
			}
		}
	}
	for i := range s.Tools {
		t := &s.Tools[i]
		if t.Policy == nil {
			warn(t, "declares no policy, so nothing is held against it")
			continue
		}
		if t.Policy.Risk == Unknown {
			warn(t, "its risk is unknown, which ranks above critical")
		}
		if t.Policy.Exec.mode == ModeAll {
			warn(t, "may start any program; list those it needs")
		}
		for _, prog := range t.Policy.Exec.items {
			if slices.Contains(shells, path.Base(prog)) {
				warn(t, "is a raw shell tool: %s runs whatever it is given; declare the programs themselves, with a command line of their own", prog)
			}
		}
		for _, key := range slices.Sorted(maps.Keys(t.Arguments)) {
			if t.Arguments[key] == RoleCommand {
				warn(t, "takes a command line in %s; a process tool with single arguments can be judged better", key)
			}
		}
	}
	return out
}
