package upstream

import (
	"cmp"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/keyring"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// The kinds of definition.
const (
	Tool         = "tool"
	Instructions = "instructions"
	// Prompt, Resource and Template are the words of what a server offers besides
	// tools. Servers list new ones all the time, so each is pinned when it is
	// first seen; one whose words change afterwards waits like a tool.
	Prompt   = "prompt"
	Resource = "resource"
	Template = "resource template"
	// Surveyed marks that the tools were seen, all of them, even if there were none.
	Surveyed = "surveyed"
	// Origin is what serves: the command of a server that is wrapped in place.
	Origin = "origin"
)

// Definition is something a server says about itself.
type Definition struct {
	Kind string `json:"kind"`
	Name string `json:"name,omitzero"`
	// Text is the definition in canonical form.
	Text string `json:"text"`
	// Objection is what content validation has against it.
	Objection string `json:"objection,omitzero"`
}

// Pin is a definition as it is kept.
type Pin struct {
	Upstream string `json:"upstream"`
	Kind     string `json:"kind"`
	Name     string `json:"name,omitzero"`
	// State is pinned, or waiting for a person.
	State  string    `json:"state"`
	Text   string    `json:"text"`
	Reason string    `json:"reason,omitzero"`
	Seen   time.Time `json:"seen"`
	// By is who accepted it; "first sight" if nobody had to.
	By string `json:"by,omitzero"`
	// Was is the definition that a waiting one would take the place of.
	Was string `json:"was,omitzero"`
}

// Accepted says that the definition holds: it was seen first, or accepted.
func (p *Pin) Accepted() bool { return p.State == pinned }

const (
	pinned  = "pinned"
	waiting = "waiting"

	firstSight = "first sight"
)

// Offer is a prompt, a resource or a template.
type Offer struct{ Kind, Name string }

var offers = map[string]bool{Prompt: true, Resource: true, Template: true}

// maxOffers bounds what a server can have the gate keep of it.
const maxOffers = 4096

// Withheld lists what of a server's prompts, resources and templates waits to be
// accepted, each with the reason.
func (g *Registry) Withheld(tx *store.Tx, upstream string) (map[Offer]string, error) {
	pins, err := g.Pins(tx, upstream)
	out := map[Offer]string{}
	for _, p := range pins {
		if offers[p.Kind] && p.State == waiting {
			out[Offer{p.Kind, p.Name}] = p.Reason
		}
	}
	return out, err
}

// Comparison says what of an upstream's definitions is as it was pinned.
type Comparison struct {
	// Good are the tools that are, each with the digest of its definition.
	Good map[string]string
	// Hidden says of the others why they are hidden.
	Hidden map[string]string
	// Instructions says that the instructions are as they were pinned.
	Instructions bool
	// Withheld says which prompts, resources and templates are hidden, and why.
	Withheld map[Offer]string
	// News are the definitions that were not seen before.
	News []Pin
}

// Compare holds what an upstream says about itself against its pins. With
// write set it pins what is seen first and notes what waits; without it only
// compares, and News says what writing would change.
func (g *Registry) Compare(tx *store.Tx, upstream string, seen []Definition, write bool) (*Comparison, error) {
	pins, err := g.Pins(tx, upstream)
	if err != nil {
		return nil, err
	}
	now, err := tx.Now()
	if err != nil {
		return nil, err
	}
	out := &Comparison{Good: map[string]string{}, Hidden: map[string]string{}, Withheld: map[Offer]string{}, Instructions: true}
	first := map[string]bool{
		Tool: find(pins, Surveyed, "", pinned) == nil, Surveyed: true, Origin: true,
		Instructions: find(pins, Instructions, "", pinned) == nil,
		Prompt:       true, Resource: true, Template: true,
	}
	room := maxOffers - len(pins)
	for _, d := range seen {
		p := Pin{Upstream: upstream, Kind: d.Kind, Name: d.Name, State: waiting, Text: d.Text, Seen: now}
		old := find(pins, d.Kind, d.Name, pinned)
		switch {
		case old != nil && old.Text == d.Text:
			out.note(&d, "")
			continue
		case old != nil:
			p.Reason = "it changed since it was pinned"
		case d.Objection != "":
			p.Reason = "its words are suspicious: " + d.Objection
		case offers[d.Kind] && room <= 0:
			out.note(&d, "") // it was looked at, and more are not kept
			continue
		case first[d.Kind]:
			p.State, p.By = pinned, firstSight
			room--
		default:
			p.Reason = "it is new"
		}
		if p.State == waiting && d.Objection != "" && old != nil {
			p.Reason += "; its words are suspicious: " + d.Objection
		}
		out.note(&d, p.Reason)
		if was := find(pins, d.Kind, d.Name, waiting); p.State == waiting && was != nil && was.Text == d.Text {
			continue // it waits already
		}
		out.News = append(out.News, p)
		if write {
			if err := g.put(tx, &p); err != nil {
				return nil, err
			}
		}
	}
	if write && len(out.News) > 0 {
		store.Notify(tx, Topic, upstream)
	}
	return out, nil
}

func (c *Comparison) note(d *Definition, reason string) {
	switch {
	case d.Kind == Tool && reason == "":
		sum := sha256.Sum256([]byte(d.Text))
		c.Good[d.Name] = hex.EncodeToString(sum[:])
	case d.Kind == Tool:
		c.Hidden[d.Name] = reason
	case d.Kind == Instructions:
		c.Instructions = reason == ""
	case offers[d.Kind] && reason != "":
		c.Withheld[Offer{d.Kind, d.Name}] = reason
	case d.Kind == Origin && reason != "":
		c.Hidden[""] = reason // nothing of another server is good
	}
}

func find(pins []Pin, kind, name, state string) *Pin {
	for i := range pins {
		if p := &pins[i]; p.Kind == kind && p.Name == name && p.State == state {
			return p
		}
	}
	return nil
}

func (g *Registry) pinRow(p *Pin) *keyring.Row {
	return g.keys.Row("upstream-pin").Text(p.Upstream, p.Kind, p.Name, p.State, p.Text, p.Reason).Time(p.Seen).Text(p.By)
}

func (g *Registry) put(tx *store.Tx, p *Pin) error {
	_, err := tx.Exec(`INSERT INTO upstream_pin (upstream, kind, name, state, definition, reason, seen, accepted_by, mac)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (upstream, kind, name, state) DO UPDATE SET
		definition = excluded.definition, reason = excluded.reason, seen = excluded.seen, accepted_by = excluded.accepted_by, mac = excluded.mac`,
		p.Upstream, p.Kind, p.Name, p.State, []byte(p.Text), p.Reason, keyring.Micros(p.Seen), p.By, g.pinRow(p).Sum())
	return err
}

// Pins returns the pins of an upstream, or of all if it is "".
func (g *Registry) Pins(tx *store.Tx, upstream string) ([]Pin, error) {
	rows, err := tx.Query(`SELECT upstream, kind, name, state, definition, reason, seen, accepted_by, mac FROM upstream_pin
		WHERE $1 = '' OR upstream = $1 ORDER BY upstream, kind, name, state`, upstream)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []Pin
	for rows.Next() {
		var p Pin
		var text, mac []byte
		var seen int64
		if err := rows.Scan(&p.Upstream, &p.Kind, &p.Name, &p.State, &text, &p.Reason, &seen, &p.By, &mac); err != nil {
			return nil, err
		}
		p.Text, p.Seen = string(text), keyring.Time(seen)
		if !g.pinRow(&p).Is(mac) {
			return nil, fmt.Errorf("pin of %s: %w", p.Upstream, ErrForged)
		}
		out = append(out, p)
	}
	return out, rows.Err()
}

// Waiting returns what waits for a person, each with what it would replace.
func (g *Registry) Waiting(tx *store.Tx, upstream string) ([]Pin, error) {
	all, err := g.Pins(tx, upstream)
	if err != nil {
		return nil, err
	}
	var out []Pin
	for _, p := range all {
		if p.State != waiting {
			continue
		}
		i := slices.IndexFunc(all, func(o Pin) bool {
			return o.Upstream == p.Upstream && o.Kind == p.Kind && o.Name == p.Name && o.State == pinned
		})
		if i >= 0 {
			p.Was = all[i].Text
		}
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b Pin) int {
		return cmp.Or(strings.Compare(a.Upstream, b.Upstream), strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name))
	})
	return out, nil
}

