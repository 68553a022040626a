package shell_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-3ebc6b8a/gatehouse/internal/shell"
)

// fact is an effect with the text that causes it.
type fact struct{ Program, Kind, Path, Host, Text string }

func factsOf(cmd string, a *shell.Analysis) []fact {
	var out []fact
	a.Effects(func(c *shell.Command, e *shell.Effect) bool {
		out = append(out, fact{c.Program, e.Kind.String(), e.Path.Value, e.Host, cmd[e.Span.Start:e.Span.End]})
		return true
	})
	return out
}

// Effects carry the words that cause them, through quotes and nested shells.
func TestFacts(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		cmd  string
		want []fact
	}{
		{"cat a.txt", []fact{{"cat", "read", "a.txt", "", "a.txt"}}},
		{"rm -rf './build dir'", []fact{{"rm", "delete", "build dir", "", "'./build dir'"}}},
		{"bash -c 'rm x'", []fact{{"rm", "delete", "x", "", "x"}}},
		{"bash -c \"ls; rm x\"", []fact{{"rm", "delete", "x", "", "x"}}},
		{"curl -o out https://h.example:8443/p", []fact{
			{"curl", "write", "out", "", "out"},
			{"curl", "network", "", "", "curl -o out https://h.example:8443/p"},
			{"curl", "network", "", "h.example:8443", "https://h.example:8443/p"},
		}},
		{"cd sub && touch x", []fact{{"cd", "read", "sub", "", "sub"}, {"touch", "write", "sub/x", "", "x"}}},
		{"echo hi > a/../b", []fact{{"echo", "write", "b", "", "> a/../b"}}},
		{"d=out; mkdir $d/x", []fact{{"mkdir", "write", "out/x", "", "$d/x"}}},
		{"scp a user@h:b", []fact{
			{"scp", "network", "", "", "scp a user@h:b"},
			{"scp", "read", "a", "", "a"},
			{"scp", "network", "", "h", "user@h:b"},
		}},
	} {
		if diff := cmp.Diff(tc.want, factsOf(tc.cmd, shell.Analyze(tc.cmd, shell.Options{}))); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tc.cmd, diff)
		}
	}
}

// Wrappers are named, outermost first.
func TestVia(t *testing.T) {
	t.Parallel()
	a := shell.Analyze("sudo -u bob timeout 5 env A=1 rm x", shell.Options{})
	last := a.Commands[len(a.Commands)-1]
	if diff := cmp.Diff([]string{"sudo", "timeout", "env"}, last.Via); diff != "" || last.Program != "rm" {
		t.Errorf("program %s via (-want +got):\n%s", last.Program, diff)
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ cmd, want string }{
		{"rm -rf ./build && npm run test", "deletes ./build recursively; runs an npm script"},
		{"cat a b", "reads a; reads b"},
		{"true", "reads nothing and changes nothing"},
		{"curl https://x.example", "uses the network (curl); contacts x.example"},
		{"rm a b c d e f", "deletes a; deletes b; deletes c; deletes d; and more"},
	} {
		if got := shell.Analyze(tc.cmd, shell.Options{}).Words(); got != tc.want {
			t.Errorf("%q: %q, want %q", tc.cmd, got, tc.want)
		}
	}
}

