package aql

import (
	"context"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/activation"
	"github.com/seed-3ebc6b8a/gatehouse/internal/element"
	"github.com/seed-3ebc6b8a/gatehouse/internal/session"
)

// Activation is the operations that change which elements are in force for
// the caller.
type Activation struct {
	Keeper *activation.Keeper
}

// Operations lists the group.
func (g *Activation) Operations() []Operation {
	return []Operation{
		Op("get_active_elements", g.active),
		reversible(Op("activate_element", g.activate)),
		reversible(Op("deactivate_element", g.deactivate)),
		reversible(Op("set_config", g.setConfig)),
	}
}

// InForce is an element that is active for the caller.
type InForce struct {
	Type string `json:"type"`
	Name string `json:"name"`
	// Workspace is where it is active, "" everywhere.
	Workspace string    `json:"workspace,omitzero"`
	Since     time.Time `json:"since"`
	By        string    `json:"by"`
	// Policies are its own and its members'.
	Policies   []element.Element `json:"policies,omitzero"`
	Quarantine string            `json:"quarantine,omitzero"`
}

// ActiveElements is the answer to get_active_elements.
type ActiveElements struct {
	Elements []InForce `json:"elements"`
	// Frozen names the elements that deny every confirmation: only reads go
	// ahead while one of them is active.
	Frozen []string `json:"frozen,omitzero"`
	// Staged are changes of files that wait for an approver.
	Staged []activation.Staged `json:"staged,omitzero"`
}

func (g *Activation) active(ctx context.Context, j *Job, _ None) (any, error) {
	if err := knownType(j.ElementType, true); err != nil {
		return nil, err
	}
	sets, err := g.Keeper.Active(ctx, j.Principal)
	if err != nil {
		return nil, err
	}
	out := ActiveElements{Elements: []InForce{}}
	var all []element.Element
	for _, s := range sets {
		all = append(all, session.Elements(s.Active)...)
		for i := range s.Active {
			if a := &s.Active[i]; j.ElementType == "" || j.ElementType == a.Type {
				out.Elements = append(out.Elements, show(a, s.Workspace))
			}
		}
	}
	out.Frozen = element.Compile(all).Frozen()
	for _, st := range g.Keeper.Staged() {
		if st.Agent == session.AgentID(j.Principal.Agent) {
			out.Staged = append(out.Staged, st)
		}
	}
	return out, nil
}

func show(a *session.Active, workspace string) InForce {
	out := InForce{Type: a.Type, Name: a.Name, Workspace: workspace, Since: a.At, By: a.By, Quarantine: a.Broken}
	for _, e := range a.Elements {
		if hasPolicy(&e) || e.Quarantine != "" {
			out.Policies = append(out.Policies, e)
		}
		if out.Quarantine == "" {
			out.Quarantine = e.Quarantine
		}
	}
	return out
}

func (g *Activation) activate(ctx context.Context, j *Job, p nameParams) (any, error) {
	if err := knownType(j.ElementType, false); err != nil {
		return nil, err
	}
	a, err := g.Keeper.Activate(ctx, order(j), j.ElementType, p.Name)
	if err != nil {
		return nil, err
	}
	return show(a, ""), nil
}

func (g *Activation) deactivate(ctx context.Context, j *Job, p nameParams) (any, error) {
	if err := knownType(j.ElementType, false); err != nil {
		return nil, err
	}
	a, err := g.Keeper.Deactivate(ctx, order(j), j.ElementType, p.Name)
	if err != nil {
		return nil, err
	}
	return show(a, ""), nil
}

type configParams struct {
	Key   string `json:"key" about:"session.mode"`
	Value string `json:"value" about:"plan (only reads go ahead) or enforce"`
}

// Config is a setting that was changed.
type Config struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

func (g *Activation) setConfig(ctx context.Context, j *Job, p configParams) (any, error) {
	if p.Key != activation.ModeKey {
		return nil, refused("%v; the rest is in the operator's policy file, which people change", unknown("setting of yours", p.Key, []string{activation.ModeKey}))
	}
	mode := session.Mode(p.Value)
	if mode != session.Plan && mode != session.Enforce {
		return nil, unknown("mode", p.Value, []string{string(session.Plan), string(session.Enforce)})
	}
	return Config(p), g.Keeper.SetMode(ctx, order(j), mode)
}
