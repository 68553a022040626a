package observe_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/facts"
	"github.com/seed-3ebc6b8a/gatehouse/internal/needtest"
	"github.com/seed-3ebc6b8a/gatehouse/internal/observe"
	"github.com/seed-3ebc6b8a/gatehouse/internal/policy"
)

// workTree is a work tree made with the real git.
type workTree struct {
	t   *testing.T
	dir string
}

func newTree(t *testing.T) *workTree {
	t.Helper()
	needtest.Programs(t, "git")
	tr := &workTree{t, observe.RealDir(t.TempDir())}
	tr.git("init", "-q", "-b", "main")
	return tr
}

func (tr *workTree) write(name, text string) {
	tr.t.Helper()
	path := filepath.Join(tr.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		tr.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		tr.t.Fatal(err)
	}
}

func (tr *workTree) git(args ...string) {
	tr.t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "core.autocrlf=false"}, args...)...)
	cmd.Dir = tr.dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null")
	if out, err := cmd.CombinedOutput(); err != nil {
		tr.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// facts describes a call in the tree.
func (tr *workTree) facts(op string, args map[string]any) *facts.Facts {
	tr.t.Helper()
	text, err := json.Marshal(args)
	if err != nil {
		tr.t.Fatal(err)
	}
	c := &call.Call{Kind: call.External, Surface: "test", Operation: op, Args: text, Dir: tr.dir}
	if err := c.Normalize(); err != nil {
		tr.t.Fatal(err)
	}
	return new(observe.Machine).Facts(context.Background(), c, policy.Default())
}

func (tr *workTree) bash(command string) *facts.Facts {
	tr.t.Helper()
	return tr.facts("Bash", map[string]any{"command": command})
}

// TestUncommittedWorkIsNamed asks about calls that write or delete in a real
// repository: what git would not get back is named, and only that.
func TestUncommittedWorkIsNamed(t *testing.T) {
	t.Parallel()
	tr := newTree(t)
	tr.write("saved.txt", "saved")
	tr.write("src/saved.go", "saved")
	tr.write("src/changed.go", "old")
	tr.write("src/staged.go", "old")
	tr.git("add", ".")
	tr.git("commit", "-qm", "first")
	tr.write("src/changed.go", "new, and nobody has it")
	tr.write("src/new.go", "untracked")
	tr.write("src/staged.go", "staged, and in no commit")
	tr.git("add", "src/staged.go")
	check := func(t *testing.T) {
		t.Helper()
		all := []string{"src/changed.go (changed)", "src/new.go (untracked)", "src/staged.go (staged)"}
		commit := "1 commit of main (not on any remote)"
		tests := []struct {
			name, op       string
			args           map[string]any
			touches, loses []string
		}{
			{"saved file", "Write", map[string]any{"file_path": "saved.txt"}, nil, nil},
			{"changed file", "Write", map[string]any{"file_path": "src/changed.go"}, []string{"src/changed.go (changed)"}, nil},
			{"staged file", "Write", map[string]any{"file_path": "src/staged.go"}, []string{"src/staged.go (staged)"}, nil},
			{"new file", "Edit", map[string]any{"file_path": "src/new.go"}, []string{"src/new.go (untracked)"}, nil},
			{"file that is not there", "Write", map[string]any{"file_path": "src/none.go"}, nil, nil},
			{"reading loses nothing", "Read", map[string]any{"file_path": "src/changed.go"}, nil, nil},
			{"whole tree", "Bash", map[string]any{"command": "rm -rf src"}, all, all},
			{"one saved file", "Bash", map[string]any{"command": "rm src/saved.go"}, nil, nil},
			{"over a changed file", "Bash", map[string]any{"command": "mv saved.txt src/changed.go"}, []string{"src/changed.go (changed)"}, []string{"src/changed.go (changed)"}},
			{"into a directory", "Bash", map[string]any{"command": "cp saved.txt src"}, all, nil},
			{"one file back", "Bash", map[string]any{"command": "git checkout -- src/changed.go"}, []string{"src/changed.go (changed)"}, []string{"src/changed.go (changed)"}},
			{"everything back", "Bash", map[string]any{"command": "git reset --hard"}, append(all[:3:3], commit), append(all[:3:3], commit)},
			{"untracked files", "Bash", map[string]any{"command": "git clean -fd"}, append(all[:3:3], commit), append(all[:3:3], commit)},
			{"a branch", "Bash", map[string]any{"command": "git branch -D main"}, append(all[:3:3], commit), append(all[:3:3], commit)},
			{"git's own directory", "Bash", map[string]any{"command": "rm -rf .git"}, []string{commit}, []string{commit}},
			{"a lock", "Bash", map[string]any{"command": "rm -f .git/index.lock"}, nil, nil},
			{"elsewhere", "Bash", map[string]any{"command": "git -C .. reset --hard"}, nil, nil},
			{"what it names is not known", "Bash", map[string]any{"command": `rm -rf "$X"`},
				[]string{"what it destroys (whether it is saved cannot be told)"}, []string{"what it destroys (whether it is saved cannot be told)"}},
		}
		for _, tt := range tests {
			got := tr.facts(tt.op, tt.args)
			if diff := cmp.Diff(tt.touches, got.Uncommitted); diff != "" {
				t.Errorf("%s touches: (-want +got)\n%s", tt.name, diff)
			}
			if diff := cmp.Diff(tt.loses, got.Destroys); diff != "" {
				t.Errorf("%s destroys: (-want +got)\n%s", tt.name, diff)
			}
		}
	}
	check(t)
	tr.git("gc", "-q") // objects and refs move into packs
	tr.git("update-index", "--index-version", "4")
	check(t)
}

// TestUnpushedCommitsAreCounted compares branches with what remotes have.
func TestUnpushedCommitsAreCounted(t *testing.T) {
	t.Parallel()
	tr := newTree(t)
	tr.write("a", "1")
	tr.git("add", ".")
	tr.git("commit", "-qm", "one")
	tr.git("clone", "-q", "--bare", ".", filepath.Join(tr.dir, ".git", "there"))
	tr.git("remote", "add", "origin", ".git/there")
	tr.git("fetch", "-q")
	if got := tr.bash("git reset --hard").Destroys; got != nil {
		t.Errorf("all is saved and pushed, and yet %v", got)
	}
	tr.git("checkout", "-qb", "topic")
	for _, text := range []string{"2", "3"} {
		tr.write("a", text)
		tr.git("commit", "-qam", text)
	}
	want := []string{"2 commits of topic (not on any remote)"}
	if diff := cmp.Diff(want, tr.bash("git branch -D topic").Destroys); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	tr.git("push", "-q", "origin", "topic")
	tr.write("a", "4")
	tr.git("-c", "user.name=a", "stash", "-q")
	if diff := cmp.Diff([]string{"1 stash entry (stashed)"}, tr.bash("git stash drop").Destroys); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	// Deleting the parent of a work tree deletes the work in it.
	up := &workTree{t, filepath.Dir(tr.dir)}
	if diff := cmp.Diff([]string{"1 stash entry (stashed)"}, up.bash("rm -rf "+filepath.Base(tr.dir)).Destroys); diff != "" {
		t.Errorf("from above: (-want +got)\n%s", diff)
	}
}

// TestUnreadableCountsAsTouched breaks what is read, part by part.
func TestUnreadableCountsAsTouched(t *testing.T) {
	t.Parallel()
	breaks := map[string]func(tr *workTree){
		"index cut off": func(tr *workTree) {
			tr.write(".git/index", "DIRC\x00\x00\x00\x02\x00\x00\x00\x09cut off and nothing else in it")
		},
		"refs":     func(tr *workTree) { tr.write(".git/refs/heads/main", "nonsense") },
		"head":     func(tr *workTree) { tr.write(".git/HEAD", "0123456789012345678901234567890123456789") },
		"git file": func(tr *workTree) { _ = os.RemoveAll(filepath.Join(tr.dir, ".git")); tr.write(".git", "nonsense") },
		"objects": func(tr *workTree) {
			_ = filepath.Walk(filepath.Join(tr.dir, ".git", "objects"), func(p string, info os.FileInfo, err error) error {
				if err == nil && !info.IsDir() {
					_ = os.Chmod(p, 0o600)
					return os.WriteFile(p, []byte("nonsense"), 0o600)
				}
				return err
			})
		},
		"split index": func(tr *workTree) { tr.git("update-index", "--split-index") },
	}
	for name, spoil := range breaks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr := newTree(t)
			tr.write("saved.txt", "saved")
			tr.git("add", ".")
			tr.git("commit", "-qm", "first")
			spoil(tr)
			if got := tr.facts("Write", map[string]any{"file_path": "saved.txt"}).Uncommitted; len(got) != 1 {
				t.Errorf("%v, want the path named as one that cannot be told", got)
			}
			if got := tr.bash("rm saved.txt").Destroys; len(got) != 1 {
				t.Errorf("rm: %v, want the path named as one that cannot be told", got)
			}
		})
	}
}

