package e2e_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
)

// TestTheDescriptionIsOpenAPI checks by hand what OpenAPI 3.1 requires of a
// document, its operations, parameters and answers.
func TestTheDescriptionIsOpenAPI(t *testing.T) {
	t.Parallel()
	w := begin(t)
	doc := openAPI(t, w)
	if !strings.HasPrefix(doc.OpenAPI, "3.1.") || doc.Info["title"] == "" || doc.Info["version"] == "" {
		t.Errorf("openapi %q, info %v", doc.OpenAPI, doc.Info)
	}
	ids := map[string]bool{}
	for _, r := range doc.routes() {
		at := r.method + " " + r.template
		if !strings.HasPrefix(r.template, "/") {
			t.Errorf("%s does not begin with a slash", at)
		}
		if r.OperationID == "" || ids[r.OperationID] {
			t.Errorf("%s: the operation id %q is empty or not unique", at, r.OperationID)
		}
		ids[r.OperationID] = true
		if len(r.Responses) < 2 {
			t.Errorf("%s: %d answers, want one and a default", at, len(r.Responses))
		}
		for code, answer := range r.Responses {
			a, ok := answer.(map[string]any)
			if !ok || a["description"] == "" || a["description"] == nil {
				t.Errorf("%s: the answer %s has no description", at, code)
			}
			checkContent(t, at+" "+code, a)
		}
		if r.RequestBody != nil {
			checkContent(t, at, r.RequestBody)
		}
		want := variable.FindAllString(r.template, -1)
		if len(want) != len(r.Parameters) {
			t.Errorf("%s: %d parameters for %v", at, len(r.Parameters), want)
		}
		for i, p := range r.Parameters {
			if p["in"] != "path" || p["required"] != true || "{"+p["name"].(string)+"}" != want[i] || p["schema"] == nil {
				t.Errorf("%s: parameter %v", at, p)
			}
		}
		for _, s := range r.Security {
			for name := range s {
				if doc.Components.SecuritySchemes[name]["type"] != "http" {
					t.Errorf("%s: the security scheme %s is not defined", at, name)
				}
			}
		}
	}
}

// checkContent checks that what holds content holds a schema for it.
func checkContent(t *testing.T, at string, holder map[string]any) {
	t.Helper()
	content, ok := holder["content"].(map[string]any)
	if !ok {
		return
	}
	for media, v := range content {
		m, ok := v.(map[string]any)
		if !ok || !strings.Contains(media, "/") || m["schema"] == nil {
			t.Errorf("%s: the content %s has no schema", at, media)
		}
	}
}

// routePattern finds what the server serves, in its source: the table of the
// API and what is mounted beside it.
var routePattern = regexp.MustCompile(`(?m)(?:jsonRoute\("|method: ")([A-Z]+)", (?:path: )?"([^"]+)"|Handle\("(GET) (/metrics)"`)

