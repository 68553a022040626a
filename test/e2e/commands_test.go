package e2e_test

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
	"github.com/seed-3ebc6b8a/gatehouse/internal/policy"
	"github.com/seed-3ebc6b8a/gatehouse/test/gatetest"
)

// leaf is a command that does something.
type leaf struct {
	words []string // without the program's name
	args  []string // the names of its arguments
	flags string   // what its help says about flags
}

var (
	subCommand = regexp.MustCompile(`(?m)^  ([a-z]+) +\S`)
	usageLine  = regexp.MustCompile(`(?m)^  gatehouse (.*)$`)
)

// commandTree walks the help of the binary down to its leaves. It knows no
// command by name, so that one that is added later is walked too.
func commandTree(g *gatetest.Gate, words ...string) (leaves []leaf) {
	help := g.Must(append(slices.Clone(words), "--help")...)
	if _, list, found := strings.Cut(help, "Available Commands:\n"); found {
		list, _, _ = strings.Cut(list, "\n\n")
		for _, m := range subCommand.FindAllStringSubmatch(list, -1) {
			leaves = append(leaves, commandTree(g, append(slices.Clone(words), m[1])...)...)
		}
		return leaves
	}
	_, usage, _ := strings.Cut(help, "Usage:\n")
	l := leaf{words: words, flags: help}
	for _, word := range strings.Fields(usageLine.FindString(usage))[1+len(words):] {
		if word == strings.ToUpper(word) && !strings.HasPrefix(word, "[") && !strings.HasPrefix(word, "-") {
			l.args = append(l.args, word)
		}
	}
	return []leaf{l}
}

// TestWalkingTheCommandTreeChangesNothing runs every command there is with no
// credential and with an agent's token in place of one, on a gate that has
// something of everything. What people decided is the same afterwards.
func TestWalkingTheCommandTreeChangesNothing(t *testing.T) {
	t.Parallel()
	// With a policy in place, so that init has nothing to write.
	w := beginWith(t, string(policy.Starter()))
	values := furnish(w)
	token := filepath.Join(t.TempDir(), "coder.token")
	write(t, token, w.token)
	leaves := commandTree(w.Gate)
	if len(leaves) < 40 {
		t.Fatalf("only %d commands were found: %v", len(leaves), leaves)
	}

	stands := func() string {
		db := w.Database()
		defer db.Close()
		// The demo is an agent: what it asks and opens is its own.
		return gatetest.Dump(t, db, "agent", "approval_grant", "approval_mark", "approver", "danger_block", "keyring", "policy_files", "policy_head",
			"policy_trust", "sign_in_link", "switches", "console_session",
			"(SELECT * FROM approval_request WHERE agent = 'coder')", "(SELECT * FROM agent_session WHERE agent = 'coder')") + files(t, w.Home)
	}
	before := stands()
	for _, l := range leaves {
		for _, args := range variants(&l, values) {
			for _, credential := range []string{"", token} {
				args := slices.Clone(args)
				if credential != "" && strings.Contains(l.flags, "--credential-file") {
					args = append(args, "--credential-file", credential)
				}
				stdout, stderr, code := w.Run(args...)
				what := strings.Join(args, " ")
				if found := gatetest.Secrets(stdout + stderr); len(found) > 0 {
					t.Errorf("%s shows a secret: %s", what, gatetest.Hide(stdout+stderr))
				}
				if strings.Contains(l.flags, "approver's credential") && code == 0 && !harmless[strings.Join(l.words, " ")] {
					t.Errorf("%s succeeded without a credential:\n%s%s", what, stdout, stderr)
				}
				if now := stands(); now != before {
					t.Fatalf("%s changed the state\nbefore:\n%s\nafter:\n%s", what, before, now)
				}
			}
		}
	}
	w.verify()
}

// harmless commands take a credential with their family and need none: they
// read files that whoever runs them can read, or show what is the caller's own.
var harmless = map[string]bool{
	"policy lint": true, "policy explain": true, "policy test": true, "policy schema": true,
	"changes list": true, "changes show": true, "jobs list": true,
}

// furnish makes something of everything that a command could change, and
// returns what the names of arguments stand for.
func furnish(w *world) map[string][]string {
	w.t.Helper()
	bob := &api.SecretResponse{}
	w.do("POST", "/v1/approvers", &api.NameRequest{Name: "bob"}, bob)
	w.do("POST", "/v1/link", nil, &api.LinkResponse{})
	w.factor()
	w.SignedIn(w.credential)
	offer := w.want(gate.Pending, create("granted"))
	if err := w.answer(offer.Request, "approve", func(r *admin.Request) any { return &api.ApproveRequest{Digest: r.Digest, Offer: 1} }); err != nil {
		w.t.Fatal(err)
	}
	open := w.want(gate.Allowed, create("granted"))
	waits := w.want(gate.Pending, remove("waiting"))
	grants := &api.GrantList{}
	w.do("GET", "/v1/grants", nil, grants)
	if len(grants.Grants) != 1 {
		w.t.Fatalf("grants: %+v", grants)
	}
	return map[string][]string{
		"NAME": {"eve", "bob", "coder"}, "REQUEST": {waits.Request}, "SESSION": {open.Session}, "GRANT": {grants.Grants[0].ID},
		"CALL|RECORD": {open.CallID}, "INDEX": {"0"}, "WORDS": {"words"}, "ARGS": {`{"element_type":"skill","name":"x","description":"a test"}`},
		"DIR": {filepath.Join(w.t.TempDir(), "man")}, "FILE": {filepath.Join(w.t.TempDir(), ".gatehouse.toml")}, "ROOT": {w.t.TempDir()},
	}
}

// variants are the ways in which a command is tried.
func variants(l *leaf, values map[string][]string) (out [][]string) {
	out = [][]string{slices.Clone(l.words)}
	for _, name := range l.args {
		tries, ok := values[name]
		if !ok {
			tries = []string{"x"} // an argument that this test does not know yet
		}
		var next [][]string
		for _, args := range out {
			for _, v := range tries {
				next = append(next, append(slices.Clone(args), v))
			}
		}
		out = next
	}
	for i := range out {
		if strings.Contains(l.flags, "--code ") {
			out = append(out, append(slices.Clone(out[i]), "--code", "123456"))
		}
		if strings.Contains(l.flags, "--listen ") {
			out[i] = append(out[i], "--listen", "127.0.0.1:0")
		}
		if strings.Contains(l.flags, "--root ") { // it would be this machine's services and settings
			out[i] = append(out[i], "--root", values["ROOT"][0])
		}
		if strings.Contains(l.flags, "--op ") {
			out[i] = append(out[i], "--op", "list_elements")
		}
	}
	return out
}

// files are the gate's own files that nobody but the gate and its owner
// write, with what is in them.
func files(t testing.TB, home string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(home, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(home, path)
		if err != nil || strings.HasPrefix(name, "gatehouse.") || name == "checkpoints" || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		fmt.Fprintf(&b, "%s %x\n", name, sha256.Sum256(data))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}
