package element

import (
	"slices"
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/facts"
)

// index finds out quickly whether any pattern that objects may fit a call.
// Most calls meet none, and then no element is looked at. It may say yes where
// no pattern fits; never no where one does.
type index struct {
	named  map[string][]*pattern // by operation, for tools that hosts have
	globs  []*pattern            // whose tool is a glob, or no host's
	shell  bucket                // over commands
	places map[call.Capability]*bucket
}

// bucket is patterns by the first byte of what they start with.
type bucket struct {
	first map[byte][]*pattern
	rest  []*pattern // those that start with a wildcard
}

func (b *bucket) add(p *pattern) {
	if p.prefix == "" {
		b.rest = append(b.rest, p)
		return
	}
	if b.first == nil {
		b.first = make(map[byte][]*pattern)
	}
	b.first[p.prefix[0]] = append(b.first[p.prefix[0]], p)
}

// holds says whether a pattern of the bucket matches a text.
func (b *bucket) holds(text string) bool {
	if text != "" {
		for _, p := range b.first[text[0]] {
			if p.matches(text) {
				return true
			}
		}
	}
	for _, p := range b.rest {
		if p.matches(text) {
			return true
		}
	}
	return false
}

// newIndex sorts patterns by what they are about.
func newIndex(list []pattern) *index {
	x := &index{named: make(map[string][]*pattern), places: make(map[call.Capability]*bucket)}
	for i := range list {
		p := &list[i]
		for _, op := range p.ops {
			x.named[op] = append(x.named[op], p)
		}
		if !p.tool.Exact() || len(p.ops) == 0 {
			x.globs = append(x.globs, p)
		}
		if !p.hasArg {
			continue
		}
		if p.shell {
			x.shell.add(p)
		}
		for _, c := range p.about {
			if x.places[c] == nil {
				x.places[c] = new(bucket)
			}
			x.places[c].add(p)
		}
	}
	return x
}

// hit says whether a pattern may fit the call.
func (x *index) hit(c *call.Call, f *facts.Facts) bool {
	unread := f.Partial || len(f.Commands) == 0
	byName := func(p *pattern) bool { return p.any || p.shell && unread || !p.shell && len(p.about) == 0 }
	for _, p := range x.named[c.Operation] {
		if byName(p) {
			return true
		}
	}
	for _, p := range x.globs {
		if byName(p) && p.tool.Match(c.Operation) {
			return true
		}
	}
	for i, raw := range f.Commands {
		if x.shell.holds(raw) {
			return true
		}
		if i < len(f.Simple) {
			s := &f.Simple[i]
			if !s.Whole || s.Text != raw && x.shell.holds(s.Text) || s.Sub != "" && x.shell.holds(s.Sub) {
				return true
			}
		}
	}
	for i := range f.Needs {
		if b := x.places[f.Needs[i].Capability]; b != nil && b.reaches(&f.Needs[i], f.Workspace) {
			return true
		}
	}
	return false
}

// reaches says whether a pattern of the bucket may fit a path or host.
func (b *bucket) reaches(n *call.Need, workspace string) bool {
	if n.Scope == "" || n.Capability == call.NetEgress {
		return true // wide, or written in several ways: look at each
	}
	meets := func(p *pattern) bool { return p.need(n, workspace) != misses }
	if slices.ContainsFunc(b.rest, meets) {
		return true
	}
	rel, relative := strings.CutPrefix(n.Scope, "./")
	for _, text := range [3]string{n.Scope, rel, workspace} {
		if text != "" && (relative || text == n.Scope) && slices.ContainsFunc(b.first[text[0]], meets) {
			return true
		}
	}
	return false
}
