package gitobj_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-3ebc6b8a/gatehouse/internal/gitobj"
	"github.com/seed-3ebc6b8a/gatehouse/internal/needtest"
)

// repository makes a repository with the real git: many versions of a few
// files, so that packing them makes deltas, and a merge.
func repository(t testing.TB) (dir string, git func(args ...string) string) {
	t.Helper()
	needtest.Programs(t, "git")
	dir = t.TempDir()
	git = func(args ...string) string {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "core.autocrlf=false"}, args...)...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("init", "-q", "-b", "main")
	body := strings.Repeat("a line that stays\n", 400)
	for i := range 12 {
		write(t, filepath.Join(dir, "deep/er/file.txt"), body+fmt.Sprint("version ", i, "\n"))
		for j := range 40 {
			write(t, filepath.Join(dir, "many", fmt.Sprint(j)), fmt.Sprint(i, j))
		}
		git("add", ".")
		git("commit", "-qm", fmt.Sprint(i))
		if i == 6 {
			git("branch", "side")
		}
	}
	git("checkout", "-q", "side")
	write(t, filepath.Join(dir, "side.txt"), "side")
	git("add", ".")
	git("commit", "-qm", "side")
	git("checkout", "-q", "main")
	git("merge", "-q", "--no-edit", "side")
	return dir, git
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestReadsWhatGitWrote compares every file of every commit, the refs and the
// count of commits with what git itself says, loose and packed.
func TestReadsWhatGitWrote(t *testing.T) {
	t.Parallel()
	dir, git := repository(t)
	check := func(t *testing.T) {
		t.Helper()
		refs, err := gitobj.Refs(filepath.Join(dir, ".git"))
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for name, h := range refs {
			got[name] = h.String()
		}
		want := map[string]string{}
		for line := range strings.Lines(git("for-each-ref", "--format=%(refname) %(objectname)")) {
			name, hash, _ := strings.Cut(strings.TrimSpace(line), " ")
			want[name] = hash
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("refs (-git +ours)\n%s", diff)
		}
		head, branch, err := gitobj.Head(filepath.Join(dir, ".git"), refs)
		if err != nil || branch != "refs/heads/main" || head.String() != git("rev-parse", "HEAD") {
			t.Errorf("head %s %s %v", head, branch, err)
		}
		objects := gitobj.Open(filepath.Join(dir, ".git", "objects"))
		defer objects.Close()
		for commit := range strings.FieldsSeq(git("rev-list", "--all")) {
			compareFiles(t, objects, commit, git("ls-tree", "-r", commit))
		}
		for _, pair := range [][2]string{{"main", "side"}, {"side", "main"}, {"main", "main~3"}} {
			tip, _ := gitobj.ParseHash(git("rev-parse", pair[0]))
			known, _ := gitobj.ParseHash(git("rev-parse", pair[1]))
			missing, err := objects.Missing([]gitobj.Hash{tip}, []gitobj.Hash{known})
			if err != nil {
				t.Fatal(err)
			}
			if want := git("rev-list", "--count", pair[0], "^"+pair[1]); fmt.Sprint(len(missing)) != want {
				t.Errorf("commits of %s that %s has not: %d, git says %s", pair[0], pair[1], len(missing), want)
			}
		}
	}
	t.Run("loose", check)
	git("gc", "-q", "--aggressive")
	if idx, _ := filepath.Glob(filepath.Join(dir, ".git/objects/pack/*.idx")); len(idx) == 0 {
		t.Fatal("git made no pack")
	}
	t.Run("packed", check)
	for _, version := range []string{"2", "3", "4"} {
		t.Run("index "+version, func(t *testing.T) {
			git("update-index", "--index-version", version)
			index, err := gitobj.ReadIndex(filepath.Join(dir, ".git", "index"))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for name, e := range index {
				got = append(got, e.Blob.String()+"\t"+name)
			}
			want := map[string]bool{}
			for line := range strings.Lines(git("ls-files", "-s")) {
				meta, name, _ := strings.Cut(strings.TrimSpace(line), "\t")
				want[strings.Fields(meta)[1]+"\t"+name] = true
			}
			if len(got) != len(want) {
				t.Errorf("%d entries, git says %d", len(got), len(want))
			}
			for _, g := range got {
				if !want[g] {
					t.Errorf("%s: git does not have it", g)
				}
			}
		})
	}
}

