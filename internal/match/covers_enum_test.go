package match_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
)

// TestCoversAgainstEnumeration holds the subset test against a slow oracle: all
// paths of up to four elements over a few names. What is said to be covered is,
// for each of them; and what is covered there is said to be, but for the few
// that a longer path tells apart.
func TestCoversAgainstEnumeration(t *testing.T) {
	t.Parallel()
	names := []string{"a", "b", "c", "ab", "ba", "aa", ".a"}
	paths := []string{"/"}
	for level, from := 0, []string{""}; level < 4; level++ {
		var next []string
		for _, p := range from {
			for _, n := range names {
				next = append(next, p+"/"+n)
			}
		}
		paths, from = append(paths, next...), next
	}
	elements := []string{"a", "b", "ab", "*", "**", "?", "a*", "*a", "[ab]", "[!a]", "{a,b}", "{a,b*}", "a?", "*b*", "??", "{ab,ba}", "[a-b]*", ".a", ".*"}
	random := rand.New(rand.NewPCG(6, 6))
	pattern := func() string {
		var el []string
		for range 1 + random.IntN(4) {
			el = append(el, elements[random.IntN(len(elements))])
		}
		return "/" + strings.Join(el, "/")
	}
	type side struct {
		patterns []string
		set      match.PathSet
		holds    []bool
	}
	draw := func() side {
		var s side
		for range 1 + random.IntN(2) {
			s.patterns = append(s.patterns, pattern())
		}
		var err error
		if s.set, err = match.CompileSet(match.Base{}, s.patterns...); err != nil {
			t.Fatalf("%q: %v", s.patterns, err)
		}
		for _, p := range paths {
			_, in := s.set.Match(p)
			s.holds = append(s.holds, in)
		}
		return s
	}
	var sides []side
	for range 220 {
		sides = append(sides, draw())
	}
	subset, said := 0, 0
	for i := range sides {
		for j := range sides {
			wide, narrow := &sides[i], &sides[j]
			witness := ""
			for k, in := range narrow.holds {
				if in && !wide.holds[k] {
					witness = paths[k]
					break
				}
			}
			covers := match.Covers(wide.set, narrow.set)
			if covers == match.Yes && witness != "" {
				t.Fatalf("%q is said to cover %q, and does not hold %s", wide.patterns, narrow.patterns, witness)
			}
			if witness == "" {
				if subset++; covers == match.Yes {
					said++
				}
			}
		}
	}
	t.Logf("%d of %d subsets are seen as such, in %d pairs over %d paths", said, subset, len(sides)*len(sides), len(paths))
	if said*100 < subset*95 {
		t.Errorf("narrowing is reported as widening in more than one case of twenty: %d of %d", subset-said, subset)
	}
}
