package activation_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/element"
	"github.com/seed-3ebc6b8a/gatehouse/internal/library"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// skill is a new element's document.
func skill(t *testing.T, name string) *element.Document {
	t.Helper()
	about := "a test"
	d, err := element.New("skill", name, &element.Draft{Description: &about}, time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// read is the text of a file of the library, "" if it is not there.
func (s *stage) read(path string) string {
	data, err := os.ReadFile(filepath.Join(s.dir, path))
	if err != nil {
		return ""
	}
	return string(data)
}

// TestTrail: what is on a trail is taken back, whether the write it was noted
// for happened or not, also by whoever starts after a crash; what somebody
// else wrote meanwhile stays; what is kept stays; and a trail that was edited
// in the database takes nothing back.
func TestTrail(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	ctx := t.Context()
	make := func(batch, name string, write bool) string {
		t.Helper()
		d := skill(t, name)
		if err := s.Begin(batch).Writing(ctx, library.Place(d), d); err != nil {
			t.Fatal(err)
		}
		if write {
			if err := s.lib.Create(d); err != nil {
				t.Fatal(err)
			}
		}
		return library.Place(d)
	}
	// Written, and not: the same afterwards, and nothing is left of the trail.
	for _, written := range []bool{true, false} {
		path := make("b1", "one", written)
		left, err := s.Begin("b1").TakeBack(ctx)
		if err != nil || len(left) != 0 || s.read(path) != "" {
			t.Errorf("written %v: left %v, %v, %q", written, left, err, s.read(path))
		}
	}
	// What was there before a write that did not happen is not touched.
	old := skill(t, "old")
	if err := s.lib.Create(old); err != nil {
		t.Fatal(err)
	}
	text := s.read(library.Place(old))
	if err := s.Begin("b2").Writing(ctx, library.Place(old), old); err != nil {
		t.Fatal(err)
	}
	if left, err := s.Begin("b2").TakeBack(ctx); err != nil || len(left) != 0 || s.read(library.Place(old)) != text {
		t.Errorf("an element that was there: left %v, %v, %q", left, err, s.read(library.Place(old)))
	}
	// Somebody else's text stays, and is told.
	path := make("b3", "two", true)
	if err := os.WriteFile(filepath.Join(s.dir, path), []byte("somebody's own"), 0o600); err != nil {
		t.Fatal(err)
	}
	if left, err := s.Begin("b3").TakeBack(ctx); err != nil || len(left) != 1 || !strings.Contains(left[0], path) || s.read(path) != "somebody's own" {
		t.Errorf("somebody else's text: left %v, %v, %q", left, err, s.read(path))
	}
	// Kept: a later start takes nothing back.
	kept := make("b4", "three", true)
	if err := s.Begin("b4").Keep(ctx); err != nil {
		t.Fatal(err)
	}
	cut := make("b5", "four", true)
	n, err := s.Recover(ctx)
	if err != nil || n != 1 || s.read(kept) == "" || s.read(cut) != "" {
		t.Errorf("after a crash: %d batches, %v; kept %v, cut off %v", n, err, s.read(kept) != "", s.read(cut) != "")
	}
	// Edited in the database.
	path = make("b6", "five", true)
	err = s.store.Write(ctx, func(tx *store.Tx) error {
		_, err := tx.Exec(`UPDATE trail SET batch = 'b7' WHERE batch = 'b6'`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Recover(ctx); err == nil || s.read(path) == "" {
		t.Errorf("an edited trail: %v, the file is there: %v", err, s.read(path) != "")
	}
}
