package gateway_test

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
)

// issuer is an OpenID Connect issuer.
type issuer struct {
	*httptest.Server
	key *rsa.PrivateKey
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{key: key}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q,"authorization_endpoint":%q,"token_endpoint":%q,"id_token_signing_alg_values_supported":["RS256"]}`, i.URL, i.URL+"/keys", i.URL, i.URL)
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"keys":[{"kty":"RSA","alg":"RS256","use":"sig","kid":"k","n":%q,"e":%q}]}`, enc(key.N.Bytes()), enc(big.NewInt(int64(key.E)).Bytes()))
	})
	i.Server = httptest.NewServer(mux)
	t.Cleanup(i.Close)
	return i
}

func enc(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// token signs a token.
func (i *issuer) token(t *testing.T, key *rsa.PrivateKey, iss, sub, aud string, expires time.Time) string {
	t.Helper()
	text := enc([]byte(`{"alg":"RS256","kid":"k"}`)) + "." + enc(fmt.Appendf(nil, `{"iss":%q,"sub":%q,"aud":%q,"exp":%d,"iat":%d}`, iss, sub, aud, expires.Unix(), time.Now().Unix()))
	sum := sha256.Sum256([]byte(text))
	sig, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	return text + "." + enc(sig)
}

// TestIssuer: tokens of the trusted issuer are taken if they were made for this
// endpoint and an enrolled agent, and for nothing else.
func TestIssuer(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	h := newHouse(t, free)
	h.Args = append(h.Args, "--issuer", i.URL)
	h.Stop()
	h.Up()
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	soon, aud := time.Now().Add(time.Hour), h.URL+"/mcp"
	body, header := modern("1", "tools/call", `"name":"echo","arguments":{}`, `{}`)
	for name, tt := range map[string]struct {
		token string
		ok    bool
	}{
		"good":               {i.token(t, i.key, i.URL, "coder", aud, soon), true},
		"another audience":   {i.token(t, i.key, i.URL, "coder", "https://other.example.com/mcp", soon), false},
		"another issuer":     {i.token(t, i.key, "https://evil.example.net", "coder", aud, soon), false},
		"another key":        {i.token(t, other, i.URL, "coder", aud, soon), false},
		"expired":            {i.token(t, i.key, i.URL, "coder", aud, time.Now().Add(-time.Hour)), false},
		"nobody enrolled":    {i.token(t, i.key, i.URL, "stranger", aud, soon), false},
		"not a token at all": {"abc", false},
	} {
		header["Authorization"] = "Bearer " + tt.token
		r := h.say("/mcp/files", body, header)
		if got := strings.Contains(r.last(), `"heard"`); got != tt.ok || !tt.ok && r.status != http.StatusUnauthorized {
			t.Errorf("%s: %d %s", name, r.status, r.last())
		}
		if err := h.Client(tt.token).Do(t.Context(), "GET", "/v1/approvals", nil, &api.ApprovalList{}); err == nil {
			t.Errorf("%s: the approver's half takes it", name)
		}
	}
	if _, text := h.HTTP("GET", "/.well-known/oauth-protected-resource/mcp", "", nil, nil); !strings.Contains(string(text), i.URL) {
		t.Errorf("the metadata does not name the issuer: %s", text)
	}
}

// TestOwnListener (ATTACKS row 4): no tool of an upstream is sent to the gate
// itself.
func TestOwnListener(t *testing.T) {
	t.Parallel()
	h := newHouse(t, free)
	session := h.begin("/mcp/files", `{}`)
	for _, args := range []string{`{"url":"` + h.URL + `/v1/kill"}`, `{"path":"` + h.Home + `/keys"}`} {
		if r := h.say("/mcp/files", toolCall("1", "echo", args), session); !strings.Contains(r.last(), "it reaches the gate itself") {
			t.Errorf("%s: %s", args, r.last())
		}
	}
	if got := h.upstreamHeard(`"method":"tools/call"`); len(got) != 0 {
		t.Errorf("the upstream hears %q", got)
	}
}
