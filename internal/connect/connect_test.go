package connect_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/seed-3ebc6b8a/gatehouse/internal/connect"
)

func hook() *connect.Hook {
	return &connect.Hook{Program: []string{"/opt/gate house/gatehouse-hook"}, Socket: "/home/u/.local/share/gatehouse/gatehouse.sock", Owner: 1000, Start: "/opt/gate house/gatehouse", Home: "/home/u"}
}

func apply(t *testing.T, name string, p connect.Place, h *connect.Hook) *connect.Plan {
	t.Helper()
	plan, err := connect.Make(name, p, h)
	if err != nil {
		t.Fatal(err)
	}
	if err := plan.Apply(); err != nil {
		t.Fatal(err)
	}
	return plan
}

// files reads a tree, without the copies that connect keeps.
func files(t *testing.T, root string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.Walk(root, func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() || strings.HasSuffix(path, ".before-gatehouse") {
			return err
		}
		text, err := os.ReadFile(path)
		rel, _ := filepath.Rel(root, path)
		out[rel] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// theirs are settings that people have before the gate comes.
var theirs = map[string]string{
	".claude/settings.json":        "{\n  \"model\": \"opus\",\n  \"hooks\": {\n    \"PreToolUse\": [\n      {\n        \"matcher\": \"Bash\",\n        \"hooks\": [\n          {\n            \"type\": \"command\",\n            \"command\": \"lint.sh\"\n          }\n        ]\n      }\n    ]\n  },\n  \"permissions\": {\n    \"allow\": [\n      \"Bash(npm test)\"\n    ]\n  }\n}\n",
	".codex/config.toml":           "# mine\nmodel = \"x\"\n",
	".gemini/settings.json":        "{\n  \"theme\": \"dark\"\n}\n",
	".vibe/hooks.toml":             "[[hooks]]\nname = \"mine\"\ntype = \"after_tool\"\ncommand = \"log.sh\"\n",
	".cursor/hooks.json":           "{\n  \"version\": 1,\n  \"hooks\": {\n    \"stop\": [\n      {\n        \"command\": \"done.sh\"\n      }\n    ]\n  }\n}\n",
	".codeium/windsurf/hooks.json": "{\n  \"hooks\": {\n    \"pre_run_command\": [\n      {\n        \"command\": \"mine.sh\"\n      }\n    ]\n  }\n}\n",
}

// TestConnectAndUndo: for every agent connecting keeps what is there, connecting
// again changes nothing, a new gate replaces the old, and undoing leaves what
// was there to the byte.
func TestConnectAndUndo(t *testing.T) {
	t.Parallel()
	for _, name := range connect.Names() {
		for _, kept := range []bool{false, true} {
			home := t.TempDir()
			if kept {
				for path, text := range theirs {
					path = filepath.Join(home, path)
					if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
						t.Fatal(err)
					}
				}
			}
			before := files(t, home)
			p := connect.Place{Scope: connect.User, Home: home, Dir: t.TempDir()}
			apply(t, name, p, hook())
			after := files(t, home)
			for path, text := range after {
				if strings.HasSuffix(path, ".json") && !jsontext.Value(text).IsValid() {
					t.Errorf("%s: %s is no JSON:\n%s", name, path, text)
				}
			}
			all := strings.Join(values(after), "")
			for path, text := range before {
				for _, word := range []string{"lint.sh", "opus", "# mine", "dark", "log.sh", "done.sh", "mine.sh", "Bash(npm test)"} {
					if strings.Contains(text, word) && !strings.Contains(after[path], word) {
						t.Errorf("%s: %s lost %q", name, path, word)
					}
				}
			}
			if !strings.Contains(all, name+" --socket /home/u/.local/share/gatehouse/gatehouse.sock --owner 1000") {
				t.Errorf("%s: the hook is not in its settings: %s", name, all)
			}
			if plan := apply(t, name, p, hook()); len(plan.Changes) != 0 {
				t.Errorf("%s: connecting again changes %d files", name, len(plan.Changes))
			}
			moved := hook()
			moved.Socket = "/elsewhere/gatehouse.sock"
			apply(t, name, p, moved)
			if now := strings.Join(values(files(t, home)), ""); strings.Contains(now, "/home/u/.local/share/gatehouse/gatehouse.sock") {
				t.Errorf("%s: the old hook is still there", name)
			}
			found := connect.Inspect(name, p)
			if len(found) != 1 || found[0].Socket != "/elsewhere/gatehouse.sock" || found[0].Missing != "/opt/gate house/gatehouse-hook" || !found[0].Writable {
				t.Errorf("%s: inspected as %+v", name, found)
			}
			apply(t, name, p, nil)
			if diff := cmp.Diff(before, files(t, home)); diff != "" {
				t.Errorf("%s: after undoing (-before +after):\n%s", name, diff)
			}
		}
	}
}

func values(m map[string]string) []string {
	var out []string
	for _, v := range m {
		out = append(out, v)
	}
	return out
}

// TestBackup: the file that was there first is kept, and not overwritten later.
func TestBackup(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	path := filepath.Join(home, ".gemini", "settings.json")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(`{"theme":"dark"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	p := connect.Place{Scope: connect.User, Home: home}
	apply(t, "gemini", p, hook())
	moved := hook()
	moved.Owner = 7
	apply(t, "gemini", p, moved)
	text, err := os.ReadFile(path + ".before-gatehouse")
	if err != nil || string(text) != `{"theme":"dark"}` {
		t.Errorf("%q %v", text, err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v: the file is open to others now", info.Mode(), err)
	}
}

// TestLeftAlone: what cannot be read is not touched.
func TestLeftAlone(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"{", "[]", `{"hooks":[]}`, `{"hooks":{"PreToolUse":{}}}`, "// a comment\n{}"} {
		home := t.TempDir()
		path := filepath.Join(home, ".claude", "settings.json")
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := connect.Make("claude", connect.Place{Scope: connect.User, Home: home}, hook()); err == nil || !strings.Contains(err.Error(), "left as it is") {
			t.Errorf("%q: %v", text, err)
		}
	}
	// The administrator's requirements of Codex are ours alone or not at all.
	root := t.TempDir()
	codex := connect.Place{Scope: connect.Machine, Root: root}
	plan, err := connect.Make("codex", codex, hook())
	if err != nil || len(plan.Changes) != 1 || !strings.Contains(string(plan.Changes[0].New), "allow_managed_hooks_only = true") {
		t.Fatalf("%+v %v", plan, err)
	}
	if err := plan.Apply(); err != nil {
		t.Fatal(err)
	}
	if undo, err := connect.Make("codex", codex, nil); err != nil || undo.Apply() != nil {
		t.Error(err)
	}
	file := plan.Changes[0].Path
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte("[features]\nx = true\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	if _, err := connect.Make("codex", codex, hook()); err == nil {
		t.Error("requirements of others were joined")
	}
	if _, err := connect.Make("grok", connect.Place{Scope: connect.Machine}, hook()); err == nil {
		t.Error("Grok has machine settings now")
	}
	if _, err := connect.Make("emacs", connect.Place{}, hook()); err == nil {
		t.Error("an unknown agent was connected")
	}
}

// TestCommandFailsClosed runs the command line that is written: whatever the
// hook's program does, the shell ends with 2 and a word, or as the hook does.
func TestCommandFailsClosed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := filepath.Join(dir, "it's a hook")
	h := hook()
	h.Program = []string{program}
	plan, err := connect.Make("copilot", connect.Place{Scope: connect.User, Home: dir}, h)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(plan.Changes[0].New), `"bash": "`)
	command, err := jsontext.AppendUnquote(nil, `"`+rest[:strings.Index(rest, "\",\n")]+`"`)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, script string
		exit         int
		says         string
	}{
		{"missing", "", 2, "blocked"}, {"allows", "exit 0", 0, ""}, {"blocks", "echo no >&2; exit 2", 2, "no"},
		{"fails", "exit 1", 2, "blocked"}, {"is killed", "kill -9 $$", 2, "blocked"},
	}
	for _, tt := range tests {
		if tt.script != "" {
			if err := os.WriteFile(program, []byte("#!/bin/sh\n"+tt.script+"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.Command("sh", "-c", string(command))
		out, _ := cmd.CombinedOutput() // its code is compared below
		if cmd.ProcessState.ExitCode() != tt.exit || !strings.Contains(string(out), tt.says) || tt.name == "blocks" && strings.Contains(string(out), "failed") {
			t.Errorf("%s: exit %d, %q", tt.name, cmd.ProcessState.ExitCode(), out)
		}
	}
}

// TestSkill: an agent that reads skills gets the gate's, one of the same name
// that somebody else wrote stays as it is, and undoing removes only the gate's.
func TestSkill(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"claude", "codex", "gemini", "grok", "vibe"} {
		for _, theirs := range []string{"", "a skill of mine\n"} {
			home := t.TempDir()
			path := filepath.Join(home, "."+name, "skills", "secure-orchestration", "SKILL.md")
			if theirs != "" {
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(theirs), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			p := connect.Place{Scope: connect.User, Home: home, Dir: t.TempDir()}
			apply(t, name, p, hook())
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if theirs != "" && string(text) != theirs || theirs == "" && !strings.Contains(string(text), "approvalStrategy: \"mcp_managed\"") {
				t.Errorf("%s has the skill %q", name, text)
			}
			apply(t, name, p, nil)
			text, err = os.ReadFile(path)
			if string(text) != theirs || theirs == "" && !os.IsNotExist(err) {
				t.Errorf("%s: undone it is %q: %v", name, text, err)
			}
		}
	}
}
