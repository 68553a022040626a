package activation_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/activation"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/element"
	"github.com/seed-3ebc6b8a/gatehouse/internal/keyring"
	"github.com/seed-3ebc6b8a/gatehouse/internal/library"
	"github.com/seed-3ebc6b8a/gatehouse/internal/session"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store/storetest"
)

// stage is a keeper with an agent's session.
type stage struct {
	*activation.Keeper
	t     *testing.T
	dir   string
	who   call.Principal
	acts  []string
	store *store.Store
	lib   *library.Library
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{t: t, dir: t.TempDir(), store: storetest.Open(t, storetest.SQLite(t))}
	keys, err := keyring.Load(filepath.Join(t.TempDir(), "keys"), nil)
	if err != nil {
		t.Fatal(err)
	}
	sessions := session.New(keys, nil)
	if s.lib, err = library.Open(s.dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.lib.Close() })
	err = s.store.Write(t.Context(), func(tx *store.Tx) error {
		if err := sessions.Prepare(tx); err != nil {
			return err
		}
		token, err := sessions.AddAgent(tx, "coder", "test")
		if err != nil {
			return err
		}
		agent, err := sessions.CheckToken(tx, token.Reveal())
		if err != nil {
			return err
		}
		open, _, err := sessions.Open(tx, session.Open{Agent: "coder", Surface: "test", Workspace: "/src", Peer: session.Peer{Token: agent.TokenID()}})
		if err == nil {
			s.who = call.Principal{Agent: "coder", Session: open.ID}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Keeper = activation.New(activation.Options{
		Store: s.store, Sessions: sessions, Library: s.lib, Keys: keys, Log: slog.New(slog.DiscardHandler),
		Record: func(_ *store.Tx, e activation.Event) error { s.acts = append(s.acts, e.Name+" "+e.Subject); return nil },
	})
	return s
}

func (s *stage) write(path, meta string) {
	s.t.Helper()
	name := strings.TrimSuffix(filepath.Base(path), ".md")
	text := "---\nname: " + name + "\ndescription: d\n" + meta + "---\n"
	if err := os.WriteFile(filepath.Join(s.dir, path), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// order makes a call as it would be decided now.
func (s *stage) order(operation, elementType, args string, approved bool) *activation.Order {
	s.t.Helper()
	c := &call.Call{Kind: call.Native, Surface: "test", Principal: s.who, Operation: operation, ElementType: elementType, Args: []byte(args)}
	if err := c.Normalize(); err != nil {
		s.t.Fatal(err)
	}
	p := s.Propose(s.t.Context(), c)
	return &activation.Order{Call: c, Approved: approved, World: p.World}
}

func (s *stage) activate(elementType, name string, approved bool) error {
	s.t.Helper()
	_, err := s.Activate(s.t.Context(), s.order("activate_element", elementType, fmt.Sprintf(`{"name":%q}`, name), approved), elementType, name)
	return err
}

func (s *stage) level(operation string) call.Level {
	s.t.Helper()
	list, err := s.InForce(s.t.Context(), s.who)
	if err != nil {
		s.t.Fatal(err)
	}
	return element.Compile(list).Resolve(operation, "", false).Level
}

func (s *stage) wants(operation string, want call.Level) {
	s.t.Helper()
	if got := s.level(operation); got != want {
		s.t.Errorf("%s is %s, want %s", operation, got, want)
	}
}

func refused(t *testing.T, what string, err error) {
	t.Helper()
	var r *activation.RefusedError
	if !errors.As(err, &r) {
		t.Errorf("%s: %v", what, err)
	}
}

// TestFreeMustStayFree: a call that was let through because it loosens nothing
// does not loosen, whatever changed until it runs.
func TestFreeMustStayFree(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.write("personas/yes.md", "gatekeeper:\n  allow: [create_element]\n")
	s.write("personas/no.md", "gatekeeper:\n  deny: [create_element]\n")
	if err := s.activate("persona", "no", false); err != nil {
		t.Fatal(err)
	}
	free := s.order("activate_element", "persona", `{"name":"yes"}`, false) // decided while "no" denies
	down := s.order("deactivate_element", "persona", `{"name":"no"}`, true)
	if _, err := s.Deactivate(t.Context(), down, "persona", "no"); err != nil {
		t.Fatal(err)
	}
	_, err := s.Activate(t.Context(), free, "persona", "yes")
	refused(t, "an allow that was free a moment ago", err)
	s.wants("create_element", call.ConfirmSession)

	refused(t, "an allow that nobody approved", s.activate("persona", "yes", false))
	if err := s.activate("persona", "yes", true); err != nil {
		t.Fatal(err)
	}
	s.wants("create_element", call.AutoApprove)
}

// TestFilesMustBeThoseDecidedOn: an order rests on the files as they were.
func TestFilesMustBeThoseDecidedOn(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.write("personas/p.md", "gatekeeper:\n  deny: [clear]\n")
	activate := s.order("activate_element", "persona", `{"name":"p"}`, true)
	edit := s.order("edit_element", "persona", `{"name":"p","description":"new"}`, true)
	remove := s.order("delete_element", "persona", `{"name":"p"}`, true)
	s.write("personas/p.md", "gatekeeper:\n  allow: [create_element]\n")
	_, err := s.Activate(t.Context(), activate, "persona", "p")
	refused(t, "activate", err)
	_, err = s.Edit(t.Context(), edit)
	refused(t, "edit", err)
	_, err = s.Delete(t.Context(), remove, "persona", "p")
	refused(t, "delete", err)
	if len(s.acts) != 0 {
		t.Errorf("done all the same: %v", s.acts)
	}
	_, err = s.Delete(t.Context(), s.order("delete_element", "persona", `{"name":"p"}`, false), "persona", "p")
	if err == nil {
		t.Error("deleted without an approval")
	}
}

// TestEnsembleBringsItsMembers, and they go with it.
func TestEnsembleBringsItsMembers(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.write("personas/p.md", "gatekeeper:\n  deny: [clear]\n")
	s.write("skills/s.md", "gatekeeper:\n  confirm: [get_element]\n")
	s.write("ensembles/inner.md", "elements:\n  - {element_name: s, element_type: skills}\n  - {element_name: outer, element_type: ensemble}\n")
	s.write("ensembles/outer.md", "elements:\n  - {element_name: p, element_type: persona}\n  - {element_name: inner, element_type: ensemble}\n")
	s.write("ensembles/hole.md", "elements:\n  - {element_name: nobody, element_type: persona}\n")
	refused(t, "an ensemble with a member missing", s.activate("ensemble", "hole", true))
	if err := s.activate("ensemble", "outer", false); err != nil {
		t.Fatal(err)
	}
	s.wants("clear", call.Deny)
	s.wants("get_element", call.ConfirmSession)

	// A member's file that loosens waits like any other.
	s.write("personas/p.md", "")
	if _, err := s.Follow(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.wants("clear", call.Deny)
	if staged := s.Staged(); len(staged) != 1 || staged[0].Element != "ensemble/outer" {
		t.Errorf("staged: %+v", staged)
	}
	// A stricter one counts at once.
	s.write("personas/p.md", "gatekeeper:\n  deny: [clear, addEntry]\n")
	if _, err := s.Follow(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.wants("addEntry", call.Deny)

	_, err := s.Deactivate(t.Context(), s.order("deactivate_element", "ensemble", `{"name":"outer"}`, false), "ensemble", "outer")
	refused(t, "taking it out of force unasked", err)
	if _, err := s.Deactivate(t.Context(), s.order("deactivate_element", "ensemble", `{"name":"outer"}`, true), "ensemble", "outer"); err != nil {
		t.Fatal(err)
	}
	s.wants("clear", call.ConfirmSingleUse)
	s.wants("get_element", call.AutoApprove)
}

// TestEditReachesWhatIsActive: an edit that tightens counts wherever the
// element is active, be it as a member.
func TestEditReachesWhatIsActive(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.write("personas/p.md", "gatekeeper:\n  deny: [clear]\n")
	s.write("ensembles/e.md", "elements:\n  - {element_name: p, element_type: persona}\n")
	if err := s.activate("ensemble", "e", false); err != nil {
		t.Fatal(err)
	}
	tighter := `{"name":"p","metadata":{"gatekeeper":{"deny":["clear","addEntry"]}}}`
	looser := `{"name":"p","metadata":{"gatekeeper":null}}`
	if _, err := s.Edit(t.Context(), s.order("edit_element", "persona", tighter, false)); err != nil {
		t.Fatal(err)
	}
	s.wants("addEntry", call.Deny)
	_, err := s.Edit(t.Context(), s.order("edit_element", "persona", looser, false))
	refused(t, "an edit that loosens, unasked", err)
	s.wants("clear", call.Deny)
	if _, err := s.Edit(t.Context(), s.order("edit_element", "persona", looser, true)); err != nil {
		t.Fatal(err)
	}
	s.wants("clear", call.ConfirmSingleUse)
	if _, err := s.Follow(t.Context()); err != nil || len(s.Staged()) != 0 {
		t.Errorf("after an edit the files and what is in force differ: %+v, %v", s.Staged(), err)
	}
}
