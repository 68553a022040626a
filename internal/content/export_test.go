package content

import (
	"slices"
	"sync"
)

// SlowScan is [Scan] without what makes it quick: every test reads the words behind its keyword anew,
// no test is spared because a word is missing, and keywords are found by one walk over the text.
func SlowScan(text string) []Finding {
	s := newState(slowScanner(), nil)
	defer s.release()
	s.load(text)
	return s.out
}

var slowScanner = sync.OnceValue(func() *engine {
	rules := slices.Concat(injectionRules(), credentialRules(), commandRules(), pathRules())
	for i := range rules {
		quick := rules[i].match
		rules[i].need = nil
		rules[i].light = true // the bound on tests in vain counts other tests than it does when some are spared
		rules[i].match = func(t *target, start, end int) (int, int, Severity) {
			return quick(&target{text: t.text}, start, end)
		}
	}
	e := newEngine(rules)
	e.words.longest = 1 << 30 // no text is long enough to be split
	return e
})
