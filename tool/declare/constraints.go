package declare

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Constraints say when and how often a tool may run within one invocation of
// its agent. The zero value constrains nothing.
type Constraints struct {
	// MaxInvocations is how often it may run; 0 is no limit.
	MaxInvocations int `json:"maxInvocations,omitempty,omitzero" yaml:"maxInvocations,omitempty"`
	// OnlyAfter names tools that must have completed successfully before.
	OnlyAfter []string `json:"onlyAfter,omitempty,omitzero" yaml:"onlyAfter,omitempty"`
	// Forbidden keeps the tool from the model altogether.
	Forbidden bool `json:"forbidden,omitempty,omitzero" yaml:"forbidden,omitempty"`
	// ForceAtStep says that the call with this number, counted from 1, must be
	// of this tool; 0 is none.
	ForceAtStep int `json:"forceAtStep,omitempty,omitzero" yaml:"forceAtStep,omitempty"`
	// RequiresApproval has a person asked before every run.
	RequiresApproval bool `json:"requiresApproval,omitempty,omitzero" yaml:"requiresApproval,omitempty"`
	// Cooldown is the least time between the end of one run and the next.
	Cooldown Duration `json:"cooldown,omitempty,omitzero" yaml:"cooldown,omitempty"`
	// ConsecutiveDenials is how many denials in a row close the tool for the
	// rest of the invocation; 0 is no limit.
	ConsecutiveDenials int `json:"consecutiveDenials,omitempty,omitzero" yaml:"consecutiveDenials,omitempty"`
}

// Duration is a time.Duration that is written as text, such as "30s".
type Duration time.Duration

// MarshalText writes the duration as text.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads text such as "1m30s".
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	*d = Duration(v)
	return err
}

// IsZero reports whether nothing is constrained.
func (c *Constraints) IsZero() bool {
	return c.MaxInvocations == 0 && len(c.OnlyAfter) == 0 && !c.Forbidden && c.ForceAtStep == 0 && !c.RequiresApproval && c.Cooldown == 0 && c.ConsecutiveDenials == 0
}

// checkConstraints finds what can never be met, over all tools of an agent:
// names that do not exist, prerequisites that can never run, two tools forced
// at one step.
func checkConstraints(tools []Tool) error {
	var errs []error
	byName := map[string]*Tool{}
	for i := range tools {
		byName[tools[i].Name] = &tools[i]
	}
	forced := map[int]string{}
	for i := range tools {
		t, c := &tools[i], &tools[i].Constraints
		bad := func(format string, args ...any) {
			errs = append(errs, fmt.Errorf("tool %s: %s", t.Name, fmt.Sprintf(format, args...)))
		}
		if c.MaxInvocations < 0 || c.ForceAtStep < 0 || c.Cooldown < 0 || c.ConsecutiveDenials < 0 {
			bad("a constraint is negative")
		}
		if c.Forbidden && c.ForceAtStep > 0 {
			bad("forbidden and forced at step %d contradict each other", c.ForceAtStep)
		}
		if c.ForceAtStep > 0 {
			if other, taken := forced[c.ForceAtStep]; taken {
				bad("step %d is forced for %s already", c.ForceAtStep, other)
			}
			forced[c.ForceAtStep] = t.Name
		}
		if c.ForceAtStep > 0 && c.ForceAtStep <= len(c.OnlyAfter) {
			bad("forced at step %d, before the %d tools it may only follow can have run", c.ForceAtStep, len(c.OnlyAfter))
		}
		for _, name := range c.OnlyAfter {
			switch before := byName[name]; {
			case before == nil:
				bad("onlyAfter names %q, which is no tool here%s", name, suggest(name, byName))
			case before.Constraints.Forbidden:
				bad("may only run after %s, which is forbidden", name)
			case name == t.Name:
				bad("may only run after itself")
			}
		}
	}
	if loop := findLoop(tools, byName); loop != "" {
		errs = append(errs, fmt.Errorf("tool %s: its onlyAfter leads back to itself", loop))
	}
	return errors.Join(errs...)
}

// findLoop returns a tool whose prerequisites lead back to it over others.
func findLoop(tools []Tool, byName map[string]*Tool) string {
	const visiting, done = 1, 2
	state := map[string]int{}
	var walk func(name string) bool
	walk = func(name string) bool {
		t := byName[name]
		if t == nil || state[name] == done {
			return false
		}
		if state[name] == visiting {
			return true
		}
		state[name] = visiting
		for _, before := range t.Constraints.OnlyAfter {
			if before != name && walk(before) {
				return true
			}
		}
		state[name] = done
		return false
	}
	for i := range tools {
		if walk(tools[i].Name) {
			return tools[i].Name
		}
	}
	return ""
}

// Loosened says, in words, each way in which now constrains less than was.
func (c *Constraints) Loosened(was *Constraints) []string {
	var out []string
	raised := func(name string, was, now int) {
		if was > 0 && (now == 0 || now > was) {
			out = append(out, fmt.Sprintf("%s went from %d to %s", name, was, orNone(now)))
		}
	}
	raised("maxInvocations", was.MaxInvocations, c.MaxInvocations)
	raised("consecutiveDenials", was.ConsecutiveDenials, c.ConsecutiveDenials)
	for _, name := range was.OnlyAfter {
		if !slices.Contains(c.OnlyAfter, name) {
			out = append(out, "onlyAfter no longer names "+name)
		}
	}
	if was.Forbidden && !c.Forbidden {
		out = append(out, "it is no longer forbidden")
	}
	if was.RequiresApproval && !c.RequiresApproval {
		out = append(out, "it no longer requires approval")
	}
	if was.ForceAtStep != 0 && c.ForceAtStep != was.ForceAtStep {
		out = append(out, fmt.Sprintf("forceAtStep went from %d to %s", was.ForceAtStep, orNone(c.ForceAtStep)))
	}
	if was.Cooldown > c.Cooldown {
		out = append(out, fmt.Sprintf("the cooldown went from %v to %v", time.Duration(was.Cooldown), time.Duration(c.Cooldown)))
	}
	return out
}

func orNone(n int) string {
	if n == 0 {
		return "none"
	}
	return fmt.Sprint(n)
}
