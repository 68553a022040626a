package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
)

// nuclear is a persona that denies every confirmation, note one that locks
// nothing.
var (
	nuclear = persona("nuclear", "gatekeeper:\n  deny: [confirm_operation, verify_challenge, release_deadlock]\n")
	sandbox = persona("sandbox", "gatekeeper:\n  deny: [confirm_operation]\n")
	note    = persona("note", "gatekeeper:\n  confirm: [addEntry]\n")
)

// TestC10NuclearSandbox: while an active element denies confirm_operation
// reads work and everything else is frozen, what was granted before included;
// the recovery path stays reachable and cannot be put in a list; and an
// approver releases the element that locks, or all, on record.
func TestC10NuclearSandbox(t *testing.T) {
	t.Parallel()
	k := beginKeeper(t, map[string]string{"personas/sandbox.md": sandbox, "personas/note.md": note, "personas/nuclear.md": nuclear})
	m := k.model(t, k.token)
	// A list cannot hold the recovery path.
	if got := k.ok("validate_element", "persona", named("nuclear")); !strings.Contains(got.Text, "recovery") {
		t.Errorf("a list with the recovery path: %s", got.Text)
	}
	// Granted before the freeze, for the session and for one use.
	params := map[string]any{"execution_id": "x_1"}
	asked := m.refused("needs a person", "complete_execution", params)
	if err := k.answer(asked.str("request"), "approve", func(r *admin.Request) any { return &api.ApproveRequest{Digest: r.Digest, Offer: 1} }); err != nil {
		t.Fatal(err)
	}
	m.refused("no such execution", "complete_execution", params)
	once := m.refused("needs a person", "continue_execution", params)
	k.approve(once.str("request"))

	k.ok("activate_element", "persona", named("note"))
	k.ok("activate_element", "persona", named("sandbox"))
	k.ok("get_active_elements", "", nil)
	k.ok("introspect", "", nil)
	for _, op := range []struct {
		name   string
		params map[string]any
	}{
		{"complete_execution", params}, {"continue_execution", params}, {"confirm_operation", forget}, {"deactivate_element", map[string]any{"name": "sandbox", "element_type": "persona"}},
		{"create_element", map[string]any{"name": "x", "element_type": "skill", "description": "d", "content": "c"}}, {"delete_element", map[string]any{"name": "sandbox", "element_type": "persona"}},
	} {
		m.refused("frozen", op.name, op.params)
	}
	k.want(gate.Denied, callOf("Bash", `{"command":"touch x"}`))
	m.ok("permission_prompt", map[string]any{"tool_name": "Bash", "input": map[string]any{"command": "touch x"}})

	first := m.ok("release_deadlock", nil)
	ch := first.str("challenge", "challenge_id")
	if !strings.Contains(first.text, "persona/sandbox") || ch == "" {
		t.Fatalf("the first step: %s", first.text)
	}
	if again := m.ok("release_deadlock", nil); again.str("challenge", "challenge_id") != ch {
		t.Error("asking twice is two questions")
	}
	m.refused("together", "release_deadlock", map[string]any{"challenge_id": ch})
	code := k.world.code(ch)
	m.refused("another operation", "verify_challenge", map[string]any{"challenge_id": ch, "code": code})
	if got := m.ok("release_deadlock", map[string]any{"challenge_id": ch, "code": code}); got.str("state") != "given" {
		t.Errorf("the second step: %s", got.text)
	}
	m.refused("frozen", "complete_execution", params) // the code alone releases nothing

	in := &api.ReleaseRequest{Challenge: code}
	refused(t, "without a second factor", k.person.Do(context.Background(), "POST", "/v1/challenges/"+ch+"/release", in, nil), http.StatusForbidden)
	in.Code = k.code()
	k.do("POST", "/v1/challenges/"+ch+"/release", in, nil)
	active := k.ok("get_active_elements", "", nil)
	if strings.Contains(active.Text, "sandbox") || !strings.Contains(active.Text, "note") {
		t.Errorf("active after the release: %s", active.Text)
	}
	m.refused("no such execution", "complete_execution", params)
	records := &api.LogPage{}
	k.do("GET", "/v1/log?operation=lock.release", nil, records)
	if len(records.Records) != 1 || records.Records[0].Principal != "ann" {
		t.Fatalf("the release is not on record: %+v", records.Records)
	}
	k.do("GET", "/v1/log/"+records.Records[0].ID, nil, &records.Records[0])
	for _, want := range []string{`"active_before":["persona/note","persona/sandbox"]`, `"released":["persona/sandbox"]`} {
		if !strings.Contains(string(records.Records[0].Body), want) {
			t.Errorf("the record does not hold %s: %s", want, records.Records[0].Body)
		}
	}
	// All of them, the other time.
	k.ok("activate_element", "persona", named("sandbox"))
	ch = m.ok("release_deadlock", nil).str("challenge", "challenge_id")
	k.do("POST", "/v1/challenges/"+ch+"/release", &api.ReleaseRequest{Challenge: k.world.code(ch), Code: k.code(), All: true}, nil)
	if active := k.ok("get_active_elements", "", nil); strings.Contains(active.Text, "note") {
		t.Errorf("active after the release of all: %s", active.Text)
	}
}

