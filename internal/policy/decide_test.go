package policy_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/facts"
	"github.com/seed-3ebc6b8a/gatehouse/internal/policy"
)

// needs reads "fs.write:./a"; a path that starts with ./ lies in /w.
func needs(list ...string) []call.Need {
	var out []call.Need
	for _, s := range list {
		n := call.ParseNeed(s)
		if strings.HasPrefix(n.Scope, "./") {
			n.Scope, n.Inside = "/w"+n.Scope[1:], true
		}
		out = append(out, n)
	}
	return out
}

func external(t *testing.T, operation string, f facts.Facts) *policy.Input {
	t.Helper()
	c := call.Call{Kind: call.External, Surface: "test", Operation: operation, Dir: "/w", Principal: call.Principal{Agent: "a", Session: "s"}}
	if err := c.Normalize(); err != nil {
		t.Fatal(err)
	}
	f.Workspace = "/w"
	return &policy.Input{Call: &c, Facts: &f, Digest: c.Digest()}
}

func TestProfiles(t *testing.T) {
	t.Parallel()
	const auto, session, use, deny = call.AutoApprove, call.ConfirmSession, call.ConfirmSingleUse, call.Deny
	tests := []struct {
		name  string
		class string
		needs []call.Need
		// The levels under supervised, autonomous in a container, and a
		// profile of one's own.
		supervised, autonomous, mine call.Level
	}{
		{"nothing known", "", nil, use, use, use},
		{"safe command", "safe", needs("proc.exec:git log", "fs.read:./a"), auto, auto, auto},
		{"safe command on a secret", "safe", needs("proc.exec:cat", "fs.read:./.env", "secrets.access:./.env"), use, use, use},
		{"mutating command", "mutating", needs("proc.exec:touch", "fs.write:./a"), session, auto, session},
		{"mutating command in src", "mutating", needs("proc.exec:touch", "fs.write:./src/a"), session, auto, auto},
		{"mutating command outside", "mutating", needs("proc.exec:touch", "fs.write:/etc/a"), session, use, session},
		{"mutating command, nobody knows what", "mutating", needs("proc.exec:x"), session, auto, session},
		{"network command", "network", needs("proc.exec:curl", "net.egress:api.example.com:443"), session, deny, session},
		{"destructive command", "destructive", needs("proc.exec:rm", "fs.delete:./src/**"), use, use, use},
		{"unknown command", "unknown", needs("proc.exec:make"), use, use, use},
		{"reading", "", needs("fs.read:/etc/hosts"), auto, auto, auto},
		{"reading where nobody should", "", needs("fs.read:/w/keys/a"), auto, auto, deny},
		{"reading there in other letters", "", needs("fs.read:/w/KEYS/a"), auto, auto, deny},
		{"reading around there", "", needs("fs.read:/w/**"), auto, auto, deny},
		{"reading anything", "", needs("fs.read"), auto, auto, use},
		{"writing", "", needs("fs.write:./a"), session, auto, session},
		{"writing in src", "", needs("fs.write:./src/a"), session, auto, auto},
		{"writing the tree src", "", needs("fs.write:./src/**"), session, auto, auto},
		{"writing what only looks inside", "", []call.Need{{Capability: call.FSWrite, Scope: "/w/src/a"}}, session, use, session},
		{"deleting", "", needs("fs.delete:./a"), use, auto, use},
		{"connecting", "", needs("net.egress:api.example.com:443"), session, deny, session},
		{"connecting inwards", "", needs("net.egress:db.internal.example.com:5432"), session, deny, deny},
		{"connecting anywhere", "", needs("net.egress"), session, deny, use},
		{"running", "", needs("proc.exec:git"), use, use, use},
		{"running what is denied", "safe", needs("proc.exec:/usr/bin/docker ps"), auto, auto, deny},
		{"personal data", "", needs("data.user"), session, session, session},
		{"secrets", "", needs("secrets.access:TOKEN"), use, use, use},
		{"attachments", "", needs("data.attachment"), deny, deny, session},
	}
	mine := user(t, `profile = "mine"
[capabilities."data.attachment"]
sentence = "read attachments"
[profiles.mine]
base = "supervised"
[profiles.mine.capabilities]
"fs.write:./src/**" = "AUTO_APPROVE"
"fs.read:./keys/**" = "DENY"
"net.egress:*.internal.example.com:*" = "DENY"
"proc.exec:docker*" = "DENY"
"data.attachment" = "CONFIRM_SESSION"
`)
	contained := user(t, "isolation = \"container\"\nprofile = \"autonomous\"")
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			in := external(t, "Tool", facts.Facts{Class: tt.class, Needs: tt.needs})
			got := make(map[string]string)
			for name, s := range map[string]*policy.Snapshot{"supervised": policy.Default(), "autonomous": contained, "mine": mine} {
				d := s.Decide(in, nil)
				got[name] = d.Level.String()
			}
			want := map[string]string{"supervised": tt.supervised.String(), "autonomous": tt.autonomous.String(), "mine": tt.mine.String()}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("levels (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAutonomousRefusesWithoutIsolation(t *testing.T) {
	t.Parallel()
	s := user(t, "profile = \"autonomous\"")
	d := s.Decide(external(t, "Read", facts.Facts{Needs: needs("fs.read:./a")}), nil)
	if d.Level != call.Deny || !strings.Contains(d.Why(), "supervised") {
		t.Errorf("decided to %s: %s", d.Level, d.Why())
	}
	launched := layered(t, policy.Options{Launcher: true}, layer{scope: policy.ScopeUser, text: "profile = \"autonomous\""})
	if d := launched.Decide(external(t, "Read", facts.Facts{Needs: needs("fs.read:./a")}), nil); d.Level != call.AutoApprove {
		t.Errorf("under the launcher decided to %s: %s", d.Level, d.Why())
	}
	// ATTACKS 15: what nobody can see through runs confined or not at all,
	// under one's own profile that is based on autonomous as well.
	own := user(t, "isolation = \"vm\"\nprofile = \"mine\"\n[profiles.mine]\nbase = \"autonomous\"")
	if d := own.Decide(external(t, "Bash", facts.Facts{Class: "unknown"}), nil); len(call.Missing(d.Requires, nil)) != 1 {
		t.Errorf("requires %v", d.Requires)
	}
}

func TestRules(t *testing.T) {
	t.Parallel()
	const auto, session, use, deny = call.AutoApprove, call.ConfirmSession, call.ConfirmSingleUse, call.Deny
	allow := func(matchers string) string {
		return "[[rules]]\nname = \"a\"\nreason = \"fine\"\nlevel = \"AUTO_APPROVE\"\n" + matchers + "\n"
	}
	block := func(matchers string) string {
		return "[[rules]]\nname = \"d\"\nreason = \"no\"\nlevel = \"DENY\"\n" + matchers + "\n"
	}
	edit := facts.Facts{Needs: needs("fs.write:./src/a")}
	shell := func(class string, commands []string, list ...string) facts.Facts {
		return facts.Facts{Class: class, Commands: commands, Needs: needs(list...)}
	}
	tests := []struct {
		name      string
		policy    string
		operation string
		facts     facts.Facts
		want      call.Level
	}{
		{"deny any command", block("command = \"git push*\""), "Bash", shell("mutating", []string{"git add .", "git push"}, "fs.write:./.git/**"), deny},
		{"deny another command", block("command = \"git push*\""), "Bash", shell("mutating", []string{"git add ."}, "fs.write:./.git/**"), session},
		{"deny any path", block("path = \"**/.env\""), "Edit", facts.Facts{Needs: needs("fs.read:./a", "fs.read:./.env")}, deny},
		{"deny a path that may be meant", block("path = \"**/.env\""), "Tool", facts.Facts{Needs: needs("fs.read")}, use},
		{"deny a path in a tree", block("path = \"**/.env\""), "Tool", facts.Facts{Needs: needs("fs.read:./src/**")}, use},
		{"deny a tree in a tree", block("path = \"./src/keep/**\""), "Tool", facts.Facts{Needs: needs("fs.read:./src/**")}, deny},
		{"deny a host", block("host = \"*.example.com\""), "Fetch", facts.Facts{Needs: needs("net.egress:https://api.example.com:8443/x")}, deny},
		{"deny all given", block("operation = \"Fetch\"\nhost = \"*.example.com\""), "Bash", facts.Facts{Needs: needs("net.egress:https://api.example.com/x")}, session},
		{"deny a tool by another host's name", block("operation = \"edit_file\""), "MultiEdit", edit, deny},
		{"deny tools by a glob", block("operation = \"Multi*\""), "Edit", edit, deny},
		{"deny by the canonical name", block("operation = \"file.*\""), "Edit", edit, deny},
		{"allow a tool by another host's name", allow("operation = \"edit_file\""), "Edit", edit, auto},
		{"allow tools by a glob of a host's names", allow("operation = \"Edit*\""), "Edit", edit, session},
		{"allow a path", allow("path = \"./src/**\""), "Edit", edit, auto},
		{"allow every path", allow("path = \"./src/**\""), "Edit", facts.Facts{Needs: needs("fs.write:./src/a", "fs.write:./b")}, session},
		{"allow nothing at all", allow("path = \"./src/**\""), "Edit", facts.Facts{}, use},
		{"allow against a denial", allow("path = \"./src/**\"") + block("operation = \"Edit\""), "Edit", edit, deny},
		{"allow against a confirmation", allow("path = \"./src/**\"") + strings.Replace(block("operation = \"Edit\""), "DENY", "CONFIRM_SESSION", 1), "Edit", edit, session},
		{"allow what cannot be undone", allow("path = \"./src/**\""), "Edit", facts.Facts{Needs: needs("fs.write:./src/a"), Irreversible: true}, use},
		{"allow every command", allow("command = \"mkdir *\""), "Bash", shell("mutating", []string{"mkdir a", "mkdir b"}, "proc.exec:mkdir", "fs.write:./a", "fs.write:./b"), auto},
		{"allow a command beside another", allow("command = \"mkdir *\""), "Bash", shell("mutating", []string{"mkdir a", "touch b"}, "fs.write:./a", "fs.write:./b"), session},
		{"allow a command that writes elsewhere", allow("command = \"git log*\""), "Bash", shell("mutating", []string{"git log --output=/etc/x"}, "fs.write:/etc/x"), session},
		{"allow a command that connects", allow("command = \"curl *\""), "Bash", shell("network", []string{"curl x"}, "net.egress:x.example:443"), session},
		{"allow a command and its host", allow("command = \"curl *\"\nhost = \"x.example\""), "Bash", shell("network", []string{"curl x"}, "net.egress:x.example:443"), auto},
		{"allow a command that connects somewhere", allow("command = \"curl *\""), "Bash", shell("network", []string{"curl x"}), session},
		{"allow a command nobody sees through", allow("command = \"make *\""), "Bash", shell("unknown", []string{"make all"}), use},
		{"allow it to the letter", allow("command = \"make all\""), "Bash", shell("unknown", []string{"make all"}), auto},
		{"allow what destroys, to the letter", allow("command = \"rm -rf x\""), "Bash", shell("destructive", []string{"rm -rf x"}, "fs.delete:./x/**"), use},
		{"allow a command on a secret", allow("command = \"cat *\""), "Bash", shell("safe", []string{"cat .env"}, "fs.read:./.env", "secrets.access:./.env"), use},
		{"allow a tool by name", allow("operation = \"mcp__weather__get\""), "mcp__weather__get", facts.Facts{}, auto},
		{"allow tools by a glob", allow("operation = \"mcp__*\""), "mcp__weather__get", facts.Facts{}, use},
		{"allow a host", allow("host = \"docs.example.com\""), "Fetch", facts.Facts{Needs: needs("net.egress:https://docs.example.com/x")}, auto},
		{"allow a host on another port", allow("host = \"docs.example.com\""), "Fetch", facts.Facts{Needs: needs("net.egress:docs.example.com:22")}, session},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := user(t, tt.policy).Decide(external(t, tt.operation, tt.facts), nil)
			if d.Level != tt.want {
				t.Errorf("decided to %s, want %s: %s", d.Level, tt.want, d.Why())
			}
		})
	}
}

