package policy_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-3ebc6b8a/gatehouse/internal/policy"
)

// problems reads a file and returns what is wrong, one line each.
func problems(t *testing.T, data string) []string {
	t.Helper()
	f, err := policy.Parse("p.toml", []byte(data))
	if err == nil {
		return nil
	}
	if f != nil {
		t.Error("a file with problems is returned")
	}
	var list policy.Problems
	if !errors.As(err, &list) {
		t.Fatalf("%T is no list of problems", err)
	}
	return strings.Split(list.Error(), "\n")
}

var parseProblems = []struct {
	name string
	text string
	want []string
}{
	{"empty", "", []string{"p.toml: version is missing (write version = 1)"}},
	{"version", "version = 2", []string{"p.toml:1:1: version 2 is not known (this gate reads version = 1)"}},
	{"version zero", "version = 0", []string{"p.toml:1:1: version 0 is not known (this gate reads version = 1)"}},
	{"syntax", "version = 1\nprofile = ", []string{"p.toml:2:10: not valid TOML: expected value, not end of input"}},
	{"key twice", "version = 1\nmode = \"enforce\"\nmode = \"observe\"", []string{`p.toml:3:1: not valid TOML: key mode is already defined`}},
	{
		"unknown keys", "version = 1\nprofil = \"x\"\n[limits]\nasks_per_our = 3\nzzz = 1\n[hosts.claude]\nhostask = true",
		[]string{
			`p.toml:2:1: unknown key "profil" (did you mean "profile"?)`,
			`p.toml:4:1: unknown key "asks_per_our" (did you mean "asks_per_hour"?)`,
			`p.toml:5:1: unknown key "zzz"`,
			`p.toml:7:1: unknown key "hostask" (did you mean "host_ask"?)`,
		},
	},
	{
		"types", "version = \"1\"\nprofile = 3\nrules = {}\n[risk]\nconfirm_at = 1.5\n[limits]\nrequest_life = 15\n[hosts]\nclaude = true",
		[]string{
			"p.toml:1:1: version must be a whole number, not a text",
			"p.toml:2:1: profile must be a text in quotes, not a number",
			"p.toml:3:1: rules must be a list, not a table",
			"p.toml:5:1: confirm_at must be a whole number, not a number with a fraction",
			"p.toml:7:1: request_life must be a text in quotes, not a number",
			"p.toml:9:1: claude must be a table, not true or false",
		},
	},
	{
		"words", "version = 1\nmode = \"observ\"\nattendance = \"gone\"\nisolation = \"VM\"\nadjustable = [\"profile\", \"limit\"]",
		[]string{
			`p.toml:2:1: mode cannot be "observ" (did you mean "observe"?)`,
			`p.toml:3:1: attendance cannot be "gone" (use one of interactive, unattended)`,
			`p.toml:4:1: isolation cannot be "VM" (did you mean "vm"?)`,
			`p.toml:5:26: unknown setting "limit" (did you mean "limits"?)`,
		},
	},
	{
		"levels", "version = 1\n[risk]\nirreversible = \"CONFIRM\"\n[profiles.mine.classes]\nsafe = \"auto_approve\"",
		[]string{
			`p.toml:3:1: irreversible: "CONFIRM" is not a level: use one of [AUTO_APPROVE CONFIRM_SESSION CONFIRM_SINGLE_USE DENY]`,
			`p.toml:5:1: safe: "auto_approve" is not a level: use one of [AUTO_APPROVE CONFIRM_SESSION CONFIRM_SINGLE_USE DENY] (did you mean "AUTO_APPROVE"?)`,
		},
	},
	{
		"profiles", "version = 1\n[profiles.supervised]\n[profiles.\"my own\"]\n[profiles.a.capabilities]\n\"fs.wriet\" = \"DENY\"\n\"fs.write:src/**\" = \"DENY\"\n\"fs.write:./../x\" = \"DENY\"\n\"net.egress:a b\" = \"DENY\"\n\"proc.exec:\" = \"DENY\"\n[profiles.a.classes]\nsave = \"DENY\"",
		[]string{
			`p.toml:2:11: the profile supervised is built in (give yours another name and base = "supervised")`,
			`p.toml:3:11: "my own" cannot be the name of a profile (use letters, digits, - and _)`,
			`p.toml:5:1: unknown capability "fs.wriet" (did you mean "fs.write"?; capabilities of your own are declared under [capabilities])`,
			`p.toml:6:1: fs.write: start a path pattern with "./" for the workspace, "~/" for the home, "/" or "**/"`,
			`p.toml:7:1: fs.write: a pattern in the workspace cannot leave it with ".."`,
			`p.toml:8:1: net.egress: host pattern "a b": is no valid host`,
			`p.toml:9:1: proc.exec: name pattern "": the pattern is empty`,
			`p.toml:11:1: unknown class "save" (did you mean "safe"?)`,
		},
	},
	{
		"capabilities", "version = 1\n[capabilities.\"fs.read\"]\nsentence = \"look\"\n[capabilities.\"data.attachment\"]\npaths = [\"**/a\", \"[\"]\n[capabilities.attachment]\nsentence = \"read\"",
		[]string{
			`p.toml:3:1: the sentence of fs.read is built in (leave it out)`,
			`p.toml:4:15: the capability data.attachment needs a sentence (such as sentence = "read attachments")`,
			`p.toml:5:18: start a path pattern with "./" for the workspace, "~/" for the home, "/" or "**/"`,
			`p.toml:6:15: "attachment" cannot be the name of a capability (write it like data.attachment)`,
		},
	},
	{
		"rules", "version = 1\n[[rules]]\nname = \"a\"\nreason = \"r\"\nlevel = \"DENY\"\n[[rules]]\nname = \"a\"\ncommand = \"x\"\nreason = \" \"\nlevel = \"DENY\"\n[[rules]]\ncommand = \"x\"\n[[rules]]\nname = \"b\"\nreason = \"r\"\nlevel = \"DENY\"\noperation = \"delete_element\"\npath = \"/[\"\nhost = \"*.*\"",
		[]string{
			`p.toml:2:3: the rule "a" matches nothing in particular (give at least one of operation, command, path, host)`,
			`p.toml:7:1: there are two rules with the name "a"`,
			`p.toml:9:1: the rule "a" gives no reason (say why, in words for the person and the agent)`,
			`p.toml:11:3: level is missing (write one of AUTO_APPROVE, CONFIRM_SESSION, CONFIRM_SINGLE_USE, DENY)`,
			`p.toml:11:3: name is missing`,
			`p.toml:11:3: reason is missing (say why, in words for the person and the agent)`,
			`p.toml:17:1: rules do not reach the native operation delete_element (deny it under [operations])`,
			`p.toml:18:1: path pattern "/[": unclosed bracket, brace or escape`,
			`p.toml:19:1: host pattern "*.*": no host pattern (host, *.host, address, network/bits or *, then :port or :*)`,
		},
	},
	{
		"examples", "version = 1\n[[rules]]\nname = \"push\"\ncommand = \"git push*\"\nreason = \"r\"\nlevel = \"DENY\"\nmatches = [\n  \"git push\",\n  \"git pull\",\n]\nmisses = [\"git push -f\"]\n[[rules]]\nname = \"keys\"\npath = \"~/.ssh/**\"\nreason = \"r\"\nlevel = \"DENY\"\nmatches = [\"~other/x\"]\nmisses = [\"~/.SSH/id\"]",
		[]string{
			`p.toml:9:3: the rule "push" misses "git pull", which it should match`,
			`p.toml:11:11: the rule "push" matches "git push -f", which it should miss`,
			`p.toml:17:12: the example cannot be read: path ~other/x: another user's home directory cannot be known from the text`,
			`p.toml:18:11: the rule "keys" matches "~/.SSH/id", which it should miss`,
		},
	},
	{
		"operations", "version = 1\n[operations]\ndelete_elment = \"DENY\"\ncreate_element = \"CONFIRM_SESSION\"\n\"zz*\" = \"DENY\"\nverify_challenge = \"DENY\"",
		[]string{
			`p.toml:3:1: unknown operation "delete_elment" (did you mean "delete_element"?)`,
			`p.toml:4:1: create_element cannot be CONFIRM_SESSION (only DENY can stand here; the active elements say the rest)`,
			`p.toml:5:1: unknown operation "zz*"`,
			`p.toml:6:1: verify_challenge is part of the recovery path, which no policy reaches`,
		},
	},
	{
		"numbers", "version = 1\n[risk]\nconfirm_at = 102\ndeny_at = -1\n[limits]\npending_per_session = 0\nasks_per_hour = -5\nrequest_life = \"0s\"\ngrant_life = \"soon\"\nsession_grant_life = \"-1m\"",
		[]string{
			"p.toml:3:1: confirm_at must lie between 0 and 101; 101 is never",
			"p.toml:4:1: deny_at must lie between 0 and 100; 0 is never",
			"p.toml:6:1: pending_per_session must be more than 0: attention is bounded, and never by nothing",
			"p.toml:7:1: asks_per_hour must be more than 0: attention is bounded, and never by nothing",
			"p.toml:8:1: request_life must be longer than nothing (write it like \"15m\")",
			"p.toml:9:1: grant_life: time: invalid duration \"soon\"",
			"p.toml:10:1: session_grant_life must be longer than nothing (write it like \"15m\")",
		},
	},
	{
		"places", "version = 1\n[hosts.cluade]\n[redact]\nfields = [\"pin\", \" \"]\n[[notify]]\nkind = \"mail\"\n[[notify]]\nkind = \"webhook\"\nurl = \"http://hooks.example.com\"\nformat = \"xml\"\n[[notify]]\nkind = \"webhook\"\n[[notify]]\nkind = \"desktop\"\nurl = \"https://x\"\n[[notify]]\nkind = \"webhook\"\nurl = \"http://127.0.0.1:9/x\"",
		[]string{
			`p.toml:2:8: unknown agent host "cluade" (did you mean "claude"?)`,
			`p.toml:4:18: the name of a field is empty`,
			`p.toml:6:1: kind cannot be "mail" (use one of desktop, webhook)`,
			`p.toml:9:1: a webhook to another machine must be encrypted (use https)`,
			`p.toml:10:1: format cannot be "xml" (use one of json, slack, ntfy)`,
			`p.toml:11:3: a webhook needs a URL (such as https://hooks.example.com/gate)`,
			`p.toml:13:3: url and format belong to a webhook`,
		},
	},
	{
		"tests", "version = 1\n[[tests]]\nname = \"t\"\nlevel = \"DENY\"\nneeds = [\"fs.read:./a\", \"fs.look\"]\nclass = \"odd\"",
		[]string{
			`p.toml:2:3: the test "t" tests nothing (give an operation or a command)`,
			`p.toml:5:25: unknown capability "fs.look" (use one of fs.read, fs.write, fs.delete, net.egress, proc.exec, data.user, secrets.access)`,
			`p.toml:6:1: class cannot be "odd" (use one of safe, mutating, network, destructive, unknown)`,
		},
	},
	{"NUL", "version = 1\n# \x00", []string{"p.toml:2:3: the file holds a NUL byte"}},
	{"UTF-8", "version = 1\n\n#\xff", []string{"p.toml:3:2: the file is not valid UTF-8"}},
	{"size", "version = 1\n#" + strings.Repeat("x", policy.MaxFile), []string{"p.toml: the file has 1048589 bytes; the limit is 1048576"}},
}

