package aql_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-3ebc6b8a/gatehouse/internal/aql"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
)

// group is operations made for a test.
type group []aql.Operation

func (g group) Operations() []aql.Operation { return g }

type inner struct {
	Tags []string `json:"tags,omitzero" about:"words"`
}

type params struct {
	Name  string  `json:"name" about:"a name"`
	Limit int     `json:"limit,omitzero"`
	Text  *string `json:"text,omitzero"`
	inner
}

func echo(_ context.Context, _ *aql.Job, p params) (any, error) { return p.Name, nil }

func TestNewRefusesMistakes(t *testing.T) {
	t.Parallel()
	tests := map[string][]aql.Group{
		"an unknown name":     {group{aql.Op("no_such_operation", echo)}},
		"an alias":            {group{aql.Op("add_entry", echo)}},
		"twice in one group":  {group{aql.Op("clear", echo), aql.Op("clear", echo)}},
		"once in each of two": {group{aql.Op("clear", echo)}, group{aql.Op("clear", echo)}},
	}
	for name, groups := range tests {
		if _, err := aql.New(groups...); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

// TestParamsAreStrict: what an operation does not take is refused with what it
// does, before anything is asked or run.
func TestParamsAreStrict(t *testing.T) {
	t.Parallel()
	n, err := aql.New(group{aql.Op("clear", echo)})
	if err != nil {
		t.Fatal(err)
	}
	want := []aql.Param{
		{Name: "name", Type: "string", Required: true, About: "a name"}, {Name: "limit", Type: "integer"},
		{Name: "text", Type: "string"}, {Name: "tags", Type: "array", About: "words"},
	}
	if diff := cmp.Diff(want, n.Params("clear")); diff != "" {
		t.Error(diff)
	}
	for _, tt := range []struct{ args, wrong string }{
		{`{"name":"x"}`, ""},
		{`{"name":"x","limit":3,"text":"t","tags":["a"]}`, ""},
		{`{}`, `lack "name"`},
		{`{"name":"x","limt":3}`, `did you mean "limit"`},
		{`{"name":"x","colour":"red"}`, "it takes name, limit, text, tags"},
		{`{"name":"x","limit":"3"}`, "do not fit"},
		{`{"NAME":"x"}`, `lack "name"`},
		{`{"name":["x"]}`, "do not fit"},
		{`[]`, "JSON object"},
	} {
		err := n.Check("clear", []byte(tt.args))
		if tt.wrong == "" && err != nil || tt.wrong != "" && (err == nil || !strings.Contains(err.Error(), tt.wrong)) {
			t.Errorf("%s: %v, want %q", tt.args, err, tt.wrong)
		}
		var invalid *call.InvalidError
		if err != nil && !errors.As(err, &invalid) {
			t.Errorf("%s: %T", tt.args, err)
		}
	}
	out, err := n.Run(t.Context(), &aql.Job{Call: &call.Call{Operation: "clear", Args: []byte(`{"name":"x"}`)}})
	if err != nil || out != "x" {
		t.Errorf("%v, %v", out, err)
	}
	if _, err := n.Run(t.Context(), &aql.Job{Call: &call.Call{Operation: "get_element"}}); err == nil || n.Serves("get_element") {
		t.Error("an operation that nobody performs is performed")
	}
}

// TestToolsAreTruthful: every operation is offered by exactly the tool of its
// endpoint, and only the read tool says that it changes nothing.
func TestToolsAreTruthful(t *testing.T) {
	t.Parallel()
	tools := &aql.Tools{}
	for _, tool := range tools.List(false) {
		for _, op := range call.Operations() {
			mine := tool.Name == "mcp_aql_"+strings.ToLower(op.Endpoint.String())
			listed := strings.Contains(tool.Description, " "+op.Name+",") || strings.Contains(tool.Description, " "+op.Name+".") || strings.Contains(tool.Description, ": "+op.Name)
			if mine != listed {
				t.Errorf("%s lists %s: %v", tool.Name, op.Name, listed)
			}
		}
		if tool.ReadOnly != (tool.Name == "mcp_aql_read") || tool.ReadOnly && tool.Destructive {
			t.Errorf("%s: read only %v, destructive %v", tool.Name, tool.ReadOnly, tool.Destructive)
		}
	}
	one := tools.List(true)
	if len(one) != 1 || one[0].Name != "mcp_aql" || one[0].ReadOnly || !one[0].Destructive {
		t.Errorf("the one tool: %+v", one)
	}
}
