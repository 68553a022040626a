package daemon

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/session"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// issuer checks tokens that an OpenID Connect issuer made for the MCP endpoint.
type issuer struct {
	url, audience string

	mu       sync.Mutex
	verifier *oidc.IDTokenVerifier
}

// newIssuer makes the checker for an issuer, nil for none. The issuer is asked
// for its keys when the first token comes.
func newIssuer(url, audience string) *issuer {
	if url == "" {
		return nil
	}
	return &issuer{url: url, audience: audience}
}

// issuers lists the issuers whose tokens are taken.
func (d *daemon) issuers() []string {
	if d.opts.Issuer == "" {
		return nil
	}
	return []string{d.opts.Issuer}
}

// check verifies signature, issuer, audience and expiry, and returns the
// subject.
func (i *issuer) check(ctx context.Context, token string) (string, error) {
	v, err := i.get()
	if err != nil {
		return "", err
	}
	got, err := v.Verify(ctx, token)
	if err != nil {
		return "", err
	}
	return got.Subject, nil
}

func (i *issuer) get() (*oidc.IDTokenVerifier, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.verifier != nil {
		return i.verifier, nil
	}
	// The context is kept by the provider for fetching keys later on.
	ctx := oidc.ClientContext(context.Background(), &http.Client{Timeout: 10 * time.Second})
	p, err := oidc.NewProvider(ctx, i.url)
	if err != nil {
		return nil, err
	}
	i.verifier = p.Verifier(&oidc.Config{ClientID: i.audience})
	return i.verifier, nil
}

// Bearer returns the enrolled agent that a token of the trusted issuer names.
func (d *doors) Bearer(ctx context.Context, token string) (name, tokenID string, err error) {
	if d.issuer == nil {
		return "", "", admin.PublicError(session.ErrToken)
	}
	subject, err := d.issuer.check(ctx, token)
	if err != nil {
		return "", "", admin.PublicError(session.ErrToken)
	}
	err = d.store.Read(ctx, func(tx *store.Tx) error {
		agents, err := d.sessions.Agents(tx)
		if err != nil {
			return err
		}
		for _, a := range agents {
			if a.Name == subject && a.Removed.IsZero() {
				name, tokenID = a.Name, a.TokenID()
				return nil
			}
		}
		return session.ErrToken
	})
	return name, tokenID, admin.PublicError(err)
}
