package e2e_test

import (
	"strings"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
)

// TestConfirmOperationFollows: an agent asks for a call ahead of making it and
// follows what becomes of it, over MCP: waiting, joined, denied with words,
// answered in words, approved, used up. Following grants nothing, and nobody
// follows another agent's request.
func TestConfirmOperationFollows(t *testing.T) {
	t.Parallel()
	w := begin(t)
	m := w.model(t, w.token)
	asking := func(name string) map[string]any {
		return map[string]any{"operation": "create_element", "params": map[string]any{"element_type": "skill", "name": name, "description": "d"}}
	}
	direct := func(name string) reply {
		return m.op("create_element", map[string]any{"element_type": "skill", "name": name, "description": "d"})
	}
	follow := func(id string) reply { return m.ok("confirm_operation", map[string]any{"request": id}) }
	reply := func(id, verb, words string) {
		t.Helper()
		if err := w.answer(id, verb, func(r *admin.Request) any { return &api.ReplyRequest{Digest: r.Digest, Text: words} }); err != nil {
			t.Fatal(err)
		}
	}

	first := m.ok("confirm_operation", asking("a"))
	id := first.str("request")
	if first.str("state") != "pending" || id == "" || first.str("level") != "CONFIRM_SESSION" || first.str("expires") == "" {
		t.Fatalf("asked for: %s", first.text)
	}
	if again := m.ok("confirm_operation", asking("a")); again.str("request") != id {
		t.Errorf("the same asked for twice: %s", again.text)
	}
	if made := direct("a"); !made.failed || made.str("request") != id {
		t.Errorf("the call itself does not find the request: %s", made.text)
	}
	for range 3 {
		if got := follow(id); got.str("state") != "pending" {
			t.Errorf("waiting: %s", got.text)
		}
	}
	if made := direct("a"); !made.failed {
		t.Errorf("following granted it: %s", made.text)
	}
	w.approve(id)
	if got := follow(id); got.str("state") != "approved" || !strings.Contains(got.str("message"), "ann") {
		t.Errorf("approved: %s", got.text)
	}
	if got := m.ok("confirm_operation", asking("a")); got.str("state") != "not_needed" {
		t.Errorf("asked for though it is approved: %s", got.text)
	}
	if made := direct("a"); made.failed {
		t.Errorf("approved, and yet: %s", made.text)
	}
	if made := direct("a"); !made.failed || made.str("request") == "" || made.str("request") == id {
		t.Errorf("the approval was used twice, or nobody is asked: %s", made.text)
	}

	no := m.ok("confirm_operation", asking("b")).str("request")
	reply(no, "deny", "not on a Friday")
	if got := follow(no); got.str("state") != "denied" || !strings.Contains(got.str("message"), "not on a Friday") {
		t.Errorf("denied: %s", got.text)
	}
	words := m.ok("confirm_operation", asking("c")).str("request")
	reply(words, "respond", "use the one that is there")
	if got := follow(words); got.str("state") != "responded" || !strings.Contains(got.str("message"), "the one that is there") {
		t.Errorf("answered in words: %s", got.text)
	}

	other := w.model(t, w.Gate.Agent(w.credential, "other"))
	if got := other.op("confirm_operation", map[string]any{"request": no}); !got.failed || strings.Contains(got.text, "Friday") {
		t.Errorf("another agent reads the answer: %s", got.text)
	}
	m.refused("not both", "confirm_operation", map[string]any{"request": no, "operation": "clear"})
	m.refused("name the operation", "confirm_operation", map[string]any{})
	if got := m.ok("confirm_operation", map[string]any{"operation": "creat_element", "params": map[string]any{}}); got.str("state") != "denied" || !strings.Contains(got.text, "create_element") {
		t.Errorf("an operation that does not exist: %s", got.text)
	}
	waits := len(w.pending())
	m.refused("description", "confirm_operation", map[string]any{"operation": "create_element", "params": map[string]any{"element_type": "skill", "name": "z"}})
	if got := len(w.pending()); got != waits {
		t.Errorf("%d requests wait, not %d: somebody is asked about a call that cannot run", got, waits)
	}
	if got := m.ok("confirm_operation", map[string]any{"operation": "list_elements"}); got.str("state") != "not_needed" {
		t.Errorf("a read: %s", got.text)
	}
	w.verify()
}