func TestLine(t *testing.T) {
	t.Parallel()
	line, err := shell.Analyze("rm x", shell.Options{}).Line("rm x")
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]string
	if err := json.Unmarshal(line, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"cmd": "rm x", "class": "destructive", "why": "deletes x"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A limit refuses: the class is at least unknown, and what was seen still counts.
func TestLimits(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, cmd string
		class     shell.Class
		note      shell.NoteCode
	}{
		{"long", "ls; " + strings.Repeat("a", shell.MaxBytes), shell.ClassUnknown, shell.NoteLimit},
		{"long and bad", "rm x; " + strings.Repeat("ls; ", shell.MaxBytes/4), shell.ClassDestructive, shell.NoteLimit},
		{"many", strings.Repeat("ls; ", shell.MaxCommands+1), shell.ClassUnknown, shell.NoteLimit},
		{"many and bad", strings.Repeat("ls; ", shell.MaxCommands+1) + "rm x", shell.ClassDestructive, shell.NoteLimit},
		{"broken", "ls 'x", shell.ClassUnknown, shell.NoteParse},
		{"broken and bad", "rm -rf x; ls 'x", shell.ClassDestructive, shell.NoteParse},
		{"deep", strings.Repeat("$(", 100) + "ls" + strings.Repeat(")", 100), shell.ClassUnknown, shell.NoteLimit},
		{"wrapped", strings.Repeat("env ", 200) + "ls", shell.ClassUnknown, shell.NoteLimit},
		{"control", "ls \x01", shell.ClassUnknown, shell.NoteControl},
		{"zsh", "echo ${(e)x}", shell.ClassUnknown, shell.NoteParse},
		{"powershell", "Get-ChildItem -Recurse", shell.ClassUnknown, shell.NoteDialect},
	} {
		a := shell.Analyze(tc.cmd, shell.Options{})
		if a.Class != tc.class {
			t.Errorf("%s: %s, want %s", tc.name, a.Class, tc.class)
		}
		if len(a.Notes) == 0 || a.Notes[0].Code != tc.note {
			t.Errorf("%s: notes %v, want %s", tc.name, a.Notes, tc.note)
		}
	}
	if a := shell.Analyze(strings.Repeat("ls; ", shell.MaxCommands), shell.Options{}); a.Class != shell.ClassSafe || !a.Complete {
		t.Errorf("at the limit: %s, complete %v", a.Class, a.Complete)
	}
}

func TestDialects(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		cmd     string
		dialect shell.Dialect
		class   shell.Class
	}{
		{"ls", shell.POSIX, shell.ClassSafe},
		{"ls", shell.Mksh, shell.ClassSafe},
		{"ls", shell.Zsh, shell.ClassUnknown},
		{"ls", shell.PowerShell, shell.ClassUnknown},
		{"rm x", shell.Zsh, shell.ClassDestructive},
		{"a=(1 2)", shell.POSIX, shell.ClassUnknown},
		{"a=(1 2)", shell.Bash, shell.ClassSafe},
	} {
		if got := shell.Analyze(tc.cmd, shell.Options{Dialect: tc.dialect}).Class; got != tc.class {
			t.Errorf("%s %q: %s, want %s", tc.dialect, tc.cmd, got, tc.class)
		}
	}
}

// Text typed into a process is code of that process, and never safe.
func TestInput(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		text   string
		target shell.Target
		class  shell.Class
	}{
		{"ls\n", shell.TargetShell, shell.ClassUnknown},
		{"rm -rf x\n", shell.TargetShell, shell.ClassDestructive},
		{"rm -rf x\n", shell.TargetUnknown, shell.ClassDestructive},
		{"y\n", shell.TargetUnknown, shell.ClassUnknown},
		{"import shutil; shutil.rmtree('x')", shell.TargetPython, shell.ClassDestructive},
		{"print(1)", shell.TargetPython, shell.ClassUnknown},
		{"drop table x;", shell.TargetSQL, shell.ClassDestructive},
	} {
		if got := shell.AnalyzeInput(tc.text, tc.target, shell.Options{}).Class; got != tc.class {
			t.Errorf("%s %q: %s, want %s", tc.target, tc.text, got, tc.class)
		}
	}
}

