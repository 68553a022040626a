package upstream_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-3ebc6b8a/gatehouse/internal/keyring"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store/storetest"
	"github.com/seed-3ebc6b8a/gatehouse/internal/upstream"
)

// both runs a test on both databases with a registry on each.
func both(t *testing.T, fn func(t *testing.T, s *store.Store, g *upstream.Registry)) {
	t.Helper()
	storetest.Both(t, func(t *testing.T, s *store.Store) {
		keys, err := keyring.Load(filepath.Join(t.TempDir(), "keys"), nil)
		if err != nil {
			t.Fatal(err)
		}
		fn(t, s, upstream.New(keys))
	})
}

func write(t *testing.T, s *store.Store, fn func(tx *store.Tx) error) {
	t.Helper()
	if err := s.Write(context.Background(), fn); err != nil {
		t.Fatal(err)
	}
}

func entry(name string) upstream.Entry {
	return upstream.Entry{Name: name, Spec: upstream.Spec{Command: []string{"serve"}}, AddedBy: "ann"}
}

// TestVerify: what cannot be an upstream is refused, with the reason.
func TestVerify(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "gatehouse", "A", "a_b", "a__b", "a+b", "1a", "a b", strings.Repeat("a", 40), "a/b"} {
		if upstream.CheckName(name) == nil {
			t.Errorf("%q names an upstream", name)
		}
	}
	for name, s := range map[string]upstream.Spec{
		"neither":        {},
		"both":           {Command: []string{"x"}, URL: "http://a"},
		"no address":     {URL: "ftp://a"},
		"a password":     {URL: "https://me:secret@a.example.com"},
		"confined URL":   {URL: "https://a.example.com", Confined: true},
		"unknown output": {Command: []string{"x"}, Output: "drop"},
		"no variable":    {Command: []string{"x"}, Env: []string{"A"}},
	} {
		if s.Verify() == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

// TestEntries: entries are kept, and one that was edited is not used.
func TestEntries(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store, g *upstream.Registry) {
		write(t, s, func(tx *store.Tx) error { return g.Add(tx, entry("files")) })
		if err := s.Write(t.Context(), func(tx *store.Tx) error { return g.Add(tx, entry("files")) }); err == nil {
			t.Error("the same name twice")
		}
		write(t, s, func(tx *store.Tx) error {
			e, err := g.Get(tx, "files")
			if err == nil && (e.AddedBy != "ann" || e.Spec.Command[0] != "serve") {
				t.Errorf("%+v", e)
			}
			return err
		})
		write(t, s, func(tx *store.Tx) error {
			_, err := tx.Exec(`UPDATE upstream SET added_by = 'mallory'`)
			return err
		})
		err := s.Read(t.Context(), func(tx *store.Tx) error {
			_, err := g.List(tx)
			return err
		})
		if !errors.Is(err, upstream.ErrForged) {
			t.Errorf("an edited entry: %v", err)
		}
		write(t, s, func(tx *store.Tx) error { return g.Remove(tx, "files") })
		if err := s.Write(t.Context(), func(tx *store.Tx) error { return g.Remove(tx, "files") }); !errors.Is(err, upstream.ErrNotFound) {
			t.Errorf("removed twice: %v", err)
		}
	})
}

func tool(name, text string) upstream.Definition {
	return upstream.Definition{Kind: upstream.Tool, Name: name, Text: text}
}

var surveyed = upstream.Definition{Kind: upstream.Surveyed, Text: "yes"}

