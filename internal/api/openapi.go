package api

import (
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
	"github.com/seed-3ebc6b8a/gatehouse/internal/grant"
)

// texts are the types that are written as text, with the values they take.
func texts() map[reflect.Type]*jsonschema.Schema {
	enum := func(values ...string) *jsonschema.Schema {
		s := &jsonschema.Schema{Type: "string"}
		for _, v := range values {
			s.Enum = append(s.Enum, v)
		}
		return s
	}
	var stages, endpoints []string
	for _, s := range call.Stages() {
		stages = append(stages, s.String())
	}
	for _, e := range call.Endpoints() {
		endpoints = append(endpoints, e.String())
	}
	return map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[call.Level]():     enum(call.LevelNames()...),
		reflect.TypeFor[call.Kind]():      enum(call.Native.String(), call.External.String(), call.Dispatch.String()),
		reflect.TypeFor[call.Stage]():     enum(stages...),
		reflect.TypeFor[call.Endpoint]():  enum(endpoints...),
		reflect.TypeFor[gate.Verdict]():   enum(gate.Allowed.String(), gate.Pending.String(), gate.Denied.String()),
		reflect.TypeFor[gate.Outcome]():   enum(string(gate.Succeeded), string(gate.Failed), string(gate.Refused), string(gate.Unknown)),
		reflect.TypeFor[grant.Use]():      enum(grant.Once.String(), grant.Session.String()),
		reflect.TypeFor[call.Digest]():    {Type: "string", Pattern: "^[0-9a-f]{64}$"},
		reflect.TypeFor[time.Time]():      {Type: "string", Format: "date-time"},
		reflect.TypeFor[jsontext.Value](): {},
	}
}

// OpenAPI makes the description of the API from the table of routes.
func OpenAPI(version string) (map[string]any, error) {
	opts := &jsonschema.ForOptions{TypeSchemas: texts()}
	paths := map[string]map[string]any{}
	for _, r := range routes() {
		op, err := operation(r, opts)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", r.method, r.path, err)
		}
		if paths[r.path] == nil {
			paths[r.path] = map[string]any{}
		}
		paths[r.path][strings.ToLower(r.method)] = op
	}
	paths["/metrics"] = map[string]any{"get": metricsOperation()}
	bearer := func(text string) map[string]any {
		return map[string]any{"type": "http", "scheme": "bearer", "description": text}
	}
	return map[string]any{
		"openapi": "3.1.0",
		"info": map[string]any{
			"title": "Gatehouse", "version": version,
			"description": "One gate for every action an AI agent takes. Two halves: agents submit calls, approvers answer.",
			"license":     map[string]any{"name": "Apache-2.0", "identifier": "Apache-2.0"},
		},
		"paths": paths,
		"components": map[string]any{"securitySchemes": map[string]any{
			"agent":    bearer("An agent's token (`gatehouse agent add NAME`)."),
			"approver": bearer("An approver's credential (`gatehouse approver add NAME`)."),
		}},
	}, nil
}

// metricsOperation describes what Prometheus scrapes. It is no route of the
// table, because it is not JSON and not of a version of ours.
func metricsOperation() map[string]any {
	text := func(description string) map[string]any {
		return map[string]any{"description": description, "content": map[string]any{"text/plain": map[string]any{"schema": map[string]any{"type": "string"}}}}
	}
	return map[string]any{
		"summary": "Metrics in the text format of Prometheus", "operationId": "getMetrics", "tags": []string{"open"},
		"responses": map[string]any{"200": text("OK"), "default": text("What went wrong")},
	}
}

// operation describes one route.
func operation(r route, opts *jsonschema.ForOptions) (map[string]any, error) {
	op := map[string]any{"summary": r.summary, "operationId": operationID(r)}
	switch r.half {
	case agentHalf:
		op["security"] = []any{map[string]any{"agent": []string{}}}
		op["tags"] = []string{"agent"}
	case approverHalf:
		op["security"] = []any{map[string]any{"approver": []string{}}}
		op["tags"] = []string{"approver"}
	default:
		op["tags"] = []string{"open"}
	}
	var params []any
	for part := range strings.SplitSeq(r.path, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			params = append(params, map[string]any{"name": strings.TrimSuffix(name, "}"), "in": "path", "required": true, "schema": map[string]any{"type": "string"}})
		}
	}
	if params != nil {
		op["parameters"] = params
	}
	ok := map[string]any{"description": "Done"}
	if r.out != nil {
		s, err := jsonschema.ForType(r.out, opts)
		if err != nil {
			return nil, err
		}
		ok = map[string]any{"description": "OK", "content": content(s)}
	}
	if r.in != nil {
		s, err := jsonschema.ForType(r.in, opts)
		if err != nil {
			return nil, err
		}
		op["requestBody"] = map[string]any{"required": true, "content": content(s)}
	}
	failed, err := jsonschema.ForType(reflect.TypeFor[Error](), opts)
	if err != nil {
		return nil, err
	}
	status := "200"
	if r.out == nil && r.in != nil {
		status = "204"
	}
	op["responses"] = map[string]any{status: ok, "default": map[string]any{"description": "What went wrong, and what to do", "content": content(failed)}}
	return op, nil
}

func content(s *jsonschema.Schema) map[string]any {
	return map[string]any{"application/json": map[string]any{"schema": s}}
}

// operationID names a route for generated clients: getApprovalsId …
func operationID(r route) string {
	id := strings.ToLower(r.method)
	for part := range strings.SplitSeq(strings.TrimPrefix(r.path, "/v1/"), "/") {
		part = strings.Trim(part, "{}")
		part = strings.TrimSuffix(part, ".json")
		if part != "" {
			id += strings.ToUpper(part[:1]) + part[1:]
		}
	}
	return id
}

func (s *Server) openAPI(w http.ResponseWriter, req *http.Request, _ *caller) error {
	doc, err := OpenAPI(s.opts.Health(req.Context()).Version)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, doc)
}