// Digest identifies what waits, so that an answer is about what was shown.
func Digest(keys *keyring.Keyring, list []Pin) string {
	row := keys.Row("upstream-waiting")
	for _, p := range list {
		row.Text(p.Upstream, p.Kind, p.Name, p.Text, p.Was)
	}
	return fmt.Sprintf("%x", row.Sum()[:16])
}

// Accept pins what waits of an upstream: all of it, or one tool. The digest is
// of the list that the person was shown.
func (g *Registry) Accept(tx *store.Tx, upstream, tool, digest, by string) (int, error) {
	list, err := g.Waiting(tx, upstream)
	if err != nil {
		return 0, err
	}
	if Digest(g.keys, list) != digest {
		return 0, &Error{text: "what waits has changed since it was shown: look at it again", status: 409}
	}
	accepted := 0
	for _, p := range list {
		if tool != "" && (p.Kind != Tool || p.Name != tool) {
			continue
		}
		if _, err := tx.Exec(`DELETE FROM upstream_pin WHERE upstream = $1 AND kind = $2 AND name = $3`, p.Upstream, p.Kind, p.Name); err != nil {
			return 0, err
		}
		p.State, p.By, p.Reason, p.Was = pinned, by, "", ""
		if err := g.put(tx, &p); err != nil {
			return 0, err
		}
		accepted++
	}
	if accepted == 0 {
		return 0, ErrNotFound
	}
	store.Notify(tx, Topic, upstream)
	return accepted, nil
}

