package policy_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-3ebc6b8a/gatehouse/internal/policy"
)

// ways are what can be said about output, the loosest first where it is all
// that is said.
var ways = []string{"flag", "fence", "hold"}

func drawOutput(t *rapid.T) *policy.Output {
	drawn := rapid.SampledFrom(append(ways, "", ""))
	o := &policy.Output{Default: drawn.Draw(t, "output")}
	if way := drawn.Draw(t, "output of files"); way != "" {
		o.Servers = map[string]string{"files": way}
	}
	return o
}

// asGuarded fails if the output of any server is handled more loosely.
func asGuarded(t *rapid.T, old, new *policy.Snapshot) {
	for _, server := range []string{"files", "other"} {
		for _, entry := range append(ways, "") {
			a, b := old.Settings.OutputFor(server, entry), new.Settings.OutputFor(server, entry)
			if slices.Index(ways, a) > slices.Index(ways, b) {
				t.Fatalf("the output of %s, whose entry says %q, was to %s and is to %s", server, entry, a, b)
			}
		}
	}
}

// TestI10Output: what Loosens does not report guards output as before, and a
// layer without the right to loosen never does.
func TestI10Output(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		above := &policy.File{Version: 1, Output: drawOutput(t)}
		one := []policy.Layer{{Scope: policy.ScopeMachine, File: above}}
		old := compile(t, one)
		for _, scope := range []policy.Scope{policy.ScopeUser, policy.ScopeProject, policy.ScopeSession} {
			below := policy.Layer{Scope: scope, File: &policy.File{Version: 1, Output: drawOutput(t)}}
			asGuarded(t, old, compile(t, append(slices.Clone(one), below)))
		}
		edited := compile(t, []policy.Layer{{Scope: policy.ScopeMachine, File: &policy.File{Version: 1, Output: drawOutput(t)}}})
		if len(policy.Loosens(old, edited)) == 0 {
			asGuarded(t, old, edited)
		}
	})
}

// TestOutputFor: what a file says about one server stands before what it says
// about all, and of file and entry the stricter counts.
func TestOutputFor(t *testing.T) {
	t.Parallel()
	const file = "version = 1\n[output]\ndefault = \"hold\"\n[output.servers]\ndocs = \"flag\"\nmail = \"fence\"\n"
	f, err := policy.Parse("policy.toml", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	s, err := policy.Compile([]policy.Layer{{Scope: policy.ScopeUser, File: f}}, policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ server, entry, want string }{
		{"files", "", "hold"}, {"files", "flag", "hold"},
		{"docs", "", "flag"}, {"docs", "hold", "hold"}, {"docs", "fence", "fence"},
		{"mail", "flag", "fence"},
	} {
		if got := s.Settings.OutputFor(tt.server, tt.entry); got != tt.want {
			t.Errorf("the output of %s, whose entry says %q: %s, want %s", tt.server, tt.entry, got, tt.want)
		}
	}
	if got := policy.Default().Settings.OutputFor("files", ""); got != "fence" {
		t.Errorf("where nobody says anything: %s", got)
	}
	if words := s.Explain().String(); !strings.Contains(words, "output.servers.docs            flag                 policy.toml:5") {
		t.Errorf("the explanation does not say where it comes from:\n%s", words)
	}
}

// TestOutputProblems: mistakes are told with the line and the right word.
func TestOutputProblems(t *testing.T) {
	t.Parallel()
	_, err := policy.Parse("policy.toml", []byte("version = 1\n[output]\ndefault = \"fense\"\nserver = \"x\"\n[output.servers]\n\"Docs\" = \"flag\"\nmail = \"drop\"\n"))
	if err == nil {
		t.Fatal("it was read")
	}
	for _, want := range []string{
		`policy.toml:4:1: unknown key "server"`, `did you mean "servers"?`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not told:\n%v", want, err)
		}
	}
	_, err = policy.Parse("policy.toml", []byte("version = 1\n[output]\ndefault = \"fense\"\n[output.servers]\n\"Docs\" = \"flag\"\nmail = \"drop\"\n"))
	if err == nil {
		t.Fatal("it was read")
	}
	for _, want := range []string{
		`policy.toml:3:1: default cannot be "fense"`, `did you mean "fence"?`, `policy.toml:5:1: "Docs" cannot name a server`,
		`the output of mail cannot be "drop"`, "use one of flag, fence, hold",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not told:\n%v", want, err)
		}
	}
}
