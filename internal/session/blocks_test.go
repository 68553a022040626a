package session_test

import (
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/session"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store/storetest"
)

// TestAttack10BlockReaches: a block is not washed off by another session, by
// another name in the same workspace, or by an agent that the blocked one
// started; and it reaches nobody else.
func TestAttack10BlockReaches(t *testing.T) {
	t.Parallel()
	storetest.Both(t, func(t *testing.T, s *store.Store) {
		h := newHall(t, s)
		peer := self(t)
		open := func(agent, workspace string, p session.Peer, bound session.Process) call.Principal {
			t.Helper()
			s, _, err := h.open(t, session.Open{Agent: agent, Surface: "api", Workspace: workspace, Peer: p, Process: bound})
			if err != nil {
				t.Fatal(err)
			}
			return call.Principal{Agent: agent, Session: s.ID}
		}
		if len(peer.Chain) < 2 {
			t.Skip("this process has no ancestors that can be seen")
		}
		parent, child := peer.Chain[1], peer.Chain[0]
		above := session.Peer{Chain: peer.Chain[1:]}
		first := open("claude", "/w/app", above, parent)
		principals := map[string]call.Principal{
			"another session":             open("claude", "/w/other", above, parent),
			"a name in the workspace":     open("codex", "/w/app", above, parent),
			"below the workspace":         open("codex", "/w/app/sub", above, parent),
			"an agent that it started":    open("gemini", "/elsewhere", peer, child),
			"a path":                      {Agent: "claude", Session: first.Session, Path: "sub/agent"},
			"another spelling":            {Agent: "Claude", Session: first.Session},
			"the one that was blocked":    first,
			"an agent below that started": open("vibe", "/elsewhere", peer, child),
		}
		h.write(t, func(tx *store.Tx) error {
			_, err := h.SetBlock(tx, session.Block{Agent: "claude", Workspace: "/w/app", By: "gatehouse", Reason: "x"})
			return err
		})
		for name, p := range principals {
			if st, err := h.standing(t, p); err == nil && !st.Danger {
				t.Errorf("%s goes on", name)
			}
		}
		stranger := session.Peer{Chain: peer.Chain[len(peer.Chain)-1:]}
		if stranger.Chain[0].PID > 1 {
			if st, err := h.standing(t, open("other", "/w/application", stranger, stranger.Chain[0])); err != nil || st.Danger {
				t.Errorf("somebody else, somewhere else: %+v, %v", st, err)
			}
		}
		token := h.token(t, "other")
		if st, err := h.standing(t, open("other", "/w/application", session.Peer{Token: token}, session.Process{})); err != nil || st.Danger {
			t.Errorf("somebody else, somewhere else: %+v, %v", st, err)
		}
	})
}

// token enrols an agent and returns its token's id.
func (h *hall) token(t testing.TB, name string) (id string) {
	t.Helper()
	h.write(t, func(tx *store.Tx) error {
		secret, err := h.AddAgent(tx, name, "ada")
		if err != nil {
			return err
		}
		a, err := h.CheckToken(tx, secret.Reveal())
		if err == nil {
			id = a.TokenID()
		}
		return err
	})
	return id
}
