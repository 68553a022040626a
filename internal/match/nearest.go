package match

import (
	"strings"
	"unicode/utf8"
)

// maxNearest is the longest name a suggestion is looked for; longer ones are no slip of the hand.
const maxNearest = 64

// Nearest returns the candidate a misspelt name most likely meant, for "did you mean". The same
// name in other case or with other separators always wins; otherwise at most a third of the name,
// and at most three letters, may differ. Among equals the first in byte order is returned, whatever
// order the candidates come in.
func Nearest(name string, candidates []string) (string, bool) {
	if name == "" || len(name) > maxNearest {
		return "", false
	}
	bare := bareName(name)
	limit := min(3, (utf8.RuneCountInString(name)+2)/3)
	best, bestDist := "", limit+1
	for _, c := range candidates {
		if len(c) > maxNearest {
			continue
		}
		d := 0
		if bareName(c) != bare {
			d = max(1, distance(name, c, bestDist))
		}
		if d < bestDist || d == bestDist && d <= limit && c < best {
			best, bestDist = c, d
		}
	}
	return best, bestDist <= limit
}

// bareName drops case and separators.
func bareName(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case strings.ContainsRune("_-. /:", r):
			return -1
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return r
	}, s)
}

// distance counts the letters to change, drop, add or swap with a neighbour to make a into b, or
// returns a number above limit once it must be.
func distance(a, b string, limit int) int {
	x, y := []rune(a), []rune(b)
	if diff := len(x) - len(y); diff > limit || -diff > limit {
		return limit + 1
	}
	before, prev, cur := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(x); i++ {
		cur[0] = i
		least := i
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			d := min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				d = min(d, before[j-2]+1)
			}
			cur[j] = d
			least = min(least, d)
		}
		if least > limit {
			return limit + 1
		}
		before, prev, cur = prev, cur, before
	}
	return prev[len(y)]
}
