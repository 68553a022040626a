package gateway_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
)

// TestClearGitHubAuth: the operation forgets the calling agent's credential for
// the server called github, and no other. It is pinned, so a person has to
// approve it with a second factor.
func TestClearGitHubAuth(t *testing.T) {
	t.Parallel()
	h := newHouse(t, free)
	h.add("github", "--credential-env", "UPSTREAM_TOKEN")
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("tok-123456789"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.Must("upstream", "credential", "github", "--agent", "coder", "--secret-file", secret, "--credential-file", h.key)
	h.Must("upstream", "credential", "github", "--agent", "other", "--secret-file", secret, "--credential-file", h.key)
	session := h.begin("/mcp/gatehouse", `{}`)
	r := h.say("/mcp/gatehouse", toolCall("1", "mcp_aql_delete", `{"operation":"clear_github_auth"}`), session)
	if !strings.Contains(r.last(), "Pending") && !strings.Contains(r.last(), "endpoint") {
		t.Errorf("without a person: %s", r.last())
	}
	got := &api.UpstreamList{}
	if err := h.Client(h.credential).Do(t.Context(), "GET", "/v1/upstreams", nil, got); err != nil {
		t.Fatal(err)
	}
	for _, u := range got.Upstreams {
		if u.Name == "github" && strings.Join(u.Credentials, " ") != "coder other" {
			t.Errorf("the credentials are those of %q", u.Credentials)
		}
	}
}