// TestNewDimension adds a capability in the policy file alone.
func TestNewDimension(t *testing.T) {
	t.Parallel()
	s := user(t, `profile = "mine"
[capabilities."data.attachment"]
sentence = "read attachments"
paths = ["**/attachments/**"]
[profiles.mine]
base = "supervised"
[profiles.mine.capabilities]
"data.attachment" = "CONFIRM_SESSION"
"data.attachment:**/public/**" = "AUTO_APPROVE"
`)
	for scope, want := range map[string]call.Level{"./attachments/a": call.ConfirmSession, "./public/a": call.AutoApprove, "": call.ConfirmSession} {
		d := s.Decide(external(t, "Read", facts.Facts{Needs: needs("data.attachment:" + scope)}), nil)
		if d.Level != want {
			t.Errorf("%q is decided to %s: %s", scope, d.Level, d.Why())
		}
	}
	if got := s.Sentence(call.Need{Capability: "data.attachment", Scope: "/w/a"}); got != "read attachments (/w/a)" {
		t.Errorf("sentence %q", got)
	}
}

func TestSentence(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"fs.write": "write files", "fs.write:./src/**": "write files under ./src", "fs.read:./**": "read files in the workspace",
		"fs.delete:/w/a": "delete /w/a", "fs.read:/**": "read any file", "net.egress": "connect to other machines", "net.egress:a.example:443": "connect to a.example:443",
		"proc.exec:git push": "run git push", "secrets.access:TOKEN": "use secrets in TOKEN", "data.user": "use personal data", "other.thing": "other.thing",
	}
	for need, want := range tests {
		if got := policy.Default().Sentence(call.ParseNeed(need)); got != want {
			t.Errorf("%s: %q, want %q", need, got, want)
		}
	}
}

// TestOneGrantForFilesAndCommands: the same change gives the same vote,
// whether a tool makes it or a command, so that one answer covers both.
func TestOneGrantForFilesAndCommands(t *testing.T) {
	t.Parallel()
	tool := policy.Default().Decide(external(t, "Edit", facts.Facts{Needs: needs("fs.write:./src/a")}), nil)
	command := policy.Default().Decide(external(t, "Bash", facts.Facts{Class: "mutating", Commands: []string{"touch src/a"}, Needs: needs("proc.exec:touch", "fs.write:./src/a")}), nil)
	keys := func(d call.Decision) (keys []string) {
		for _, v := range d.Confirmations() {
			keys = append(keys, v.Key())
		}
		return keys
	}
	if diff := cmp.Diff(keys(tool), keys(command)); diff != "" {
		t.Errorf("votes that ask (-tool +command):\n%s", diff)
	}
}
