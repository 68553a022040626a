package policy

import (
	"maps"
	"regexp"
	"slices"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
)

// What happens to output of an MCP server that tries to give a model orders,
// or hides something.
const (
	OutputFlag  = "flag"
	OutputFence = "fence"
	OutputHold  = "hold"
)

// outputs are what a file can say. Where it says nothing a server's own entry
// counts, and fence where that says nothing either; so nothing lies between
// flag and fence.
var (
	outputs      = []string{OutputFlag, OutputFence, OutputHold}
	outputsByUse = []string{OutputFlag, "", OutputFence, OutputHold}
)

// Output says what happens to what MCP servers send back.
type Output struct {
	// Default is for every server that Servers does not name.
	Default string `toml:"default,omitempty" json:"default,omitempty" jsonschema:"For every server that is not named under servers: flag notes it in the log, fence marks the text as data, hold keeps it from the agent."`
	// Servers is for one server each.
	Servers map[string]string `toml:"servers,omitempty" json:"servers,omitempty" jsonschema:"For one server each, by its name."`
}

var serverName = regexp.MustCompile(call.MCPServerName)

func (c *checker) output() {
	o := c.f.Output
	if o == nil {
		return
	}
	c.oneOf(join("output", "default"), o.Default, outputs)
	for _, name := range slices.Sorted(maps.Keys(o.Servers)) {
		path := join("output", "servers", name)
		if !serverName.MatchString(name) {
			c.add(path, "up to 32 of a-z, 0-9 and -, beginning with a letter", "%q cannot name a server", name)
		}
		if way := o.Servers[name]; !slices.Contains(outputs, way) {
			c.add(path, orList(way, outputs), "the output of %s cannot be %q", name, way)
		}
	}
}

// output merges what happens to output. What is said about one server stands
// in the place of what is said about all, so it starts from there.
func (m *merger) output() {
	stricter := laterIsStricter(outputsByUse)
	set := &m.s.Settings
	merge(m, "output.default", &set.Output, word(func(f *File) *string { return ifSet(f.Output, func(o *Output) *string { return &o.Default }) }), stricter)
	for _, name := range m.outputServers() {
		way := set.Output
		merge(m, "output.servers."+name, &way, func(f *File) (string, bool) {
			if f.Output == nil {
				return "", false
			}
			v, ok := f.Output.Servers[name]
			return v, ok
		}, stricter)
		if set.OutputOf == nil {
			set.OutputOf = make(map[string]string)
		}
		set.OutputOf[name] = way
	}
}

// outputServers lists the servers that any file says something about.
func (m *merger) outputServers() []string {
	names := make(map[string]bool)
	for _, group := range m.groups {
		for i := range group {
			if o := group[i].File.Output; o != nil {
				for name := range o.Servers {
					names[name] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// outputOf is what the policy says about one server, "" for nothing.
func (s *Settings) outputOf(server string) string {
	if way, ok := s.OutputOf[server]; ok {
		return way
	}
	return s.Output
}

// OutputFor says what happens to output of a server whose entry says what an
// approver wanted, "" for nothing: of the entry and the policy the stricter
// counts.
func (s *Settings) OutputFor(server, entry string) string {
	way := s.outputOf(server)
	switch {
	case way == "" && entry == "":
		return OutputFence
	case way == "" || entry != "" && laterIsStricter(outputs)(entry, way):
		return entry
	}
	return way
}

// outputLoosens compares what happens to the output of every server: those
// that either policy names, and all others.
func outputLoosens(old, new *Settings, loosened func(looser bool, key string, a, b any)) {
	stricter := laterIsStricter(outputsByUse)
	words := func(way string) string {
		if way == "" {
			return "left to the server's entry"
		}
		return way
	}
	loosened(stricter(old.Output, new.Output), "output.default", words(old.Output), words(new.Output))
	names := maps.Clone(old.OutputOf)
	if names == nil {
		names = make(map[string]string)
	}
	maps.Copy(names, new.OutputOf)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		a, b := old.outputOf(name), new.outputOf(name)
		loosened(stricter(a, b), "output.servers."+name, words(a), words(b))
	}
}
