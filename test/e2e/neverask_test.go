package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
)

// TestNeverAskAgain: a person approves and has a rule written; it is staged,
// takes effect when it is accepted, and covers what was approved and nothing
// beside it.
func TestNeverAskAgain(t *testing.T) {
	t.Parallel()
	w := begin(t)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	in := callOf("Bash", `{"command":"touch notes.md"}`)
	in.Dir = dir
	asked := w.want(gate.Pending, in)
	said := w.Must("approvals", "approve", asked.Request, "--never-ask-again", "--credential-file", w.key)
	if !strings.Contains(said, "touch notes.md") || !strings.Contains(said, "misses") || !strings.Contains(said, "policy accept") {
		t.Errorf("the terminal does not show the rule:\n%s", said)
	}
	w.done(w.want(gate.Allowed, in)) // the approval itself
	w.want(gate.Pending, in)         // the rule is staged and not in force
	var p admin.Policy
	w.do("GET", "/v1/policy", nil, &p)
	if p.Staged == nil {
		t.Fatal("nothing is staged")
	}
	code := w.factor()
	w.do("POST", "/v1/policy/accept", &api.AcceptRequest{Hash: p.Staged.Hash, Code: code.next()}, nil)
	w.done(w.want(gate.Allowed, in))
	for _, command := range []string{"touch notes.md other", "touch other.md", "touch notes.md && touch x"} {
		near := callOf("Bash", `{"command":"`+command+`"}`)
		near.Dir = dir
		w.want(gate.Pending, near)
	}
	elsewhere := callOf("Bash", `{"command":"touch notes.md"}`)
	elsewhere.Dir = t.TempDir()
	w.want(gate.Pending, elsewhere)

	text, err := os.ReadFile(filepath.Join(w.Home, "policy.toml"))
	if err != nil || !strings.Contains(string(text), "Proposed by ann") {
		t.Errorf("the file: %s %v", text, err)
	}
	w.Must("policy", "lint", filepath.Join(w.Home, "policy.toml"))
}

// TestNeverAskAgainRefuses: what asks for every use has no rule, nothing is
// approved by asking for one, and no agent can ask.
func TestNeverAskAgainRefuses(t *testing.T) {
	t.Parallel()
	w := begin(t)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a"), "x")
	for _, in := range []*api.CallRequest{
		callOf("Bash", `{"command":"rm a"}`), callOf("Bash", `{"command":"./deploy.sh *"}`), callOf("Bash", `{"command":"cat .env"}`),
		callOf("Bash", `{"command":"touch a && touch b"}`), create("x"),
	} {
		in.Dir = dir
		asked := w.want(gate.Pending, in)
		err := w.answer(asked.Request, "never-ask-again", func(r *admin.Request) any { return &api.ApproveRequest{Digest: r.Digest} })
		refused(t, string(in.Args), err, 409)
		if r := w.look(asked.Request); r.State != "pending" {
			t.Errorf("%s is %s", in.Args, r.State)
		}
		if err := w.answer(asked.Request, "deny", func(r *admin.Request) any { return &api.ReplyRequest{Digest: r.Digest} }); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(filepath.Join(w.Home, "policy.toml")); err == nil {
		t.Error("a policy file was written")
	}
	in := callOf("Bash", `{"command":"touch x"}`)
	in.Dir = dir
	asked := w.want(gate.Pending, in)
	if res, _ := w.HTTP("POST", "/v1/approvals/"+asked.Request+"/never-ask-again", w.token, nil, &api.ApproveRequest{Digest: asked.Digest}); res.StatusCode < 400 {
		t.Errorf("an agent's token gets %d", res.StatusCode)
	}
}
