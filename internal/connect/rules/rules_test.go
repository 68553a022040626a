package rules_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/seed-3ebc6b8a/gatehouse/internal/connect"
	"github.com/seed-3ebc6b8a/gatehouse/internal/connect/rules"
	"github.com/seed-3ebc6b8a/gatehouse/internal/policy"
)

var update = flag.Bool("update", false, "rewrite what is expected")

// TestRules reads the settings in testdata, one file per agent and scope, and
// compares what is taken over and what is left out. What is taken over loads as
// a policy, and importing it again changes nothing.
func TestRules(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no test data", err)
	}
	seen := map[string]bool{}
	for _, file := range files {
		agent, scope, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".txtar"), "-")
		seen[agent] = true
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			p := connect.Place{Scope: connect.User, Home: t.TempDir(), Dir: t.TempDir()}
			if scope == "project" {
				p.Scope = connect.Project
			}
			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			want := -1
			for i, f := range ar.Files {
				if f.Name == "taken over" {
					want = i
					continue
				}
				root := p.Home
				if scope == "project" && !strings.HasPrefix(f.Name, "~/") {
					root = p.Dir
				}
				path := filepath.Join(root, strings.TrimPrefix(f.Name, "~/"))
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, bytes.ReplaceAll(f.Data, []byte("DIR"), []byte(p.Dir)), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			found, err := rules.Read(agent, p)
			if err != nil {
				t.Fatal(err)
			}
			got := strings.ReplaceAll(written(found), p.Dir, "DIR")
			if *update && want >= 0 {
				ar.Files[want].Data = []byte(got)
				if err := os.WriteFile(file, txtar.Format(ar), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if diff := cmp.Diff(string(ar.Files[want].Data), got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			imports(t, agent, found)
		})
	}
	for _, name := range connect.Names() {
		if !seen[name] {
			t.Errorf("the rules of %s are not tested", name)
		}
	}
}

// written writes what was found, one line each.
func written(f *rules.Found) string {
	var out strings.Builder
	for _, r := range f.Rules {
		fmt.Fprintf(&out, "%s", r.Level)
		for _, m := range []struct{ name, value string }{{"operation", r.Operation}, {"command", r.Command}, {"path", r.Path}, {"host", r.Host}} {
			if m.value != "" {
				fmt.Fprintf(&out, " %s=%q", m.name, m.value)
			}
		}
		fmt.Fprintf(&out, " from %s\n", r.From)
	}
	for _, s := range f.Skipped {
		fmt.Fprintf(&out, "left out %s (%s)\n", s.From, s.Why)
	}
	return out.String()
}

// imports writes the rules into a policy, twice, beside those of another agent.
func imports(t *testing.T, agent string, found *rules.Found) {
	t.Helper()
	other := []rules.Rule{{From: "x", Level: "DENY", Operation: "Other"}}
	base, err := rules.Write([]byte("version = 1\n# mine\n"), "other", other)
	if err != nil {
		t.Fatal(err)
	}
	once, err := rules.Write(base, agent, found.Rules)
	if err != nil {
		t.Fatal(err)
	}
	twice, err := rules.Write(once, agent, found.Rules)
	if diff := cmp.Diff(string(once), string(twice)); err != nil || diff != "" {
		t.Errorf("importing again: %v\n%s", err, diff)
	}
	if _, err := policy.Parse("policy.toml", once); err != nil {
		t.Errorf("what was written does not load: %v\n%s", err, once)
	}
	if !bytes.HasPrefix(once, base) {
		t.Errorf("the rules of the other agent changed:\n%s", once)
	}
}

