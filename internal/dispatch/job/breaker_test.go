package job

import (
	"testing"
	"time"
)

// TestBreakerRest: after the rest one start is tried, and no other until it is
// known what became of it: if it works the CLI is as good as before, if not it
// rests again.
func TestBreakerRest(t *testing.T) {
	t.Parallel()
	j := &Jobs{breakers: map[string]*breaker{}}
	for range breakerFailures {
		j.outcome("cli", false)
	}
	b := j.breaker("cli")
	now := b.opened
	if b.allows(now.Add(breakerRest - time.Second)) {
		t.Error("a start was tried before the rest was over")
	}
	now = now.Add(breakerRest)
	if !b.allows(now) || b.allows(now.Add(time.Second)) {
		t.Error("after the rest not exactly one start was tried")
	}
	j.outcome("cli", false)
	if b.allows(b.opened.Add(breakerRest / 2)) {
		t.Error("it failed again and did not rest")
	}
	if !b.allows(b.opened.Add(breakerRest)) {
		t.Error("it was not tried again")
	}
	j.outcome("cli", true)
	if !b.allows(now) || b.failures != 0 {
		t.Errorf("it works and is left alone: %+v", b)
	}
}
