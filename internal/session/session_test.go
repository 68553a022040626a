package session_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/seed-3ebc6b8a/gatehouse/internal/keyring"
	"github.com/seed-3ebc6b8a/gatehouse/internal/session"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store/storetest"
)

// TestForgedEventIsForeign is attack 6: a real process outside the agent's
// tree uses the session's id, and is refused; one inside it is heard.
func TestForgedEventIsForeign(t *testing.T) {
	t.Parallel()
	h := newHall(t, storetest.Open(t, storetest.SQLite(t)))
	srv := newServer(t)
	agent, stopAgent := srv.start(t, os.Args[0])
	other, _ := srv.start(t, os.Args[0])
	s, opened, err := h.open(t, session.Open{Agent: "claude", Surface: "hook:claude", Ref: "host-1", Process: agent.Chain[0], Peer: agent})
	if err != nil || !opened {
		t.Fatal(err)
	}
	check := func(id string, peer session.Peer) error {
		return h.back(t, func(tx *store.Tx) error { _, err := h.Check(tx, id, peer); return err })
	}
	if err := check(s.ID, agent); err != nil {
		t.Errorf("the agent itself: %v", err)
	}
	reused, otherUser, otherMachine := agent.Chain[0], agent.Chain[0], agent.Chain[0]
	reused.Start++
	otherUser.UID++
	otherMachine.Machine += "x"
	for name, peer := range map[string]session.Peer{
		"a sibling":         other,
		"an ancestor":       self(t),
		"nobody":            {},
		"a token":           {Token: "abc"},
		"a used process id": {Chain: []session.Process{reused}},
		"another user":      {Chain: []session.Process{otherUser}},
		"another machine":   {Chain: []session.Process{otherMachine}},
		"a token inside":    {Chain: agent.Chain, Token: "abc"},
	} {
		if err := check(s.ID, peer); !errors.Is(err, session.ErrForeign) {
			t.Errorf("%s speaks for the session: %v", name, err)
		}
	}
	if err := check("s_none", agent); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("an invented session: %v", err)
	}
	// Taking over the host's name while its process lives is as foreign.
	take := session.Open{Agent: "claude", Surface: "hook:claude", Ref: "host-1", Process: other.Chain[0], Peer: other}
	if _, _, err := h.open(t, take); !errors.Is(err, session.ErrForeign) {
		t.Errorf("a sibling opened the session again: %v", err)
	}
	if _, _, err := h.open(t, session.Open{Agent: "claude", Surface: "hook:claude", Process: agent.Chain[0], Peer: other}); !errors.Is(err, session.ErrForeign) {
		t.Errorf("a session was bound to a process the caller is not part of: %v", err)
	}
	// When it has ended, the name stands for a new session with nothing in it.
	stopAgent()
	next, opened, err := h.open(t, take)
	if err != nil || !opened || next.ID == s.ID {
		t.Fatalf("after the process ended: %+v, %v", next, err)
	}
	if err := check(s.ID, agent); !errors.Is(err, session.ErrEnded) {
		t.Errorf("the old session: %v", err)
	}
}

// TestHooksOfAnAgentAreInside: what an agent starts, through shells and their
// children, speaks for its session, and its anchor is the agent.
func TestHooksOfAnAgentAreInside(t *testing.T) {
	t.Parallel()
	h := newHall(t, storetest.Open(t, storetest.SQLite(t)))
	s, _, err := h.open(t, own(t, "host-1"))
	if err != nil {
		t.Fatal(err)
	}
	srv := newServer(t)
	// The colon keeps the shell from replacing itself by its last command.
	hook, _ := srv.start(t, "sh", "-c", "sh -c '"+os.Args[0]+"; :'; :")
	if err := h.back(t, func(tx *store.Tx) error { _, err := h.Check(tx, s.ID, hook); return err }); err != nil {
		t.Errorf("the agent's hook: %v", err)
	}
	if len(hook.Chain) < 4 {
		t.Fatalf("the hook's ancestors: %v", hook.Chain)
	}
	anchor, err := session.Anchor(hook.Chain)
	if err != nil || anchor.PID != os.Getpid() {
		t.Errorf("the anchor is %v (%v), want process %d", anchor, err, os.Getpid())
	}
	if _, err := session.Anchor(hook.Chain[:1]); !errors.Is(err, session.ErrGone) {
		t.Errorf("an orphan has an anchor: %v", err)
	}
	again, opened, err := h.open(t, session.Open{Agent: "claude", Surface: "hook:claude", Ref: "host-1", Process: anchor, Peer: hook})
	if err != nil || opened || again.ID != s.ID {
		t.Errorf("opening again from inside: %+v, opened %v, %v", again, opened, err)
	}
}

