package library_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/element"
	"github.com/seed-3ebc6b8a/gatehouse/internal/library"
)

func open(t *testing.T) (*library.Library, string) {
	t.Helper()
	dir := t.TempDir()
	l, err := library.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l, dir
}

func doc(t *testing.T, typ, name string) *element.Document {
	t.Helper()
	text := "d"
	d, err := element.New(typ, name, &element.Draft{Description: &text}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestCreateAndGet(t *testing.T) {
	t.Parallel()
	l, dir := open(t)
	if err := l.Create(doc(t, "skill", "My Skill")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"My Skill", "my-skill", "MY  SKILL"} {
		if f, err := l.Get("skill", name); err != nil || f.Name != "My Skill" || f.Path != "skills/my-skill.md" {
			t.Errorf("%s: %+v, %v", name, f, err)
		}
	}
	var exists *library.ExistsError
	if err := l.Create(doc(t, "skill", "my_skill")); !errors.As(err, &exists) {
		t.Errorf("another spelling of the name: %v", err)
	}
	info, err := os.Stat(filepath.Join(dir, "skills", "my-skill.md"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	var missing *library.NotFoundError
	if _, err := l.Get("skill", "my-skil"); !errors.As(err, &missing) || missing.Near != "My Skill" {
		t.Errorf("a slip of the pen: %v", err)
	}
	leftovers(t, dir)
}

// leftovers fails the test if something half-written lies around.
func leftovers(t *testing.T, dir string) {
	t.Helper()
	if found, _ := filepath.Glob(filepath.Join(dir, "*", ".*")); len(found) > 0 {
		t.Errorf("left behind: %v", found)
	}
}

// TestReplaceNeedsWhatWasRead: of two that read the same file one writes.
func TestReplaceNeedsWhatWasRead(t *testing.T) {
	t.Parallel()
	l, dir := open(t)
	if err := l.Create(doc(t, "memory", "m")); err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Go(func() {
			for {
				f, err := l.Get("memory", "m")
				if err != nil {
					t.Error(err)
					return
				}
				next, err := f.Doc.AddEntry(element.Entry{ID: fmt.Sprint(i), Content: "c"})
				if err != nil {
					t.Error(err)
					return
				}
				if err = l.Replace(f, next); err == nil {
					return
				}
				if !errors.Is(err, library.ErrChanged) {
					t.Error(err)
					return
				}
			}
		})
	}
	wait.Wait()
	f, err := l.Get("memory", "m")
	if err != nil {
		t.Fatal(err)
	}
	if entries, err := f.Doc.Entries(); err != nil || len(entries) != 8 {
		t.Errorf("%d entries of 8, %v", len(entries), err)
	}
	leftovers(t, dir)
}

// TestStrangeFiles: what is not a plain file of the library is not read, and
// what cannot be read is listed with the reason.
func TestStrangeFiles(t *testing.T) {
	t.Parallel()
	l, dir := open(t)
	outside := filepath.Join(t.TempDir(), "outside.md")
	write := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(outside, "---\nname: outside\n---\nhush\n")
	for name, target := range map[string]string{"link.md": outside, "inner.md": "plain.md", "gone.md": "nowhere"} {
		if err := os.Symlink(target, filepath.Join(dir, "skills", name)); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(dir, "skills", "plain.md"), "---\nname: plain\ndescription: d\n---\n")
	write(filepath.Join(dir, "skills", "empty.md"), "")
	write(filepath.Join(dir, "skills", "huge.md"), "---\nname: huge\n---\n"+strings.Repeat("x", element.MaxFile))
	write(filepath.Join(dir, "skills", "notes.txt"), "---\nname: notes\n---\n")
	write(filepath.Join(dir, "skills", ".hidden.md"), "---\nname: hidden\n---\n")
	write(filepath.Join(dir, "skills", "a", "b", "deep.md"), "---\nname: deep\n---\n")
	write(filepath.Join(dir, "memories", "2026-01-05", "dated.yaml"), "metadata:\n  name: dated\nentries: []\n")
	files, err := l.List("")
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]bool)
	for _, f := range files {
		got[f.Path] = f.Doc != nil
	}
	want := map[string]bool{
		"skills/link.md": false, "skills/inner.md": false, "skills/gone.md": false, "skills/plain.md": true, "skills/empty.md": false,
		"skills/huge.md": false, "memories/2026-01-05/dated.yaml": true,
	}
	for path, read := range want {
		if was, listed := got[path]; !listed || was != read {
			t.Errorf("%s: listed %v, read %v", path, listed, was)
		}
	}
	if len(got) != len(want) {
		t.Errorf("listed: %v", got)
	}
}
