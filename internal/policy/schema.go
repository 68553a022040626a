package policy

import (
	"reflect"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/risk"
	"github.com/seed-3ebc6b8a/gatehouse/policies"
)

// Starter returns the commented policy that gatehouse init writes.
func Starter() []byte { return policies.Starter() }

// Schema returns the JSON Schema of policy files, generated from the types,
// for editors. It says what shape a file has; [Parse] says more.
func Schema() (*jsonschema.Schema, error) {
	levels := &jsonschema.Schema{Type: "string", Enum: anys(call.LevelNames())}
	lives := &jsonschema.Schema{Type: "string", Pattern: `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`}
	s, err := jsonschema.For[File](&jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[call.Level](): levels,
		reflect.TypeFor[Duration]():   lives,
	}})
	if err != nil {
		return nil, err
	}
	withoutNull(s)
	s.Schema = "https://json-schema.org/draft/2020-12/schema"
	s.Title = "Gatehouse policy"
	one := any(1)
	s.Properties["version"].Const = &one
	s.Properties["mode"].Enum = anys(modes)
	s.Properties["attendance"].Enum = anys(attendances)
	s.Properties["isolation"].Enum = anys(isolations)
	s.Properties["danger"].Properties["strictness"].Enum = anys(strictnesses)
	s.Properties["autonomy"].Properties["risk_tolerance"].Enum = anys(tolerances)
	dispatch := s.Properties["dispatch"].Properties
	dispatch["profile"].Enum, dispatch["policy"].Enum = anys(dispatchProfiles), anys(dispatchPolicies)
	dispatch["over"].Enum, dispatch["cli_effects"].Enum = anys(dispatchOvers), anys(dispatchEffects)
	dispatch["weights"].PropertyNames = &jsonschema.Schema{Enum: anys(risk.WeightNames())}
	bound := dispatch["bounds"].Items.Properties
	bound["cli"].Enum, bound["over"].Enum = anys(call.CLIs()), anys(dispatchOvers)
	bound["floor"].Enum, bound["ceiling"].Enum = anys(dispatchPolicies), anys(dispatchPolicies)
	output := s.Properties["output"].Properties
	output["default"].Enum = anys(outputs)
	output["servers"].AdditionalProperties = &jsonschema.Schema{Type: "string", Enum: anys(outputs)}
	output["servers"].PropertyNames = &jsonschema.Schema{Pattern: serverName.String()}
	s.Properties["adjustable"].Items.Enum = anys(adjustableKeys())
	s.Properties["operations"].AdditionalProperties = &jsonschema.Schema{Type: "string", Enum: []any{call.Deny.String()}}
	s.Properties["tools"].AdditionalProperties = &jsonschema.Schema{Type: "string", Enum: anys(call.HostOperations())}
	s.Properties["hosts"].PropertyNames = &jsonschema.Schema{Enum: anys(HostNames())}
	notify := s.Properties["notify"].Items.Properties
	notify["kind"].Enum = anys(noticeKinds)
	notify["format"].Enum = anys(noticeForms)
	classes := s.Properties["profiles"].AdditionalProperties.Properties["classes"]
	classes.PropertyNames = &jsonschema.Schema{Enum: anys(Classes())}
	s.Properties["tests"].Items.Properties["class"].Enum = anys(Classes())
	return s, nil
}

func anys(words []string) []any {
	out := make([]any, len(words))
	for i, w := range words {
		out[i] = w
	}
	return out
}

// withoutNull takes null out of a schema: TOML has no such thing, a key is
// there or not.
func withoutNull(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if len(s.Types) > 0 {
		types := slices.DeleteFunc(slices.Clone(s.Types), func(t string) bool { return t == "null" })
		if len(types) == 1 {
			s.Type, s.Types = types[0], nil
		}
	}
	withoutNull(s.Items)
	withoutNull(s.AdditionalProperties)
	for _, p := range s.Properties {
		withoutNull(p)
	}
}