// TestProcessNamesCannotLie: a program whose name looks like the rest of a
// line in /proc does not change who its parent is.
func TestProcessNamesCannotLie(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	evil := filepath.Join(t.TempDir(), "x) R 1 (1 1 1")
	// Another process copies: a file that this one has open for writing could
	// not be run while a parallel test forks.
	if out, err := exec.Command("cp", os.Args[0], evil).CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	peer, _ := srv.start(t, evil)
	if len(peer.Chain) < 2 || peer.Chain[1].PID != os.Getpid() {
		t.Errorf("its parent seems to be %v", peer.Chain[1:])
	}
	if peer.Chain[0].Exe != evil {
		t.Errorf("its program seems to be %s", peer.Chain[0].Exe)
	}
}

func TestGoneProcess(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	peer, stop := srv.start(t, os.Args[0])
	if !session.Alive(peer.Chain[0]) {
		t.Error("a running process is not alive")
	}
	stop()
	if session.Alive(peer.Chain[0]) {
		t.Error("an ended process is alive")
	}
	if _, err := session.Ancestry(peer.Chain[0].PID); !errors.Is(err, session.ErrGone) {
		t.Errorf("the ancestors of an ended process: %v", err)
	}
	me := self(t).Chain[0]
	me.Start++
	if session.Alive(me) {
		t.Error("a used process id passes for the process before")
	}
}

func TestSessionsOverTheNetworkBelongToTheirToken(t *testing.T) {
	t.Parallel()
	storetest.Both(t, func(t *testing.T, s *store.Store) {
		h := newHall(t, s)
		var mine, other *session.Agent
		h.write(t, func(tx *store.Tx) error {
			a, err1 := h.AddAgent(tx, "builder", "ada")
			b, err2 := h.AddAgent(tx, "deployer", "ada")
			var err3, err4 error
			mine, err3 = h.CheckToken(tx, a.Reveal())
			other, err4 = h.CheckToken(tx, b.Reveal())
			return errors.Join(err1, err2, err3, err4)
		})
		got, _, err := h.open(t, session.Open{Agent: "builder", Surface: "api", Ref: "x", Peer: session.Peer{Token: mine.TokenID()}})
		if err != nil {
			t.Fatal(err)
		}
		check := func(peer session.Peer) error {
			return h.back(t, func(tx *store.Tx) error { _, err := h.Check(tx, got.ID, peer); return err })
		}
		if err := check(session.Peer{Token: mine.TokenID()}); err != nil {
			t.Error(err)
		}
		for name, peer := range map[string]session.Peer{"another token": {Token: other.TokenID()}, "a process": self(t), "nobody": {}} {
			if err := check(peer); !errors.Is(err, session.ErrForeign) {
				t.Errorf("%s speaks for the session: %v", name, err)
			}
		}
		if _, _, err := h.open(t, session.Open{Agent: "builder", Surface: "api", Ref: "x", Peer: session.Peer{Token: other.TokenID()}}); !errors.Is(err, session.ErrToken) {
			t.Errorf("another token took the name over: %v", err)
		}
		h.write(t, func(tx *store.Tx) error {
			ended, err := h.RemoveAgent(tx, "builder", "ada")
			if len(ended) != 1 {
				t.Errorf("removing the agent ended %d sessions", len(ended))
			}
			return err
		})
		if err := check(session.Peer{Token: mine.TokenID()}); !errors.Is(err, session.ErrEnded) {
			t.Errorf("the session of a removed agent: %v", err)
		}
		if _, _, err := h.open(t, session.Open{Agent: "builder", Surface: "api", Peer: session.Peer{Token: mine.TokenID()}}); !errors.Is(err, session.ErrToken) {
			t.Errorf("a removed agent opened a session: %v", err)
		}
	})
}

