package admin

import (
	"context"
	"sync"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
)

// showings remember when each approver was first shown a request, for channels
// without a page of their own: the API and the terminal.
type showings struct {
	mu    sync.Mutex
	first map[shownKey]time.Time
}

type shownKey struct {
	approver, id string
	digest       call.Digest
}

// maxShown bounds what is remembered.
const maxShown = 8192

// note returns when the request was first shown, which is now if it was not.
func (s *showings) note(k shownKey) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at, ok := s.first[k]; ok {
		return at
	}
	if s.first == nil || len(s.first) >= maxShown {
		// What is forgotten counts as shown later, which is the safe side.
		s.first = make(map[shownKey]time.Time)
	}
	now := time.Now()
	s.first[k] = now
	return now
}

// Shown notes that an approver was shown requests.
func (d *Desk) Shown(a Actor, list ...Request) {
	for i := range list {
		if list[i].State == "pending" {
			d.shown.note(shownKey{a.Approver, list[i].ID, list[i].Digest})
		}
	}
}

// look holds an approval until its approver has had the request before them
// for as long as a person needs at least. One that was shown elsewhere, before
// the gate was started or by another node, counts from now on: the digest says
// that it was seen. What is not the call that waits is not held; it is refused.
func (d *Desk) look(ctx context.Context, a Actor, id string, digest call.Digest) error {
	r, err := d.Request(ctx, id)
	if err != nil {
		return err
	}
	if r.State != "pending" || r.Digest != digest {
		return nil
	}
	at := d.shown.note(shownKey{a.Approver, id, digest})
	t := time.NewTimer(time.Until(at.Add(d.opts.Limits().WithDefaults().ShownAtLeast)))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
