package policy

import (
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/tool/declare"
)

// content is what a snapshot's hash covers: everything that has an effect and
// every word that a person or an agent reads, and not where it was written.
type content struct {
	Settings   Settings
	Profiles   []profileContent
	Rules      []Rule
	Operations []string
	// Home is what ~ stands for where a pattern uses it.
	Home string
	// Knowledge is the hash of the user's own files about programs.
	Knowledge string `json:",omitempty"`
	// Tools is what files declare about tools, one after the other.
	Tools []*declare.Set `json:",omitempty"`
}

type profileContent struct {
	Name     string
	Entries  map[string]call.Level
	Classes  map[string]call.Level
	Confines bool
	Refused  bool
}

// hash identifies the effective content of the snapshot.
func (s *Snapshot) hash() call.Digest {
	c := content{Settings: s.Settings}
	for i := range s.profiles {
		c.Profiles = append(c.Profiles, s.profiles[i].content())
	}
	for i := range s.rules {
		spec := s.rules[i].spec
		spec.Matches, spec.Misses = nil, nil
		c.Rules = append(c.Rules, spec)
	}
	for i := range s.operations {
		c.Operations = append(c.Operations, s.operations[i].rule)
	}
	c.Operations = slices.Compact(c.Operations)
	if s.usesHome() || s.toolsUseHome() {
		c.Home = s.home
	}
	if !s.knowledgeHash.IsZero() {
		c.Knowledge = s.knowledgeHash.String()
	}
	for _, f := range s.declared {
		c.Tools = append(c.Tools, f.Set)
	}
	h := sha256.New()
	// Maps are written in the order of their keys, so that the same content
	// gives the same bytes. Plain values and a hash give no error.
	_ = json.NewEncoder(h).Encode(c)
	var d call.Digest
	h.Sum(d[:0])
	return d
}

func (p *profile) content() profileContent {
	c := profileContent{
		Name: p.name, Confines: p.confines, Refused: p.refused != "",
		Entries: make(map[string]call.Level), Classes: make(map[string]call.Level),
	}
	for name, r := range p.plain {
		c.Entries[string(name)] = r.level
	}
	for _, entries := range p.scoped {
		for _, r := range entries {
			c.Entries[r.rule] = r.level
		}
	}
	for class, r := range p.classes {
		c.Classes[class] = r.level
	}
	return c
}

// usesHome says whether any pattern is about the home directory.
func (s *Snapshot) usesHome() bool {
	home := func(src string) bool { return strings.HasPrefix(src, "~") }
	for i := range s.rules {
		if home(s.rules[i].spec.Path) {
			return true
		}
	}
	for i := range s.profiles {
		for _, entries := range s.profiles[i].scoped {
			if slices.ContainsFunc(entries, func(r capRule) bool { return home(r.pattern.src) }) {
				return true
			}
		}
	}
	for _, def := range s.Settings.Capabilities {
		if slices.ContainsFunc(def.Paths, home) {
			return true
		}
	}
	return false
}
