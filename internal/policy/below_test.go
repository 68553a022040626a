package policy_test

import (
	"strings"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/facts"
	"github.com/seed-3ebc6b8a/gatehouse/internal/policy"

	"github.com/go-json-experiment/json"
)

// A rule that keeps agents out of a directory is not got around by deleting or
// moving what the directory lies in.
func TestRulesMeetWhatGoesWithADirectory(t *testing.T) {
	t.Parallel()
	s := user(t, `profile = "mine"
[profiles.mine]
base = "supervised"
[profiles.mine.capabilities]
"fs.delete" = "AUTO_APPROVE"
[profiles.mine.classes]
destructive = "AUTO_APPROVE"
[risk]
irreversible = "AUTO_APPROVE"
confirm_at = 100
[[rules]]
name = "secret"
path = "./a/secret/**"
level = "DENY"
reason = "keep out"
matches = ["./a/secret/x"]
misses = ["./b"]
`)
	tests := map[string]call.Level{
		"rm -r a/secret":       call.Deny,
		"rm -r a":              call.Deny,
		"rm -rf .":             call.Deny,
		"rm -rf *":             call.Deny,
		"rm -rf a/*":           call.Deny,
		"find a -delete":       call.Deny,
		"mv a b":               call.Deny,
		"mv a/secret /tmp/x":   call.Deny,
		"cd a && rm -r .":      call.Deny,
		"rm a/*.log":           call.AutoApprove, // files, no directories
		"rm -r b":              call.AutoApprove,
		"rm -r a/secretive":    call.AutoApprove,
		"mv b c":               call.ConfirmSession,
		"rm -r /srv/work/a/..": call.Deny,
	}
	for command, want := range tests {
		if d := decideCommand(t, s, command); d.Level != want {
			t.Errorf("%s: %s, want %s (%s)", command, d.Level, want, d.Why())
		}
	}
}

// Text that is too long, too much or broken is asked about every time, and what
// was seen of it still meets the rules.
func TestRulesMeetWhatWasSeenOfALongText(t *testing.T) {
	t.Parallel()
	s := user(t, `[[rules]]
name = "secret"
path = "./secret/**"
level = "DENY"
reason = "keep out"
matches = ["./secret/x"]
misses = ["./b"]
`)
	for name, rest := range map[string]string{
		"too long":     "echo " + strings.Repeat("a", 64<<10),
		"too much":     strings.Repeat("ls; ", 257),
		"broken":       "ls 'x",
		"unresolved":   `rm -rf "$NOWHERE"`,
		"another text": "Get-ChildItem -Recurse | Remove-Item",
	} {
		for command, want := range map[string]call.Level{rest: call.ConfirmSingleUse, "cat secret/x; " + rest: call.Deny} {
			if d := decideCommand(t, s, command); d.Level != want {
				t.Errorf("%s: %.30q is %s, want %s (%s)", name, command, d.Level, want, d.Why())
			}
		}
	}
}

// decideCommand judges a command line by its words.
func decideCommand(t *testing.T, s *policy.Snapshot, command string) call.Decision {
	t.Helper()
	args, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		t.Fatal(err)
	}
	c := &call.Call{Kind: call.External, Operation: "Bash", Args: args, Dir: "/srv/work"}
	if err := c.Normalize(); err != nil {
		t.Fatal(err)
	}
	f := facts.Extract(c, nil, &facts.Options{Home: "/home/ann"})
	return s.Decide(&policy.Input{Call: c, Facts: f, Digest: c.Digest()}, nil)
}
