package mcp

import (
	"context"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/mcp/link"
	"github.com/seed-3ebc6b8a/gatehouse/internal/mcp/wire"
	"github.com/seed-3ebc6b8a/gatehouse/internal/upstream"
)

// call makes a call of a request: the one form in which tools, prompts,
// resources, completions and subscriptions are decided on.
func (x *exchange) call(ctx context.Context, t *target, l *live, m *wire.Message) (*call.Call, error) {
	c := x.newCall(t)
	if m.Method == "tools/call" {
		tool := m.String("name")
		if tool == "" {
			return nil, denied("the call names no tool")
		}
		pin, err := x.trusted(ctx, t, l, tool)
		if err != nil {
			return nil, err
		}
		c.Operation, c.Args = call.MCPTool(t.name, tool), m.Value(m.Param("arguments"))
		// An approval is for the tool as it was defined when it was given.
		c.Forward = append(c.Forward, call.Field{Name: "tool definition", Value: pin})
	} else {
		if err := x.offered(ctx, t, m); err != nil {
			return nil, err
		}
		c.Operation = call.MCPRequest(t.name, m.Method)
		c.Args = wire.Set(object(m.Value(m.Params)), map[string]jsontext.Value{"_meta": nil})
	}
	forward, err := x.forwards(m)
	c.Forward = append(c.Forward, forward...)
	return c, err
}

func (x *exchange) newCall(t *target) *call.Call {
	return &call.Call{
		Kind: call.External, Surface: "mcp", Principal: x.who.Principal, Held: x.who.Held, Dir: t.entry.Spec.Base(),
		Sessionless: x.session == nil && !x.who.Bound,
	}
}

func object(v jsontext.Value) jsontext.Value {
	if v == nil {
		return jsontext.Value("{}")
	}
	return v
}

// volatile is metadata that names one attempt and has no effect: a repeated
// call must find its approval.
var volatile = map[string]jsontext.Value{"progressToken": nil, "traceparent": nil, "tracestate": nil, "baggage": nil}

// forwards lists what reaches the upstream besides the arguments: metadata,
// members of the parameters, headers. All of it is in the digest.
func (x *exchange) forwards(m *wire.Message) ([]call.Field, error) {
	var out []call.Field
	for _, name := range m.ParamNames() {
		v := m.Value(m.Param(name))
		switch {
		case name == "_meta":
			if v.Kind() != '{' {
				return nil, denied("_meta must be an object")
			}
			v = wire.Set(v, volatile)
		case m.Method != "tools/call" || name == "name" || name == "arguments":
			continue // in the call already
		}
		v = slices.Clone(v)
		if err := v.Canonicalize(jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false)); err != nil {
			return nil, denied("the request is not strict JSON")
		}
		out = append(out, call.Field{Name: name, Value: string(v)})
	}
	for name, values := range x.header {
		if strings.HasPrefix(name, "Mcp-Param-") {
			out = append(out, call.Field{Name: "header " + name, Value: strings.Join(values, "\n")})
		}
	}
	slices.SortFunc(out, func(a, b call.Field) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// listing says where a list answer has its items, and how one is asked for.
type listing struct{ array, key, method, param, kind string }

// lists are the list requests.
var lists = map[string]listing{
	"tools/list":               {"tools", "name", "tools/call", "name", upstream.Tool},
	"prompts/list":             {"prompts", "name", "prompts/get", "name", upstream.Prompt},
	"resources/list":           {"resources", "uri", "resources/read", "uri", upstream.Resource},
	"resources/templates/list": {"resourceTemplates", "uriTemplate", "resources/read", "uri", upstream.Template},
}

// private are the cache hints of a filtered list: it was made for one caller.
var private = map[string]jsontext.Value{"ttlMs": jsontext.Value("0"), "cacheScope": jsontext.Value(`"private"`)}

// list forwards a list request and leaves out of its answer what the caller
// could not have.
func (x *exchange) list(ctx context.Context, t *target, l *live, m *wire.Message, out link.Out) {
	x.pass(ctx, t, l, m, out, func(r *wire.Message) []byte {
		if r.Result.IsZero() {
			return r.Raw
		}
		list, err := wire.ParseList(r, lists[m.Method].array, lists[m.Method].key)
		if err != nil {
			return errorMessage(m.Value(m.ID), codeInternal, "the MCP server "+t.name+" sent a list that cannot be read: "+err.Error(), nil)
		}
		visible, err := x.visible(ctx, t, l, m.Method, list)
		if err != nil {
			return errorMessage(m.Value(m.ID), codeInternal, err.Error(), nil)
		}
		return list.Write(func(it wire.Item) []byte {
			if !visible(it.Name) {
				return nil
			}
			return it.Of(r.Raw)
		}, private)
	})
}

// visible says which items of a list the caller may see: tools whose
// definition is as it was pinned, and nothing that would be denied.
func (x *exchange) visible(ctx context.Context, t *target, l *live, method string, list *wire.List) (func(string) bool, error) {
	kind := lists[method]
	hidden := map[string]bool{}
	if method == "tools/list" {
		survey, err := x.survey(ctx, t, l)
		if err != nil {
			return nil, err
		}
		for _, it := range list.Items {
			hidden[it.Name] = survey.Good[it.Name] == "" || !survey.same(it.Name, it.Of(list.Raw()))
		}
	}
	if method != "tools/list" {
		withheld, err := x.compareOffers(ctx, t, kind.kind, list)
		if err != nil {
			return nil, err
		}
		for offer := range withheld {
			hidden[offer.Name] = true
		}
	}
	for _, it := range list.Items {
		if hidden[it.Name] {
			continue
		}
		c := x.newCall(t)
		if kind.method == "tools/call" {
			c.Operation = call.MCPTool(t.name, it.Name)
		} else {
			c.Operation = call.MCPRequest(t.name, kind.method)
			c.Args = wire.Set(jsontext.Value("{}"), map[string]jsontext.Value{kind.param: wire.Quote(it.Name)})
		}
		d, _, err := x.front.opts.Gate.Decide(ctx, c)
		hidden[it.Name] = err != nil || d.Level == call.Deny
	}
	return func(name string) bool { return !hidden[name] }, nil
}
