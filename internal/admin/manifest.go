package admin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/manifest"
	"github.com/seed-3ebc6b8a/gatehouse/internal/policy"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
	"github.com/seed-3ebc6b8a/gatehouse/internal/upstream"
	"github.com/seed-3ebc6b8a/gatehouse/tool/declare"
)

// Manifest is the permission manifest of the running gate: what its tools are
// declared to touch, the MCP servers behind it with the definitions that were
// accepted, and what holds for all agents.
func (d *Desk) Manifest(ctx context.Context) (m *manifest.Manifest, err error) {
	snap := d.opts.Rules.Current()
	set := declaredIn(snap)
	err = d.opts.Store.Read(ctx, func(tx *store.Tx) error {
		servers, err := d.servers(tx)
		if err != nil {
			return err
		}
		m, err = manifest.Gate("gatehouse", set, snap.Hash.String(), servers...)
		return err
	})
	return m, publicError(err)
}

// everyone stands for all agents: what the policy says holds for each of them.
const everyone = "*"

// declaredIn puts what all files declare together. A tool that several of them
// declare is listed once for each.
func declaredIn(snap *policy.Snapshot) *declare.Set {
	set := &declare.Set{}
	seen := make(map[string]int)
	var names []string
	for _, f := range snap.Tools() {
		set.Inert = set.Inert || f.Set.Inert
		for _, t := range f.Set.Tools {
			if seen[t.Name]++; seen[t.Name] > 1 {
				t.Name = fmt.Sprintf("%s (%d)", t.Name, seen[t.Name])
			}
			set.Tools, names = append(set.Tools, t), append(names, t.Name)
		}
		set.Agents = append(set.Agents, f.Set.Agents...)
	}
	s := &snap.Settings
	set.Agents = append(set.Agents, declare.Agent{Name: everyone, Tools: names, Redact: slices.Clone(s.RedactFields), Budget: map[string]int64{
		"asksPerHour": int64(s.AsksPerHour), "pendingPerSession": int64(s.PendingPerSession), "pendingPerPrincipal": int64(s.PendingPerPrincipal), "maxSteps": int64(s.MaxSteps),
	}})
	return set
}

// servers are the MCP servers with their pins. Of variables and credentials only
// the names are told, and that there are some.
func (d *Desk) servers(tx *store.Tx) ([]manifest.Server, error) {
	list, err := d.opts.Upstreams.List(tx)
	if err != nil {
		return nil, err
	}
	pins, err := d.opts.Upstreams.Pins(tx, "")
	if err != nil {
		return nil, err
	}
	var out []manifest.Server
	for i := range list {
		e := &list[i]
		s := manifest.Server{Name: e.Name, Command: e.Spec.Command, URL: e.Spec.URL, Workspace: e.Spec.Dir + e.Spec.Workspace, Confined: e.Spec.Confined}
		for _, v := range e.Spec.Env {
			name, _, _ := strings.Cut(v, "=")
			s.Environment = append(s.Environment, name)
		}
		agents, err := d.opts.Upstreams.Agents(tx, e.Name)
		if err != nil {
			return nil, err
		}
		s.HasCredential = len(agents) > 0
		for j := range pins {
			if pins[j].Upstream == e.Name && pins[j].Accepted() {
				pinned(&s, &pins[j])
			}
		}
		out = append(out, s)
	}
	return out, nil
}

func pinned(s *manifest.Server, p *upstream.Pin) {
	sum := sha256.Sum256([]byte(p.Text))
	switch digest := hex.EncodeToString(sum[:]); p.Kind {
	case upstream.Tool:
		s.Tools = append(s.Tools, manifest.Pin{Name: p.Name, SHA256: digest})
	case upstream.Instructions:
		s.InstructionsSHA256 = digest
	}
}
