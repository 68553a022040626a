package daemon

import (
	"sync"
	"time"
)

// memoLife is how long an answer is remembered: long enough to spare a busy
// agent a look-up per call, short enough that nobody waits for a change.
const memoLife = 5 * time.Second

// memo remembers answers for a moment. Nothing that lets a call through may
// rest on it alone.
type memo[K comparable, V any] struct {
	mu   sync.Mutex
	seen map[K]memoEntry[V]
}

type memoEntry[V any] struct {
	value V
	until time.Time
}

func (m *memo[K, V]) get(k K) (V, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.seen[k]
	if !ok || time.Now().After(e.until) {
		var none V
		return none, false
	}
	return e.value, true
}

func (m *memo[K, V]) put(k K, v V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.seen == nil || len(m.seen) > 10_000 {
		m.seen = make(map[K]memoEntry[V])
	}
	m.seen[k] = memoEntry[V]{value: v, until: time.Now().Add(memoLife)}
}