func TestParseProblems(t *testing.T) {
	t.Parallel()
	for _, tt := range parseProblems {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, problems(t, tt.text)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

// TestParseLines holds that votes say where they come from.
func TestParseLines(t *testing.T) {
	t.Parallel()
	s := user(t, "profile = \"mine\"\n[[rules]]\nname = \"one\"\ncommand = \"x\"\nreason = \"r\"\nlevel = \"DENY\"\n\n[[rules]]\nname = \"two\"\ncommand = \"x\"\nreason = \"r\"\nlevel = \"DENY\"\n[profiles.mine]\nbase = \"supervised\"\ncapabilities = { \"fs.read\" = \"DENY\",\n  \"fs.read:./a\" = \"DENY\" }\n")
	got := make(map[string]string)
	e := s.Explain()
	for i := range e.Rules {
		got[e.Rules[i].Name] = e.Rules[i].Source
	}
	for _, entry := range e.Profiles[0].Entries {
		if strings.HasPrefix(entry.Entry, "fs.read") {
			got[entry.Entry] = entry.Source
		}
	}
	want := map[string]string{"one": "user.toml:3", "two": "user.toml:9", "fs.read": "user.toml:16", "fs.read:./a": "user.toml:17"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("sources (-want +got):\n%s", diff)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(string(policy.Starter()))
	for _, text := range []string{
		"version = 1", "version = 1\n[[rules]]\nname = \"\\u001f\"", "rules = [{name = \"x\"}, {}]", "a.b.c = 1\n[a.b]\nd = 2",
		"version = 1\n[profiles.a]\nbase = \"a\"\n", "version = 1\n[[rules]]\n[[rules.x]]\n[rules.x.y]\n", "x = 1979-05-27T07:32:00Z", "version = 1\nprofile = \"autonomous\"",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		file, err := policy.Parse("f.toml", []byte(text))
		if err != nil {
			var list policy.Problems
			if !errors.As(err, &list) || len(list) == 0 || file != nil {
				t.Fatalf("%v is no list of problems", err)
			}
			return
		}
		layers := []policy.Layer{{Scope: policy.ScopeUser, File: file}}
		s, err := policy.Compile(layers, options)
		if err != nil {
			return // a profile that only a layer above could define
		}
		again, err := policy.Compile(layers, options)
		if err != nil || again.Hash != s.Hash || len(policy.Loosens(s, again)) > 0 {
			t.Fatal("the same file gives another policy")
		}
		_ = s.Explain().String()
	})
}