// TestAttack28NothingOfTheTreeRuns plants every kind of setting that makes git
// run a program, has the gate look at the tree in all its ways, and then shows
// with the real git that the plants were live.
func TestAttack28NothingOfTheTreeRuns(t *testing.T) {
	t.Parallel()
	tr := newTree(t)
	tr.write("a.txt", "one")
	tr.git("add", ".")
	tr.git("commit", "-qm", "first")
	mark := filepath.Join(t.TempDir(), "executed")
	script := filepath.Join(t.TempDir(), "run.sh")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho \"$0 $*\" >> "+mark+"\ncat\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	tr.write(".gitattributes", "* filter=evil diff=evil\n")
	included := filepath.Join(t.TempDir(), "included")
	if err := os.WriteFile(included, []byte("[core]\n\tfsmonitor = "+script+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for key, value := range map[string]string{
		"filter.evil.clean": script, "filter.evil.smudge": script, "filter.evil.required": "true",
		"diff.evil.textconv": script, "diff.external": script, "include.path": included,
	} {
		tr.git("config", key, value)
	}
	for _, hook := range []string{"post-index-change", "reference-transaction", "pre-commit", "post-checkout"} {
		tr.write(".git/hooks/"+hook, "#!/bin/sh\necho hook >> "+mark+"\n")
		if err := os.Chmod(filepath.Join(tr.dir, ".git/hooks", hook), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	tr.write("a.txt", "two")
	tr.write("b.txt", "new")
	for _, command := range []string{"rm -rf .", "git reset --hard", "git clean -fdx", "git status", "git diff", "mv b.txt a.txt", "git stash drop", "git push --force"} {
		if f := tr.bash(command); command == "git reset --hard" && len(f.Destroys) < 3 {
			t.Errorf("%s destroys %v, want the changed, the untracked and the unpushed", command, f.Destroys)
		}
	}
	tr.facts("Write", map[string]any{"file_path": "a.txt"})
	if text, err := os.ReadFile(mark); err == nil {
		t.Fatalf("the gate ran what the tree told it to:\n%s", text)
	}
	cmd := exec.Command("git", "status")
	cmd.Dir = tr.dir
	_ = cmd.Run() // what it answers does not matter here
	if _, err := os.ReadFile(mark); err != nil {
		t.Errorf("git ran nothing of what was planted, so this test shows nothing: %v", err)
	}
}
