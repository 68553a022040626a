package call

import "time"

// Terms bound what a person may be offered for an external call, and how long
// such an answer counts. They come from active elements and only ever narrow
// what the policy allows. The zero value bounds nothing.
type Terms struct {
	// Once says that an answer is good for one call: none for the session is
	// offered, and one that was given before does not count.
	Once bool
	// Session says that an answer for the session is what the elements'
	// authors had in mind, where one can be offered at all.
	Session bool
	// Life is the longest that an answer counts, 0 for no bound.
	Life time.Duration
}

// Bound returns the shorter of a life and that of the terms.
func (t Terms) Bound(life time.Duration) time.Duration {
	if t.Life > 0 {
		return min(t.Life, life)
	}
	return life
}
