package store_test

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store/storetest"
)

// files makes a set of migrations on top of the real first one, which the store itself needs.
func files(t *testing.T, d store.Options, extra map[string]string) fs.FS {
	t.Helper()
	dir := "migrations/sqlite"
	if d.DSN != "" {
		dir = "migrations/postgres"
	}
	first, err := os.ReadFile(dir + "/001_audit.sql")
	if err != nil {
		t.Fatal(err)
	}
	all := fstest.MapFS{"001_audit.sql": {Data: first}}
	for name, text := range extra {
		all[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return all
}

func TestMigrations(t *testing.T) {
	t.Parallel()
	two := map[string]string{"002_two.sql": "CREATE TABLE two (n BIGINT)"}
	for name, test := range map[string]struct {
		first, second map[string]string
		want          error
		says          string
	}{
		"the same again": {two, two, nil, ""},
		"one more": {two, map[string]string{
			"002_two.sql": "CREATE TABLE two (n BIGINT)", "003_three.sql": "INSERT INTO two VALUES (1)",
		}, nil, ""},
		"a schema from the future": {two, nil, store.ErrFuture, "002_two"},
		"an edited migration":      {two, map[string]string{"002_two.sql": "CREATE TABLE two (m BIGINT)"}, store.ErrHistory, "edited"},
		"a renamed migration":      {two, map[string]string{"002_deux.sql": "CREATE TABLE two (n BIGINT)"}, store.ErrHistory, "002_deux"},
		"one that comes too late": {map[string]string{"003_three.sql": "CREATE TABLE three (n BIGINT)"}, map[string]string{
			"002_two.sql": "CREATE TABLE two (n BIGINT)", "003_three.sql": "CREATE TABLE three (n BIGINT)",
		}, store.ErrHistory, "003_three"},
		"a number used twice": {nil, map[string]string{"002_a.sql": "SELECT 1", "002_b.sql": "SELECT 1"}, nil, "two migrations"},
		"a bad name":          {nil, map[string]string{"2.sql": "SELECT 1"}, nil, "NNN_name"},
		"a bad statement":     {nil, map[string]string{"002_bad.sql": "CREATE TABLE half (n BIGINT); CREATE TABEL x"}, nil, "002_bad"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.BothOptions(t, func(t *testing.T, opts store.Options) {
				opts.Migrations = files(t, opts, test.first)
				s, err := store.Open(t.Context(), opts)
				if err != nil {
					t.Fatal(err)
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				opts.Migrations = files(t, opts, test.second)
				s, err = store.Open(t.Context(), opts)
				if err == nil {
					err = s.Close()
				}
				if test.want != nil && !errors.Is(err, test.want) || (test.says == "") != (err == nil) {
					t.Fatalf("opening again: %v, want %v", err, test.want)
				}
				if err != nil && !strings.Contains(err.Error(), test.says) {
					t.Errorf("%q does not say %q", err, test.says)
				}
				opts.Migrations = files(t, opts, test.first) // a refusal changes nothing
				if test.says != "" {
					storetest.Open(t, opts)
				}
			})
		})
	}
}

// Both databases have the same migrations, by number and name.
func TestMigrationsMatch(t *testing.T) {
	t.Parallel()
	names := map[string][]string{}
	for _, dir := range []string{"sqlite", "postgres"} {
		entries, err := os.ReadDir("migrations/" + dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			names[dir] = append(names[dir], e.Name())
		}
	}
	if diff := cmp.Diff(names["sqlite"], names["postgres"]); diff != "" {
		t.Errorf("migrations (-sqlite +postgres):\n%s", diff)
	}
}

// Nodes that start at once migrate one after the other.
func TestMigrateTogether(t *testing.T) {
	t.Parallel()
	storetest.BothOptions(t, func(t *testing.T, opts store.Options) {
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				s, err := store.Open(t.Context(), opts)
				if err == nil {
					err = s.Close()
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	})
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	for _, opts := range []store.Options{
		{},
		{DSN: "mysql://localhost/x"},
		{DSN: "postgres://localhost:notaport/x"},
		{Dir: "/dev/null/x"},
		{DSN: "postgres://127.0.0.1:1/x?connect_timeout=1"},
	} {
		if s, err := store.Open(t.Context(), opts); err == nil {
			t.Errorf("%+v was opened", opts)
			_ = s.Close()
		}
	}
}

// fakeClock is a wall clock that somebody sets.
type fakeClock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *fakeClock) read() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *fakeClock) set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = t
}

// Setting the clock back revives nothing: not while the process runs, not after a restart. Time goes on from the
// highest that was ever shown.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	wall := &fakeClock{now: noon}
	opts := storetest.SQLite(t)
	opts.Clock = wall.read
	now := func(s *store.Store) (now time.Time) {
		err := s.Write(t.Context(), func(tx *store.Tx) (err error) {
			now, err = tx.Now()
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return now
	}
	s, err := store.Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		what      string
		set, want time.Time
	}{
		{"at first", noon, noon},
		{"an hour later", noon.Add(time.Hour), noon.Add(time.Hour)},
		{"set back by a day", noon.Add(-24 * time.Hour), noon.Add(time.Hour)},
		{"a minute after that", noon.Add(-24*time.Hour + time.Minute), noon.Add(time.Hour + time.Minute)},
	} {
		wall.set(step.set)
		if got := now(s); !got.Equal(step.want) {
			t.Errorf("%s the clock shows %v, want %v", step.what, got, step.want)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = storetest.Open(t, opts)
	if got, want := now(s), noon.Add(time.Hour+time.Minute); !got.Equal(want) {
		t.Errorf("after a restart the clock shows %v, want %v", got, want)
	}
	wall.set(noon.Add(48 * time.Hour)) // for a clock without a monotonic part, three days have passed
	if got, want := now(s), noon.Add(48*time.Hour); got.Before(want) {
		t.Errorf("set right the clock shows %v, want %v or later", got, want)
	}
}
