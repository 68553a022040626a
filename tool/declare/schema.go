package declare

import (
	"reflect"

	"github.com/google/jsonschema-go/jsonschema"
)

// JSONSchema returns the JSON Schema of declarations written in YAML, generated
// from the types, for editors. It says what shape a file has; [Parse] says
// more.
func JSONSchema() (*jsonschema.Schema, error) {
	word := func(words ...any) *jsonschema.Schema { return &jsonschema.Schema{Type: "string", Enum: words} }
	stance := &jsonschema.Schema{OneOf: []*jsonschema.Schema{
		word("unspecified", "none", "all"),
		{Type: "array", Items: &jsonschema.Schema{Type: "string"}},
	}}
	risks, roles := []any{}, []any{}
	for _, r := range riskNames {
		risks = append(risks, r)
	}
	for _, r := range Roles() {
		roles = append(roles, string(r))
	}
	// The tags for JSON and YAML name the members alike; what is only in the
	// one or the other form is put right below.
	type form struct {
		Gatehouse       int     `json:"gatehouse"`
		EnforcePolicies bool    `json:"enforcePolicies,omitempty"`
		Tools           []Tool  `json:"tools,omitempty"`
		Agents          []Agent `json:"agents,omitempty"`
	}
	s, err := jsonschema.For[form](&jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[Stance]():   stance,
		reflect.TypeFor[Risk]():     word(risks...),
		reflect.TypeFor[Role]():     word(roles...),
		reflect.TypeFor[Duration](): {Type: "string", Pattern: `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`},
	}})
	if err != nil {
		return nil, err
	}
	s.Schema = "https://json-schema.org/draft/2020-12/schema"
	s.Title = "Gatehouse declarations of tools"
	one := any(1)
	s.Properties["gatehouse"].Const = &one
	t := s.Properties["tools"].Items
	t.Properties["schema"] = &jsonschema.Schema{Type: "object"}
	optional(t, "name")
	optional(s.Properties["agents"].Items, "name", "tools")
	return s, nil
}

// optional leaves only the named members required, here and below.
func optional(s *jsonschema.Schema, required ...string) {
	if s == nil || len(s.Properties) == 0 {
		return
	}
	s.Required = required
	for name, p := range s.Properties {
		if name != "schema" {
			optional(p)
		}
		// A pointer may be left out; null says nothing that leaving out does not.
		if len(p.Types) > 1 {
			p.Type, p.Types = p.Types[len(p.Types)-1], nil
		}
	}
}
