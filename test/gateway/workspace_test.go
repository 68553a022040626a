package gateway_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// relative declares the played tool by globs that need a workspace.
const relative = `tools:
  - name: mcp__files__echo
    policy: {risk: low, filesystem: {read: ["./**"], write: ["./out/**"]}, network: none}
    arguments: {from: read, to: write}
`

// TestRelativeGlobsOfServers: what an approver said about a server is what its
// relative paths and globs are bound to; nothing that a client claims is.
func TestRelativeGlobsOfServers(t *testing.T) {
	t.Parallel()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	work, other := filepath.Join(base, "work"), filepath.Join(base, "other")
	for _, d := range []string{work, other} {
		if err := os.MkdirAll(filepath.Join(d, "out"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(other, filepath.Join(work, "out", "away")); err != nil {
		t.Fatal(err)
	}
	h := newHouse(t, freer, "--cwd", work)
	h.declare(relative)
	claims := `{"roots":{"listChanged":true}}`
	session := h.begin("/mcp/files", claims)
	claiming := map[string]string{"Gatehouse-Workspace": other}
	for k, v := range session {
		claiming[k] = v
	}
	expect := func(header map[string]string, args string, want bool) {
		t.Helper()
		heard, ran := h.uses(header, "echo", args)
		if ran != want {
			t.Errorf("%s: ran %t, want %t: %s", args, ran, want, heard)
		}
	}
	for _, header := range []map[string]string{session, claiming} {
		expect(header, `{"to":"out/a"}`, true)
		expect(header, `{"to":"`+work+`/out/a"}`, true)
		expect(header, `{"from":"notes"}`, true)
		expect(header, `{"to":"a"}`, false)
		expect(header, `{"to":"out/../a"}`, false)
		expect(header, `{"to":"../other/out/a"}`, false)
		expect(header, `{"to":"out/away/a"}`, false)
		expect(header, `{"to":"`+other+`/out/a"}`, false) // what the client claims to work in
		expect(header, `{"from":"/etc/passwd"}`, false)
		expect(header, `{"other":"/etc/passwd"}`, false)
	}
	// The agent puts a link to another directory in the workspace's place.
	if err := os.Rename(work, work+".old"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(other, work); err != nil {
		t.Fatal(err)
	}
	expect(session, `{"to":"out/a"}`, false)
	expect(session, `{"to":"`+other+`/out/a"}`, false)
}

// TestServersWithoutAWorkspace: where nobody said what relative paths mean,
// they lie outside every relative glob, whatever the client claims; a server at
// a URL gets a workspace of its own, and the manifest says so.
func TestServersWithoutAWorkspace(t *testing.T) {
	t.Parallel()
	h := newHouse(t, freer)
	h.declare(relative)
	session := h.begin("/mcp/files", `{"roots":{}}`)
	session["Gatehouse-Workspace"] = t.TempDir()
	for _, args := range []string{`{"to":"out/a"}`, `{"from":"out/a"}`, `{"to":"` + session["Gatehouse-Workspace"] + `/out/a"}`} {
		if heard, ran := h.uses(session, "echo", args); ran || !strings.Contains(heard, "beyond what the tool declares") {
			t.Errorf("%s: ran %t: %s", args, ran, heard)
		}
	}
	for name, args := range map[string][]string{
		"a command with a workspace": {"--workspace", "/", "--", "true"},
		"a URL with a directory":     {"--url", "http://127.0.0.1:1/mcp", "--cwd", "/"},
		"one that is not there":      {"--url", "http://127.0.0.1:1/mcp", "--workspace", "/no/such/directory"},
	} {
		if _, _, code := h.Run(append([]string{"upstream", "add", "x", "--credential-file", h.key}, args...)...); code == 0 {
			t.Errorf("%s was taken", name)
		}
	}
	h.Must("upstream", "add", "web", "--credential-file", h.key, "--url", "http://127.0.0.1:1/mcp", "--workspace", "/srv")
	if now := h.Must("manifest", "generate", "--from-gate", "--credential-file", h.key); !strings.Contains(now, `"workspace": "/srv"`) {
		t.Errorf("the manifest does not tell the workspace:\n%s", now)
	}
}