// TestATokenOpensItsOwnSessionsOnly: a token that was voided a moment ago, or
// is another agent's, or was never made, opens nothing, whatever the surface
// remembers of it.
func TestATokenOpensItsOwnSessionsOnly(t *testing.T) {
	t.Parallel()
	storetest.Both(t, func(t *testing.T, s *store.Store) {
		h := newHall(t, s)
		var builder, deployer *session.Agent
		h.write(t, func(tx *store.Tx) error {
			a, err1 := h.AddAgent(tx, "builder", "ada")
			b, err2 := h.AddAgent(tx, "deployer", "ada")
			var err3, err4 error
			builder, err3 = h.CheckToken(tx, a.Reveal())
			deployer, err4 = h.CheckToken(tx, b.Reveal())
			return errors.Join(err1, err2, err3, err4)
		})
		open := func(agent, token string) error {
			_, _, err := h.open(t, session.Open{Agent: agent, Surface: "api", Peer: session.Peer{Token: token}})
			return err
		}
		if err := open("builder", builder.TokenID()); err != nil {
			t.Fatal(err)
		}
		h.write(t, func(tx *store.Tx) error { _, err := h.RemoveAgent(tx, "builder", "ada"); return err })
		for name, err := range map[string]error{
			"a voided token":        open("builder", builder.TokenID()),
			"another agent's token": open("builder", deployer.TokenID()),
			"an invented token":     open("deployer", "00"),
			"an unknown agent":      open("nobody", deployer.TokenID()),
		} {
			if !errors.Is(err, session.ErrToken) {
				t.Errorf("%s opened a session: %v", name, err)
			}
		}
	})
}

func TestAgents(t *testing.T) {
	t.Parallel()
	storetest.Both(t, func(t *testing.T, s *store.Store) {
		h := newHall(t, s)
		var token keyring.Secret
		h.write(t, func(tx *store.Tx) (err error) { token, err = h.AddAgent(tx, "builder", "ada"); return err })
		check := func(secret string) error {
			return h.back(t, func(tx *store.Tx) error { _, err := h.CheckToken(tx, secret); return err })
		}
		if err := check(token.Reveal()); err != nil {
			t.Fatal(err)
		}
		for _, wrong := range []string{"", "ghg_", token.Reveal() + "a", strings.Replace(token.Reveal(), "ghg_", "gha_", 1)} {
			if err := check(wrong); !errors.Is(err, session.ErrToken) {
				t.Errorf("%q: got %v", wrong, err)
			}
		}
		if err := h.back(t, func(tx *store.Tx) error { _, err := h.AddAgent(tx, "builder", "ada"); return err }); !errors.Is(err, session.ErrExists) {
			t.Errorf("the same name twice: %v", err)
		}
		for _, name := range []string{"", "Builder", "a b", "a/b", "аgent"} {
			if err := h.back(t, func(tx *store.Tx) error { _, err := h.AddAgent(tx, name, "ada"); return err }); !errors.Is(err, session.ErrInvalid) {
				t.Errorf("%q is taken for a name: %v", name, err)
			}
		}
		h.write(t, func(tx *store.Tx) error { _, err := h.RemoveAgent(tx, "builder", "ada"); return err })
		if err := check(token.Reveal()); !errors.Is(err, session.ErrToken) {
			t.Errorf("a removed agent's token: %v", err)
		}
		var again keyring.Secret
		h.write(t, func(tx *store.Tx) (err error) { again, err = h.AddAgent(tx, "builder", "bob"); return err })
		if err := errors.Join(check(again.Reveal())); err != nil {
			t.Error(err)
		}
		if err := check(token.Reveal()); !errors.Is(err, session.ErrToken) {
			t.Errorf("the old token came back with the name: %v", err)
		}
	})
}

