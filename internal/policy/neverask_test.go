package policy_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/facts"
	"github.com/seed-3ebc6b8a/gatehouse/internal/policy"
)

func TestNeverAskIsNarrow(t *testing.T) {
	t.Parallel()
	inside := func(list ...string) []call.Need {
		out := make([]call.Need, len(list))
		for i, s := range list {
			out[i] = call.ParseNeed(s)
			out[i].Inside = strings.HasPrefix(out[i].Scope, "./")
		}
		return out
	}
	tests := []struct {
		name      string
		operation string
		facts     facts.Facts
		scopes    []call.Need
		want      policy.Rule // what it is about; zero if there is none
	}{
		{"command", "Bash", facts.Facts{Class: "mutating", Commands: []string{"touch a"}, Needs: inside("proc.exec:touch", "fs.write:./a")}, nil,
			policy.Rule{Operation: "shell", Command: "touch a", Path: "/w/a"}},
		{"command on a host", "Bash", facts.Facts{Class: "network", Commands: []string{"curl https://x.example.com"}, Needs: inside("net.egress:x.example.com:443")}, nil,
			policy.Rule{Operation: "shell", Command: "curl https://x.example.com", Host: "x.example.com:443"}},
		{"file", "Write", facts.Facts{Needs: inside("fs.write:./src/a.go")}, nil, policy.Rule{Operation: "file.write", Path: "/w/src/a.go"}},
		{"file, by the offer that was taken", "Write", facts.Facts{Needs: inside("fs.write:./src/a.go")}, inside("fs.write:./src/**"),
			policy.Rule{Operation: "file.write", Path: "/w/src/**"}},
		{"host", "WebFetch", facts.Facts{Needs: inside("net.egress:x.example.com:443")}, nil, policy.Rule{Operation: "web.fetch", Host: "x.example.com:443"}},
		{"two commands", "Bash", facts.Facts{Commands: []string{"a", "b"}}, nil, policy.Rule{}},
		{"a star", "Bash", facts.Facts{Commands: []string{"touch *"}}, nil, policy.Rule{}},
		{"a star in a path", "Write", facts.Facts{Needs: inside("fs.write:./a*b")}, nil, policy.Rule{}},
		{"two places", "Write", facts.Facts{Needs: inside("fs.write:./a", "fs.write:./b")}, nil, policy.Rule{}},
		{"anywhere", "Write", facts.Facts{Needs: inside("fs.write")}, nil, policy.Rule{}},
		{"secrets", "Read", facts.Facts{Needs: inside("fs.read:./.env", "secrets.access:./.env")}, nil, policy.Rule{}},
		{"no undo", "Write", facts.Facts{Needs: inside("fs.write:./a"), Irreversible: true}, nil, policy.Rule{}},
		{"unsaved work", "Write", facts.Facts{Needs: inside("fs.write:./a"), Destroys: []string{"a"}}, nil, policy.Rule{}},
	}
	for _, tt := range tests {
		in := external(t, tt.operation, tt.facts)
		rule, err := policy.NeverAsk(in.Call, in.Facts, tt.scopes, "ann")
		var none *policy.NeverAskError
		if tt.want.Operation == "" {
			if !errors.As(err, &none) {
				t.Errorf("%s: %+v %v, want no rule", tt.name, rule, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		got := policy.Rule{Operation: rule.Operation, Command: rule.Command, Path: rule.Path, Host: rule.Host}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", tt.name, diff)
		}
		if len(rule.Matches) == 0 || len(rule.Misses) == 0 {
			t.Errorf("%s: the rule has no examples: %+v", tt.name, rule)
		}
		// What is written loads, with its examples, after whatever was there.
		for _, before := range []string{"", "version = 1\n", "version = 1\n[limits]\nasks_per_hour = 3", "version = 1\n[[rules]]\nname='x'\noperation='Read'\nlevel='DENY'\nreason='y'\n"} {
			text, err := policy.AppendRule([]byte(before), rule, "a comment\nversion = 2")
			if err != nil {
				t.Fatal(err)
			}
			f, err := policy.Parse("x.toml", text)
			if err != nil {
				t.Errorf("%s after %q: %v\n%s", tt.name, before, err, text)
				continue
			}
			if diff := cmp.Diff(rule, f.Rules[len(f.Rules)-1]); diff != "" {
				t.Errorf("%s does not read back: %s", tt.name, diff)
			}
			if !strings.HasPrefix(string(text), before) {
				t.Errorf("%s: the file before it was changed", tt.name)
			}
		}
	}
}
