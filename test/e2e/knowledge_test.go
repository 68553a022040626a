package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
)

// settle waits until the policy's state is as wanted: the gate notices files
// by itself.
func (w *world) settle(what string, is func(admin.Policy) bool) admin.Policy {
	w.t.Helper()
	for range 200 {
		var p admin.Policy
		w.do("GET", "/v1/policy", nil, &p)
		if is(p) {
			return p
		}
		time.Sleep(50 * time.Millisecond)
	}
	w.t.Fatalf("the policy never came to be %s", what)
	return admin.Policy{}
}

// TestKnowledgeFilesArePolicy: a file that adds effects to a known program
// takes effect at once; one that makes a program known waits for an approver,
// and so does taking the first one away; one whose examples do not hold is
// reported.
func TestKnowledgeFilesArePolicy(t *testing.T) {
	t.Parallel()
	w := begin(t)
	dir := filepath.Join(w.Home, "knowledge")
	work := t.TempDir()
	bash := func(command string) *api.CallRequest {
		in := callOf("Bash", `{"command":"`+command+`"}`)
		in.Dir = work
		return in
	}
	staged := func(p admin.Policy) bool { return p.Staged != nil }
	w.done(w.want(gate.Allowed, bash("date")))

	before := w.settle("known", func(admin.Policy) bool { return true })
	write(t, filepath.Join(dir, "tighter.toml"), "family = \"mine\"\n[[program]]\nname = \"date\"\nextend = true\ndoes = [\"network\"]\nexamples = [\"network: date\"]\n")
	w.settle("tighter", func(p admin.Policy) bool { return p.Hash != before.Hash && p.Staged == nil })
	w.want(gate.Pending, bash("date"))

	// A program that no table knows stays unknown until an approver accepts it.
	write(t, filepath.Join(dir, "frob.toml"), "family = \"mine\"\n[[program]]\nname = \"sync\"\nbenign = true\ndoes = [\"read\"]\nexamples = [\"safe: sync\"]\n")
	p := w.settle("staged", staged)
	if !strings.Contains(strings.Join(p.Staged.Changes, "\n"), "frob.toml") {
		t.Errorf("what is staged does not name the file: %v", p.Staged.Changes)
	}
	code := w.factor()
	w.do("POST", "/v1/policy/accept", &api.AcceptRequest{Hash: p.Staged.Hash, Code: code.next()}, nil)
	w.settle("accepted", func(p admin.Policy) bool { return p.Staged == nil })

	if err := os.Remove(filepath.Join(dir, "tighter.toml")); err != nil {
		t.Fatal(err)
	}
	w.settle("staged again", staged)
	w.want(gate.Pending, bash("date"))

	write(t, filepath.Join(dir, "wrong.toml"), "family = \"mine\"\n[[program]]\nname = \"frob\"\ndoes = [\"delete\"]\nexamples = [\"safe: frob\"]\n")
	w.settle("broken", func(p admin.Policy) bool { return strings.Contains(strings.Join(p.Broken, "\n"), "the example") })
	stdout, stderr, exit := w.Run("policy", "lint", dir)
	if exit == 0 || !strings.Contains(stdout+stderr, "the example \"frob\" is destructive") {
		t.Errorf("policy lint: exit %d\n%s%s", exit, stdout, stderr)
	}
}
