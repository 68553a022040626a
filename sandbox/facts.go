package sandbox

import "sync"

// maxFacts bounds what one run can make us remember.
const maxFacts = 1000

// facts collects refusals; equal ones are counted.
type facts struct {
	on func(Refusal)

	mu      sync.Mutex
	list    []Refusal
	dropped int
}

func (f *facts) add(r Refusal) {
	f.mu.Lock()
	r.Count = 1
	known := false
	for i := range f.list {
		old := f.list[i]
		old.Count = 1
		if old == r {
			f.list[i].Count++
			r.Count = f.list[i].Count
			known = true
			break
		}
	}
	switch {
	case known:
	case len(f.list) >= maxFacts:
		f.dropped++
	default:
		f.list = append(f.list, r)
	}
	f.mu.Unlock()
	if f.on != nil {
		f.on(r)
	}
}

func (f *facts) fill(r *Result) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r.Refusals, r.Dropped = f.list, f.dropped
}
