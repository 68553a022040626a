package observe_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-3ebc6b8a/gatehouse/internal/observe"
	"github.com/seed-3ebc6b8a/gatehouse/internal/shell"
)

// tree makes files below a new directory; a text that begins with #! is
// executable, a name that ends with / is a directory.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		path := filepath.Join(root, name)
		if name[len(name)-1] == '/' {
			if err := os.MkdirAll(path, 0o755); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		mode := os.FileMode(0o644)
		if len(text) > 1 && text[:2] == "#!" {
			mode = 0o755
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// repo is a work tree with this configuration and what else is given.
func repo(config string, more map[string]string) map[string]string {
	files := map[string]string{".git/HEAD": "ref: refs/heads/main\n", ".git/objects/": "", ".git/refs/": "", ".git/config": config}
	for name, text := range more {
		files[name] = text
	}
	return files
}

const (
	evil     = "[core]\n\tfsmonitor = evil\n"
	harmless = "[core]\n\tbare = false\n[user]\n\tname = x\n[remote \"origin\"]\n\turl = https://x.example\n[branch \"main\"]\n\tremote = origin\n"
)

func TestRepository(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		files map[string]string
		dir   string // where the command works
		want  []string
		lost  bool // the settings are not known
	}{
		{name: "no repository", files: map[string]string{"a/": ""}},
		{name: "harmless", files: repo(harmless, nil)},
		{name: "no configuration", files: map[string]string{".git/HEAD": "ref: refs/heads/main"}},
		{name: "fsmonitor", files: repo(evil, nil), want: []string{"core.fsmonitor"}},
		{name: "from below", files: repo(evil, map[string]string{"a/b/": ""}), dir: "a/b", want: []string{"core.fsmonitor"}},
		{name: "filters", files: repo("[filter \"x\"]\nclean = a\nsmudge = b\nprocess = c\nrequired = true", nil), want: []string{"filter.x.clean", "filter.x.smudge", "filter.x.process"}},
		{name: "alias", files: repo("[alias]\nst = !evil", nil), want: []string{"alias.st"}},
		{name: "pager", files: repo("[pager]\nlog = evil\n[core]\npager = evil", nil), want: []string{"pager.log", "core.pager"}},
		{name: "include", files: repo("[include]\npath = x\n[includeIf \"gitdir:/\"]\npath = y", nil), want: []string{"include.path", "includeif.gitdir:/.path"}},
		{name: "case", files: repo("[CORE]\nFSMonitor = evil\n[Filter \"Big\"]\nClean = x", nil), want: []string{"core.fsmonitor", "filter.Big.clean"}},
		{name: "the old way to name a section", files: repo("[filter.x]\nclean = evil", nil), want: []string{"filter.x.clean"}},
		{name: "on the line of the section", files: repo("[core] fsmonitor = evil", nil), want: []string{"core.fsmonitor"}},
		{name: "a name with a bracket in it", files: repo("[filter \"a][user]\"]\nclean = evil", nil), want: []string{"filter.a][user].clean"}},
		{name: "a value that goes on", files: repo("[core]\nx = \\\n[user]\nfsmonitor = evil", nil), want: []string{"core.fsmonitor"}},
		{name: "a mark at the beginning", files: repo("\ufeff"+evil, nil), want: []string{"core.fsmonitor"}},
		{name: "in a comment", files: repo("# [core]\n; fsmonitor = evil\n[core] # fsmonitor = evil\n", nil)},
		{name: "in a value", files: repo("[user]\nname = \"[core]\"\nfsmonitor = evil", nil)},
		{name: "not a configuration", files: repo("[core\nfsmonitor = evil", nil), lost: true},
		{name: "a configuration that is a directory", files: map[string]string{".git/HEAD": "ref: refs/heads/main", ".git/config/": ""}, lost: true},
		{name: "hooks", files: repo(harmless, map[string]string{".git/hooks/pre-commit": "#!/bin/sh"}), want: []string{"hooks"}},
		{name: "a hook that looking runs", files: repo(harmless, map[string]string{".git/hooks/post-index-change": "#!/bin/sh"}), want: []string{"hooks", "hooks.post-index-change"}},
		{name: "samples of hooks", files: repo(harmless, map[string]string{".git/hooks/pre-commit.sample": "#!/bin/sh", ".git/hooks/readme": "text"})},
		{name: "hooks elsewhere", files: repo("[core]\nhooksPath = .husky", nil), want: []string{"core.hookspath"}},
		{name: "a worktree", files: map[string]string{
			"wt/.git": "gitdir: ../main/.git/worktrees/wt\n", "main/.git/worktrees/wt/commondir": "../..\n", "main/.git/worktrees/wt/HEAD": "ref: refs/heads/x",
			"main/.git/objects/": "", "main/.git/refs/": "", "main/.git/config": evil, "main/.git/worktrees/wt/config.worktree": "[alias]\nx = !y",
			"main/.git/hooks/pre-push": "#!/bin/sh",
		}, dir: "wt", want: []string{"core.fsmonitor", "alias.x", "hooks"}},
		{name: "a .git file that names nothing", files: map[string]string{".git": "hello"}, lost: true},
		{name: "a nested repository", files: repo(evil, map[string]string{"sub/.git/HEAD": "ref: refs/heads/main", "sub/.git/objects/": "", "sub/.git/refs/": "", "sub/.git/config": harmless}), dir: "sub"},
		{name: "a .git that git passes over", files: repo(evil, map[string]string{"sub/.git/": ""}), dir: "sub", want: []string{"core.fsmonitor"}},
		{name: "a head that git passes over", files: repo(evil, map[string]string{"sub/.git/HEAD": "nonsense", "sub/.git/objects/": "", "sub/.git/refs/": ""}), dir: "sub", want: []string{"core.fsmonitor"}},
		{name: "a bare repository without the name", files: map[string]string{"x/HEAD": "ref: refs/heads/main", "x/objects/": "", "x/refs/": "", "x/config": evil}, dir: "x", want: []string{"core.fsmonitor"}},
		{name: "below a bare repository", files: map[string]string{"x/HEAD": "ref: refs/heads/main", "x/objects/": "", "x/refs/": "", "x/config": evil}, dir: "x/refs", want: []string{"core.fsmonitor"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := observe.NewView().Repository(filepath.Join(tree(t, tt.files), tt.dir))
			if got.Known == tt.lost {
				t.Errorf("known %v", got.Known)
			}
			var keys []string
			for _, s := range got.Settings {
				keys = append(keys, s.Key)
			}
			if diff := cmp.Diff(tt.want, keys); diff != "" {
				t.Errorf("settings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRepositoryThroughALink(t *testing.T) {
	t.Parallel()
	root := tree(t, map[string]string{"real/HEAD": "ref: refs/heads/main", "real/objects/": "", "real/refs/": "", "real/config": evil, "work/": ""})
	if err := os.Symlink("../real", filepath.Join(root, "work", ".git")); err != nil {
		t.Fatal(err)
	}
	if got := observe.NewView().Repository(filepath.Join(root, "work")); got.Known && len(got.Settings) != 1 {
		t.Errorf("%+v", got)
	}
}

// TestRepositoryIsPartOfTheWorld: what a description rests on is identified,
// so that an approval does not outlive a change of it.
func TestRepositoryIsPartOfTheWorld(t *testing.T) {
	t.Parallel()
	root := tree(t, repo(harmless, nil))
	v := observe.NewView()
	v.Repository(root)
	want := []string{filepath.Join(root, ".git/config"), filepath.Join(root, ".git/config.worktree")}
	if diff := cmp.Diff(want, v.Read()); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}
}

// TestGitSeesTheSettings: what is found here counts in the command that looks
// harmless without it.
func TestGitSeesTheSettings(t *testing.T) {
	t.Parallel()
	for name, files := range map[string]map[string]string{
		"fsmonitor":         repo(evil, nil),
		"includeIf":         repo("[includeIf \"gitdir:/\"]\npath = x", nil),
		"post-index-change": repo(harmless, map[string]string{".git/hooks/post-index-change": "#!/bin/sh"}),
		"broken":            repo("[core", nil),
	} {
		a := shell.Analyze("git status", shell.Options{Cwd: tree(t, files), World: observe.NewView()})
		if a.Class < shell.ClassUnknown {
			t.Errorf("%s: git status is %s", name, a.Class)
		}
	}
}
