package session

import (
	"crypto/hmac"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/element"
	"github.com/seed-3ebc6b8a/gatehouse/internal/keyring"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// Active is an element that is in force for an agent.
type Active struct {
	Type string `json:"type"`
	Name string `json:"name"`
	// Digest is of the files it was taken from.
	Digest call.Digest `json:"digest"`
	// Elements is its policy as it was accepted, and that of its members.
	Elements []element.Element `json:"elements"`
	// Broken says why what is on disk now does not load, "" if it does. The
	// accepted policy stays in force, in quarantine.
	Broken string    `json:"broken,omitzero"`
	By     string    `json:"by"`
	At     time.Time `json:"at"`
}

// ID names the element as type/name.
func (a *Active) ID() string { return a.Type + "/" + a.Name }

// ActiveSet is what is in force for an agent in a workspace, and nowhere else;
// "" is where its sessions without a workspace are.
type ActiveSet struct {
	Agent     string    `json:"agent"`
	Workspace string    `json:"workspace,omitzero"`
	Active    []Active  `json:"active"`
	By        string    `json:"by"`
	At        time.Time `json:"at"`

	content, mac []byte
}

// Elements lists the policies of a list of active elements.
func Elements(list []Active) []element.Element {
	var out []element.Element
	for _, a := range list {
		for _, e := range a.Elements {
			if a.Broken != "" && e.Quarantine == "" {
				e.Quarantine = a.Broken
			}
			out = append(out, e)
		}
	}
	return out
}

func (g *Registry) activeRow(s *ActiveSet) *keyring.Row {
	return g.keys.Row("active elements").Text(s.Agent, s.Workspace).Bytes(s.content).Text(s.By).Time(s.At)
}

// ActiveSets lists what is in force for everyone, by agent and workspace. One
// that was edited is an error: what it forbade is not known any more.
func (g *Registry) ActiveSets(tx *store.Tx) ([]ActiveSet, error) {
	sets, err := store.All(tx, func(rows *store.Rows) (ActiveSet, error) {
		var s ActiveSet
		var at int64
		if err := rows.Scan(&s.Agent, &s.Workspace, &s.content, &s.By, &at, &s.mac); err != nil {
			return s, err
		}
		s.At = keyring.Time(at)
		if !g.activeRow(&s).Is(s.mac) {
			return s, fmt.Errorf("active elements of %s: %w", s.Agent, ErrForged)
		}
		return s, json.Unmarshal(s.content, &s.Active)
	}, `SELECT agent, workspace, content, set_by, set_at, mac FROM active_element`)
	slices.SortFunc(sets, func(a, b ActiveSet) int {
		return strings.Compare(a.Agent+"\x00"+a.Workspace, b.Agent+"\x00"+b.Workspace)
	})
	return sets, err
}

// ActiveIn returns what is in force for an agent in just this workspace.
func ActiveIn(sets []ActiveSet, agent, workspace string) []Active {
	for _, s := range sets {
		if s.Agent == AgentID(agent) && s.Workspace == workspace {
			return s.Active
		}
	}
	return nil
}

// SetActive puts a list of elements in force for an agent in a workspace.
func (g *Registry) SetActive(tx *store.Tx, agent, workspace string, list []Active, by string) error {
	if err := checkWords(agent, workspace, by); err != nil {
		return err
	}
	s, err := g.readSwitches(tx, tx.ForUpdate())
	if err != nil {
		return err
	}
	before, err := g.ActiveSets(tx)
	if err != nil {
		return err
	}
	if !g.listed(before, s.elements) {
		return fmt.Errorf("active elements: %w", ErrForged)
	}
	now, err := tx.Now()
	if err != nil {
		return err
	}
	set := ActiveSet{Agent: AgentID(agent), Workspace: workspace, By: by, At: now}
	if set.content, err = json.Marshal(list); err != nil {
		return err
	}
	_, err = tx.Exec(`INSERT INTO active_element (agent, workspace, content, set_by, set_at, mac) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (agent, workspace) DO UPDATE SET content = excluded.content, set_by = excluded.set_by,
		set_at = excluded.set_at, mac = excluded.mac`,
		set.Agent, workspace, set.content, by, keyring.Micros(now), g.activeRow(&set).Sum())
	if err != nil {
		return err
	}
	after, err := g.ActiveSets(tx)
	if err != nil {
		return err
	}
	s.elements = g.activeList(after)
	store.Notify(tx, Topic, "elements")
	return g.writeSwitches(tx, s)
}

// activeList signs which sets there are.
func (g *Registry) activeList(sets []ActiveSet) []byte {
	row := g.keys.Row("active lists")
	for i := range sets {
		row.Text(sets[i].Agent, sets[i].Workspace).Bytes(sets[i].mac)
	}
	return row.Sum()
}

// listed says whether the sets are those that the gate left. Before the first
// one there is no signature.
func (g *Registry) listed(sets []ActiveSet, signed []byte) bool {
	if len(signed) == 0 {
		return len(sets) == 0
	}
	return hmac.Equal(g.activeList(sets), signed)
}

// compiled returns the policy of what is in force for an agent in a
// workspace, from what was compiled before if nothing of it has changed.
func (g *Registry) compiled(sets []ActiveSet, agent, workspace string) *element.Set {
	var elements []element.Element
	var key []byte
	for i := range sets {
		s := &sets[i]
		if s.Agent == agent && s.Workspace == workspace && len(s.Active) > 0 {
			elements = append(elements, Elements(s.Active)...)
			key = append(key, s.mac...)
		}
	}
	if len(elements) == 0 {
		return nil
	}
	g.mu.Lock()
	set, ok := g.sets[string(key)]
	g.mu.Unlock()
	if ok {
		return set
	}
	set = element.Compile(elements)
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.sets) >= maxSeen {
		clear(g.sets)
	}
	g.sets[string(key)] = set
	return set
}
