package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/policies"
)

// shipped reads the built-in profiles, once.
var shipped = sync.OnceValues(func() ([]*File, error) {
	var files []*File
	for _, f := range policies.Profiles() {
		parsed, err := parse(f.Name, f.Data, true)
		if err != nil {
			return nil, err
		}
		files = append(files, parsed)
	}
	return files, nil
})

// library finds profiles by name for a file: its own and those of the same
// layer, then those of the layers above, then the built-in ones. A layer
// never sees a profile of a layer below it, so that a name means what it
// meant to whoever wrote it.
type library struct {
	own      map[Scope]map[string]*File
	built    []*File
	home     string
	problems Problems
}

func newLibrary(layers []Layer, home string) (*library, error) {
	built, err := shipped()
	if err != nil {
		return nil, err
	}
	lib := &library{own: make(map[Scope]map[string]*File), built: built, home: home}
	for _, l := range layers {
		if lib.own[l.Scope] == nil {
			lib.own[l.Scope] = make(map[string]*File)
		}
		for name := range l.File.Profiles {
			if other := lib.own[l.Scope][name]; other != nil && other != l.File {
				p := l.File.problem(join("profiles", name), "keep one of them",
					"the profile %s is defined twice in the same layer (the other is at %s)", name, other.source(join("profiles", name)))
				lib.problems = append(lib.problems, p)
				continue
			}
			lib.own[l.Scope][name] = l.File
		}
	}
	return lib, nil
}

// find returns the file that defines a profile, as seen from a scope.
func (lib *library) find(name string, from Scope) (*File, Scope, bool) {
	for scope := from; scope <= ScopeMachine; scope++ {
		if f := lib.own[scope][name]; f != nil {
			return f, scope, true
		}
	}
	for _, f := range lib.built {
		if _, ok := f.Profiles[name]; ok {
			return f, ScopeMachine, true
		}
	}
	return nil, 0, false
}

// names lists the profiles that a scope can use.
func (lib *library) names(from Scope) []string {
	names := slices.Clone(builtinNames)
	for scope := from; scope <= ScopeMachine; scope++ {
		names = append(names, slices.Sorted(maps.Keys(lib.own[scope]))...)
	}
	return names
}

// link is one profile on the way from a profile to the one it starts from.
type link struct {
	name  string
	file  *File
	scope Scope
}

// chain returns a profile and what it is based on, the deepest base first.
func (lib *library) chain(name string, user *File, path string, scope Scope) ([]link, bool) {
	var links []link
	for name != "" {
		f, found, ok := lib.find(name, scope)
		if !ok {
			lib.problems = append(lib.problems, user.problem(path, orList(name, lib.names(scope)), "unknown profile %q", name))
			return nil, false
		}
		l := link{name: name, file: f, scope: found}
		if slices.Contains(links, l) {
			lib.problems = append(lib.problems, user.problem(path, "", "the profile %q is based on itself", name))
			return nil, false
		}
		links = append(links, l)
		user, path, scope = f, join("profiles", name, "base"), found
		name = f.Profiles[name].Base
	}
	slices.Reverse(links)
	return links, true
}

// compile makes the profile that a file names. The definitions of further
// capabilities give the words for them.
func (lib *library) compile(name string, user *File, scope Scope, defs map[call.Capability]CapabilityDef) (profile, bool) {
	links, ok := lib.chain(name, user, "profile", scope)
	if !ok {
		return profile{}, false
	}
	p := profile{
		name: name, source: user.source("profile"),
		plain: make(map[call.Capability]capRule), scoped: make(map[call.Capability][]capRule), classes: make(map[string]classRule),
	}
	entries := make(map[string]capRule)
	for _, l := range links {
		spec, path := l.file.Profiles[l.name], join("profiles", l.name)
		p.confines = p.confines || spec.RequiresIsolation
		for entry, level := range spec.Capabilities {
			r, ok := lib.entry(name, entry, level, l.file, join(path, "capabilities", entry), defs)
			if !ok {
				return profile{}, false
			}
			entries[entry] = r
		}
		for class, level := range spec.Classes {
			p.classes[class] = classRule{
				rule: "class " + class, reason: says(name, level, classPhrases[class]),
				source: l.file.source(join(path, "classes", class)), level: level,
			}
		}
	}
	for _, entry := range slices.Sorted(maps.Keys(entries)) {
		c, r := call.ParseNeed(entry).Capability, entries[entry]
		if r.pattern == nil {
			p.plain[c] = r
		} else {
			p.scoped[c] = append(p.scoped[c], r)
		}
	}
	return p, true
}

func (lib *library) entry(profile, entry string, level call.Level, f *File, path string, defs map[call.Capability]CapabilityDef) (capRule, bool) {
	n := call.ParseNeed(entry)
	what := sentence(n.Capability, n.Scope, defs)
	r := capRule{rule: entry, reason: says(profile, level, what), source: f.source(path), level: level}
	if !strings.Contains(entry, ":") {
		return r, true
	}
	r.mayReason = fmt.Sprintf("it may %s: the call does not say what exactly it reaches, and %s", what, r.reason)
	p, err := compilePattern(scopeKind(n.Capability, n.Scope), n.Scope, lib.home)
	if err != nil {
		lib.problems = append(lib.problems, f.problem(path, "", "%s: %v", n.Capability, err))
		return capRule{}, false
	}
	r.pattern = p
	return r, true
}

// most returns the most permissive level that any need of a capability can
// get from the profile.
func (p *profile) most(c call.Capability) call.Level {
	level := call.Deny
	if r, ok := p.plain[c]; ok {
		level = r.level
	}
	for _, r := range p.scoped[c] {
		if level.StricterThan(r.level) {
			level = r.level
		}
	}
	return level
}
