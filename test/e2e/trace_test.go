package e2e_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
	"github.com/seed-3ebc6b8a/gatehouse/test/gatetest"
)

// TestTraces: where the daemon's environment names a collector, each call is a
// span there, with its operation and its verdict and without its arguments.
func TestTraces(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var got bytes.Buffer
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var body io.Reader = r.Body
		if r.Header.Get("Content-Encoding") == "gzip" {
			z, err := gzip.NewReader(r.Body)
			if err != nil {
				t.Error(err)
				return
			}
			body = z
		}
		mu.Lock()
		defer mu.Unlock()
		if _, err := got.ReadFrom(body); err != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("%s: %v", r.URL.Path, err)
		}
	}))
	defer collector.Close()
	g := gatetest.New(t)
	g.Env = append(g.Env, "OTEL_EXPORTER_OTLP_ENDPOINT="+collector.URL)
	g.Up()
	w := people(t, g)
	w.want(gate.Allowed, memo("traceless"))
	g.Stop() // which sends what is left

	mu.Lock()
	defer mu.Unlock()
	for _, want := range []string{"gatehouse.operation", "agent.note", "gatehouse.verdict", "allowed"} {
		if !bytes.Contains(got.Bytes(), []byte(want)) {
			t.Errorf("no span has %s: %q", want, got.Bytes())
		}
	}
	if bytes.Contains(got.Bytes(), []byte("traceless")) {
		t.Error("an argument of the call is in its trace")
	}
}