// TestAttack35RecoveryNeverActs: under every combination of kill switch, danger
// zone and freeze the strongest is what denies, the recovery path can file, and
// neither filing nor a right code changes a switch or lets a call through.
func TestAttack35RecoveryNeverActs(t *testing.T) {
	t.Parallel()
	k := beginKeeper(t, map[string]string{"personas/sandbox.md": sandbox})
	a := k.factor()
	k.codes = a
	m := k.model(t, k.token)
	set := [3]bool{}
	for n, want := range [][3]bool{ // each differs from the one before in one, so that few releases are needed
		{false, false, true}, {true, false, true}, {true, true, true}, {false, true, true}, {false, true, false}, {true, true, false}, {true, false, false},
	} {
		k.throw(set, want)
		set = want
		name := fmt.Sprintf("kill %v, danger %v, frozen %v", want[0], want[1], want[2])
		reason := map[bool]string{true: "kill switch"}[want[0]]
		if reason == "" && want[1] {
			reason = "blocked"
		} else if reason == "" {
			reason = "frozen"
		}
		m.refused(reason, "create_element", map[string]any{"name": fmt.Sprint("x", n), "element_type": "skill", "description": "d", "content": "c"})
		if got := m.op("introspect", nil); got.failed != (want[0] || want[1]) {
			t.Errorf("%s: a read: %s", name, got.text)
		}
		filed := m.ok("release_deadlock", nil)
		ch := filed.str("challenge", "challenge_id")
		given := m.ok("release_deadlock", map[string]any{"challenge_id": ch, "code": k.world.code(ch)})
		if given.str("state") != "given" {
			t.Errorf("%s: the code acts: %s", name, given.text)
		}
		if got := m.ok("permission_prompt", map[string]any{"tool_name": "Bash", "input": map[string]any{"command": "touch x"}}); got.str("behavior") != "deny" {
			t.Errorf("%s: a host's prompt: %s", name, got.text)
		}
		m.op("approve_cli_permission", map[string]any{"request_id": "r_none"})
		m.refused(reason, "create_element", map[string]any{"name": fmt.Sprint("y", n), "element_type": "skill", "description": "d", "content": "c"})
		if got := k.standing(m); got != want {
			t.Errorf("%s became %v", name, got)
		}
		k.do("POST", "/v1/challenges/"+ch+"/refuse", nil, nil)
	}
	k.verify()
}

// throw sets the switches as a person does.
func (k *keeper) throw(is, want [3]bool) {
	k.t.Helper()
	if is[0] != want[0] {
		k.kill(want[0])
	}
	if !is[1] && want[1] {
		k.Must("danger", "block", "coder", "--credential-file", k.key)
	}
	if is[1] && !want[1] {
		got := k.Must("danger", "show", "coder", "--json", "--credential-file", k.key)
		code := between(got, `"code": "`, `"`)
		k.Must("danger", "release", "coder", "--challenge", code, "--code", k.code(), "--credential-file", k.key)
	}
	if !is[2] && want[2] {
		k.ok("activate_element", "persona", named("sandbox"))
	}
	if is[2] && !want[2] {
		k.Must("element", "release", "coder", "persona/sandbox", "--code", k.code(), "--credential-file", k.key)
	}
}

// standing reads the switches as a person does: kill, danger, frozen.
func (k *keeper) standing(*model) (out [3]bool) {
	k.t.Helper()
	out[0] = strings.HasPrefix(k.Must("kill", "status", "--credential-file", k.key), "on")
	out[1] = len(k.danger()) > 0
	elements := struct {
		Active []struct {
			Active []struct {
				Name string `json:"name"`
			} `json:"active"`
		} `json:"active"`
	}{}
	k.do("GET", "/v1/elements", nil, &elements)
	for _, s := range elements.Active {
		out[2] = out[2] || len(s.Active) > 0
	}
	return out
}

func between(s, from, to string) string {
	_, s, _ = strings.Cut(s, from)
	s, _, _ = strings.Cut(s, to)
	return s
}