// TestPins: first sight pins; what is new or changed waits; accepting is for
// what was shown; what was accepted can change again.
func TestPins(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store, g *upstream.Registry) {
		compare := func(seen ...upstream.Definition) *upstream.Comparison {
			t.Helper()
			var out *upstream.Comparison
			write(t, s, func(tx *store.Tx) (err error) {
				out, err = g.Compare(tx, "files", seen, true)
				return err
			})
			return out
		}
		bad := tool("bad", "b1")
		bad.Objection = "orders"
		first := compare(tool("a", "a1"), bad, surveyed)
		if first.Good["a"] == "" || first.Good["bad"] != "" || !strings.Contains(first.Hidden["bad"], "suspicious") {
			t.Fatalf("first sight: %+v", first)
		}
		if again := compare(tool("a", "a1"), bad, surveyed); len(again.News) != 0 {
			t.Errorf("the same again is news: %+v", again.News)
		}
		changed := compare(tool("a", "a2"), tool("n", "n1"), surveyed)
		if len(changed.Good) != 0 || len(changed.Hidden) != 2 || changed.Good["a"] == first.Good["a"] {
			t.Errorf("changed: %+v", changed)
		}
		var shown []upstream.Pin
		write(t, s, func(tx *store.Tx) (err error) {
			shown, err = g.Waiting(tx, "files")
			return err
		})
		var names []string
		for _, p := range shown {
			names = append(names, p.Name+" was "+p.Was)
		}
		if diff := cmp.Diff([]string{"a was a1", "bad was ", "n was "}, names); diff != "" {
			t.Error(diff)
		}
		compare(tool("a", "a3"), surveyed)
		if err := s.Write(t.Context(), func(tx *store.Tx) error {
			_, err := g.Accept(tx, "files", "", g.Digest(shown), "ann")
			return err
		}); err == nil {
			t.Error("something else than what was shown was accepted")
		}
		write(t, s, func(tx *store.Tx) error {
			now, err := g.Waiting(tx, "files")
			if err != nil {
				return err
			}
			_, err = g.Accept(tx, "files", "a", g.Digest(now), "ann")
			return err
		})
		if got := compare(tool("a", "a3"), tool("n", "n1"), surveyed); got.Good["a"] == "" || got.Hidden["n"] == "" {
			t.Errorf("after a was accepted: %+v", got)
		}
		if got := compare(tool("a", "a1"), surveyed); got.Hidden["a"] == "" {
			t.Error("the old definition is good again")
		}
	})
}

// TestNoToolsAtFirst: a server that shows nothing at first sight cannot add
// tools unseen later.
func TestNoToolsAtFirst(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store, g *upstream.Registry) {
		write(t, s, func(tx *store.Tx) error {
			_, err := g.Compare(tx, "files", []upstream.Definition{surveyed}, true)
			return err
		})
		write(t, s, func(tx *store.Tx) error {
			got, err := g.Compare(tx, "files", []upstream.Definition{tool("late", "l"), surveyed}, true)
			if err == nil && got.Hidden["late"] == "" {
				t.Error("a tool that came later was pinned by itself")
			}
			return err
		})
	})
}

// TestCredentials: sealed, per agent, and good for their own upstream only.
func TestCredentials(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store, g *upstream.Registry) {
		write(t, s, func(tx *store.Tx) error {
			return errors.Join(g.Add(tx, entry("one")), g.Add(tx, entry("two")),
				g.SetCredential(tx, "one", "coder", "own", "ann"), g.SetCredential(tx, "one", "", "shared", "ann"))
		})
		get := func(name, agent string) (got string) {
			t.Helper()
			write(t, s, func(tx *store.Tx) (err error) {
				got, err = g.Credential(tx, name, agent)
				return err
			})
			return got
		}
		for _, tt := range [][3]string{{"one", "coder", "own"}, {"one", "other", "shared"}, {"two", "coder", ""}} {
			if got := get(tt[0], tt[1]); got != tt[2] {
				t.Errorf("%s for %s: %q, want %q", tt[0], tt[1], got, tt[2])
			}
		}
		write(t, s, func(tx *store.Tx) error {
			_, err := tx.Exec(`UPDATE upstream_credential SET upstream = 'two' WHERE agent = 'coder'`)
			return err
		})
		err := s.Read(t.Context(), func(tx *store.Tx) error {
			_, err := g.Credential(tx, "two", "coder")
			return err
		})
		if !errors.Is(err, keyring.ErrSealed) {
			t.Errorf("a credential that was moved: %v", err)
		}
		write(t, s, func(tx *store.Tx) error {
			had, err := g.ClearCredential(tx, "one", "")
			if !had {
				t.Error("there was none")
			}
			return err
		})
		if err := s.Write(t.Context(), func(tx *store.Tx) error { return g.SetCredential(tx, "none", "a", "b", "ann") }); err == nil {
			t.Error("a credential for nothing")
		}
	})
}
