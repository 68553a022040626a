package gateway_test

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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
	clear := toolCall("1", "mcp_aql_delete", `{"operation":"clear_github_auth"}`)
	if r := h.say("/mcp/gatehouse", clear, session); !strings.Contains(r.last(), "Pending") {
		t.Fatalf("without a person: %s", r.last())
	}
	left := func() string {
		got := &api.UpstreamList{}
		if err := h.Client(h.credential).Do(t.Context(), "GET", "/v1/upstreams", nil, got); err != nil {
			t.Fatal(err)
		}
		for _, u := range got.Upstreams {
			if u.Name == "github" {
				return strings.Join(u.Credentials, " ")
			}
		}
		return ""
	}
	if got := left(); got != "coder other" {
		t.Fatalf("before it is approved the credentials are those of %s", got)
	}
	secretKey := &api.TOTPResponse{}
	ann := h.Client(h.credential)
	if err := ann.Do(t.Context(), "POST", "/v1/totp", nil, secretKey); err != nil {
		t.Fatal(err)
	}
	now := time.Now().Unix() / 30
	if err := ann.Do(t.Context(), "POST", "/v1/totp/confirm", &api.CodeRequest{Code: code(t, secretKey.Secret, now)}, nil); err != nil {
		t.Fatal(err)
	}
	r := h.pending().Requests[0]
	if err := ann.Do(t.Context(), "POST", "/v1/approvals/"+r.ID+"/approve", &api.ApproveRequest{Digest: r.Digest, Code: code(t, secretKey.Secret, now+1)}, nil); err != nil {
		t.Fatal(err)
	}
	if r := h.say("/mcp/gatehouse", clear, session); !strings.Contains(r.last(), `"cleared":true`) {
		t.Fatalf("approved: %s", r.last())
	}
	if got := left(); got != "other" {
		t.Errorf("afterwards the credentials are those of %q", got)
	}
}

// code is RFC 6238 with its defaults.
func code(t *testing.T, secret string, step int64) string {
	t.Helper()
	key, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(secret)
	if err != nil {
		t.Fatal(err)
	}
	mac := hmac.New(sha1.New, key)
	_ = binary.Write(mac, binary.BigEndian, step) // a hash takes everything
	sum := mac.Sum(nil)
	at := sum[len(sum)-1] & 0x0f
	return fmt.Sprintf("%06d", binary.BigEndian.Uint32(sum[at:])&0x7fffffff%1_000_000)
}
