package knowledge_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-3ebc6b8a/gatehouse/internal/shell"
	"github.com/seed-3ebc6b8a/gatehouse/internal/shell/knowledge"
)

// The tables are complete enough to be read, and every entry says what it is.
func TestBuiltin(t *testing.T) {
	t.Parallel()
	families := map[string]int{}
	for _, p := range knowledge.Builtin().Programs() {
		families[p.Family]++
		if p.Family == "" {
			t.Errorf("%s has no family", p.Name)
		}
		lint(t, p.Name, &p.Spec)
	}
	if n := len(knowledge.Builtin().Programs()); n < 120 {
		t.Errorf("%d programs, want at least 120", n)
	}
	for _, want := range []string{"coreutils", "git", "package managers", "cloud", "databases", "containers", "editors", "shells and interpreters", "agent CLIs", "network", "archives", "system"} {
		if families[want] == 0 {
			t.Errorf("no program of the family %q", want)
		}
	}
}

// lint finds conditions that can never hold and defaults that do not exist.
func lint(t *testing.T, name string, s *knowledge.Spec) {
	t.Helper()
	if s.Default != "" && s.Sub(s.Default) == nil {
		t.Errorf("%s: the default %q is no subcommand", name, s.Default)
	}
	for _, w := range s.Whens {
		for _, o := range append(append(append([]string{}, w.Any...), w.All...), w.None...) {
			if s.Options[o] == nil && !s.AnyOption {
				t.Errorf("%s: a condition asks for %s, which is no option", name, o)
			}
		}
		if w.Max >= 0 && w.Min > w.Max {
			t.Errorf("%s: a condition wants at least %d and at most %d operands", name, w.Min, w.Max)
		}
	}
	for sub, spec := range s.Subs {
		if spec != s {
			lint(t, name+" "+sub, spec)
		}
	}
}

func load(t *testing.T, text string) (*knowledge.Base, []knowledge.Change, error) {
	t.Helper()
	return knowledge.Load(fstest.MapFS{"mine.toml": &fstest.MapFile{Data: []byte(text)}})
}

func TestLoad(t *testing.T) {
	t.Parallel()
	base, changes, err := load(t, `
family = "mine"
[[program]]
name = "frob"
does = ["network"]
opts = "-o=write -q"
operands = "read*"
examples = ["network: frob a"]
`)
	if err != nil {
		t.Fatal(err)
	}
	want := []knowledge.Change{{Program: "frob", File: "mine.toml", Looser: true, Why: "a program that was unknown becomes known"}}
	if diff := cmp.Diff(want, changes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for cmd, class := range map[string]string{"frob -q a": "network", "frob -x a": "unknown", "frob -o /etc/x a": "destructive"} {
		if got := shell.Analyze(cmd, shell.Options{Knowledge: base}).Class.String(); got != class {
			t.Errorf("%q: %s, want %s", cmd, got, class)
		}
	}
	if got := shell.Analyze("frob a", shell.Options{}).Class; got != shell.ClassUnknown {
		t.Errorf("the built-in tables changed: %s", got)
	}
}

// A file that replaces a built-in entry can loosen, and is reported; one that
// extends it can only tighten.
func TestLoadReportsLoosening(t *testing.T) {
	t.Parallel()
	_, changes, err := load(t, "family = 'x'\n[[program]]\nname = 'rm'\noperands = 'data*'\nany_option = true\n")
	if err != nil {
		t.Fatal(err)
	}
	if len(changes) != 1 || !changes[0].Looser {
		t.Errorf("replacing rm is reported as %+v", changes)
	}
	base, changes, err := load(t, "family = 'x'\n[[program]]\nname = 'ls'\nextend = true\ndoes = ['unknown']\n[[program]]\nname = 'grep'\nextend = true\nopts = '-r!execute -e'\n[[program]]\nname = 'git'\nextend = true\nopts = '--oneline!execute'\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range changes {
		if c.Looser {
			t.Errorf("extending is reported as looser: %+v", c)
		}
	}
	for cmd, class := range map[string]string{"ls": "unknown", "grep -r a b": "unknown", "grep a b": "safe", "grep -e a b": "safe", "git log --oneline": "unknown", "git log": "safe"} {
		if got := shell.Analyze(cmd, shell.Options{Knowledge: base}).Class.String(); got != class {
			t.Errorf("%q: %s, want %s", cmd, got, class)
		}
	}
}

// Extending never makes an example of a built-in table milder.
func TestExtendOnlyTightens(t *testing.T) {
	t.Parallel()
	order := map[string]int{"safe": 1, "mutating": 2, "network": 3, "unknown": 4, "destructive": 5}
	for _, p := range knowledge.Builtin().Programs() {
		base, _, err := load(t, "family = 'x'\n[[program]]\nname = '"+p.Name+"'\nextend = true\ndoes = ['nothing']\nopts = '-x -r --force --help -n!read'\noperands = 'data*'\nany_option = true\n")
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range p.Examples {
			if got := shell.Analyze(e.Command, shell.Options{Knowledge: base}).Class.String(); order[got] < order[e.Class] {
				t.Errorf("%q: %s, was %s", e.Command, got, e.Class)
			}
		}
	}
}

func TestLoadRefuses(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, text, want string }{
		{"unknown key", "family = 'x'\nfoo = 1\n", "unknown keys"},
		{"unknown effect", "[[program]]\nname = 'a'\ndoes = ['explode']\n", `unknown effect "explode"`},
		{"unknown role", "[[program]]\nname = 'a'\noperands = 'foo'\n", `unknown role "foo"`},
		{"unknown style", "[[program]]\nname = 'a'\nstyle = 'foo'\n", `unknown style "foo"`},
		{"bad option", "[[program]]\nname = 'a'\nopts = 'x'\n", "does not start with"},
		{"unknown group", "[[program]]\nname = 'a'\nopts = '@g'\n", "unknown option group"},
		{"two repeats", "[[program]]\nname = 'a'\noperands = 'read* data*'\n", "repeat twice"},
		{"benign that writes", "[[program]]\nname = 'a'\nbenign = true\nopts = '-o=write'\n", "benign, but -o"},
		{"no name", "[[program]]\ndoes = []\n", "no name"},
		{"extends nothing", "[[program]]\nname = 'nosuch'\nextend = true\n", "not known"},
		{"broken", "[[program]\n", "line 1"},
		{"example without class", "[[program]]\nname = 'a'\nexamples = ['a b']\n", "has no class"},
	} {
		_, _, err := load(t, tc.text)
		if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "mine.toml") {
			t.Errorf("%s: %v, want %q in mine.toml", tc.name, err, tc.want)
		}
	}
}

