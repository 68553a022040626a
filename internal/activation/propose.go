package activation

import (
	"context"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/element"
	"github.com/seed-3ebc6b8a/gatehouse/internal/library"
	"github.com/seed-3ebc6b8a/gatehouse/internal/session"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// Proposal is what a native call would change, and what that rests on.
type Proposal struct {
	// Change is what it would do to the caller's active elements; nil if it is
	// no such call.
	Change *element.Change
	// World identifies the files that it rests on; zero if there are none.
	World call.Digest
	// Observed lists them, and where the element is active.
	Observed []call.Evidence
}

// EditParams are the parameters of edit_element.
type EditParams struct {
	Name         string         `json:"name" about:"the element's name"`
	Description  *string        `json:"description,omitzero" about:"a new description"`
	Instructions *string        `json:"instructions,omitzero" about:"new instructions"`
	Content      *string        `json:"content,omitzero" about:"a new text"`
	Metadata     map[string]any `json:"metadata,omitzero" about:"members of the metadata to set, gatekeeper among them; null takes one away"`
}

func (p *EditParams) draft() *element.Draft {
	return &element.Draft{Description: p.Description, Instructions: p.Instructions, Body: p.Content, Metadata: p.Metadata}
}

// Propose says what a normalised native call would change. What it cannot find
// out counts as loosening; that an element is not there is for the operation
// to say, which then changes nothing.
func (k *Keeper) Propose(ctx context.Context, c *call.Call) Proposal {
	name, _ := call.StringArg(c.Args, "name")
	switch c.Operation {
	case "activate_element":
		return k.proposeActivate(c, name)
	case "deactivate_element":
		return k.judged(ctx, c, name, func(sets []session.ActiveSet, workspace string) (*element.Change, error) {
			a := find(sets, c.Principal.Agent, workspace, c.ElementType, name)
			if a == nil {
				return &element.Change{}, nil
			}
			return &element.Change{Remove: []string{a.ID()}}, nil
		})
	case "edit_element":
		return k.judged(ctx, c, name, func(sets []session.ActiveSet, _ string) (*element.Change, error) {
			return k.proposeEdit(sets, c, name)
		})
	case "delete_element", "clear", "execute_agent":
		p := k.judged(ctx, c, name, nil)
		p.Change = nil
		return p
	case "set_config":
		return Proposal{Change: proposeMode(c)}
	}
	return Proposal{}
}

func unjudged(err error) *element.Change { return &element.Change{Unjudged: err.Error()} }

func (k *Keeper) proposeActivate(c *call.Call, name string) Proposal {
	b, err := k.load(c.ElementType, name)
	if err != nil {
		return Proposal{Change: &element.Change{}} // it will fail, and change nothing
	}
	p := Proposal{Change: &element.Change{Add: b.elements, Unjudged: b.found}, World: b.digest}
	for _, path := range b.paths {
		p.Observed = append(p.Observed, call.Evidence{Where: path, Text: "its policy would be in force"})
	}
	for _, e := range b.elements {
		p.Observed = append(p.Observed, policyEvidence(&e)...)
	}
	return p
}

// policyEvidence shows a person what an element says.
func policyEvidence(e *element.Element) []call.Evidence {
	text, err := json.Marshal(e)
	if err != nil {
		return nil
	}
	return []call.Evidence{{Where: e.ID(), Text: string(text)}}
}

// judged reads the file and what is active, and asks for the change.
func (k *Keeper) judged(ctx context.Context, c *call.Call, name string, change func([]session.ActiveSet, string) (*element.Change, error)) Proposal {
	var p Proposal
	elementType := c.ElementType
	if c.Operation == "execute_agent" {
		elementType = "agent"
	} else if c.Operation == "clear" {
		elementType = "memory"
	}
	if f, err := k.opts.Library.Get(elementType, name); err == nil {
		p.World = f.Digest
		p.Observed = append(p.Observed, call.Evidence{Where: f.Path, Text: "SHA-256 " + f.Digest.String()})
	}
	err := k.opts.Store.Read(ctx, func(tx *store.Tx) error {
		sets, workspace, err := k.sets(tx, c.Principal)
		if err != nil {
			return err
		}
		for _, s := range sets {
			if a := find([]session.ActiveSet{s}, s.Agent, s.Workspace, elementType, name); a != nil {
				p.Observed = append(p.Observed, call.Evidence{Where: "active", Text: fmt.Sprintf("for %s in %s", s.Agent, place(s.Workspace))})
			}
		}
		if change == nil {
			return nil
		}
		p.Change, err = change(sets, workspace)
		return err
	})
	if err != nil {
		p.Change = unjudged(err)
	}
	return p
}

func place(workspace string) string {
	if workspace == "" {
		return "sessions without a workspace"
	}
	return workspace
}

// proposeEdit judges an edit: for the caller by what is active for it, for
// everyone else the new policy must be no looser than the old one alone.
func (k *Keeper) proposeEdit(sets []session.ActiveSet, c *call.Call, name string) (*element.Change, error) {
	doc, err := k.edited(c.ElementType, name, c.Args)
	if err != nil || doc == nil {
		return &element.Change{}, nil // it will fail, and change nothing
	}
	now := doc.Element()
	for _, s := range sets {
		for _, a := range s.Active {
			before := session.Elements([]session.Active{a})
			if after := replaced(before, &now); element.Loosens(before, after) != nil {
				return &element.Change{Unjudged: fmt.Sprintf("%s is active for %s in %s, and would be looser", a.ID(), s.Agent, place(s.Workspace))}, nil
			}
		}
	}
	return &element.Change{}, nil
}

// replaced puts a policy in place of the older ones of the same element.
func replaced(list []element.Element, now *element.Element) []element.Element {
	out := make([]element.Element, len(list))
	for i, e := range list {
		if out[i] = e; library.ID(e.Type, e.Name) == library.ID(now.Type, now.Name) {
			next := *now
			next.Name, next.Of = e.Name, e.Of
			out[i] = next
		}
	}
	return out
}

// edited returns an element as an edit would leave it, nil if there is none.
func (k *Keeper) edited(elementType, name string, args jsontext.Value) (*element.Document, error) {
	var p EditParams
	if err := json.Unmarshal(args, &p); err != nil {
		return nil, err
	}
	f, err := k.opts.Library.Get(elementType, name)
	if err != nil {
		return nil, err
	}
	if f.Doc == nil {
		return nil, refused("%s cannot be edited here, because it cannot be read: %s", f.Path, f.Broken)
	}
	return f.Doc.Edit(p.draft(), time.Now())
}

// proposeMode judges set_config: a session may always be made to read only.
func proposeMode(c *call.Call) *element.Change {
	key, _ := call.StringArg(c.Args, "key")
	value, _ := call.StringArg(c.Args, "value")
	if key == ModeKey && value == string(session.Plan) {
		return &element.Change{}
	}
	return &element.Change{Unjudged: "it may let the session do more than it does now"}
}

// ModeKey is the setting of a session that set_config changes.
const ModeKey = "session.mode"
