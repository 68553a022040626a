package activation

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/element"
	"github.com/seed-3ebc6b8a/gatehouse/internal/library"
	"github.com/seed-3ebc6b8a/gatehouse/internal/session"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// Staged is an element whose files changed on disk in a way that loosens. What
// was accepted stays in force until an approver takes the change.
type Staged struct {
	Agent     string `json:"agent"`
	Workspace string `json:"workspace,omitzero"`
	// Element is the id of the active element.
	Element string `json:"element"`
	// Digest is of the files as they are now, zero if they are gone.
	Digest call.Digest `json:"digest"`
	// Changes say what it would loosen.
	Changes []string  `json:"changes"`
	Since   time.Time `json:"since"`
}

func (s *Staged) same(o *Staged) bool {
	return s.Agent == o.Agent && s.Workspace == o.Workspace && s.Element == o.Element && s.Digest == o.Digest
}

// Staged lists what waits for an approver.
func (k *Keeper) Staged() []Staged {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.staged)
}

// Follow compares what is in force with the files on disk. It reports whether
// it changed anything.
func (k *Keeper) Follow(ctx context.Context) (changed bool, err error) {
	sets, err := k.All(ctx)
	if err != nil {
		return false, err
	}
	var staged []Staged
	for _, s := range sets {
		list, touched := slices.Clone(s.Active), false
		for i := range list {
			next, waits := k.compare(&s, list, i)
			if waits != nil {
				staged = append(staged, *waits)
			}
			if next != nil {
				list[i], touched = *next, true
			}
		}
		if touched {
			if err := k.take(ctx, s, list); err != nil {
				return changed, err
			}
			changed = true
		}
	}
	return k.stage(staged) || changed, nil
}

// compare judges one active element: what it is to be from now on, nil for no
// change, and what of it waits for an approver.
func (k *Keeper) compare(s *session.ActiveSet, list []session.Active, i int) (next *session.Active, waits *Staged) {
	a := list[i]
	b, err := k.load(a.Type, a.Name)
	wait := &Staged{Agent: s.Agent, Workspace: s.Workspace, Element: a.ID()}
	var missing *library.NotFoundError
	switch {
	case errors.As(err, &missing):
		if element.Loosens(session.Elements(list), session.Elements(slices.Delete(slices.Clone(list), i, i+1))) != nil {
			wait.Changes = []string{"the file is gone"}
			return nil, wait
		}
		return nil, nil // nothing is in force that would go with it
	case err != nil:
		return broken(a, err.Error()), nil
	case b.broken != "":
		return broken(a, b.broken), nil
	case b.digest == a.Digest:
		return broken(a, ""), nil
	}
	// Judged against what was accepted: that it was in quarantine meanwhile
	// is no reason to let something looser in, nor to keep it out.
	old, now := slices.Clone(list), slices.Clone(list)
	old[i].Broken = ""
	now[i].Broken, now[i].Elements, now[i].Digest = "", b.elements, b.digest
	if ways := element.Loosens(session.Elements(old), session.Elements(now)); len(ways) > 0 {
		wait.Digest, wait.Changes = b.digest, ways
		return broken(a, ""), wait
	}
	return &now[i], nil
}

// broken returns the element with what is wrong on disk, nil if that is known.
func broken(a session.Active, why string) *session.Active {
	if a.Broken == why {
		return nil
	}
	a.Broken = why
	return &a
}

// take writes a set that changed on disk without loosening.
func (k *Keeper) take(ctx context.Context, s session.ActiveSet, list []session.Active) error {
	return k.opts.Store.Write(ctx, func(tx *store.Tx) error {
		sets, err := k.opts.Sessions.ActiveSets(tx)
		if err != nil {
			return err
		}
		for _, now := range sets {
			if now.Agent == s.Agent && now.Workspace == s.Workspace && !now.At.Equal(s.At) {
				return nil // it changed meanwhile; the next look judges it again
			}
		}
		if err := k.opts.Sessions.SetActive(tx, s.Agent, s.Workspace, list, "gatehouse"); err != nil {
			return err
		}
		return k.opts.Record(tx, Event{Name: "element.reload", By: "gatehouse", Channel: "file", Subject: s.Agent + " " + place(s.Workspace), Detail: summary(list)})
	})
}

// summary lists elements with what is wrong with them.
func summary(list []session.Active) map[string]string {
	out := make(map[string]string)
	for _, a := range list {
		out[a.ID()] = a.Broken
	}
	return out
}

// stage notes what waits, and says whether that is news.
func (k *Keeper) stage(staged []Staged) (news bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range staged {
		staged[i].Since = time.Now()
		j := slices.IndexFunc(k.staged, func(old Staged) bool { return old.same(&staged[i]) })
		if j >= 0 {
			staged[i].Since = k.staged[j].Since
			continue
		}
		news = true
		k.opts.Log.Warn("an element's file changed in a way that loosens; an approver must accept it",
			"agent", staged[i].Agent, "element", staged[i].Element, "changes", staged[i].Changes)
	}
	news = news || len(staged) != len(k.staged)
	k.staged = staged
	return news
}

// notStaged is what an approver hears who accepts something that is gone.
var notStaged = refused("this change is not staged (any more): look again")

// Accept takes a staged change as it is on disk, inside an approver's
// transaction.
func (k *Keeper) Accept(tx *store.Tx, want Staged, by string) error {
	i := slices.IndexFunc(k.Staged(), func(s Staged) bool { return s.same(&want) })
	if i < 0 {
		return notStaged
	}
	sets, err := k.opts.Sessions.ActiveSets(tx)
	if err != nil {
		return err
	}
	list := slices.Clone(session.ActiveIn(sets, want.Agent, want.Workspace))
	at := slices.IndexFunc(list, func(a session.Active) bool { return a.ID() == want.Element })
	if at < 0 {
		return notStaged
	}
	if want.Digest.IsZero() {
		list = slices.Delete(list, at, at+1)
		return k.opts.Sessions.SetActive(tx, want.Agent, want.Workspace, list, by)
	}
	b, err := k.load(list[at].Type, list[at].Name)
	if err != nil {
		return err
	}
	if b.digest != want.Digest {
		return notStaged
	}
	list[at].Elements, list[at].Digest, list[at].Broken = b.elements, b.digest, ""
	return k.opts.Sessions.SetActive(tx, want.Agent, want.Workspace, list, by)
}

// Release takes an element out of force for an agent, inside an approver's
// transaction.
func (k *Keeper) Release(tx *store.Tx, agent, workspace, id, by string) error {
	sets, err := k.opts.Sessions.ActiveSets(tx)
	if err != nil {
		return err
	}
	list := session.ActiveIn(sets, agent, workspace)
	i := slices.IndexFunc(list, func(a session.Active) bool { return a.ID() == id })
	if i < 0 {
		return refused("%s is not active for %s in %s", id, agent, place(workspace))
	}
	return k.opts.Sessions.SetActive(tx, agent, workspace, slices.Delete(slices.Clone(list), i, i+1), by)
}
