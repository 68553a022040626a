package activation

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/element"
	"github.com/seed-3ebc6b8a/gatehouse/internal/keyring"
	"github.com/seed-3ebc6b8a/gatehouse/internal/library"
	"github.com/seed-3ebc6b8a/gatehouse/internal/session"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// Options is what a keeper is made of.
type Options struct {
	Store    *store.Store
	Sessions *session.Registry
	Library  *library.Library
	Keys     *keyring.Keyring
	// Record appends what was done to the log, inside its transaction.
	Record func(tx *store.Tx, e Event) error
	Log    *slog.Logger
}

// Event is a change of what is in force, for the log.
type Event struct {
	Name    string // element.activate …
	By      string
	Channel string
	Subject string
	Detail  any
}

// Keeper keeps which elements are in force. It is safe for concurrent use.
type Keeper struct {
	opts Options

	mu     sync.Mutex
	staged []Staged
}

// New makes a keeper.
func New(opts Options) *Keeper { return &Keeper{opts: opts} }

// RefusedError says why an operation was not performed.
type RefusedError struct{ Reason string }

// Error returns the reason.
func (e *RefusedError) Error() string { return e.Reason }

// Public returns the reason, which may be shown.
func (e *RefusedError) Public() string { return e.Reason }

func refused(format string, args ...any) error {
	return &RefusedError{Reason: fmt.Sprintf(format, args...)}
}

// bundle is an element with all that it brings, as it is on disk.
type bundle struct {
	file     *library.File
	elements []element.Element
	digest   call.Digest
	paths    []string
	broken   string
	found    string // by content validation
}

// maxMembers bounds an ensemble, with the ensembles inside it.
const maxMembers = 50

// load reads an element and its members.
func (k *Keeper) load(elementType, name string) (*bundle, error) {
	f, err := k.opts.Library.Get(elementType, name)
	if err != nil {
		return nil, err
	}
	return k.expand(f)
}

// expand adds the members of an ensemble. A member that is not there is an
// error: what it forbids would be left out.
func (k *Keeper) expand(f *library.File) (*bundle, error) {
	b := &bundle{file: f}
	h := sha256.New()
	queue, seen := []*library.File{f}, []string{f.ID()}
	for len(queue) > 0 {
		next := queue[0]
		queue = queue[1:]
		b.paths = append(b.paths, next.Path)
		fmt.Fprintf(h, "%s\x00%s\x00", next.ID(), next.Digest)
		e := element.Element{Type: next.Type, Name: next.Name, Quarantine: next.Broken}
		if next.Doc != nil {
			e = next.Doc.Element()
		}
		if e.Quarantine != "" && b.broken == "" {
			b.broken = next.Path + ": " + e.Quarantine
		}
		if next != f {
			e.Of = f.Type + "/" + f.Name
		}
		b.elements = append(b.elements, e)
		if next.Doc == nil {
			continue
		}
		if next.Doc.Suspicious != "" {
			b.found = next.Path + " holds something that a person must look at (" + next.Doc.Suspicious + ")"
		}
		for _, m := range next.Doc.Members() {
			id := library.ID(call.SingularType(m.Type), m.Name)
			if slices.Contains(seen, id) {
				continue
			}
			if seen = append(seen, id); len(seen) > maxMembers {
				return nil, refused("%s brings more than %d elements", f.Name, maxMembers)
			}
			mf, err := k.opts.Library.Get(call.SingularType(m.Type), m.Name)
			if err != nil {
				return nil, refused("%s cannot be used: a member is missing: %v", f.Name, err)
			}
			queue = append(queue, mf)
		}
	}
	h.Sum(b.digest[:0])
	return b, nil
}

// sets reads what is in force for everyone, and the caller's workspace.
func (k *Keeper) sets(tx *store.Tx, p call.Principal) (sets []session.ActiveSet, workspace string, err error) {
	s, err := k.opts.Sessions.Get(tx, p.Session)
	if err != nil {
		return nil, "", err
	}
	sets, err = k.opts.Sessions.ActiveSets(tx)
	return sets, s.Workspace, err
}

// inForce lists the elements that count for an agent in a workspace.
func inForce(sets []session.ActiveSet, agent, workspace string) []element.Element {
	return session.Elements(session.ActiveIn(sets, agent, workspace))
}

// find returns an element that is active for an agent in a workspace, nil if
// it is not.
func find(sets []session.ActiveSet, agent, workspace, elementType, name string) *session.Active {
	list := session.ActiveIn(sets, agent, workspace)
	for i := range list {
		if library.ID(list[i].Type, list[i].Name) == library.ID(elementType, name) {
			return &list[i]
		}
	}
	return nil
}

// Active tells what is in force for a principal.
func (k *Keeper) Active(ctx context.Context, p call.Principal) (out []session.ActiveSet, err error) {
	err = k.opts.Store.Read(ctx, func(tx *store.Tx) error {
		sets, workspace, err := k.sets(tx, p)
		for _, s := range sets {
			if s.Agent == session.AgentID(p.Agent) && s.Workspace == workspace {
				out = append(out, s)
			}
		}
		return err
	})
	return out, err
}

// InForce lists the policies that count for a principal.
func (k *Keeper) InForce(ctx context.Context, p call.Principal) ([]element.Element, error) {
	sets, err := k.Active(ctx, p)
	var out []element.Element
	for _, s := range sets {
		out = append(out, session.Elements(s.Active)...)
	}
	return out, err
}

// All tells what is in force for everyone.
func (k *Keeper) All(ctx context.Context) (out []session.ActiveSet, err error) {
	err = k.opts.Store.Read(ctx, func(tx *store.Tx) (err error) {
		out, err = k.opts.Sessions.ActiveSets(tx)
		return err
	})
	return out, err
}
