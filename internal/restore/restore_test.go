package restore_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-3ebc6b8a/gatehouse/internal/restore"
)

// bench is a store, a directory to work in and a clock.
type bench struct {
	*restore.Store
	t         *testing.T
	home, dir string
	mu        sync.Mutex
	now       time.Time
	ids       int
}

func newBench(t *testing.T, limits restore.Limits) *bench {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, home: t.TempDir(), dir: dir, now: time.Now()}
	if limits == (restore.Limits{}) {
		limits = restore.DefaultLimits()
	}
	b.Store = restore.Open(restore.Options{
		Dir:  b.home,
		Sign: func(text []byte) []byte { sum := sha256.Sum256(append([]byte("key"), text...)); return sum[:] },
		NewID: func() string {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.ids++
			return fmt.Sprintf("p_%d", b.ids)
		},
		Now: func() time.Time {
			b.mu.Lock()
			defer b.mu.Unlock()
			return b.now
		},
		Limits: func() restore.Limits { return limits },
	})
	return b
}

func (b *bench) pass(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now = b.now.Add(d)
}

func (b *bench) path(name string) string { return filepath.Join(b.dir, name) }

func (b *bench) write(name, text string) {
	b.t.Helper()
	if err := os.MkdirAll(filepath.Dir(b.path(name)), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(b.path(name), []byte(text), 0o640); err != nil {
		b.t.Fatal(err)
	}
}

// tree lists what is in the directory: files with content and mode, links
// with their target.
func (b *bench) tree() map[string]string {
	b.t.Helper()
	out := map[string]string{}
	err := filepath.Walk(b.dir, func(path string, info os.FileInfo, err error) error {
		if err != nil || path == b.dir {
			return err
		}
		name, _ := filepath.Rel(b.dir, path)
		switch {
		case info.IsDir():
			out[name] = "dir"
		case info.Mode()&os.ModeSymlink != 0:
			target, err := os.Readlink(path)
			out[name] = "-> " + target
			return err
		default:
			text, err := os.ReadFile(path)
			out[name] = fmt.Sprintf("%s %o", text, info.Mode().Perm())
			return err
		}
		return nil
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return out
}

// keep keeps paths for a session and fails the test if the store does.
func (b *bench) keep(session string, names ...string) (point string, notKept []string) {
	b.t.Helper()
	sub := restore.Subject{Agent: "coder", Session: session, Call: "c"}
	for _, n := range names {
		sub.Paths = append(sub.Paths, b.path(n))
	}
	point, notKept, err := b.Keep(sub)
	if err != nil {
		b.t.Fatal(err)
	}
	return point, notKept
}

// apply looks at a point and puts it back.
func (b *bench) apply(point string, newer bool) ([]restore.Change, string, error) {
	b.t.Helper()
	_, plan, err := b.Plan(point)
	if err != nil {
		b.t.Fatal(err)
	}
	undo, changes, err := b.Apply(point, restore.Apply{Digest: plan.Digest, Newer: newer, By: "ann"})
	return changes, undo, err
}

// TestPutsBack keeps a tree, changes it in every way and puts it back; then it
// undoes that.
func TestPutsBack(t *testing.T) {
	t.Parallel()
	b := newBench(t, restore.Limits{})
	b.write("src/a.txt", "one")
	b.write("src/deep/b.txt", "two")
	b.write("src/gone/c.txt", "three")
	b.write("tool.sh", "#!/bin/sh")
	if err := os.Chmod(b.path("tool.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("a.txt", b.path("src/link")); err != nil {
		t.Fatal(err)
	}
	before := b.tree()
	point, notKept := b.keep("s", "src", "tool.sh", "new.txt")
	if len(notKept) > 0 {
		t.Fatal(notKept)
	}
	b.write("src/a.txt", "changed")
	for _, name := range []string{"src/deep", "src/gone", "src/link", "tool.sh"} {
		if err := os.RemoveAll(b.path(name)); err != nil {
			t.Fatal(err)
		}
	}
	b.write("new.txt", "was not there")
	broken := b.tree()
	changes, undo, err := b.apply(point, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range changes {
		if c.Problem != "" {
			t.Errorf("%s: %s", c.Path, c.Problem)
		}
	}
	if diff := cmp.Diff(before, b.tree()); diff != "" {
		t.Errorf("not as before (-before +after)\n%s", diff)
	}
	if _, _, err := b.apply(undo, true); err != nil {
		t.Fatal(err)
	}
	got := b.tree()
	for name, text := range broken {
		if got[name] != text {
			t.Errorf("undone, %s is %q, want %q", name, got[name], text)
		}
	}
}

// TestBatch: one point per batch, each path as it was when it was first
// touched; a question or the time ends the batch.
func TestBatch(t *testing.T) {
	t.Parallel()
	b := newBench(t, restore.Limits{})
	b.write("a", "0")
	first, _ := b.keep("s", "a")
	b.write("a", "1")
	if again, _ := b.keep("s", "a"); again != first {
		t.Errorf("the second call of a batch made the point %s, want %s", again, first)
	}
	if other, _ := b.keep("other", "a"); other == first {
		t.Error("two sessions share a batch")
	}
	b.Asked("s")
	second, _ := b.keep("s", "a")
	if second == first {
		t.Error("a question did not end the batch")
	}
	b.pass(11 * time.Minute)
	if third, _ := b.keep("s", "a"); third == second {
		t.Error("time did not end the batch")
	}
	b.write("a", "2")
	if _, _, err := b.apply(first, true); err != nil {
		t.Fatal(err)
	}
	if got := b.tree()["a"]; got != "0 640" {
		t.Errorf("a is %q, want what it was when the batch began", got)
	}
}

// TestNewerWorkIsNotOverwritten asks before it takes away what was done after
// the batch, and refuses what was not looked at.
func TestNewerWorkIsNotOverwritten(t *testing.T) {
	t.Parallel()
	b := newBench(t, restore.Limits{})
	b.write("a", "kept")
	point, _ := b.keep("s", "a")
	b.Asked("s")
	b.write("a", "a person's work of later")
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(b.path("a"), later, later); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.apply(point, false); err == nil || !strings.Contains(err.Error(), "changed after the batch") {
		t.Errorf("newer work: %v", err)
	}
	_, plan, err := b.Plan(point)
	if err != nil {
		t.Fatal(err)
	}
	if !plan.Changes[0].Newer || !strings.Contains(plan.Changes[0].Diff, "+kept") {
		t.Errorf("the plan does not say what would be lost: %+v", plan.Changes)
	}
	b.write("a", "and changed again")
	if _, _, err := b.Apply(point, restore.Apply{Digest: plan.Digest, Newer: true}); err == nil || !strings.Contains(err.Error(), "look again") {
		t.Errorf("what was not looked at: %v", err)
	}
	if got := b.tree()["a"]; got != "and changed again 640" {
		t.Errorf("a is %q", got)
	}
}

// TestCaps: too large is said and not kept; the oldest points go; contents that
// nobody needs go with them.
func TestCaps(t *testing.T) {
	t.Parallel()
	b := newBench(t, restore.Limits{Bytes: 100, Files: 5, Total: 250, Points: 3, Age: time.Hour, Batch: time.Minute})
	b.write("big", strings.Repeat("x", 101))
	for i := range 6 {
		b.write(fmt.Sprintf("many/%d", i), "y")
	}
	point, notKept := b.keep("s", "big", "many", "none")
	if len(notKept) != 2 || !strings.Contains(notKept[0], "too large") || point == "" {
		t.Errorf("point %q, not kept: %v", point, notKept)
	}
	if got := b.Preview(restore.Subject{Paths: []string{b.path("big")}, Blind: true}); len(got) != 2 {
		t.Errorf("the preview says %v", got)
	}
	for i := range 6 {
		b.write("a", strings.Repeat(fmt.Sprint(i), 90))
		b.keep(fmt.Sprint("s", i), "a")
		b.pass(time.Second)
	}
	list, problems, err := b.List()
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	if len(list) != 2 {
		t.Errorf("%d points are left, want the two that fit", len(list))
	}
	blobs, err := os.ReadDir(filepath.Join(b.home, "blobs"))
	if err != nil || len(blobs) != 2 {
		t.Errorf("%d contents are left, %v", len(blobs), err)
	}
	b.pass(2 * time.Hour)
	b.keep("last", "a")
	if list, _, _ := b.List(); len(list) != 1 {
		t.Errorf("%d points outlived their age", len(list)-1)
	}
}

// TestLinksAreNotFollowed swaps what is on the way for a link, before keeping
// and before putting back: nothing behind the link is read or written.
func TestLinksAreNotFollowed(t *testing.T) {
	t.Parallel()
	b := newBench(t, restore.Limits{})
	secret := t.TempDir()
	if err := os.WriteFile(filepath.Join(secret, "f"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, b.path("way")); err != nil {
		t.Fatal(err)
	}
	if point, notKept := b.keep("s", "way/f"); point != "" || len(notKept) != 1 {
		t.Errorf("kept %s through a link: %v", point, notKept)
	}
	// A link at the end is kept as a link.
	if err := os.Symlink(filepath.Join(secret, "f"), b.path("end")); err != nil {
		t.Fatal(err)
	}
	b.write("dir/f", "mine")
	point, _ := b.keep("s", "end", "dir/f")
	p, err := b.Point(point)
	if err != nil {
		t.Fatal(err)
	}
	if e := p.Entries[0]; e.Kind != restore.Link || e.Hash != "" {
		t.Errorf("the link was followed: %+v", e)
	}
	b.write("dir/f", "changed")
	if err := os.Rename(b.path("dir"), b.path("moved")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, b.path("dir")); err != nil {
		t.Fatal(err)
	}
	changes, _, err := b.apply(point, true)
	if err == nil && changes[0].Problem == "" {
		t.Errorf("put back through a link: %+v", changes)
	}
	if text, err := os.ReadFile(filepath.Join(secret, "f")); err != nil || string(text) != "secret" {
		t.Errorf("behind the link there is now %q %v", text, err)
	}
	if blobs, _ := os.ReadDir(filepath.Join(b.home, "blobs")); len(blobs) != 1 {
		t.Errorf("%d contents were kept, want one", len(blobs))
	}
}

// TestSwappedWhileKept has a writer swap a directory for a link and back while
// points are kept: what is behind the link is never in one.
func TestSwappedWhileKept(t *testing.T) {
	t.Parallel()
	b := newBench(t, restore.Limits{})
	secret := t.TempDir()
	if err := os.WriteFile(filepath.Join(secret, "f"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.write("real/f", "mine")
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				_ = os.Rename(b.path("real"), b.path("aside"))
				_ = os.Symlink(secret, b.path("real"))
				_ = os.Remove(b.path("real"))
				_ = os.Rename(b.path("aside"), b.path("real"))
			}
		}
	}()
	for i := range 300 {
		b.keep(fmt.Sprint(i), "real/f", "real")
	}
	close(stop)
	<-stopped
	forbidden := fmt.Sprintf("%x", sha256.Sum256([]byte("secret")))
	if _, err := os.Lstat(filepath.Join(b.home, "blobs", forbidden)); err == nil {
		t.Error("what is behind the link was kept")
	}
}

// TestForgedPointIsRefused changes a point on disk.
func TestForgedPointIsRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t, restore.Limits{})
	b.write("a", "one")
	point, _ := b.keep("s", "a")
	file := filepath.Join(b.home, "points", point+".json")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	forged := strings.ReplaceAll(string(text), b.path("a"), "/etc/cron.d/a")
	if err := os.WriteFile(file, []byte(forged), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Point(point); err == nil || !strings.Contains(err.Error(), "not made by this gate") {
		t.Errorf("a forged point was read: %v", err)
	}
	if list, problems, _ := b.List(); len(list) != 0 || len(problems) != 1 {
		t.Errorf("listed %v, problems %v", list, problems)
	}
	if _, err := b.Point("../points/" + point); err != restore.ErrNone {
		t.Errorf("an id with a path in it: %v", err)
	}
}

// TestFullStoreIsAnError: where the copy cannot be written the caller hears
// it, and what cannot be read is only noted.
func TestFullStoreIsAnError(t *testing.T) {
	t.Parallel()
	b := newBench(t, restore.Limits{})
	b.write("a", "one")
	if err := os.WriteFile(filepath.Join(b.home, "blobs"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.Keep(restore.Subject{Session: "s", Paths: []string{b.path("a")}}); err == nil {
		t.Error("a store that cannot be written said nothing")
	}
}
