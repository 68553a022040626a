package session_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/element"
	"github.com/seed-3ebc6b8a/gatehouse/internal/session"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store/storetest"
)

func denying(name string, ops ...string) session.Active {
	return session.Active{Type: "persona", Name: name, Elements: []element.Element{{Type: "persona", Name: name, Lists: element.Lists{Deny: ops}}}}
}

// TestActiveElements: what is active in a workspace counts for the agent's
// sessions there, under any spelling of its name, and for no other.
func TestActiveElements(t *testing.T) {
	t.Parallel()
	storetest.Both(t, func(t *testing.T, s *store.Store) {
		h := newHall(t, s)
		s1, _, err := h.open(t, own(t, "r"))
		if err != nil {
			t.Fatal(err)
		}
		p := call.Principal{Agent: "claude", Session: s1.ID}
		check := func(p call.Principal, want ...string) *element.Set {
			t.Helper()
			var st session.Standing
			if err := h.back(t, func(tx *store.Tx) (err error) { st, err = h.CheckStanding(tx, p, "gate"); return err }); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, st.Elements.Elements()); diff != "" || st.Danger {
				t.Errorf("active (-want +got):\n%s%s", diff, st.Why)
			}
			return st.Elements
		}
		set := func(agent, workspace string, list ...session.Active) {
			t.Helper()
			h.write(t, func(tx *store.Tx) error { return h.SetActive(tx, agent, workspace, list, "test") })
		}
		check(p)
		set("claude", "", denying("nowhere", "clear"))
		set("Claude", "/src", denying("here", "delete_element"))
		set("claude", "/other", denying("there", "create_element"))
		set("codex", "/src", denying("codex", "create_element"))
		first := check(p, "persona/here")
		if l := first.Resolve("delete_element", "", false).Level; l != call.Deny {
			t.Errorf("delete_element is %s", l)
		}
		h.write(t, func(tx *store.Tx) error { return block(tx, h, "someone", "test", "x") })
		if check(p, "persona/here") != first {
			t.Error("a change elsewhere compiles the policy again")
		}
		set("claude", "/src")
		check(p)
	})
}

// TestActiveElementsEdited: whoever edits the list in the database takes no
// restriction away.
func TestActiveElementsEdited(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]string{
		"a row is deleted": `DELETE FROM active_element WHERE workspace = '/src'`,
		"all are deleted":  `DELETE FROM active_element`,
		"a row is changed": `UPDATE active_element SET content = '[]'`,
		"a row is moved":   `UPDATE active_element SET workspace = '/elsewhere' WHERE workspace = '/src'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Both(t, func(t *testing.T, s *store.Store) {
				h := newHall(t, s)
				s1, _, err := h.open(t, own(t, "r"))
				if err != nil {
					t.Fatal(err)
				}
				h.write(t, func(tx *store.Tx) error {
					return h.SetActive(tx, "claude", "/src", []session.Active{denying("a", "clear")}, "test")
				})
				h.write(t, func(tx *store.Tx) error {
					return h.SetActive(tx, "claude", "", []session.Active{denying("b", "clear")}, "test")
				})
				var st session.Standing
				err = h.back(t, func(tx *store.Tx) (err error) {
					if _, err := tx.Exec(edit); err != nil {
						return err
					}
					fresh := session.New(h.keys, nil) // another node, or a restart
					st, err = fresh.CheckStanding(tx, call.Principal{Agent: "claude", Session: s1.ID}, "gate")
					return err
				})
				if err == nil && !st.Danger {
					t.Error("the edit is not noticed")
				}
			})
		})
	}
}