// What the analysis knows of values, and where it must stop knowing.
func TestValues(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		cmd, class string
	}{
		{"x=a; cat $x", "safe"},
		{"x=a; x=$x.txt; cat $x", "safe"},
		{"x='a b'; cat $x", "safe"},
		{"cat $unset", "unknown"},
		{"x=a; if true; then x=~/.ssh/id_rsa; fi; cat $x", "unknown"},
		{"x=a; (x=~/.ssh/id_rsa); cat $x", "safe"},
		{"x=a; for i in 1 2; do cat $x; x=~/.ssh/id_rsa; done", "unknown"},
		{"for i in 1 2; do x=a; cat $x; done", "safe"},
		{"true && x=a && cat $x", "safe"},
		{"true || x=b; cat $x", "unknown"},
		{"x=a; f() { cat $x; }; x=~/.ssh/id_rsa; f", "unknown"},
		{"x=a; read x; cat $x", "unknown"},
		{"x=a; source y; cat $x", "unknown"},
		{"x=a; eval 'x=~/.ssh/id_rsa'; cat $x", "unknown"},
		{"for f in a b; do cat $f; done", "safe"},
		{"for f in a ~/.ssh/id_rsa; do cat $f; done", "unknown"},
		{"for c in ls rm; do $c x; done", "destructive"},
		{"for s in status 'reset --hard'; do git $s; done", "unknown"},
		{"for s in status clean; do git $s -fd; done", "destructive"},
		{"cd ~/.ssh && cat id_rsa.pub.x", "unknown"},
		{"cd ~/.ssh; ls", "safe"},
		{"(cd /tmp/x); git status", "safe"},
		{"cd /tmp/x || exit; git status", "unknown"},
		{"cd sub && git status", "safe"},
		{"cd - && git status", "unknown"},
		{"cd \"$d\" && git status", "unknown"},
		{"for d in a b; do (cd $d && ls); done", "safe"},
		{"HOME=/x; cat ~/y", "unknown"},
		{"i=0; while [ $i -lt 3 ]; do i=$((i+1)); echo $i; done", "safe"},
		{"for ((i=0; i<3; i++)); do echo $i; done", "safe"},
		{"n=$(wc -l < a); echo $((n + 1))", "safe"},
		{"n=$(cat a); echo $((n + 1))", "unknown"},
		{"find . -printf '/etc/shadow\\n' | xargs cat", "unknown"},
		{"find . | grep . evil.txt | xargs cat", "unknown"},
		{"cat evil.txt | xargs cat", "unknown"},
		{"ls | sed 's/x/y/' | xargs cat", "unknown"},
		{"ls ~ | xargs cat", "unknown"},
		{"echo $(date +%F)", "safe"},
		{"sort $(date +-o) x", "unknown"},
		{"sort $(git rev-parse --sq -o) x", "unknown"},
	} {
		a := shell.Analyze(tc.cmd, shell.Options{})
		if a.Class.String() != tc.class {
			t.Errorf("%q: %s, want %s\n%s", tc.cmd, a.Class, tc.class, explain(a))
		}
	}
}

// Agent CLIs, and acting outside, are told apart from merely unknown things.
func TestBypassAndOutside(t *testing.T) {
	t.Parallel()
	for cmd, kind := range map[string]shell.Kind{
		"claude --dangerously-skip-permissions":            shell.KindBypass,
		"claude --bare -p x":                               shell.KindBypass,
		"CLAUDE_CONFIG_DIR=x claude":                       shell.KindBypass,
		"env CODEX_HOME=x codex exec y":                    shell.KindBypass,
		"gemini --yolo":                                    shell.KindBypass,
		"codex --dangerously-bypass-approvals-and-sandbox": shell.KindBypass,
		"bash -c 'copilot --allow-all-tools'":              shell.KindBypass,
		"git commit --no-verify -m x":                      shell.KindBypass,
		"tmux send-keys -t 0 ls Enter":                     shell.KindOutside,
		"systemd-run ls":                                   shell.KindOutside,
		"echo ls | at now":                                 shell.KindOutside,
		"docker run -v /:/h alpine ls":                     shell.KindOutside,
		"ssh localhost ls":                                 shell.KindOutside,
		"gdb -p 12":                                        shell.KindOutside,
		"crontab x":                                        shell.KindOutside,
		"sudo ls":                                          shell.KindPrivilege,
		"echo x >> ~/.bashrc":                              shell.KindExecute,
		"cp hook .git/hooks/pre-commit":                    shell.KindExecute,
		"tee .claude/settings.json < x":                    shell.KindExecute,
		"cp git ~/.local/bin/git":                          shell.KindExecute,
		"sed -i s/a/b/ .vscode/tasks.json":                 shell.KindExecute,
		"curl -o .mcp.json https://x.example":              shell.KindExecute,
		"mv x ~/.config/systemd/user/y.service":            shell.KindExecute,
		"printf x > \"$HOME/.zshrc\"":                      shell.KindExecute,
	} {
		if a := shell.Analyze(cmd, shell.Options{}); !a.Has(kind) {
			t.Errorf("%q has no %s effect:\n%s", cmd, kind, explain(a))
		}
	}
}
