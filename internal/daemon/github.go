package daemon

import (
	"context"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/mcp"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// forgetful adds to the native operations the one that forgets a credential:
// it belongs to the upstreams, which the operations know nothing of.
type forgetful struct {
	mcp.Effect
	upstreams *upstreams
}

const (
	clearGitHub = "clear_github_auth"
	// github is the upstream whose credential it forgets.
	github = "github"
)

// Serves says whether an operation is performed here.
func (f forgetful) Serves(operation string) bool {
	return operation == clearGitHub || f.Effect.Serves(operation)
}

// Run performs the operation of a call that was let through.
func (f forgetful) Run(ctx context.Context, c *call.Call) (any, error) {
	if c.Operation != clearGitHub {
		return f.Effect.Run(ctx, c)
	}
	var cleared bool
	err := f.upstreams.store.Write(ctx, func(tx *store.Tx) (err error) {
		if cleared, err = f.upstreams.registry.ClearCredential(tx, github, c.Principal.Agent); err != nil {
			return err
		}
		return f.upstreams.record(tx, admin.Act{Name: "upstream.credential.clear", By: c.Principal.Agent, Channel: "mcp", Subject: github, Detail: map[string]bool{"was_there": cleared}})
	})
	f.upstreams.changes.Add(1)
	return map[string]any{"upstream": github, "cleared": cleared}, err
}
