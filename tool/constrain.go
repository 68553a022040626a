package tool

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// tracker keeps the usage constraints of one invocation.
type tracker struct {
	now func() time.Time

	mu        sync.Mutex
	steps     int // calls that were let through
	runs      map[string]int
	completed map[string]bool
	ended     map[string]time.Time
	running   map[string]int
	denials   map[string]int // in a row
}

func newTracker() *tracker {
	return &tracker{
		now: time.Now, runs: map[string]int{}, completed: map[string]bool{}, ended: map[string]time.Time{}, running: map[string]int{}, denials: map[string]int{},
	}
}

// begin takes a place for a run of a tool, or says why there is none. Whoever
// gets a place gives it back with end or undo.
func (t *tracker) begin(a *Agent, name string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := &a.tools[name].decl.Constraints
	if limit, ok := a.spec.Budget["maxToolCalls"]; ok && int64(t.steps) >= limit {
		return fmt.Sprintf("this invocation has used its %d tool calls", limit)
	}
	for other, b := range a.tools {
		if at := b.decl.Constraints.ForceAtStep; at == t.steps+1 && other != name {
			return fmt.Sprintf("call %d of this invocation must be of %s", at, other)
		}
	}
	switch {
	case c.Forbidden:
		return name + " is forbidden by its constraints"
	case c.ConsecutiveDenials > 0 && t.denials[name] >= c.ConsecutiveDenials:
		return fmt.Sprintf("%s was denied %d times in a row and is closed for the rest of this invocation", name, t.denials[name])
	case c.MaxInvocations > 0 && t.runs[name] >= c.MaxInvocations:
		return fmt.Sprintf("%s may run %d times in one invocation, and has", name, c.MaxInvocations)
	}
	var missing []string
	for _, before := range c.OnlyAfter {
		if !t.completed[before] {
			missing = append(missing, before)
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return fmt.Sprintf("%s may only run after %s, which has not completed successfully in this invocation", name, strings.Join(missing, ", "))
	}
	if cool := time.Duration(c.Cooldown); cool > 0 {
		if t.running[name] > 0 {
			return name + " is still running, and has a cooldown between runs"
		}
		if last, ran := t.ended[name]; ran {
			if left := cool - t.now().Sub(last); left > 0 {
				return fmt.Sprintf("%s has a cooldown of %v: try again in %v", name, cool, left.Round(time.Millisecond))
			}
		}
	}
	t.steps++
	t.runs[name]++
	t.running[name]++
	return ""
}

// undo gives back the place of a call that was denied after all.
func (t *tracker) undo(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.steps--
	t.runs[name]--
	t.running[name]--
}

// denied counts a denial.
func (t *tracker) denied(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.denials[name]++
}

// end notes how a run ended. Only a success completes a prerequisite.
func (t *tracker) end(name string, success bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running[name]--
	t.ended[name] = t.now()
	t.denials[name] = 0
	if success {
		t.completed[name] = true
	}
}
