package daemon

import (
	"context"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// github is the upstream whose credential clear_github_auth forgets.
const github = "github"

// forgetGitHub forgets an agent's credential for GitHub.
func (u *upstreams) forgetGitHub(ctx context.Context, agent string) (had bool, err error) {
	err = u.store.Write(ctx, func(tx *store.Tx) (err error) {
		if had, err = u.registry.ClearCredential(tx, github, agent); err != nil {
			return err
		}
		return u.record(tx, admin.Act{Name: "upstream.credential.clear", By: agent, Channel: "mcp", Subject: github, Detail: map[string]bool{"was_there": had}})
	})
	u.changes.Add(1)
	return had, admin.PublicError(err)
}
