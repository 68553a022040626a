package main

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// scripted is a session of commands and writes ("> path") in /w.
func scripted(t *testing.T, lines ...string) *session {
	t.Helper()
	s := &session{name: "scripted", dir: "/w"}
	for _, line := range lines {
		st := step{Tool: "Bash"}
		in := map[string]string{"command": line}
		if path, writes := strings.CutPrefix(line, "> "); writes {
			st.Tool, in = "Write", map[string]string{"file_path": "/w/" + path, "content": "x"}
		}
		text, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		st.Input = jsontext.Value(text)
		s.steps = append(s.steps, st)
	}
	return s
}

// A grant for writing anywhere in the workspace, which says so, is one for code
// that a sandbox holds to just that. This is what it is not one for.
func TestAttackCodeUnderAWriteGrant(t *testing.T) {
	t.Parallel()
	snap, err := compile("supervised")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name     string
		first    string
		then     string
		rewrites bool
		asks     bool
	}{
		{"the script that was written", "> solve.py", "python solve.py", true, false},
		{"a build", "> Makefile", "make all", true, false},
		{"inline code", "> a.txt", `python3 -c "import os; os.makedirs('out')"`, true, false},
		{"a host that runs the command as it stands", "> solve.py", "python solve.py", false, true},
		{"a grant for a part of the workspace", "> src/a.go", "make all", true, true},
		{"code that deletes", "> a.txt", `python3 -c "import shutil; shutil.rmtree('src')"`, true, true},
		{"code that reaches a host", "> a.txt", `python3 -c "import urllib.request; urllib.request.urlopen('https://example.com')"`, true, true},
		{"a command beside the code that deletes", "> a.txt", "make all; rm -rf src", true, true},
		{"a command beside the code that connects", "> a.txt", "make all && curl https://example.com/x", true, true},
		{"code elsewhere, where the sandbox lets it change nothing", "> a.txt", "cd /other && make all", true, false},
		{"code as root", "> a.txt", "sudo make install", true, true},
		{"a git hook", "> a.txt", "cp a.txt .git/hooks/pre-commit", true, true},
		{"secrets", "> a.txt", "printenv; make all", true, true},
		{"what does not parse", "> a.txt", "make all )", true, true},
	} {
		got := play(t.Context(), scripted(t, tt.first, tt.then), snap, tt.rewrites)
		if got[0].asked == "" {
			t.Errorf("%s: the first write went ahead unasked", tt.name)
		}
		if got[1].asked != "" != tt.asks {
			t.Errorf("%s: %q after %q, granted as %q: asked %q, want asked: %v", tt.name, tt.then, tt.first, got[0].asked, got[1].asked, tt.asks)
		}
		if told := strings.Contains(got[0].asked, "project code"); !tt.asks && !told {
			t.Errorf("%s: code runs under a grant that says %q", tt.name, got[0].asked)
		}
	}
}

// Where nothing can be confined no offer speaks of code.
func TestOffersSpeakOfCodeOnlyWhereItRuns(t *testing.T) {
	t.Parallel()
	snap, err := compile("supervised")
	if err != nil {
		t.Fatal(err)
	}
	for _, rewrites := range []bool{true, false} {
		got := play(t.Context(), scripted(t, "> a.txt"), snap, rewrites)
		if strings.Contains(got[0].asked, "project code") != rewrites {
			t.Errorf("rewriting %v: offered %q", rewrites, got[0].asked)
		}
	}
}
