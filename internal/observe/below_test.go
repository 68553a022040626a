package observe_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/observe"
	"github.com/seed-3ebc6b8a/gatehouse/internal/policy"

	"github.com/go-json-experiment/json"
)

// What a command reads without naming it counts as read: what holds
// credentials is asked about every time, and what a rule denies is denied,
// however the directory around it is read. What is not read is not asked about.
func TestAttackReadingAParent(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"app/.env", "app/main.go", "src/main.go", "private/deep/notes.txt", "plain/a.txt", "plain/sub/b.txt", "keys/server.pem", "links/x.txt"} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("x\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../app/.env", filepath.Join(dir, "links", "y.txt")); err != nil {
		t.Fatal(err)
	}
	s := supervised(t, `[[rules]]
name = "private"
path = "./private/**"
level = "DENY"
reason = "keep out"
matches = ["./private/x"]
misses = ["./b"]
`)
	const auto, ask, deny = call.AutoApprove, call.ConfirmSingleUse, call.Deny
	for command, want := range map[string]call.Level{
		"cat app/.env":                                 ask,
		"cat private/deep/notes.txt":                   deny,
		"grep -rn KEY app":                             ask,
		"grep -rn KEY keys":                            ask,
		"cd app && grep -r KEY":                        ask,
		"cd app && grep -r KEY .":                      ask,
		"grep -rn x .":                                 deny, // the rule counts before the credentials
		"grep -R x private":                            deny,
		"cat app/.e*":                                  ask,
		"cat app/.*":                                   ask,
		"cat private/deep/*":                           deny,
		"head -c 100 keys/*":                           ask,
		"grep -r x links/*":                            ask,
		"cat links/*":                                  ask,
		"tar cf - app | wc -c":                         ask,
		"tar cf - private | wc -c":                     deny,
		"find app -type f -exec cat {} +":              ask,
		"find private -type f -exec cat {} ';'":        deny,
		"find keys -type f | xargs cat":                ask,
		"for f in keys/*; do cat \"$f\"; done":         ask,
		"cp -r private /tmp/elsewhere":                 deny,
		"diff -r app src":                              ask,
		"grep -rn x src plain":                         auto,
		"grep -rn --include='*.go' x app":              auto,
		"grep -rn --include='*.go' x .":                auto,
		"find . -name '*.go' -exec cat {} +":           auto,
		"find . -name '*.go' | xargs wc -l":            auto,
		"find . -name '*.go' -o -type f | xargs wc -l": deny,
		"cat plain/* app/main.go":                      auto,
		"wc -l plain/*.txt":                            auto,
		"ls -R .":                                      auto, // names are no contents
		"find . -type f":                               auto,
		"find private":                                 deny, // the rule is about the path itself
	} {
		d := decide(t, s, dir, command)
		if d.Level != want {
			t.Errorf("%s: %s, want %s (%s)", command, d.Level, want, d.Why())
		}
	}
}

// More than is looked at is not known.
func TestAttackReadingAHugeParent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i := range 201 {
		sub := filepath.Join(dir, fmt.Sprint(i))
		if err := os.Mkdir(sub, 0o755); err != nil {
			t.Fatal(err)
		}
		for j := range 100 {
			if err := os.WriteFile(filepath.Join(sub, fmt.Sprint(j)), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	s := supervised(t, "")
	if d := decide(t, s, dir, "grep -rn x ."); d.Level != call.ConfirmSingleUse {
		t.Errorf("a search through 20,000 files is %s", d.Level)
	}
	if d := decide(t, s, dir, "grep -rn x 7"); d.Level != call.AutoApprove {
		t.Errorf("a search through 100 files is %s (%s)", d.Level, d.Why())
	}
}

func supervised(t *testing.T, rules string) *policy.Snapshot {
	t.Helper()
	f, err := policy.Parse("test.toml", []byte("version = 1\nprofile = \"supervised\"\n"+rules))
	if err != nil {
		t.Fatal(err)
	}
	s, err := policy.Compile([]policy.Layer{{Scope: policy.ScopeUser, File: f}}, policy.Options{Home: "/nonexistent"})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func decide(t *testing.T, s *policy.Snapshot, dir, command string) call.Decision {
	t.Helper()
	args, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		t.Fatal(err)
	}
	c := &call.Call{Kind: call.External, Operation: "Bash", Args: args, Dir: dir}
	if err := c.Normalize(); err != nil {
		t.Fatal(err)
	}
	m := &observe.Machine{Home: "/nonexistent"}
	f := m.Facts(t.Context(), c, s)
	return s.Decide(&policy.Input{Call: c, Facts: f, Digest: c.Digest()}, nil)
}