func TestSessionRoundTrip(t *testing.T) {
	t.Parallel()
	storetest.Both(t, func(t *testing.T, s *store.Store) {
		h := newHall(t, s)
		o := own(t, "host-1")
		o.Agent, o.Attendance, o.Mode = "Claude", session.Interactive, session.Observe
		want, _, err := h.open(t, o)
		if err != nil {
			t.Fatal(err)
		}
		if want.Agent != "claude" {
			t.Errorf("the agent is %q", want.Agent)
		}
		h.write(t, func(tx *store.Tx) error { return h.SetMode(tx, want.ID, session.Plan) })
		h.write(t, func(tx *store.Tx) error { return h.Touch(tx, want.ID) })
		want.Mode = session.Plan
		var got, found *session.Session
		var list []*session.Session
		h.write(t, func(tx *store.Tx) error {
			var err1, err2, err3 error
			got, err1 = h.Get(tx, want.ID)
			found, err2 = h.Find(tx, "CLAUDE", "host-1")
			list, err3 = h.List(tx, true, 0)
			return errors.Join(err1, err2, err3)
		})
		ignore := cmpopts.IgnoreFields(session.Session{}, "Seen")
		for _, g := range append(list, got, found) {
			if diff := cmp.Diff(want, g, ignore); diff != "" {
				t.Errorf("(-opened +read):\n%s", diff)
			}
		}
		h.write(t, func(tx *store.Tx) error { return h.End(tx, want.ID, "ada") })
		h.write(t, func(tx *store.Tx) error { return h.End(tx, want.ID, "bob") })
		h.write(t, func(tx *store.Tx) (err error) {
			got, err = h.Get(tx, want.ID)
			list, _ = h.List(tx, true, 0)
			return err
		})
		if got.EndedBy != "ada" || len(list) != 0 {
			t.Errorf("ended by %q, %d open", got.EndedBy, len(list))
		}
		for name, spoil := range map[string]func(*session.Open){
			"no agent":     func(o *session.Open) { o.Agent = " " },
			"no surface":   func(o *session.Open) { o.Surface = "" },
			"no bond":      func(o *session.Open) { o.Process = session.Process{} },
			"bound to 1":   func(o *session.Open) { o.Process.PID = 1 },
			"bad mode":     func(o *session.Open) { o.Mode = "yolo" },
			"nobody there": func(o *session.Open) { o.Attendance = "maybe" },
			"NUL":          func(o *session.Open) { o.Ref = "a\x00b" },
			"long":         func(o *session.Open) { o.Workspace = strings.Repeat("x", 1<<16) },
		} {
			o := own(t, "host-2")
			spoil(&o)
			if _, _, err := h.open(t, o); !errors.Is(err, session.ErrInvalid) {
				t.Errorf("%s: got %v", name, err)
			}
		}
	})
}

// TestOneSessionPerName: nodes that open the same host session at once make
// one.
func TestOneSessionPerName(t *testing.T) {
	t.Parallel()
	storetest.BothOptions(t, func(t *testing.T, opts store.Options) {
		first := storetest.Open(t, opts)
		on := []*store.Store{first, first}
		if opts.DSN != "" {
			on[1] = storetest.Open(t, opts)
		}
		h := newHall(t, first)
		var opened atomic.Int64
		var wg sync.WaitGroup
		for n := range 8 {
			wg.Go(func() {
				var fresh bool
				err := on[n%2].Write(t.Context(), func(tx *store.Tx) (err error) {
					_, fresh, err = h.Open(tx, own(t, "host-1"))
					return err
				})
				if err != nil && !errors.Is(err, session.ErrForeign) {
					t.Error(err)
				}
				if err == nil && fresh {
					opened.Add(1)
				}
			})
		}
		wg.Wait()
		if opened.Load() != 1 {
			t.Errorf("%d sessions were opened for one name", opened.Load())
		}
	})
}

// TestAgentIDSettles: folding twice is folding once, and no spelling that
// reads the same escapes.
func TestAgentIDSettles(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"Deployer", "ＤＥＰＬＯＹＥＲ", "de\u200bployer", " deployer\n", "dеployеr", "déployer", "𝓭𝓮𝓹𝓵𝓸𝔂𝓮𝓻"} {
		if got := session.AgentID(s); got != "deployer" {
			t.Errorf("%q folds to %q", s, got)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		once := session.AgentID(rapid.String().Draw(t, "name"))
		if twice := session.AgentID(once); twice != once {
			t.Fatalf("%q folds to %q", once, twice)
		}
	})
}
