package shell_test

import (
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/shell"
)

// fakeWorld is a machine in a table.
type fakeWorld struct {
	programs map[string]shell.Program
	links    map[string]string
	missing  map[string]bool
	settings map[string][]shell.Setting
	scripts  map[string]string
	names    []string
}

func (w fakeWorld) Program(word, _ string) shell.Program {
	if p, ok := w.programs[word]; ok {
		return p
	}
	return shell.Program{State: shell.ProgramTrusted, Path: "/usr/bin/" + word}
}

func (w fakeWorld) Path(abs string) shell.PathInfo {
	return shell.PathInfo{Known: true, Exists: !w.missing[abs], Real: w.links[abs]}
}

func (w fakeWorld) Repository(dir string) shell.Repository {
	s, ok := w.settings[dir]
	return shell.Repository{Known: ok, Settings: s}
}

func (w fakeWorld) Names(string) ([]string, bool) { return w.names, w.names != nil }
func (w fakeWorld) Script(kind, _, name string) (string, bool) {
	s, ok := w.scripts[kind+" "+name]
	return s, ok
}

func TestWorld(t *testing.T) {
	t.Parallel()
	w := fakeWorld{
		programs: map[string]shell.Program{
			"ls":   {State: shell.ProgramTrusted, Path: "/usr/bin/ls"},
			"cat":  {State: shell.ProgramWritable, Path: "/w/bin/cat"},
			"wc":   {},
			"sort": {State: shell.ProgramMissing},
		},
		links: map[string]string{"/w/notes": "/home/u/.ssh/id_rsa", "/w/out": "/etc/passwd", "/w/lnk": "/w/real"},
		missing: map[string]bool{
			"/elsewhere/new": true, "/w/new": true,
		},
		settings: map[string][]shell.Setting{
			"/w":       nil,
			"/w/evil":  {{Key: "core.fsmonitor", Value: "/w/x"}},
			"/w/diffs": {{Key: "diff.external", Value: "x"}},
			"/w/lfs":   {{Key: "filter.lfs.clean", Value: "git-lfs clean"}},
		},
		scripts: map[string]string{"npm clean": "rm -rf dist", "npm test": "jest", "make clean": "rm -f *.o"},
	}
	opts := shell.Options{Cwd: "/w", Home: "/home/u", Workspace: []string{"/w"}, World: w}
	for _, tc := range []struct{ cmd, class string }{
		{"ls -la", "safe"},
		{"cat a", "unknown"}, // the agent could have put this cat there
		{"wc a", "unknown"},  // not looked up
		{"sort a", "unknown"},
		{"git status", "safe"},
		{"cd evil && git status", "unknown"},
		{"git -C evil status", "unknown"},
		{"git -C evil log", "unknown"},
		{"cd diffs && git diff", "unknown"},
		{"cd diffs && git status", "safe"},
		{"cd lfs && git add x", "unknown"},
		{"cd unknown-repo && git status", "unknown"},
		{"head notes", "unknown"},
		{"head lnk", "safe"},
		{"echo x > out", "destructive"},
		{"echo x > new", "mutating"},
		{"echo x > /elsewhere/new", "mutating"},
		{"echo x > /elsewhere/old", "unknown"},
		{"touch /home/u/x", "mutating"},
		{"echo x > /home/u/.bashrc", "unknown"},
		{"head ~/.netrc", "unknown"},
		{"head $HOME/x", "safe"},
		{"npm run clean", "destructive"},
		{"npm test", "unknown"},
		{"make clean", "destructive"},
		{"make all", "unknown"},
		{"> new", "mutating"},
		{"> old", "destructive"},
	} {
		a := shell.Analyze(tc.cmd, opts)
		if a.Class.String() != tc.class {
			t.Errorf("%q: %s, want %s\n%s", tc.cmd, a.Class, tc.class, explain(a))
		}
	}
}

// Where a path is, with and without a known workspace.
func TestScopes(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		cmd   string
		cwd   string
		scope shell.Scope
	}{
		{"touch x", "", shell.ScopeWorkspace},
		{"touch ../x", "", shell.ScopeUnknown},
		{"touch ../x", "/w/sub", shell.ScopeElsewhere},
		{"touch /tmp/x", "", shell.ScopeTemp},
		{"touch /tmp/w/x", "/tmp/w", shell.ScopeWorkspace},
		{"touch /etc/x", "", shell.ScopeSystem},
		{"touch /w/../etc/x", "/w", shell.ScopeSystem},
		{"touch ~/x", "", shell.ScopeHome},
		{"touch /opt/x", "", shell.ScopeElsewhere},
		{"touch /dev/sda", "", shell.ScopeDevice},
		{"ssh h touch /etc/x", "", shell.ScopeRemote},
	} {
		a := shell.Analyze(tc.cmd, shell.Options{Cwd: tc.cwd})
		var got []shell.Scope
		a.Effects(func(_ *shell.Command, e *shell.Effect) bool {
			if e.Kind == shell.KindWrite {
				got = append(got, e.Path.Scope)
			}
			return true
		})
		if len(got) != 1 || got[0] != tc.scope {
			t.Errorf("%q in %q: %v, want %s", tc.cmd, tc.cwd, got, tc.scope)
		}
	}
}
