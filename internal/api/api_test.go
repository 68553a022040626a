package api_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"go.uber.org/goleak"

	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestOpenAPIDescribesEveryRoute makes the document and looks at its shape:
// each operation has a summary, an id of its own, a half, and what it answers.
func TestOpenAPIDescribesEveryRoute(t *testing.T) {
	t.Parallel()
	doc, err := api.OpenAPI("1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		OpenAPI string
		Info    struct{ Title, Version string }
		Paths   map[string]map[string]struct {
			Summary     string
			OperationID string `json:"operationId"`
			Tags        []string
			Security    []map[string][]string
			Responses   map[string]any
		}
	}
	if err := json.Unmarshal(text, &got, json.MatchCaseInsensitiveNames(true)); err != nil {
		t.Fatal(err)
	}
	if got.OpenAPI != "3.1.0" || got.Info.Version != "1.2.3" {
		t.Errorf("openapi %q, version %q", got.OpenAPI, got.Info.Version)
	}
	ids := map[string]string{}
	for path, methods := range got.Paths {
		for method, op := range methods {
			name := method + " " + path
			if op.Summary == "" || len(op.Tags) != 1 || len(op.Responses) < 2 {
				t.Errorf("%s is not described: %+v", name, op)
			}
			if other := ids[op.OperationID]; other != "" {
				t.Errorf("%s and %s share the id %s", name, other, op.OperationID)
			}
			ids[op.OperationID] = name
			if open := op.Tags[0] == "open"; open != (len(op.Security) == 0) {
				t.Errorf("%s: tag %v, security %v", name, op.Tags, op.Security)
			}
		}
	}
	for _, want := range []string{"/v1/decide", "/v1/calls", "/v1/approvals/{id}/approve", "/v1/sessions", "/v1/grants", "/v1/log", "/v1/policy", "/v1/health", "/v1/kill"} {
		if got.Paths[want] == nil {
			t.Errorf("%s is missing", want)
		}
	}
}

// TestStrangersAreRefused asks the server itself: a foreign Host, a browser's
// request from another page, and what is not there.
func TestStrangersAreRefused(t *testing.T) {
	t.Parallel()
	s := api.New(api.Options{Hosts: []string{"127.0.0.1:7878"}})
	tests := []struct {
		name, host, path string
		header           http.Header
		want             int
	}{
		{"foreign host", "evil.example", "/v1/health", nil, http.StatusForbidden},
		{"rebound name", "127.0.0.1.evil.example:7878", "/v1/health", nil, http.StatusForbidden},
		{"other port", "127.0.0.1:80", "/v1/health", nil, http.StatusForbidden},
		{"foreign page", "127.0.0.1:7878", "/v1/health", http.Header{"Origin": {"https://evil.example"}}, http.StatusForbidden},
		{"own page", "127.0.0.1:7878", "/v1/health", http.Header{"Sec-Fetch-Site": {"same-origin"}}, http.StatusForbidden},
		{"no such route", "127.0.0.1:7878", "/v1/nothing", nil, http.StatusNotFound},
		{"approver half without a credential", "127.0.0.1:7878", "/v1/approvals", nil, http.StatusUnauthorized},
		{"approver half with an agent's token", "127.0.0.1:7878", "/v1/approvals", http.Header{"Authorization": {"Bearer ghg_x"}}, http.StatusForbidden},
		{"agent half with a credential", "127.0.0.1:7878", "/v1/requests/r_1", http.Header{"Authorization": {"Bearer gha_x"}}, http.StatusUnauthorized},
	}
	for _, tt := range tests {
		req := httptest.NewRequest(http.MethodGet, tt.path, nil)
		req.Host = tt.host
		for k, v := range tt.header {
			req.Header[k] = v
		}
		rec := httptest.NewRecorder()
		s.ServeHTTP(rec, req)
		if rec.Code != tt.want {
			t.Errorf("%s: %d %s, want %d", tt.name, rec.Code, strings.TrimSpace(rec.Body.String()), tt.want)
		}
	}
}

func TestBuildCallTakesTheKindFromTheOperation(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]call.Kind{"list_elements": call.Native, "Bash": call.External, "anything": call.External} {
		c, err := api.BuildCall(&api.CallRequest{Operation: in}, "api", call.Principal{})
		if err != nil || c.Kind != want {
			t.Errorf("%s: %v (%v), want %v", in, c, err, want)
		}
	}
	var invalid *call.InvalidError
	if _, err := api.BuildCall(&api.CallRequest{Operation: "x", Kind: "nonsense"}, "api", call.Principal{}); !errors.As(err, &invalid) {
		t.Errorf("a kind that is none: %v", err)
	}
}