// Digest identifies what waits of an upstream.
func (g *Registry) Digest(list []Pin) string { return Digest(g.keys, list) }

// SetCredential keeps an agent's credential for an upstream, sealed.
func (g *Registry) SetCredential(tx *store.Tx, upstream, agent, secret, by string) error {
	if _, err := g.Get(tx, upstream); err != nil {
		return err
	}
	if strings.TrimSpace(secret) == "" || strings.ContainsAny(secret, "\r\n\x00") {
		return invalid("a credential is one line of text")
	}
	now, err := tx.Now()
	if err != nil {
		return err
	}
	sealed, err := g.keys.Seal(credentialPurpose(upstream, agent), []byte(secret))
	if err != nil {
		return err
	}
	_, err = tx.Exec(`INSERT INTO upstream_credential (upstream, agent, sealed, set_at, set_by) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (upstream, agent) DO UPDATE SET sealed = excluded.sealed, set_at = excluded.set_at, set_by = excluded.set_by`,
		upstream, agent, sealed, keyring.Micros(now), by)
	store.Notify(tx, Topic, upstream)
	return err
}

// ClearCredential forgets an agent's credential and says whether there was one.
func (g *Registry) ClearCredential(tx *store.Tx, upstream, agent string) (bool, error) {
	n, err := tx.Exec(`DELETE FROM upstream_credential WHERE upstream = $1 AND agent = $2`, upstream, agent)
	store.Notify(tx, Topic, upstream)
	return n > 0, err
}

// Credential opens the credential of an agent for an upstream: its own, else
// the one for all, else none.
func (g *Registry) Credential(tx *store.Tx, upstream, agent string) (string, error) {
	var of string
	var sealed []byte
	err := tx.QueryRow(`SELECT agent, sealed FROM upstream_credential WHERE upstream = $1 AND agent IN ($2, '') ORDER BY agent DESC LIMIT 1`,
		upstream, agent).Scan(&of, &sealed)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	plain, err := g.keys.Open(credentialPurpose(upstream, of), sealed)
	return string(plain), err
}

// Agents lists the agents that have a credential for an upstream.
func (g *Registry) Agents(tx *store.Tx, upstream string) (out []string, err error) {
	rows, err := tx.Query(`SELECT agent FROM upstream_credential WHERE upstream = $1 ORDER BY agent`, upstream)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var a string
		if err := rows.Scan(&a); err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	return out, rows.Err()
}

func credentialPurpose(upstream, agent string) string {
	return "upstream credential\x00" + upstream + "\x00" + agent
}
