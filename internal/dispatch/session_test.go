package dispatch

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/content"
	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch/flight"
	"github.com/seed-3ebc6b8a/gatehouse/internal/keyring"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store/storetest"
)

// sessions runs a test with a service on each database.
func sessions(t *testing.T, fn func(t *testing.T, s *Service)) {
	t.Helper()
	storetest.Both(t, func(t *testing.T, db *store.Store) {
		keys, err := keyring.Load(filepath.Join(t.TempDir(), "keys"), nil)
		if err != nil {
			t.Fatal(err)
		}
		redactor := content.NewRedactor(content.RedactorConfig{})
		fn(t, New(Options{Store: db, Keys: keys, Dir: t.TempDir(), Awareness: func() flight.Awareness { return flight.Awareness{} },
			Flight: flight.New(keys, func() *content.Redactor { return redactor })}))
	})
}

// TestSessions: sessions are made, listed, gone on with and forgotten, each by
// its owner and nobody else, on both databases.
func TestSessions(t *testing.T) {
	t.Parallel()
	ann, bob := call.Principal{Agent: "ann", Session: "1"}, call.Principal{Agent: "bob", Session: "2"}
	sessions(t, func(t *testing.T, s *Service) {
		ctx := t.Context()
		made := map[string]*Session{}
		for _, cli := range []string{"claude", "codex", "claude"} {
			v, err := s.SessionCreate(ctx, ann, cli, "about "+cli)
			if err != nil {
				t.Fatal(err)
			}
			made[cli] = v // the younger of the two
		}
		if _, err := s.SessionCreate(ctx, ann, "vi", ""); err == nil {
			t.Error("a session of a CLI that there is not")
		}
		for cli, want := range map[string]int{"": 3, "claude": 2, "codex": 1, "grok": 0} {
			if list, err := s.SessionList(ctx, ann, cli); err != nil || len(list) != want {
				t.Errorf("%d sessions of %q, want %d: %v", len(list), cli, want, err)
			}
		}
		if list, err := s.SessionList(ctx, bob, ""); err != nil || len(list) != 0 {
			t.Errorf("another sees %d: %v", len(list), err)
		}
		got, err := s.SessionGet(ctx, ann, made["codex"].ID)
		if err != nil || got.Description != "about codex" || !got.Created.Equal(made["codex"].Created) || got.Begun || got.Active {
			t.Errorf("%+v %v", got, err)
		}
		id := made["codex"].ID
		for name, err := range map[string]error{
			"get": errOf(s.SessionGet(ctx, bob, id)), "delete": s.SessionDelete(ctx, bob, id), "active": s.SessionSetActive(ctx, bob, "codex", id),
		} {
			if !errors.Is(err, ErrNoSession) {
				t.Errorf("%s of another's: %v", name, err)
			}
		}
		if n, err := s.SessionClear(ctx, bob, ""); err != nil || n != 0 {
			t.Errorf("another forgot %d: %v", n, err)
		}
		s.actives(t, ann, made["claude"].ID)
		if err := s.SessionSetActive(ctx, ann, "claude", id); err == nil {
			t.Error("a session of codex is active for claude")
		}
		if err := s.SessionDelete(ctx, ann, id); err != nil || !errors.Is(errOf(s.SessionGet(ctx, ann, id)), ErrNoSession) {
			t.Errorf("deleted: %v", err)
		}
		if n, err := s.SessionClear(ctx, ann, "claude"); err != nil || n != 2 {
			t.Errorf("%d forgotten: %v", n, err)
		}
	})
}

func errOf(_ *Session, err error) error { return err }

// actives makes one session after another the one to go on with.
func (s *Service) actives(t *testing.T, who call.Principal, younger string) {
	t.Helper()
	list, err := s.SessionList(t.Context(), who, "claude")
	if err != nil || len(list) != 2 {
		t.Fatalf("%d %v", len(list), err)
	}
	latest := func() string {
		var v *Session
		if err := s.opts.Store.Read(t.Context(), func(tx *store.Tx) (err error) {
			v, err = s.latestSession(tx, who, "claude")
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return v.ID
	}
	if latest() != younger {
		t.Error("the last one used is not the latest")
	}
	for _, v := range list {
		if err := s.SessionSetActive(t.Context(), who, "claude", v.ID); err != nil || latest() != v.ID {
			t.Errorf("%s is not active: %v", v.ID, err)
		}
	}
	if err := s.SessionSetActive(t.Context(), who, "claude", ""); err != nil || latest() != younger {
		t.Errorf("none is active, and the latest is %s: %v", latest(), err)
	}
}

// TestEditedSession: a row that was changed in the database is refused: its
// owner, its CLI, and what it is called by the CLI.
func TestEditedSession(t *testing.T) {
	t.Parallel()
	ann, bob := call.Principal{Agent: "ann"}, call.Principal{Agent: "bob"}
	sessions(t, func(t *testing.T, s *Service) {
		for change, who := range map[string]call.Principal{"agent = 'bob'": bob, "cli = 'codex'": ann} {
			v, err := s.SessionCreate(t.Context(), ann, "claude", "")
			if err != nil {
				t.Fatal(err)
			}
			if err := s.opts.Store.Write(t.Context(), func(tx *store.Tx) error {
				_, err := tx.Exec(`UPDATE dispatch_session SET `+change+` WHERE id = $1`, v.ID)
				return err
			}); err != nil {
				t.Fatal(err)
			}
			if got, err := s.SessionGet(t.Context(), who, v.ID); err == nil {
				t.Errorf("%s: %+v", change, got)
			}
		}
	})
}
