package e2e_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
)

// document is the API's description of itself, as far as tests read it.
type document struct {
	OpenAPI    string                          `json:"openapi"`
	Info       map[string]any                  `json:"info"`
	Paths      map[string]map[string]operation `json:"paths"`
	Components struct {
		SecuritySchemes map[string]map[string]any `json:"securitySchemes"`
	} `json:"components"`
}

type operation struct {
	OperationID string                `json:"operationId"`
	Summary     string                `json:"summary"`
	Tags        []string              `json:"tags"`
	Security    []map[string][]string `json:"security"`
	Parameters  []map[string]any      `json:"parameters"`
	RequestBody map[string]any        `json:"requestBody"`
	Responses   map[string]any        `json:"responses"`
}

func openAPI(t testing.TB, w *world) *document {
	t.Helper()
	resp, body := w.HTTP("GET", "/v1/openapi.json", "", nil, nil)
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("the description: %d %s", resp.StatusCode, body)
	}
	doc := &document{}
	if err := json.Unmarshal(body, doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// described is one route of the description.
type described struct {
	operation
	method, template string
}

func (d *document) routes() (out []described) {
	for template, methods := range d.Paths {
		for method, op := range methods {
			out = append(out, described{op, strings.ToUpper(method), template})
		}
	}
	return out
}

func (r *described) of(half string) bool {
	for _, s := range r.Security {
		if _, ok := s[half]; ok {
			return true
		}
	}
	return false
}

func (r *described) agent() bool    { return r.of("agent") }
func (r *described) approver() bool { return r.of("approver") }

var variable = regexp.MustCompile(`\{[^}]*\}`)

// path fills the variables of the path.
func (r *described) path(id string) string { return variable.ReplaceAllString(r.template, id) }
