package keyring_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/seed-3ebc6b8a/gatehouse/internal/keyring"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store/storetest"
)

// The test server's output is read until the process ends.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("os/exec.(*Cmd).Start.func2"))
}

func load(t testing.TB, dir string) *keyring.Keyring {
	t.Helper()
	k, err := keyring.Load(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestLoadCreatesOnceAndKeeps(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "keys")
	first := load(t, dir)
	again := load(t, dir)
	if diff := cmp.Diff(first.Fingerprint(), again.Fingerprint()); diff != "" {
		t.Errorf("the keys changed between two loads:\n%s", diff)
	}
	if other := load(t, filepath.Join(t.TempDir(), "keys")); other.Fingerprint() == first.Fingerprint() {
		t.Error("two keyrings have the same keys")
	}
	for path, want := range map[string]os.FileMode{"": 0o700, "mac.key": 0o600, "seal.key": 0o600} {
		info, err := os.Stat(filepath.Join(dir, path))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != want {
			t.Errorf("%q has mode %v, want %v", path, info.Mode().Perm(), want)
		}
	}
}

func TestLoadRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		spoil func(dir string) error
		want  error
	}{
		{"directory open to the group", func(dir string) error { return os.Chmod(dir, 0o750) }, keyring.ErrPermissions},
		{"key readable by others", func(dir string) error { return os.Chmod(filepath.Join(dir, "mac.key"), 0o604) }, keyring.ErrPermissions},
		{"key writable by the group", func(dir string) error { return os.Chmod(filepath.Join(dir, "seal.key"), 0o620) }, keyring.ErrPermissions},
		{"key is a link", func(dir string) error {
			key := filepath.Join(dir, "mac.key")
			return errors.Join(os.Rename(key, key+".real"), os.Symlink(key+".real", key))
		}, keyring.ErrPermissions},
		{"one key is gone", func(dir string) error { return os.Remove(filepath.Join(dir, "seal.key")) }, os.ErrNotExist},
		{"key cut short", func(dir string) error { return os.WriteFile(filepath.Join(dir, "mac.key"), []byte("00ff"), 0o600) }, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "keys")
			load(t, dir)
			if err := test.spoil(dir); err != nil {
				t.Fatal(err)
			}
			_, err := keyring.Load(dir, nil)
			if err == nil || (test.want != nil && !errors.Is(err, test.want)) {
				t.Errorf("got %v, want %v", err, test.want)
			}
		})
	}
}

func TestLoadRefusesAnotherUsersKeys(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	for _, path := range []string{"", "mac.key", "seal.key"} {
		dir := filepath.Join(t.TempDir(), "keys")
		load(t, dir)
		if err := os.Chown(filepath.Join(dir, path), 12345, 12345); err != nil {
			t.Fatal(err)
		}
		if _, err := keyring.Load(dir, nil); !errors.Is(err, keyring.ErrPermissions) {
			t.Errorf("%q of another user: got %v, want %v", path, err, keyring.ErrPermissions)
		}
	}
}

// TestRowIsInjective: two rows have the same signature only if kind and fields
// are the same, whatever is moved across a field's border.
func TestRowIsInjective(t *testing.T) {
	t.Parallel()
	k := load(t, filepath.Join(t.TempDir(), "keys"))
	fields := rapid.SliceOfN(rapid.StringOfN(rapid.RuneFrom([]rune("ab\x00s")), 0, 4, -1), 0, 4)
	rapid.Check(t, func(t *rapid.T) {
		a, b := fields.Draw(t, "a"), fields.Draw(t, "b")
		same := cmp.Equal(append([]string{}, a...), append([]string{}, b...))
		if got := k.Row("x").Text(a...).Is(k.Row("x").Text(b...).Sum()); got != same {
			t.Fatalf("%q and %q: same signature %v", a, b, got)
		}
		if k.Row("x").Text(a...).Is(k.Row("y").Text(a...).Sum()) {
			t.Fatal("a signature is good for another kind of row")
		}
	})
	at := time.UnixMicro(1)
	sums := [][]byte{
		k.Row("x").Int(1).Sum(), k.Row("x").Bool(true).Sum(), k.Row("x").Time(at).Sum(),
		k.Row("x").Text("").Sum(), k.Row("x").Bytes(nil).Sum(), k.Row("x").Sum(),
	}
	for i := range sums {
		for j := range i {
			if bytes.Equal(sums[i], sums[j]) {
				t.Errorf("fields of different types have the same signature (%d and %d)", i, j)
			}
		}
	}
}

