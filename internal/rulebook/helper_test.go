package rulebook_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/keyring"
	"github.com/seed-3ebc6b8a/gatehouse/internal/place"
	"github.com/seed-3ebc6b8a/gatehouse/internal/policy"
	"github.com/seed-3ebc6b8a/gatehouse/internal/rulebook"
	"github.com/seed-3ebc6b8a/gatehouse/internal/session"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Policies that differ in one number, so that a test can say what is in force
// by reading it. The default is 60.
const (
	strict = "version = 1\n[limits]\nasks_per_hour = 10\n"
	middle = "version = 1\n[limits]\nasks_per_hour = 30\n"
	loose  = "version = 1\n[limits]\nasks_per_hour = 100\n"
	broken = "version = 1\n[limits]\nasks_per_minute = 3\n"
	// mine lets projects that are trusted loosen one thing.
	mine = "version = 1\nadjustable = [\"limits.asks_per_hour\"]\n[limits]\nasks_per_hour = 30\n"
)

// library is a store with its keys, and a place for policy files. Several
// books can be opened on it, as several nodes or one after the other.
type library struct {
	t        *testing.T
	store    *store.Store
	keys     *keyring.Keyring
	sessions *session.Registry
	user     string // the user's policy file
	projects string // a directory for projects

	mu   sync.Mutex
	acts []admin.Act
	log  bytes.Buffer
}

func newLibrary(t *testing.T) *library {
	t.Helper()
	keys, err := keyring.Load(filepath.Join(t.TempDir(), "keys"), nil)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	l := &library{
		t: t, store: storetest.Open(t, storetest.SQLite(t)), keys: keys, sessions: session.New(keys, nil),
		user: filepath.Join(dir, "policy.toml"), projects: filepath.Join(dir, "src"),
	}
	l.tx(l.sessions.Prepare)
	return l
}

func (l *library) options() rulebook.Options {
	return rulebook.Options{
		Store: l.store, Keys: l.keys, Sessions: l.sessions,
		Sources: []rulebook.Source{{Scope: policy.ScopeUser, Path: l.user}},
		Compile: policy.Options{Home: "/home/agent"},
		Record: func(_ *store.Tx, a admin.Act) error {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.acts = append(l.acts, a)
			return nil
		},
		Log: slog.New(slog.NewTextHandler(&l.log, nil)),
	}
}

func (l *library) open() *rulebook.Book {
	l.t.Helper()
	b, err := rulebook.Open(l.t.Context(), l.options())
	if err != nil {
		l.t.Fatal(err)
	}
	return b
}

// started is a book whose user's file says text.
func started(t *testing.T, text string) (*library, *rulebook.Book) {
	t.Helper()
	l := newLibrary(t)
	l.write(l.user, text)
	return l, l.open()
}

func (l *library) tx(fn func(*store.Tx) error) {
	l.t.Helper()
	if err := l.store.Write(l.t.Context(), fn); err != nil {
		l.t.Fatal(err)
	}
}

func (l *library) exec(query string, args ...any) {
	l.t.Helper()
	l.tx(func(tx *store.Tx) error {
		n, err := tx.Exec(query, args...)
		if err == nil && n != 1 {
			l.t.Errorf("%s: %d rows", query, n)
		}
		return err
	})
}

func (l *library) write(path, text string) {
	l.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		l.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		l.t.Fatal(err)
	}
}

func (l *library) remove(path string) {
	l.t.Helper()
	if err := os.Remove(path); err != nil {
		l.t.Fatal(err)
	}
}

// project is the policy file of a project; write puts it there.
func (l *library) project(name string) string {
	return filepath.Join(l.projects, name, place.ProjectPolicy)
}

func (l *library) reload(b *rulebook.Book) {
	l.t.Helper()
	if err := b.Reload(l.t.Context()); err != nil {
		l.t.Fatal(err)
	}
}

func (l *library) adopted(b *rulebook.Book) {
	l.t.Helper()
	if err := b.Adopted(l.t.Context()); err != nil {
		l.t.Fatal(err)
	}
}

// accept is what an approver does with what is staged.
func (l *library) accept(b *rulebook.Book) {
	l.t.Helper()
	staged := b.Status().Staged
	if staged == nil {
		l.t.Fatal("nothing is staged")
	}
	l.tx(func(tx *store.Tx) error { return b.Accept(tx, staged.Hash, "alice") })
}

func (l *library) trust(b *rulebook.Book, path string) {
	l.t.Helper()
	l.tx(func(tx *store.Tx) error {
		_, err := b.TrustProject(tx, path, "alice")
		return err
	})
	l.adopted(b)
}

// head is what all nodes agree on.
func (l *library) head() (hash call.Digest) {
	l.t.Helper()
	l.tx(func(tx *store.Tx) error {
		h, err := l.sessions.PolicyHead(tx, rulebook.Scope)
		hash = h.Hash
		return err
	})
	return hash
}

// inForce checks the number by which the test's policies differ, and that the
// head stands for the book's policy: with another one every call is denied.
func (l *library) inForce(b *rulebook.Book, want int) {
	l.t.Helper()
	if got := b.Current().Settings.AsksPerHour; got != want {
		l.t.Errorf("asks_per_hour in force is %d, want %d", got, want)
	}
	if b.Current().Hash != l.head() {
		l.t.Error("the head does not stand for the policy in force here: every call would be denied")
	}
}

// inProject checks the same number for a call that works in a directory. A
// want of 0 is a project that denies everything.
func (l *library) inProject(b *rulebook.Book, name string, want int) {
	l.t.Helper()
	snap, head := b.For(&call.Call{Dir: filepath.Join(l.projects, name)})
	if head != l.head() {
		l.t.Errorf("%s: the head is not the one in force", name)
	}
	switch {
	case want == 0:
		if snap != nil {
			l.t.Errorf("%s: a policy is in force, want none: asks_per_hour %d", name, snap.Settings.AsksPerHour)
		}
	case snap == nil:
		l.t.Errorf("%s: no policy is in force: %v", name, b.Status().Broken)
	case snap.Settings.AsksPerHour != want:
		l.t.Errorf("%s: asks_per_hour is %d, want %d", name, snap.Settings.AsksPerHour, want)
	}
}
