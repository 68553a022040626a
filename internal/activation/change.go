package activation

import (
	"context"
	"errors"
	"slices"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/element"
	"github.com/seed-3ebc6b8a/gatehouse/internal/library"
	"github.com/seed-3ebc6b8a/gatehouse/internal/session"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// Order is a call that changes what is in force and was let through.
type Order struct {
	Call *call.Call
	// Approved says that a person approved this very call; else it was let
	// through because it loosens nothing, which must still hold.
	Approved bool
	// World is what the decision rested on.
	World call.Digest
	// Trail keeps what is changed so that it can be taken back; nil if it never
	// will be.
	Trail *Trail
}

// errMoved is the answer where the files are not those that were decided on.
var errMoved = refused("the element changed while the call was decided; nothing was done, you may try again")

// still checks that an order rests on the files as they are now.
func still(o *Order, files call.Digest) error {
	if files != o.World {
		return errMoved
	}
	return nil
}

// free refuses a change that was let through as loosening nothing and would
// loosen something now.
func free(o *Order, before, after []element.Element) error {
	if o.Approved {
		return nil
	}
	if ways := element.Loosens(before, after); len(ways) > 0 {
		return refused("what is active changed while the call was decided, and now it would loosen: %s; nothing was done, you may try again", ways[0])
	}
	return nil
}

// Activate puts an element in force for the caller, in its workspace.
func (k *Keeper) Activate(ctx context.Context, o *Order, elementType, name string) (*session.Active, error) {
	b, err := k.load(elementType, name)
	if err != nil {
		return nil, err
	}
	if err := still(o, b.digest); err != nil {
		return nil, err
	}
	if b.found != "" && !o.Approved {
		return nil, refused("%s", b.found)
	}
	a := &session.Active{Type: b.file.Type, Name: b.file.Name, Digest: b.digest, Elements: b.elements, By: o.Call.Principal.Agent}
	err = k.opts.Store.Write(ctx, func(tx *store.Tx) error {
		sets, workspace, err := k.sets(tx, o.Call.Principal)
		if err != nil {
			return err
		}
		agent := o.Call.Principal.Agent
		before := inForce(sets, agent, workspace)
		if err := free(o, before, element.Apply(before, &element.Change{Add: b.elements})); err != nil {
			return err
		}
		if a.At, err = tx.Now(); err != nil {
			return err
		}
		list := slices.Clone(session.ActiveIn(sets, agent, workspace))
		var was *session.Active
		if at := slices.IndexFunc(list, func(old session.Active) bool { return library.ID(old.Type, old.Name) == b.file.ID() }); at >= 0 {
			old := list[at]
			was, list = &old, slices.Delete(list, at, at+1)
		}
		if len(list) >= maxActive {
			return refused("%d elements are active already; deactivate one first", maxActive)
		}
		if err := k.opts.Sessions.SetActive(tx, agent, workspace, append(list, *a), agent); err != nil {
			return err
		}
		if err := o.Trail.active(tx, agent, workspace, was, a); err != nil {
			return err
		}
		return k.record(tx, o, "element.activate", a.ID(), a.Digest)
	})
	return a, err
}

// maxActive bounds what is active for one agent in one workspace.
const maxActive = 200

// Deactivate takes an element out of force for the caller.
func (k *Keeper) Deactivate(ctx context.Context, o *Order, elementType, name string) (*session.Active, error) {
	var gone *session.Active
	err := k.opts.Store.Write(ctx, func(tx *store.Tx) error {
		sets, workspace, err := k.sets(tx, o.Call.Principal)
		if err != nil {
			return err
		}
		agent := o.Call.Principal.Agent
		a := find(sets, agent, workspace, elementType, name)
		if a == nil {
			return refused("no %s %q is active for you here", elementType, name)
		}
		gone = a
		before := inForce(sets, agent, workspace)
		if err := free(o, before, element.Apply(before, &element.Change{Remove: []string{a.ID()}})); err != nil {
			return err
		}
		if err := k.remove(tx, agent, workspace, session.ActiveIn(sets, agent, workspace), a, agent); err != nil {
			return err
		}
		if err := o.Trail.active(tx, agent, workspace, a, nil); err != nil {
			return err
		}
		return k.record(tx, o, "element.deactivate", a.ID(), a.Digest)
	})
	return gone, err
}

// remove takes one element off a list.
func (k *Keeper) remove(tx *store.Tx, agent, workspace string, list []session.Active, a *session.Active, by string) error {
	rest := slices.DeleteFunc(slices.Clone(list), func(old session.Active) bool { return old.ID() == a.ID() })
	return k.opts.Sessions.SetActive(tx, agent, workspace, rest, by)
}

// Edit changes an element's file. Where the element is active its new policy
// is in force at once: a person approved it, or it loosens nothing.
func (k *Keeper) Edit(ctx context.Context, o *Order) (*library.File, error) {
	name, _ := call.StringArg(o.Call.Args, "name")
	f, err := k.opts.Library.Get(o.Call.ElementType, name)
	if err != nil {
		return nil, err
	}
	if err := still(o, f.Digest); err != nil {
		return nil, err
	}
	doc, err := k.edited(o.Call.ElementType, name, o.Call.Args)
	if err != nil {
		return nil, refused("%v", err)
	}
	if e := doc.Element(); e.Quarantine != "" {
		return nil, refused("the edit is refused, it would not load: %s", e.Quarantine)
	}
	return k.put(ctx, o, f, doc)
}

// put replaces a file and takes its policy into force wherever it is active,
// in one transaction that fails if the file cannot be written.
func (k *Keeper) put(ctx context.Context, o *Order, f *library.File, doc *element.Document) (*library.File, error) {
	now := doc.Element()
	if err := o.Trail.Writing(ctx, f.Path, doc); err != nil {
		return nil, err
	}
	err := k.opts.Store.Write(ctx, func(tx *store.Tx) error {
		sets, err := k.opts.Sessions.ActiveSets(tx)
		if err != nil {
			return err
		}
		var changed []session.ActiveSet
		for _, s := range sets {
			list, touched := slices.Clone(s.Active), false
			for i := range list {
				after := replaced(list[i].Elements, &now)
				if !holds(list[i].Elements, f) {
					continue
				}
				if err := free(o, session.Elements(list[i:i+1]), after); err != nil {
					return err
				}
				list[i].Elements, touched = after, true
			}
			if touched {
				s.Active = list
				changed = append(changed, s)
			}
		}
		if err := k.opts.Library.Replace(f, doc); err != nil {
			return err
		}
		return k.refresh(tx, changed, o)
	})
	if err != nil {
		return nil, err
	}
	return k.opts.Library.Get(f.Type, f.Name)
}

// holds says whether an element, or a member of it, comes from a file.
func holds(list []element.Element, f *library.File) bool {
	return slices.ContainsFunc(list, func(e element.Element) bool { return library.ID(e.Type, e.Name) == f.ID() })
}

// refresh writes changed sets with the digests of the files as they are now.
func (k *Keeper) refresh(tx *store.Tx, sets []session.ActiveSet, o *Order) error {
	before, err := k.opts.Sessions.ActiveSets(tx)
	if err != nil {
		return err
	}
	for _, s := range sets {
		for i := range s.Active {
			if b, err := k.load(s.Active[i].Type, s.Active[i].Name); err == nil {
				s.Active[i].Digest = b.digest
			}
			was := find(before, s.Agent, s.Workspace, s.Active[i].Type, s.Active[i].Name)
			if err := o.Trail.active(tx, s.Agent, s.Workspace, was, &s.Active[i]); err != nil {
				return err
			}
		}
		if err := k.opts.Sessions.SetActive(tx, s.Agent, s.Workspace, s.Active, o.Call.Principal.Agent); err != nil {
			return err
		}
	}
	name, _ := call.StringArg(o.Call.Args, "name")
	return k.record(tx, o, "element.edit", o.Call.ElementType+"/"+name, nil)
}

// Delete removes an element's file, and takes it out of force wherever it is
// active. It is pinned: a person was shown where that is.
func (k *Keeper) Delete(ctx context.Context, o *Order, elementType, name string) (*library.File, error) {
	f, err := k.opts.Library.Get(elementType, name)
	if err != nil {
		return nil, err
	}
	if !o.Approved {
		return nil, errors.New("an element is deleted with a person's approval only")
	}
	if err := still(o, f.Digest); err != nil {
		return nil, err
	}
	return f, k.opts.Store.Write(ctx, func(tx *store.Tx) error {
		sets, err := k.opts.Sessions.ActiveSets(tx)
		if err != nil {
			return err
		}
		for _, s := range sets {
			if a := find([]session.ActiveSet{s}, s.Agent, s.Workspace, f.Type, f.Name); a != nil {
				if err := k.remove(tx, s.Agent, s.Workspace, s.Active, a, o.Call.Principal.Agent); err != nil {
					return err
				}
			}
		}
		if err := k.opts.Library.Remove(f); err != nil {
			return err
		}
		return k.record(tx, o, "element.delete", f.ID(), f.Digest)
	})
}

// SetMode changes how the caller's session is treated.
func (k *Keeper) SetMode(ctx context.Context, o *Order, mode session.Mode) error {
	return k.opts.Store.Write(ctx, func(tx *store.Tx) error {
		s, err := k.opts.Sessions.Get(tx, o.Call.Principal.Session)
		if err != nil {
			return err
		}
		if !o.Approved && mode != session.Plan && mode != s.Mode {
			return refused("only a person lets a session out of %s mode", s.Mode)
		}
		if err := k.opts.Sessions.SetMode(tx, s.ID, mode); err != nil {
			return err
		}
		if err := o.Trail.mode(tx, s.ID, s.Mode, mode); err != nil {
			return err
		}
		return k.record(tx, o, "session.mode", s.ID, mode)
	})
}

func (k *Keeper) record(tx *store.Tx, o *Order, name, subject string, detail any) error {
	return k.opts.Record(tx, Event{Name: name, By: o.Call.Principal.Agent, Channel: o.Call.Surface, Subject: subject, Detail: detail})
}
