package facts_test

import (
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/facts"
	"github.com/seed-3ebc6b8a/gatehouse/internal/grant"
	"github.com/seed-3ebc6b8a/gatehouse/internal/policy"
)

// TestAttack24InputToARunningProcess types commands into a process that runs
// already, by the tools of several hosts: whatever the text, and however
// harmless it would be as a command of its own, a person confirms this very
// use, and what it would destroy as shell text is called destructive.
func TestAttack24InputToARunningProcess(t *testing.T) {
	t.Parallel()
	tests := []struct {
		tool, field, text string
		destructive       bool
	}{
		{"write_stdin", "chars", "ls\n", false},
		{"write_stdin", "chars", "rm -rf ~/work\n", true},
		{"write_stdin", "chars", "import shutil; shutil.rmtree('x')\n", true},
		{"write_stdin", "chars", "print(1)\n", false},
		{"write_stdin", "chars", "y\n", false},
		{"send_to_terminal", "text", "git reset --hard\n", true},
		{"send_to_terminal", "command", "cat notes.txt\n", false},
	}
	snap := policy.Default()
	for _, tt := range tests {
		args, err := json.Marshal(map[string]any{"session_id": 1, tt.field: tt.text})
		if err != nil {
			t.Fatal(err)
		}
		c := &call.Call{Kind: call.External, Surface: "test", Operation: tt.tool, Args: args, Principal: call.Principal{Agent: "a", Session: "s"}}
		if err := c.Normalize(); err != nil {
			t.Fatal(err)
		}
		f := facts.Extract(c, nil, &facts.Options{Home: "/home/u"})
		d := snap.Decide(&policy.Input{Call: c, Facts: f, Digest: c.Digest()}, nil)
		if d.Level != call.ConfirmSingleUse {
			t.Errorf("%s %q: %s, because %s", tt.tool, tt.text, d.Level, d.Why())
		}
		if got := f.Class == "destructive"; got != tt.destructive {
			t.Errorf("%s %q: class %s, want destructive %v", tt.tool, tt.text, f.Class, tt.destructive)
		}
		if offers := grant.Offers(c, &d, call.Terms{}); len(offers) != 1 {
			t.Errorf("%s %q is offered for the session: %v", tt.tool, tt.text, offers)
		}
	}
}
