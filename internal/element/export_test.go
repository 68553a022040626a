package element

import (
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/facts"
)

// Hit says whether the index finds a pattern that may fit, Fits whether one
// does when each is asked.
func (s *Set) Hit(c *call.Call, f *facts.Facts) bool { return s.index.hit(c, f) }

func (s *Set) Fits(c *call.Call, f *facts.Facts) bool {
	for _, x := range s.externs {
		for _, p := range append(append([]pattern(nil), x.deny...), x.confirm...) {
			if p.objects(c, f) != misses {
				return true
			}
		}
	}
	return false
}
