package declare

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// The limits of an agent's budget. Those on turns and tokens are the model's
// business: they are there to be reviewed, and nothing here sees them.
const (
	MaxToolCalls           = "maxToolCalls"           // calls that are let through
	MaxConsecutiveSameTool = "maxConsecutiveSameTool" // calls of one tool in a row
	MaxDurationMillis      = "maxDurationMillis"      // from the first call on
	PerToolTimeoutMillis   = "perToolTimeoutMillis"   // of one run, where the executor is Go
	MaxTurns               = "maxTurns"
	MaxTokens              = "maxTokens"
)

// budgetNames says of each limit whether the gate holds calls to it.
var budgetNames = map[string]bool{
	MaxToolCalls: true, MaxConsecutiveSameTool: true, MaxDurationMillis: true, PerToolTimeoutMillis: false, MaxTurns: false, MaxTokens: false,
}

// CheckBudgets finds limits that do not exist: a misspelt one limits nothing.
func (s *Set) CheckBudgets() error {
	var errs []error
	for i := range s.Agents {
		a := &s.Agents[i]
		for _, name := range slices.Sorted(maps.Keys(a.Budget)) {
			if _, known := budgetNames[name]; !known {
				errs = append(errs, fmt.Errorf("agent %s: budget: there is no limit %q%s", a.Name, name, suggest(name, budgetNames)))
			} else if a.Budget[name] < 0 || name == MaxConsecutiveSameTool && a.Budget[name] == 0 {
				errs = append(errs, fmt.Errorf("agent %s: budget: %s of %d is no limit", a.Name, name, a.Budget[name]))
			}
		}
	}
	return errors.Join(errs...)
}

// budgetLoosened says in what a budget lets more through than another.
func budgetLoosened(was, now map[string]int64) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(was)) {
		switch limit, still := now[name]; {
		case !still:
			out = append(out, fmt.Sprintf("budget %s: %d → none", name, was[name]))
		case limit > was[name]:
			out = append(out, fmt.Sprintf("budget %s: %d → %d", name, was[name], limit))
		}
	}
	return out
}
