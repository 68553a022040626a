package tool

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/tool/declare"
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
	began     time.Time      // when the first call was let through
	last      string         // the tool of the last inRow calls
	inRow     int
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
	if reason := t.spent(a.spec.Budget, name); reason != "" {
		return reason
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
	if t.steps++; t.began.IsZero() {
		t.began = t.now()
	}
	if t.inRow++; t.last != name {
		t.last, t.inRow = name, 1
	}
	t.runs[name]++
	t.running[name]++
	return ""
}

// spent says which limit of the budget one more call would go beyond.
func (t *tracker) spent(budget map[string]int64, name string) string {
	if limit, ok := budget[declare.MaxToolCalls]; ok && int64(t.steps) >= limit {
		return fmt.Sprintf("this invocation has used its %d tool calls", limit)
	}
	if limit, ok := budget[declare.MaxConsecutiveSameTool]; ok && t.last == name && int64(t.inRow) >= limit {
		return fmt.Sprintf("%s was used %d times in a row: use another tool first", name, limit)
	}
	if limit, ok := budget[declare.MaxDurationMillis]; ok && !t.began.IsZero() && t.now().Sub(t.began) >= time.Duration(limit)*time.Millisecond {
		return fmt.Sprintf("this invocation may last %v, and has", time.Duration(limit)*time.Millisecond)
	}
	return ""
}

// undo gives back the place of a call that was denied after all.
func (t *tracker) undo(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.steps--
	if t.last == name {
		t.inRow--
	}
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
