package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/seed-3ebc6b8a/gatehouse/tool/declare"
)

// The vocabulary of declarations; see package declare.
type (
	// Policy is what a tool may touch.
	Policy = declare.Policy
	// Filesystem is the part of a policy about files.
	Filesystem = declare.Filesystem
	// Stance is unspecified, None, Only a list, or All.
	Stance = declare.Stance
	// Risk is how much harm a tool can do.
	Risk = declare.Risk
	// Constraints say when and how often a tool may run.
	Constraints = declare.Constraints
	// Role is what an argument means.
	Role = declare.Role
	// Duration is a time that is written as text.
	Duration = declare.Duration
)

// The risks.
const (
	UnknownRisk = declare.Unknown
	Low         = declare.Low
	Medium      = declare.Medium
	High        = declare.High
	Critical    = declare.Critical
)

// None and All are stances; see [Only] for the third.
var (
	None = declare.None
	All  = declare.All
)

// Only is the stance of a tool that needs what is listed and no more.
func Only(items ...string) Stance { return declare.Only(items...) }

// Spec is what a tool says about itself.
type Spec struct {
	Name        string
	Description string
	// Policy is what it may touch. Without one nothing is held against it,
	// and the vet checker reports whatever it reaches.
	Policy *Policy
	// Capabilities lists needs with their scopes, such as "data.user".
	Capabilities []string
	Constraints  Constraints
	// Parts names the tools that this one calls with [Env.Call]. Each of those
	// calls is a call of its own: judged, counted and recorded. [Plan] has a
	// person asked about all of them at once.
	Parts []string
	// Roles gives roles to arguments that a struct tag does not reach, such
	// as the values of a map: "options.*".
	Roles map[string]Role
}

// Tool is a declared tool with its executor.
type Tool struct {
	decl  declare.Tool
	run   func(context.Context, *Env, []byte) (any, error)
	needs func([]byte) ([]string, error)
	plan  func([]byte) ([]Step, error)
	err   error // what is wrong with the declaration, reported by NewAgent
}

// New declares a tool. Its input is a struct: the JSON Schema is derived from
// it, and a field's tag gate:"read", "write", "url", "env", "command" or "text"
// says what the argument means. What is wrong with a declaration is reported
// by [NewAgent], for all tools at once.
func New[In, Out any](spec Spec, run func(ctx context.Context, env *Env, in In) (Out, error)) *Tool {
	t := declared[In](spec)
	t.run = func(ctx context.Context, env *Env, args []byte) (any, error) {
		in, err := decode[In](args)
		if err != nil {
			return nil, err
		}
		return run(ctx, env, in)
	}
	return t
}

// Process declares a tool that is a process: command builds its command line
// from the arguments. It always runs confined to the policy, and not at all
// where no sandbox is to be had.
func Process[In any](spec Spec, command func(in In) []string) *Tool {
	t := declared[In](spec)
	t.run = func(ctx context.Context, env *Env, args []byte) (any, error) {
		in, err := decode[In](args)
		if err != nil {
			return nil, err
		}
		argv := command(in)
		if len(argv) == 0 {
			return nil, errors.New("the tool made no command of these arguments")
		}
		return env.Run(ctx, argv[0], argv[1:]...)
	}
	if t.err == nil && (spec.Policy == nil || !spec.Policy.Exec.Grants()) {
		t.err = errors.New("it starts a process, so its policy must allow exec")
	}
	return t
}

// Needs has the tool compute, call by call, the capabilities a call needs, in
// place of those of the Spec.
func Needs[In any](t *Tool, f func(in In) []string) *Tool {
	t.needs = func(args []byte) ([]string, error) {
		in, err := decode[In](args)
		if err != nil {
			return nil, err
		}
		return f(in), nil
	}
	return t
}

// Name returns the tool's name.
func (t *Tool) Name() string { return t.decl.Name }

// Declaration returns what the tool says about itself. It is a copy: what a
// tool declares does not change once it is made.
func (t *Tool) Declaration() declare.Tool { return t.decl.Clone() }

func declared[In any](spec Spec) *Tool {
	t := &Tool{decl: declare.Tool{
		Name: spec.Name, Description: spec.Description, Policy: spec.Policy,
		Capabilities: spec.Capabilities, Constraints: spec.Constraints, Arguments: spec.Roles, Parts: spec.Parts,
	}.Clone()}
	in := reflect.TypeFor[In]()
	if in.Kind() != reflect.Struct {
		t.err = fmt.Errorf("its input is %s; it must be a struct", in)
		return t
	}
	if t.decl.Arguments == nil {
		t.decl.Arguments = map[string]Role{}
	}
	tagRoles(in, "", t.decl.Arguments, 0)
	schema, err := jsonschema.For[In](nil)
	if err == nil {
		t.decl.Schema, err = json.Marshal(schema)
	}
	t.err = err
	return t
}

// maxDepth bounds how deep roles are looked for in types that contain
// themselves.
const maxDepth = 16

// tagRoles collects the roles that struct tags give.
func tagRoles(t reflect.Type, prefix string, roles map[string]Role, depth int) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if depth > maxDepth {
		return
	}
	switch t.Kind() {
	case reflect.Slice, reflect.Array:
		tagRoles(t.Elem(), prefix+"[]", roles, depth+1)
	case reflect.Map:
		tagRoles(t.Elem(), join(prefix, "*"), roles, depth+1)
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if !f.IsExported() || name == "-" {
				continue
			}
			if f.Anonymous && name == "" {
				tagRoles(f.Type, prefix, roles, depth+1)
				continue
			}
			if name == "" {
				name = f.Name
			}
			key := join(prefix, name)
			if role := f.Tag.Get("gate"); role != "" {
				roles[key] = Role(role)
			}
			tagRoles(f.Type, key, roles, depth+1)
		}
	}
}

func join(prefix, name string) string {
	if prefix == "" {
		return name
	}
	return prefix + "." + name
}

// decode reads arguments strictly: a duplicate or misspelt member is refused,
// because the policy was held against the text.
func decode[In any](args []byte) (In, error) {
	var in In
	err := jsonv2.Unmarshal(args, &in, jsonv2.RejectUnknownMembers(true))
	if err != nil {
		return in, fmt.Errorf("the arguments are not what the tool takes: %w", err)
	}
	return in, nil
}