// TestEveryRouteIsDescribed compares the server's table of routes with the
// description, and asks the running server for each: none is missing, and none
// is described that is not there.
func TestEveryRouteIsDescribed(t *testing.T) {
	t.Parallel()
	w := begin(t)
	described := map[string]bool{}
	for _, r := range openAPI(t, w).routes() {
		described[r.method+" "+r.template] = true
		resp, body := w.HTTP(r.method, r.path("x"), "", nil, nil)
		if resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusMethodNotAllowed {
			t.Errorf("%s %s is described and not there: %d %s", r.method, r.template, resp.StatusCode, body)
		}
	}
	n := 0
	files, err := filepath.Glob(filepath.Join("..", "..", "internal", "api", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range routePattern.FindAllStringSubmatch(string(source), -1) {
			n++
			if route := strings.TrimSpace(m[1] + m[3] + " " + m[2] + m[4]); !described[route] {
				t.Errorf("%s is served and not described", route)
			}
		}
	}
	if n < 30 || n != len(described) {
		t.Errorf("%d routes in the source, %d described", n, len(described))
	}
	resp, body := w.HTTP("GET", "/v1/nowhere", "", nil, nil)
	if resp.StatusCode != http.StatusNotFound || !strings.Contains(string(body), "openapi.json") {
		t.Errorf("what is not there: %d %s", resp.StatusCode, body)
	}
}

// TestExamplesOfTheGuide sends every request that docs/api.md shows.
func TestExamplesOfTheGuide(t *testing.T) {
	t.Parallel()
	w := begin(t)
	guide, err := os.ReadFile(filepath.Join("..", "..", "docs", "api.md"))
	if err != nil {
		t.Fatal(err)
	}
	examples := regexp.MustCompile("(?s)```\n(GET|POST|DELETE) (/v1/\\S+)\n(.*?)```").FindAllStringSubmatch(string(guide), -1)
	if len(examples) == 0 {
		t.Fatal("the guide shows no request")
	}
	for _, e := range examples {
		body := strings.ReplaceAll(strings.TrimSpace(e[3]), `"wait_ms": 60000`, `"wait_ms": 1`)
		if code, text := send(t, w, e[1], e[2], w.token, body); code != http.StatusOK {
			t.Errorf("%s %s %s: %d %s", e[1], e[2], body, code, text)
		}
	}
	for _, path := range regexp.MustCompile("`(?:GET|POST|DELETE) (/v1/[^`]+)`").FindAllStringSubmatch(string(guide), -1) {
		if code, text := send(t, w, "GET", path[1], "", ""); code == http.StatusNotFound && !strings.Contains(text, "there is no GET") {
			t.Errorf("the guide names %s: %d", path[1], code)
		}
	}
}

// send sends a body as it is.
func send(t testing.TB, w *world, method, path, secret, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequest(method, w.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if secret != "" {
		req.Header.Set("Authorization", "Bearer "+secret)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// TestStrictInput: what is not understood is refused with a word on what and
// where, and takes nothing with it.
func TestStrictInput(t *testing.T) {
	t.Parallel()
	w := begin(t)
	before := w.dump()
	deep := func(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }
	for name, c := range map[string]struct {
		body string
		code int
		says string
	}{
		"an unknown field":       {`{"operation":"list_elements","verdict":"allowed"}`, 400, "verdict"},
		"another's principal":    {`{"operation":"list_elements","principal":{"agent":"admin"}}`, 400, "principal"},
		"trailing data":          {`{"operation":"list_elements"}{}`, 400, ""},
		"no JSON":                {`operation=list_elements`, 400, ""},
		"a list":                 {`[{"operation":"list_elements"}]`, 400, ""},
		"a wrong type":           {`{"operation":7}`, 400, "operation"},
		"arguments as a list":    {`{"operation":"list_elements","args":[1]}`, 200, "args"},
		"arguments as text":      {`{"operation":"list_elements","args":"{}"}`, 200, "args"},
		"an unknown kind":        {`{"operation":"list_elements","kind":"magic"}`, 400, "kind"},
		"an unknown endpoint":    {`{"operation":"list_elements","endpoint":"MAGIC"}`, 400, "MAGIC"},
		"no operation":           {`{"args":{}}`, 200, "operation"},
		"a name without end":     {`{"operation":"` + strings.Repeat("x", 600) + `"}`, 200, "operation"},
		"too deep":               {`{"operation":"list_elements","args":` + deep(65) + `}`, 200, "64"},
		"far too deep":           {`{"operation":"list_elements","args":` + deep(20_000) + `}`, 400, ""},
		"too large":              {`{"operation":"list_elements","args":{"x":"` + strings.Repeat("x", 1<<20) + `"}}`, 200, "1048576"},
		"far too large":          {`{"operation":"list_elements","args":{"x":"` + strings.Repeat("x", 2<<20) + `"}}`, 413, "too large"},
		"a number without sense": {`{"operation":"list_elements","wait_ms":1e99}`, 400, "wait_ms"},
	} {
		code, text := send(t, w, "POST", "/v1/calls", w.token, c.body)
		if code != c.code || !strings.Contains(text, c.says) {
			t.Errorf("%s: %d %.300s, want %d and %q", name, code, text, c.code, c.says)
		}
		if code == 200 && !strings.Contains(text, `"verdict":"denied"`) {
			t.Errorf("%s: %.300s, want a denial", name, text)
		}
		if code >= 500 || strings.Contains(text, "goroutine") || strings.Contains(text, ".go:") {
			t.Errorf("%s: %d %.300s", name, code, text)
		}
	}
	if got := w.want(gate.Allowed, callOf("TodoWrite", `{"a":`+deep(62)+`}`)); got.CallID == "" {
		t.Error("as deep as may be is too deep")
	}
	// The approver half is as strict.
	for path, body := range map[string]string{
		"/v1/kill":             `{"on":true,"reason":"x","sure":true}`,
		"/v1/approvers":        `{"name":"eve","credential":"gha_x"}`,
		"/v1/agents":           `{"name":"eve"} {}`,
		"/v1/policy/accept":    `{"hash":"zz"}`,
		"/v1/approvals/x/edit": `{"digest":"` + strings.Repeat("0", 64) + `","args":{"a":1,"a":2}}`,
	} {
		if code, text := send(t, w, "POST", path, w.credential, body); code != http.StatusBadRequest {
			t.Errorf("POST %s %s: %d %s", path, body, code, text)
		}
	}
	for _, name := range []string{"", "Eve", "eve ", "../eve", "eve\x00", strings.Repeat("e", 65), "ｅve"} {
		body, err := jsontext.AppendQuote([]byte(`{"name":`), name)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"/v1/approvers", "/v1/agents"} {
			if code, text := send(t, w, "POST", path, w.credential, string(body)+"}"); code != http.StatusBadRequest {
				t.Errorf("POST %s with the name %q: %d %s", path, name, code, text)
			}
		}
	}
	if after := w.dump(); after != before {
		t.Error("something was changed")
	}
}

// TestHealthTellsAgentsNothing: what anyone may ask shows no secret and no
// path of the gate's.
func TestHealthTellsAgentsNothing(t *testing.T) {
	t.Parallel()
	w := begin(t)
	w.want(gate.Pending, create("secretive-name"))
	for _, path := range []string{"/v1/health", "/metrics"} {
		code, text := send(t, w, "GET", path, "", "")
		if code != http.StatusOK {
			t.Fatalf("%s: %d", path, code)
		}
		for _, word := range []string{w.Home, "secretive-name", "coder", "ann", w.token, w.credential} {
			if strings.Contains(text, word) {
				t.Errorf("%s tells %q", path, word)
			}
		}
	}
	if code, text := send(t, w, "GET", "/metrics", "", ""); code != 200 || !strings.Contains(text, "gatehouse_requests_pending 1") || !strings.Contains(text, `gatehouse_events_total{kind="call",level="CONFIRM_SESSION",outcome="pending"} 1`) {
		t.Errorf("the metrics: %d\n%s", code, text)
	}
}
