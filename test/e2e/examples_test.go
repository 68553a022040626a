package e2e_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/test/gatetest"
)

// example starts one of the example programs behind a gate, as an agent's host
// would, and returns a way to call its tools.
func example(t *testing.T, g *gatetest.Gate, name, dir string) func(tool string, args map[string]any) (text string, failed bool) {
	t.Helper()
	bin := filepath.Join(t.TempDir(), name)
	build := exec.Command("go", "build", "-o", bin, "github.com/seed-3ebc6b8a/gatehouse/examples/"+name)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.Command(bin, "-workspace", dir)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GATEHOUSE_HOME="+g.Home)
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return func(tool string, args map[string]any) (string, bool) {
		t.Helper()
		res, err := session.CallTool(context.WithoutCancel(t.Context()), &mcp.CallToolParams{Name: tool, Arguments: args})
		if err != nil {
			t.Fatal(err)
		}
		text := ""
		for _, c := range res.Content {
			if tc, ok := c.(*mcp.TextContent); ok {
				text += tc.Text
			}
		}
		return text, res.IsError
	}
}

// approveAll approves whatever waits, as a person at the terminal would.
func approveAll(t *testing.T, g *gatetest.Gate, credential, file string) {
	t.Helper()
	var list api.ApprovalList
	if err := g.Client(credential).Do(t.Context(), "GET", "/v1/approvals?state=pending", nil, &list); err != nil {
		t.Fatal(err)
	}
	for _, a := range list.Requests {
		g.Must("approvals", "approve", a.ID, "--credential-file", file)
	}
}

// TestExamples serves each example over MCP with a running gate in front: what
// goes beyond the declaration never gets there, what the policy has no rule for
// waits for a person, and what a person approved runs, once, on record.
func TestExamples(t *testing.T) {
	t.Parallel()
	g := gatetest.Start(t)
	credential, file := g.Enrol("ann")
	mirror := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("a page")) }))
	defer mirror.Close()
	for _, tc := range []struct {
		name, tool string
		inside     map[string]any
		beyond     map[string]any
		reason     string
		done       func(t *testing.T, dir, text string)
	}{
		{"report", "write_report", map[string]any{"path": "reports/may.md", "text": "# May"}, map[string]any{"path": "/etc/passwd", "text": "x"}, "policy",
			func(t *testing.T, dir, _ string) {
				if b, err := os.ReadFile(filepath.Join(dir, "reports", "may.md")); err != nil || string(b) != "# May" {
					t.Errorf("%q, %v", b, err)
				}
			}},
		{"search", "search_repository", map[string]any{"pattern": "needle"}, map[string]any{"pattern": "root", "under": "/etc"}, "policy",
			func(t *testing.T, _, text string) {
				if !strings.Contains(text, "hay.txt:1:a needle") {
					t.Errorf("%s", text)
				}
			}},
		{"fetch", "fetch_page", nil, map[string]any{"url": "http://169.254.169.254/latest/meta-data"}, "policy", nil},
		{"echo", "echo_to_file", map[string]any{"path": "out/a", "text": "hello"}, nil, "", func(t *testing.T, dir, _ string) {
			if b, err := os.ReadFile(filepath.Join(dir, "out", "a")); err != nil || string(b) != "hello\n" {
				t.Errorf("%q, %v", b, err)
			}
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			for _, sub := range []string{"reports", "out"} {
				if err := os.Mkdir(filepath.Join(dir, sub), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(filepath.Join(dir, "hay.txt"), []byte("a needle\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			call := example(t, g, tc.name, dir)
			if tc.beyond != nil {
				if text, failed := call(tc.tool, tc.beyond); !failed || !strings.Contains(text, tc.reason) {
					t.Errorf("beyond the declaration: %s", text)
				}
			}
			if tc.inside == nil {
				return
			}
			text, failed := call(tc.tool, tc.inside)
			if !failed || !strings.Contains(text, "person") {
				t.Fatalf("nobody was asked: %s", text)
			}
			approveAll(t, g, credential, file)
			text, failed = call(tc.tool, tc.inside)
			if failed {
				t.Fatalf("approved, and then: %s", text)
			}
			tc.done(t, dir, text)
			if text, failed = call(tc.tool, tc.inside); !failed {
				t.Errorf("approved once, and it ran twice: %s", text)
			}
		})
	}
	// What the kernel holds, the approval does not widen.
	t.Run("the kernel holds", func(t *testing.T) {
		dir, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(filepath.Join(dir, "out"), 0o755); err != nil {
			t.Fatal(err)
		}
		const path = "/usr/outside-the-example"
		outside := map[string]any{"path": path, "text": "x"}
		call := example(t, g, "echo", dir)
		call("echo_to_file", outside)
		approveAll(t, g, credential, file)
		if text, failed := call("echo_to_file", outside); !failed {
			t.Errorf("%s", text)
		}
		if _, err := os.Stat(path); err == nil {
			t.Error("it was written")
		}
	})
	out := g.Must("audit", "list", "--credential-file", file, "--json")
	for _, want := range []string{"write_report", "search_repository", "echo_to_file"} {
		if !strings.Contains(out, want) {
			t.Errorf("the log has no %s", want)
		}
	}
}