func compareFiles(t *testing.T, objects *gitobj.Store, commit, listing string) {
	t.Helper()
	h, err := gitobj.ParseHash(commit)
	if err != nil {
		t.Fatal(err)
	}
	c, err := objects.Commit(h)
	if err != nil {
		t.Fatal(err)
	}
	files, err := objects.Files(c.Tree, "")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for line := range strings.Lines(listing) {
		meta, name, _ := strings.Cut(strings.TrimSpace(line), "\t")
		want[name] = strings.Fields(meta)[2]
	}
	got := map[string]string{}
	for name, blob := range files {
		got[name] = blob.String()
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-git +ours)\n%s", commit, diff)
	}
	some, err := objects.Files(c.Tree, "deep/er")
	if err != nil || len(some) != 1 {
		t.Errorf("below deep/er: %v %v", some, err)
	}
}

// TestForgedObjectIsRefused puts another tree under the name of a real one.
func TestForgedObjectIsRefused(t *testing.T) {
	t.Parallel()
	dir, git := repository(t)
	path := func(rev string) string {
		h := git("rev-parse", rev)
		return filepath.Join(dir, ".git/objects", h[:2], h[2:])
	}
	h, _ := gitobj.ParseHash(git("rev-parse", "HEAD^{tree}"))
	forged, err := os.ReadFile(path("HEAD~2^{tree}"))
	if err != nil {
		t.Fatal(err)
	}
	target := path("HEAD^{tree}")
	if err := os.Remove(target); err != nil {
		t.Fatal(err)
	}
	write(t, target, string(forged))
	objects := gitobj.Open(filepath.Join(dir, ".git/objects"))
	defer objects.Close()
	if _, err := objects.Files(h, ""); !errors.Is(err, gitobj.ErrFormat) {
		t.Errorf("a forged tree was read: %v", err)
	}
}

// FuzzIndex reads what is no index without a panic or unbounded memory.
func FuzzIndex(f *testing.F) {
	dir, git := repository(f)
	for _, version := range []string{"2", "4"} {
		git("update-index", "--index-version", version)
		data, err := os.ReadFile(filepath.Join(dir, ".git/index"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data[:min(len(data), 600)])
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		index, err := gitobj.ParseIndex(data)
		if err == nil && len(index) > len(data) {
			t.Errorf("%d entries from %d bytes", len(index), len(data))
		}
	})
}

// FuzzPack reads a pack that was tampered with. The first bytes of the input
// say where the rest goes.
func FuzzPack(f *testing.F) {
	dir, git := repository(f)
	git("gc", "-q", "--aggressive")
	names, _ := filepath.Glob(filepath.Join(dir, ".git/objects/pack/*.pack"))
	if len(names) != 1 {
		f.Fatalf("packs: %v", names)
	}
	pack, err := os.ReadFile(names[0])
	if err != nil {
		f.Fatal(err)
	}
	idx, err := os.ReadFile(strings.TrimSuffix(names[0], ".pack") + ".idx")
	if err != nil {
		f.Fatal(err)
	}
	tree, _ := gitobj.ParseHash(git("rev-parse", "HEAD^{tree}"))
	f.Add(uint16(12), []byte{0x7f, 0xff})
	f.Add(uint16(200), []byte("x"))
	f.Add(uint16(60_000), []byte{0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, at uint16, bytes []byte) {
		objects := filepath.Join(t.TempDir(), "objects")
		p, x := append([]byte(nil), pack...), append([]byte(nil), idx...)
		if at < 50_000 {
			copy(p[int(at)%len(p):], bytes)
		} else {
			copy(x[int(at-50_000)%len(x):], bytes)
		}
		base := filepath.Join(objects, "pack", "pack-1")
		write(t, base+".pack", string(p))
		write(t, base+".idx", string(x))
		s := gitobj.Open(objects)
		defer s.Close()
		files, err := s.Files(tree, "")
		if err == nil && len(files) != 42 {
			t.Errorf("%d files and no error: what was read is not what was committed", len(files))
		}
	})
}