func TestSeal(t *testing.T) {
	t.Parallel()
	k := load(t, filepath.Join(t.TempDir(), "keys"))
	rapid.Check(t, func(t *rapid.T) {
		plain := rapid.SliceOf(rapid.Byte()).Draw(t, "plain")
		sealed, err := k.Seal("request r_1", plain)
		if err != nil {
			t.Fatal(err)
		}
		got, err := k.Open("request r_1", sealed)
		if err != nil || !bytes.Equal(got, plain) {
			t.Fatalf("got %x, %v, want %x", got, err, plain)
		}
		if _, err := k.Open("request r_2", sealed); !errors.Is(err, keyring.ErrSealed) {
			t.Fatalf("it opens for another purpose: %v", err)
		}
		sealed[rapid.IntRange(0, len(sealed)-1).Draw(t, "at")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		if _, err := k.Open("request r_1", sealed); !errors.Is(err, keyring.ErrSealed) {
			t.Fatalf("it opens after a bit was flipped: %v", err)
		}
	})
	if _, err := k.Open("x", nil); !errors.Is(err, keyring.ErrSealed) {
		t.Errorf("nothing opens: %v", err)
	}
}

func TestSecretsTellKindsApartAndHide(t *testing.T) {
	t.Parallel()
	kinds := []keyring.Kind{keyring.Credential, keyring.AgentToken, keyring.SignInLink, keyring.Cookie}
	k := load(t, filepath.Join(t.TempDir(), "keys"))
	for _, kind := range kinds {
		s, hash, err := keyring.Mint(kind, k.Random())
		if err != nil {
			t.Fatal(err)
		}
		for _, asked := range kinds {
			got, ok := keyring.HashOf(asked, s.Reveal())
			if ok != (asked == kind) || (ok && got != hash) {
				t.Errorf("a %s secret asked about as %s: %v", kind, asked, ok)
			}
		}
		for _, shown := range []string{s.String(), fmt.Sprintf("%v %+v %#v %s", s, s, s, s)} {
			if strings.Contains(shown, s.Reveal()[8:20]) {
				t.Errorf("the secret shows itself: %s", shown)
			}
		}
		for _, wrong := range []string{"", string(kind), s.Reveal() + "a", s.Reveal()[1:], strings.ToUpper(s.Reveal()), s.Reveal()[:len(s.Reveal())-1] + "!"} {
			if _, ok := keyring.HashOf(kind, wrong); ok {
				t.Errorf("%q passes for a secret", wrong)
			}
		}
	}
}

// TestBind: keys and database belong together, on every node.
func TestBind(t *testing.T) {
	t.Parallel()
	storetest.Both(t, func(t *testing.T, s *store.Store) {
		ctx := t.Context()
		dir := filepath.Join(t.TempDir(), "keys")
		for range 2 {
			if err := load(t, dir).Bind(ctx, s); err != nil {
				t.Fatalf("the database's own keys are refused: %v", err)
			}
		}
		if err := load(t, filepath.Join(t.TempDir(), "keys")).Bind(ctx, s); !errors.Is(err, keyring.ErrOtherKeys) {
			t.Errorf("a node with other keys: got %v, want %v", err, keyring.ErrOtherKeys)
		}
		copied := filepath.Join(t.TempDir(), "keys")
		copyKeys(t, dir, copied)
		if err := load(t, copied).Bind(ctx, s); err != nil {
			t.Errorf("a second node with a copy of the keys: %v", err)
		}
		if err := s.Write(ctx, func(tx *store.Tx) error {
			_, err := tx.Exec(`DELETE FROM keyring`)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if err := load(t, dir).Bind(ctx, s); !errors.Is(err, keyring.ErrReplaced) {
			t.Errorf("an emptied database: got %v, want %v", err, keyring.ErrReplaced)
		}
	})
}

// TestBindNoticesAForgedTie: the fingerprint of other keys, written over the
// right one, does not let them in.
func TestBindNoticesAForgedTie(t *testing.T) {
	t.Parallel()
	storetest.Both(t, func(t *testing.T, s *store.Store) {
		ctx := t.Context()
		if err := load(t, filepath.Join(t.TempDir(), "keys")).Bind(ctx, s); err != nil {
			t.Fatal(err)
		}
		other := load(t, filepath.Join(t.TempDir(), "keys"))
		if err := s.Write(ctx, func(tx *store.Tx) error {
			_, err := tx.Exec(`UPDATE keyring SET fingerprint = $1`, other.Fingerprint())
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if err := other.Bind(ctx, s); !errors.Is(err, keyring.ErrOtherKeys) {
			t.Errorf("got %v, want %v", err, keyring.ErrOtherKeys)
		}
	})
}

func copyKeys(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Mkdir(to, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"mac.key", "seal.key"} {
		text, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(to, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