func TestPathTags(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]knowledge.Tags{
		"src/main.go":              {},
		"a/.env":                   {Name: knowledge.TagSecret},
		".env.local":               {Name: knowledge.TagSecret},
		".env.example":             {},
		"~/.ssh/id_rsa":            {Name: knowledge.TagSecret},
		"~/.ssh/known_hosts":       {},
		"key.pem":                  {Name: knowledge.TagSecret},
		"~/.bashrc":                {Name: knowledge.TagStartup},
		".git/hooks/pre-push":      {Name: knowledge.TagStartup},
		".github/workflows/ci.yml": {},
		"/etc/hosts":               {Place: knowledge.TagSystem},
		"/etc/shadow":              {Place: knowledge.TagSecret},
		"/etc/cron.d/x":            {Place: knowledge.TagStartup},
		"/tmp/x":                   {Place: knowledge.TagTemp},
		"/var/tmp/x":               {Place: knowledge.TagTemp},
		"/dev/null":                {Place: knowledge.TagNull},
		"/dev/sda1":                {Place: knowledge.TagDevice},
		"/etcetera":                {},
		"":                         {},
	} {
		if diff := cmp.Diff(want, knowledge.Builtin().PathTags(path)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", path, diff)
		}
	}
}

func TestVariables(t *testing.T) {
	t.Parallel()
	b := knowledge.Builtin()
	for name, want := range map[string]knowledge.VariableKind{
		"PATH": knowledge.VariableDangerous, "LD_PRELOAD": knowledge.VariableDangerous, "GIT_DIR": knowledge.VariableDangerous,
		"LANG": knowledge.VariablePlain, "x": knowledge.VariablePlain, "CLAUDE_CONFIG_DIR": knowledge.VariableBypass,
		"PYTHONUNBUFFERED": knowledge.VariablePlain, "PYTHONPATH": knowledge.VariableDangerous,
	} {
		if got := b.Variable(name); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
	for name, want := range map[string]bool{"GITHUB_TOKEN": true, "AWS_SECRET_ACCESS_KEY": true, "HOME": false, "KEYBOARD": false} {
		if got := b.SecretVariable(name); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