// TestAttackImportWidens: an approval of a program's subcommand does not become
// one of other programs or subcommands that begin alike, and no agent's settings
// give free hands.
func TestAttackImportWidens(t *testing.T) {
	t.Parallel()
	for agent, file := range map[string][2]string{
		"claude":   {".claude/settings.json", `{"permissions":{"allow":["Bash(git log:*)","Bash","Bash(*)","Edit","Read"]}}`},
		"codex":    {".codex/rules/default.rules", "prefix_rule(pattern=[\"git\", \"log\"])\nprefix_rule(pattern=[])\n"},
		"gemini":   {".gemini/settings.json", `{"tools":{"allowed":["run_shell_command(git log)","run_shell_command","write_file"]}}`},
		"grok":     {".grok/config.toml", "[permission]\nallow = [\"Bash(git log)\", \"Bash\", \"Bash(*)\", \"Edit\"]\n"},
		"vibe":     {".vibe/config.toml", "[tools.bash]\npermission = \"always\"\nallowlist = [\"git log\", \"\"]\n[tools.write_file]\npermission = \"always\"\n"},
		"cursor":   {".cursor/cli-config.json", `{"permissions":{"allow":["Shell(git log)","Shell(*)"]}}`},
		"copilot":  {".config/Code/User/settings.json", `{"chat.tools.terminal.autoApprove":{"git log":true,"/.*/":true,"*":true},"chat.tools.autoApprove":true}`},
		"windsurf": {".config/Windsurf/User/settings.json", `{"windsurf.cascadeCommandsAllowList":["git log","*"]}`},
	} {
		home := t.TempDir()
		path := filepath.Join(home, file[0])
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(file[1]), 0o600); err != nil {
			t.Fatal(err)
		}
		found, err := rules.Read(agent, connect.Place{Scope: connect.User, Home: home})
		if err != nil {
			t.Fatal(agent, err)
		}
		text, err := rules.Write([]byte("version = 1\n[[tests]]\nname = \"log\"\ncommand = \"git log -1\"\nlevel = \"AUTO_APPROVE\"\n"), agent, found.Rules)
		if err != nil {
			t.Fatal(err)
		}
		if len(found.Rules) != 2 || len(found.Skipped) == 0 {
			t.Errorf("%s: %s", agent, written(found))
		}
		for _, r := range found.Rules {
			if r.Command != "git log" && r.Command != "git log *" {
				t.Errorf("%s approves %q: %s", agent, r.Command, text)
			}
		}
	}
}

// TestUnreadable: settings that cannot be read are an error, not no rules.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	for agent, file := range map[string]string{
		"claude": ".claude/settings.json", "codex": ".codex/config.toml", "gemini": ".gemini/policies/a.toml", "grok": ".grok/config.toml",
		"vibe": ".vibe/config.toml", "cursor": ".cursor/cli-config.json", "copilot": ".copilot/permissions-config.json", "windsurf": ".config/Windsurf/User/settings.json",
	} {
		home := t.TempDir()
		path := filepath.Join(home, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("{ = [ garbage"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := rules.Read(agent, connect.Place{Scope: connect.User, Home: home}); err == nil {
			t.Errorf("%s: garbage was read", agent)
		}
	}
}

// FuzzCodexRules: whatever a rules file holds, reading it ends, and what is
// taken over loads.
func FuzzCodexRules(f *testing.F) {
	f.Add("prefix_rule(pattern=[\"git\", [\"log\", \"diff\"]], decision=\"allow\") # x\nfoo = (1,\n2)\n")
	f.Add("prefix_rule(pattern=['a b', \"c'\"], decision='forbidden',)")
	f.Add("network_rule(host=\"example.com\", protocol=\"https\", decision=\"deny\")")
	f.Fuzz(func(t *testing.T, text string) { fuzzRead(t, "codex", ".codex/rules/x.rules", text) })
}

// FuzzSettings: the same for settings with comments.
func FuzzSettings(f *testing.F) {
	f.Add("{ // c\n\"chat.tools.terminal.autoApprove\": {\"a\\\"b\": true, /* x */ \"c\": false,},}")
	f.Fuzz(func(t *testing.T, text string) { fuzzRead(t, "copilot", ".config/Code/User/settings.json", text) })
}

func fuzzRead(t *testing.T, agent, file, text string) {
	home := t.TempDir()
	path := filepath.Join(home, file)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	found, err := rules.Read(agent, connect.Place{Scope: connect.User, Home: home})
	if err != nil {
		return
	}
	made, err := rules.Write(nil, agent, found.Rules)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := policy.Parse("policy.toml", made); err != nil {
		t.Fatalf("what was taken over does not load: %v\n%s", err, made)
	}
}
