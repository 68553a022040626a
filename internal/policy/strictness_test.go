package policy_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/facts"
	"github.com/seed-3ebc6b8a/gatehouse/internal/policy"
)

// TestStrictness: each level verifies what the one before does and something
// more, or blocks sooner.
func TestStrictness(t *testing.T) {
	t.Parallel()
	native := func(op string, change facts.Change) *policy.Input {
		c := &call.Call{Kind: call.Native, Surface: "api", Operation: op, Principal: call.Principal{Agent: "a", Session: "s"}}
		return &policy.Input{Call: c, Facts: &facts.Facts{Change: change}, Digest: call.Digest{1}}
	}
	external := func(f facts.Facts) *policy.Input {
		c := &call.Call{Kind: call.External, Surface: "api", Operation: "shell", Principal: call.Principal{Agent: "a", Session: "s"}}
		return &policy.Input{Call: c, Facts: &f, Digest: call.Digest{1}}
	}
	inputs := map[string]*policy.Input{
		"a read":             native("list_elements", 0),
		"the recovery path":  native("release_deadlock", 0),
		"asking":             native("confirm_operation", 0),
		"creating":           native("create_element", 0),
		"tightening":         native("activate_element", facts.LoosensNothing),
		"reading a file":     external(facts.Facts{Class: "safe", Needs: []call.Need{{Capability: call.FSRead, Scope: "/w/f"}}}),
		"writing a file":     external(facts.Facts{Class: "mutating", Needs: []call.Need{{Capability: call.FSWrite, Scope: "/w/f"}}}),
		"what stays deleted": external(facts.Facts{Class: "destructive", Irreversible: true, Needs: []call.Need{{Capability: call.FSWrite, Scope: "/w/f"}}}),
	}
	type result struct {
		Strikes int
		Pinned  []string
	}
	got := map[string]result{}
	for _, level := range []string{"minimal", "standard", "elevated", "maximum"} {
		f, err := policy.Parse("user.toml", []byte("version = 1\n[danger]\nstrictness = \""+level+"\"\n"))
		if err != nil {
			t.Fatal(err)
		}
		s, err := policy.Compile([]policy.Layer{{Scope: policy.ScopeMachine, File: f}}, policy.Options{Home: "/home/u"})
		if err != nil {
			t.Fatal(err)
		}
		r := result{Strikes: s.Settings.Strikes()}
		for _, name := range []string{"a read", "the recovery path", "asking", "creating", "tightening", "reading a file", "writing a file", "what stays deleted"} {
			d := s.Decide(inputs[name], nil)
			if d.Pinned {
				r.Pinned = append(r.Pinned, name)
			}
			if d.Pinned && !d.Level.StricterThan(call.ConfirmSession) {
				t.Errorf("%s: %s is verified and decided to %s", level, name, d.Level)
			}
		}
		got[level] = r
	}
	want := map[string]result{
		"minimal":  {0, nil},
		"standard": {25, nil},
		"elevated": {8, []string{"what stays deleted"}},
		"maximum":  {3, []string{"creating", "writing a file", "what stays deleted"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
