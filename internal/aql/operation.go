package aql

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-3ebc6b8a/gatehouse/internal/activation"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
)

// Job is a call that was let through, with what it was decided to.
type Job struct {
	*call.Call
	Decision call.Decision
	// Approved says that a person approved this very call: it is pinned, and
	// was not let through by observe mode.
	Approved bool
	// Trail keeps what is changed, where all of it may have to be taken back.
	Trail *activation.Trail
}

// Param is a parameter of an operation, as introspect tells it.
type Param struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Required bool   `json:"required"`
	About    string `json:"about,omitzero"`
}

// Operation is how an operation of the table is performed.
type Operation struct {
	Name   string
	Params []Param
	// reversible says that what it changes is kept on the job's trail.
	reversible bool
	// prepare reads the parameters and returns what performs the call.
	prepare func(jsontext.Value) (func(context.Context, *Job) (any, error), error)
}

// Op makes an operation of a function. P is a struct: its fields are the
// parameters, by the names of their json tags; a field without omitzero must
// be given, and the tag "about" says what it is.
func Op[P any](name string, run func(context.Context, *Job, P) (any, error)) Operation {
	params := paramsOf(reflect.TypeFor[P]())
	return Operation{Name: name, Params: params, prepare: func(args jsontext.Value) (func(context.Context, *Job) (any, error), error) {
		var p P
		if err := checkMembers(args, params); err != nil {
			return nil, err
		}
		if err := json.Unmarshal(args, &p); err != nil {
			return nil, &call.InvalidError{Field: "params", Problem: "of " + name + " do not fit: " + err.Error()}
		}
		return func(ctx context.Context, j *Job) (any, error) { return run(ctx, j, p) }, nil
	}}
}

// reversible is an operation that keeps what it changes on the job's trail, so
// that it can be part of a batch that is done whole or not at all.
func reversible(o Operation) Operation {
	o.reversible = true
	return o
}

// None is the parameters of an operation that takes none.
type None struct{}

// paramsOf lists the fields of a struct as parameters.
func paramsOf(t reflect.Type) []Param {
	var out []Param
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			out = append(out, paramsOf(f.Type)...)
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		out = append(out, Param{Name: name, Type: jsonType(f.Type), Required: !strings.Contains(options, "omitzero"), About: f.Tag.Get("about")})
	}
	return out
}

// jsonType is what JSON calls the values of a Go type.
func jsonType(t reflect.Type) string {
	if t == reflect.TypeFor[jsontext.Value]() {
		return "any"
	}
	switch t.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Int, reflect.Int64:
		return "integer"
	case reflect.Float64:
		return "number"
	case reflect.Slice:
		return "array"
	case reflect.Pointer:
		return jsonType(t.Elem())
	}
	return "object"
}

// checkMembers refuses members that the operation does not take, and the lack
// of one that it needs.
func checkMembers(args jsontext.Value, params []Param) error {
	names, err := memberNames(args)
	if err != nil {
		return &call.InvalidError{Field: "params", Problem: err.Error()}
	}
	var known []string
	for _, p := range params {
		known = append(known, p.Name)
		if p.Required && !slices.Contains(names, p.Name) {
			return &call.InvalidError{Field: "params", Problem: fmt.Sprintf("lack %q (%s: %s)", p.Name, p.Type, p.About)}
		}
	}
	for _, name := range names {
		if slices.Contains(known, name) {
			continue
		}
		problem := fmt.Sprintf("hold %q, which this operation does not take", name)
		if near, ok := match.Nearest(name, known); ok {
			problem += fmt.Sprintf("; did you mean %q?", near)
		} else if len(known) > 0 {
			problem += "; it takes " + strings.Join(known, ", ")
		}
		return &call.InvalidError{Field: "params", Problem: problem}
	}
	return nil
}

// memberNames lists the names of an object's members.
func memberNames(args jsontext.Value) ([]string, error) {
	dec := jsontext.NewDecoder(bytes.NewReader(args))
	if tok, err := dec.ReadToken(); err != nil || tok.Kind() != '{' {
		return nil, fmt.Errorf("must be a JSON object")
	}
	var names []string
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return nil, err
		}
		names = append(names, name.String())
		if err := dec.SkipValue(); err != nil {
			return nil, err
		}
	}
	return names, nil
}
