package rulebook_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/policy"
	"github.com/seed-3ebc6b8a/gatehouse/internal/rulebook"
	"github.com/seed-3ebc6b8a/gatehouse/internal/session"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

func TestFirstStartTakesTheFiles(t *testing.T) {
	t.Parallel()
	// Even files that loosen: nothing was in force that they could loosen.
	l, b := started(t, loose)
	l.inForce(b, 100)
	if diff := cmp.Diff([]string{l.user}, b.Status().Files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if len(l.acts) != 1 || l.acts[0].Name != "policy.start" || l.acts[0].Subject != b.Current().Hash.String() {
		t.Errorf("the start is not on record: %+v", l.acts)
	}
}

func TestFirstStartWithoutFiles(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	b := l.open()
	l.inForce(b, 60)
	if b.Current().Hash != policy.Default().Hash {
		t.Error("without a file something else than the default is in force")
	}
}

func TestFirstStartRefusesWhatDoesNotLoad(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	l.write(l.user, broken)
	_, err := rulebook.Open(t.Context(), l.options())
	if err == nil {
		t.Fatal("a broken policy was taken at the first start")
	}
	for _, want := range []string{l.user + ":3:", "asks_per_minute"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the refusal does not name %q:\n%v", want, err)
		}
	}
	// Nothing was decided by the failed start: the mended file is the first.
	l.write(l.user, loose)
	l.inForce(l.open(), 100)
}

func TestTighteningTakesEffect(t *testing.T) {
	t.Parallel()
	l, b := started(t, middle)
	l.write(l.user, strict)
	l.reload(b)
	l.inForce(b, 10)
	if b.Status().Staged != nil {
		t.Error("a change that loosens nothing waits for an approver")
	}
	if last := l.acts[len(l.acts)-1]; last.Name != "policy.reload" {
		t.Errorf("the change is not on record: %+v", last)
	}
	l.inForce(l.open(), 10) // at restart too
}

func TestLooseningIsStaged(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		change  func(l *library)
		loosens string
	}{
		{"another text", func(l *library) { l.write(l.user, loose) }, "limits.asks_per_hour"},
		{"the file is taken away", func(l *library) { l.remove(l.user) }, "limits.asks_per_hour"},
		{"an empty file", func(l *library) { l.write(l.user, "version = 1\n") }, "limits.asks_per_hour"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l, b := started(t, middle)
			tt.change(l)
			l.reload(b)
			again := l.open() // a restart must not be a way around the approver
			for _, b := range []*rulebook.Book{b, again} {
				l.inForce(b, 30)
				staged := b.Status().Staged
				if staged == nil {
					t.Fatal("nothing is staged")
				}
				if !strings.Contains(strings.Join(staged.Changes, "\n"), tt.loosens) {
					t.Errorf("the approver is not told what loosens: %q", staged.Changes)
				}
			}
			if since := b.Status().Staged.Since; since.IsZero() {
				t.Error("nobody can say since when it waits")
			}
			l.reload(b)
			if len(l.acts) != 1 {
				t.Errorf("staging is not an act: %+v", l.acts)
			}
		})
	}
}

func TestTakenBackIsNotStaged(t *testing.T) {
	t.Parallel()
	l, b := started(t, middle)
	l.write(l.user, loose)
	l.reload(b)
	stale := b.Status().Staged.Hash
	l.write(l.user, middle)
	l.reload(b)
	if b.Status().Staged != nil {
		t.Error("a change that is no longer on disk still waits")
	}
	err := l.store.Write(t.Context(), func(tx *store.Tx) error { return b.Accept(tx, stale, "alice") })
	if err == nil {
		t.Error("a change that was taken back was accepted")
	}
	l.inForce(b, 30)
}

func TestAccept(t *testing.T) {
	t.Parallel()
	l, b := started(t, middle)
	l.write(l.user, loose)
	l.reload(b)
	l.accept(b)
	l.adopted(b)
	l.inForce(b, 100)
	if s := b.Status(); s.Staged != nil || len(s.Broken) > 0 {
		t.Errorf("something is left over: %+v", s)
	}
	l.inForce(l.open(), 100)
}

