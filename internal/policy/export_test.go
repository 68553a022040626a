package policy

import (
	"slices"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
)

// Voters is how many voters a snapshot asks.
func (s *Snapshot) Voters() int { return len(s.voters) }

// WithoutVoter returns a copy that misses one voter.
func (s *Snapshot) WithoutVoter(i int) *Snapshot {
	c := *s
	c.voters = slices.Delete(slices.Clone(s.voters), i, i+1)
	return &c
}

// Counting returns a copy that counts how often a pattern is compared.
func (s *Snapshot) Counting(n *int) *Snapshot {
	c := *s
	text := func(f func(string) bool) func(string) bool {
		if f == nil {
			return nil
		}
		return func(x string) bool { *n++; return f(x) }
	}
	scope := func(p *pattern) *pattern {
		if p == nil {
			return nil
		}
		q := *p
		q.covers = func(t *target) bool { *n++; return p.covers(t) }
		q.meets = func(t *target) fit { *n++; return p.meets(t) }
		return &q
	}
	c.rules = slices.Clone(s.rules)
	for i := range c.rules {
		r := &c.rules[i]
		r.operation, r.command, r.path, r.host = text(r.operation), text(r.command), scope(r.path), scope(r.host)
	}
	c.profiles = slices.Clone(s.profiles)
	for i := range c.profiles {
		scoped := c.profiles[i].scoped
		c.profiles[i].scoped = make(map[call.Capability][]capRule, len(scoped))
		for name, entries := range scoped {
			entries = slices.Clone(entries)
			for j := range entries {
				entries[j].pattern = scope(entries[j].pattern)
			}
			c.profiles[i].scoped[name] = entries
		}
	}
	return &c
}

// Size is how many patterns a snapshot holds.
func (s *Snapshot) Size() int {
	n := 4 * len(s.rules)
	for i := range s.profiles {
		for _, entries := range s.profiles[i].scoped {
			n += len(entries)
		}
	}
	return n
}