// TestAcceptWhatWasShown: between looking and accepting the file may change
// again. Accepted is what was shown, or nothing.
func TestAcceptWhatWasShown(t *testing.T) {
	t.Parallel()
	l, b := started(t, middle)
	l.write(l.user, loose)
	l.reload(b)
	shown := b.Status().Staged.Hash

	// The file changes and nobody has looked at it yet: what was shown counts.
	l.write(l.user, "version = 1\nmode = \"observe\"\n")
	l.tx(func(tx *store.Tx) error { return b.Accept(tx, shown, "alice") })
	l.adopted(b)
	l.inForce(b, 100)
	if b.Current().Settings.Observe {
		t.Error("something that nobody was shown is in force")
	}
	if b.Status().Staged == nil {
		t.Error("the newer change is not staged")
	}

	// The file was read again: what was shown is gone.
	tests := []struct {
		name string
		hash call.Digest
	}{{"accepted before", shown}, {"never there", call.Digest{1}}, {"zero", call.Digest{}}}
	for _, tt := range tests {
		err := l.store.Write(t.Context(), func(tx *store.Tx) error { return b.Accept(tx, tt.hash, "alice") })
		var public interface{ Public() string }
		if !errors.As(err, &public) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	l.adopted(b)
	l.inForce(b, 100)
}

func TestAcceptTakenBackWithItsTransaction(t *testing.T) {
	t.Parallel()
	l, b := started(t, middle)
	l.write(l.user, loose)
	l.reload(b)
	failed := errors.New("the record could not be written")
	err := l.store.Write(t.Context(), func(tx *store.Tx) error {
		if err := b.Accept(tx, b.Status().Staged.Hash, "alice"); err != nil {
			return err
		}
		return failed
	})
	if !errors.Is(err, failed) {
		t.Fatal(err)
	}
	l.adopted(b)
	l.inForce(b, 30)
}

func TestBrokenFileKeepsTheLastGood(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		spoil func(l *library)
		want  string
	}{
		{"an unknown key", func(l *library) { l.write(l.user, broken) }, "asks_per_minute"},
		{"no TOML", func(l *library) { l.write(l.user, "[[[") }, "policy.toml:1:"},
		{"not a file", func(l *library) {
			l.remove(l.user)
			if err := os.Mkdir(l.user, 0o755); err != nil {
				l.t.Fatal(err)
			}
		}, "policy.toml"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l, b := started(t, middle)
			tt.spoil(l)
			l.reload(b)
			again := l.open() // the last good one outlives a restart
			for _, b := range []*rulebook.Book{b, again} {
				l.inForce(b, 30)
				if got := strings.Join(b.Status().Broken, "\n"); !strings.Contains(got, tt.want) {
					t.Errorf("the status does not say what is broken: %q", got)
				}
			}
			if err := os.RemoveAll(l.user); err != nil {
				t.Fatal(err)
			}
			l.write(l.user, strict)
			l.reload(b)
			l.inForce(b, 10)
			if s := b.Status(); len(s.Broken) > 0 {
				t.Errorf("mended, and still reported: %q", s.Broken)
			}
		})
	}
}

// TestForged: the store is where the policy is safe from whoever can write
// files; it is also safe from whoever can write to the store.
func TestForged(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		forge func(l *library)
	}{
		{"other files", func(l *library) {
			l.exec(`UPDATE policy_files SET content = x'5b5d' WHERE scope = 'gate'`)
		}},
		{"no files", func(l *library) { l.exec(`DELETE FROM policy_files WHERE scope = 'gate'`) }},
		{"no head", func(l *library) { l.exec(`DELETE FROM policy_head WHERE scope = 'gate'`) }},
		{"another head", func(l *library) {
			l.exec(`UPDATE policy_head SET hash = $1 WHERE scope = 'gate'`, make([]byte, 32))
		}},
		{"the row of a project", func(l *library) {
			l.exec(`INSERT INTO policy_files (scope, content, set_by, set_at, mac) SELECT 'project:/x', content, set_by, set_at, mac FROM policy_files`)
		}},
		{"a trusted digest", func(l *library) {
			l.exec(`INSERT INTO policy_trust (digest, path, set_by, set_at, mac) VALUES ($1, '/x', 'alice', 1, $1)`, make([]byte, 32))
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l, b := started(t, middle)
			tt.forge(l)
			if err := b.Adopted(t.Context()); !errors.Is(err, session.ErrForged) {
				t.Errorf("a running book takes it: %v", err)
			}
			if got := b.Current().Settings.AsksPerHour; got != 30 {
				t.Errorf("in force is %d", got)
			}
			if _, err := rulebook.Open(t.Context(), l.options()); !errors.Is(err, session.ErrForged) {
				t.Errorf("a new book takes it: %v", err)
			}
		})
	}
}

// TestTwoNodes: the second node follows what the first put in force, and
// cannot put anything in force that was judged against an older policy.
func TestTwoNodes(t *testing.T) {
	t.Parallel()
	l, first := started(t, middle)
	second := l.open()
	l.write(l.user, loose)
	l.reload(first)
	l.reload(second)
	l.accept(first)
	l.adopted(first)
	l.inForce(first, 100)

	if second.Current().Hash == l.head() {
		t.Error("the second node has loaded what nobody told it about")
	}
	err := l.store.Write(t.Context(), func(tx *store.Tx) error {
		return second.Accept(tx, second.Status().Staged.Hash, "bob")
	})
	if !errors.Is(err, session.ErrMoved) {
		t.Errorf("a change judged against an older policy was accepted: %v", err)
	}
	l.adopted(second)
	l.inForce(second, 100)

	// A node that reads the files first, and does not know of the other's
	// change yet, ends up with what is in force and not with its own.
	l.write(l.user, strict)
	l.reload(first)
	l.reload(second)
	l.inForce(first, 10)
	l.inForce(second, 10)
}

// TestStartedOtherwise: what a policy compiles to depends on how the gate is
// started and on its version. A gate that starts with other options than the
// last time must not deny every call for ever.
func TestStartedOtherwise(t *testing.T) {
	t.Parallel()
	l, b := started(t, middle)
	before := b.Current().Hash
	opts := l.options()
	opts.Compile.Isolation = "vm"
	b, err := rulebook.Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	if b.Current().Hash == before {
		t.Fatal("the options do not change the policy; the test is about nothing")
	}
	l.inForce(b, 30)
	if last := l.acts[len(l.acts)-1]; len(l.acts) != 2 || last.Name != "policy.start" {
		t.Errorf("the change is not on record: %+v", last)
	}
}
