package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
	"github.com/seed-3ebc6b8a/gatehouse/test/gatetest"
)

// builder is an agent element that an execution runs.
const builder = "---\nname: builder\ndescription: builds things\nautonomy:\n  riskTolerance: moderate\n  maxAutonomousSteps: 20\n---\n\nBuild it.\n"

// beginRun starts a gate with the builder, and an execution of it that may
// record its steps.
func beginRun(t *testing.T, policy string, params map[string]any) (w *world, a *authenticator, m *model, id string) {
	t.Helper()
	g := gatetest.New(t)
	write(t, filepath.Join(g.Home, "policy.toml"), "version = 1\n"+policy)
	g.Up()
	w = people(t, g)
	(&keeper{world: w}).element("agents/builder.md", builder)
	a, m = w.factor(), w.model(t, w.token)
	all := map[string]any{"name": "builder", "goal": "build it"}
	for k, v := range params {
		all[k] = v
	}
	id = w.confirmed(m, a, "execute_agent", all).str("id")
	if !strings.HasPrefix(id, "x_") {
		t.Fatalf("no execution: %s", id)
	}
	return w, a, m, id
}

// stepOf is a step that went well.
func stepOf(id string) map[string]any {
	return map[string]any{"execution_id": id, "description": "a step", "outcome": "success"}
}

// danger lists the blocked agents.
func (w *world) danger() []string {
	w.t.Helper()
	got := &admin.Danger{}
	w.do("GET", "/v1/danger", nil, got)
	var names []string
	for _, b := range got.Blocks {
		names = append(names, b.Agent)
	}
	return names
}

// TestW10PausesHold: a pause is stored. The next step is refused, whatever the
// agent says, in another session and after a restart, until a person lets it
// go on; and what the gate saw weighs more than the agent's own numbers.
func TestW10PausesHold(t *testing.T) {
	t.Parallel()
	w, _, m, id := beginRun(t, "", nil)
	if got := w.sessionOK(m, "record_execution_step", stepOf(id)); !got.is("directive", "continue") {
		t.Fatalf("a quiet step: %s", got.text)
	}
	failed := stepOf(id)
	failed["outcome"] = "failure"
	got := m.ok("record_execution_step", failed)
	ch := got.str("challenge", "challenge_id")
	if got.is("directive", "continue") || got.str("state") != "paused" || ch == "" {
		t.Fatalf("a failed step: %s", got.text)
	}
	calm := stepOf(id)
	calm["risk_score"], calm["next_action_hint"] = 0, "nothing at all"
	m.refused("paused", "record_execution_step", calm)
	w.Kill()
	w.Up()
	m = w.model(t, w.token)
	m.refused("paused", "record_execution_step", calm)
	// The old challenge is as good as before.
	if got := m.ok("verify_challenge", map[string]any{"challenge_id": ch, "code": w.code(ch)}); got.str("state") != "moved" {
		t.Errorf("the code after a restart: %s", got.text)
	}
	if got := m.ok("record_execution_step", calm); !got.is("directive", "continue") {
		t.Errorf("after the release: %s", got.text)
	}
}

// TestW10SeenNotTold: calls that the gate mediated raise the score though the
// agent states none.
func TestW10SeenNotTold(t *testing.T) {
	t.Parallel()
	w, _, m, id := beginRun(t, "", nil)
	w.sessionOK(m, "record_execution_step", stepOf(id))
	for n := range 4 { // outside the workspace, and not undone: denied or asked, seen either way
		w.submit(callOf("Bash", fmt.Sprintf(`{"command":"terraform destroy -auto-approve -var n=%d"}`, n)))
	}
	quiet := stepOf(id)
	quiet["risk_score"], quiet["next_action_hint"] = 0, "write a poem"
	got := m.ok("record_execution_step", quiet)
	if got.is("directive", "continue") {
		t.Errorf("after four attempts to destroy the gate goes on: %s", got.text)
	}
	if !strings.Contains(got.text, `"calls":4`) {
		t.Errorf("what was seen: %s", got.text)
	}
}

// TestC12AutonomyGatesTheNextStep: the step limit, announced actions, unread
// numbers and the depth of agents pause or block; the danger threshold blocks
// the agent's every call, and ends in the danger zone.
func TestC12AutonomyGatesTheNextStep(t *testing.T) {
	t.Parallel()
	w, a, m, id := beginRun(t, "[autonomy]\nmax_steps = 3\n", map[string]any{"requires_approval": []string{"*deploy*"}, "max_steps": 50})
	w.sessionOK(m, "record_execution_step", stepOf(id))
	announced := stepOf(id)
	announced["next_action_hint"] = "now I deploy it"
	got := m.ok("record_execution_step", announced)
	if got.is("directive", "continue") || !strings.Contains(got.text, "deploy") {
		t.Fatalf("a listed action: %s", got.text)
	}
	ch := got.str("challenge", "challenge_id")
	if v := m.ok("verify_challenge", map[string]any{"challenge_id": ch, "code": w.code(ch)}); v.str("state") != "moved" {
		t.Fatalf("the code: %s", v.text)
	}
	for n := range 3 {
		got = m.ok("record_execution_step", stepOf(id))
		if goes := got.is("directive", "continue"); goes != (n < 2) {
			t.Fatalf("step %d after the release: %s", n+1, got.text)
		}
	}
	// A person lets it go on from the terminal.
	w.Must("approvals", "release", got.str("challenge", "challenge_id"), "--credential-file", w.key)
	unread := stepOf(id)
	unread["risk_score"] = "NaN"
	got = m.ok("record_execution_step", unread)
	if got.str("state") != "blocked" || got.str("directive", "tier") != "danger_zone" {
		t.Fatalf("a risk that is no number: %s", got.text)
	}
	if z := w.danger(); len(z) != 1 || z[0] != "coder" {
		t.Fatalf("in the danger zone: %v", z)
	}
	w.want(gate.Denied, callOf("list_elements", ""))
	m.refused("blocked", "get_capabilities", nil)
	m.refused("blocked", "abort_execution", map[string]any{"execution_id": id})
	_ = a
}

// TestW11DangerZone: a block is on the agent under any spelling, in every
// session, on disk; it ends what the gate started for the agent and lets
// nothing new start; and a person releases it by the challenge that is bound
// to this very block, with a second factor.
func TestW11DangerZone(t *testing.T) {
	t.Parallel()
	w := begin(t)
	a := w.factor()
	other := w.Client(w.Gate.Agent(w.credential, "other"))
	w.Must("danger", "block", "Coder", "--reason", "deletes backups", "--credential-file", w.key)
	for range 2 {
		w.want(gate.Denied, callOf("list_elements", ""))
		in := callOf("list_elements", "")
		in.Session = w.agentSession()
		in.Path = "sub/agent"
		if got := w.want(gate.Denied, in); !strings.Contains(got.Message, "deletes backups") {
			t.Errorf("the denial says %q", got.Message)
		}
		w.Kill()
		w.Up()
	}
	if got := submit(t, other, callOf("list_elements", "")); got.Verdict != gate.Allowed {
		t.Errorf("another agent: %s", got.Message)
	}
	m := w.model(t, w.token)
	asked := m.ok("release_deadlock", nil)
	ch := asked.str("challenge", "challenge_id")
	code := w.code(ch)
	for _, op := range []string{"release_deadlock", "verify_challenge"} {
		got := m.ok(op, map[string]any{"challenge_id": ch, "code": code})
		if got.str("state") != "given" || !strings.Contains(got.text, "nothing was released") {
			t.Errorf("%s with the right code: %s", op, got.text)
		}
	}
	w.want(gate.Denied, callOf("list_elements", ""))

	show := w.Must("danger", "show", "coder", "--credential-file", w.key)
	if !strings.Contains(show, code) || !strings.Contains(show, "deletes backups") {
		t.Errorf("danger show: %s", show)
	}
	block := strings.Fields(w.Must("danger", "list", "--credential-file", w.key))
	id := ""
	for _, f := range block {
		if strings.HasPrefix(f, "b_") {
			id = f
		}
	}
	release := func(challenge, totp string) error {
		return w.person.Do(context.Background(), "POST", "/v1/danger/"+id+"/release", &api.ReleaseRequest{Challenge: challenge, Code: totp}, nil)
	}
	refused(t, "without a second factor", release(code, ""), http.StatusForbidden)
	refused(t, "with a wrong code", release("AAAAAA", a.next()), http.StatusForbidden)
	refused(t, "with the agent's token", w.agent.Do(context.Background(), "POST", "/v1/danger/"+id+"/release", &api.ReleaseRequest{Challenge: code}, nil), http.StatusForbidden)
	if err := release(code, a.next()); err != nil {
		t.Fatalf("the release: %v", err)
	}
	w.want(gate.Allowed, callOf("list_elements", ""))
	// A new block is another: the old challenge does not release it.
	w.Must("danger", "block", "coder", "--credential-file", w.key)
	refused(t, "by the old block's id", release(code, "000000"), http.StatusNotFound)
	records := &api.LogPage{}
	w.do("GET", "/v1/log?operation=danger.release", nil, records)
	if len(records.Records) != 1 || records.Records[0].Principal != "ann" {
		t.Errorf("the record of the release: %+v", records.Records)
	}
	w.verify()
}

// TestW11ProcessesEnd: what `gatehouse run` runs is ended when its agent is
// blocked, and is not started while it is.
func TestW11ProcessesEnd(t *testing.T) {
	t.Parallel()
	w := begin(t)
	name, marker := fmt.Sprintf("local-%d", os.Getuid()), filepath.Join(t.TempDir(), "runs")
	run := func() *exec.Cmd {
		cmd := exec.Command(gatetest.Binary(t), "run", "--write", filepath.Dir(marker), "--", "sh", "-c", "touch "+marker+"; sleep 600")
		cmd.Env = append(cmd.Environ(), "GATEHOUSE_HOME="+w.Home)
		return cmd
	}
	// It writes, so a person is asked first; the same run then picks the answer up.
	out, err := run().CombinedOutput()
	for id := range w.pending() {
		w.approve(id)
	}
	if err == nil || !strings.Contains(string(out), "Pending") {
		t.Fatalf("nobody was asked: %v, %s", err, out)
	}
	cmd := run()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	eventually(t, "it runs", func() bool { // and by then the gate knows of it
		if len(ended) > 0 {
			t.Fatal("it ended by itself: ", <-ended)
		}
		_, err := os.Stat(marker)
		return err == nil
	})
	w.Must("danger", "block", name, "--reason", "drill", "--credential-file", w.key)
	if err := <-ended; err == nil {
		t.Error("it ended by itself")
	}
	out, err = run().CombinedOutput()
	if err == nil || !strings.Contains(string(out), "stopped") {
		t.Errorf("a run of a blocked agent: %v, %s", err, out)
	}
	records := &api.LogPage{}
	eventually(t, "the end is on record", func() bool {
		w.do("GET", "/v1/log?operation=process.end", nil, records)
		return len(records.Records) == 1
	})
}

// TestAttack10Washing: a block is not washed off by dropping the token, by
// another session, a sub-agent or another agent in the workspace; violations
// count over sessions.
func TestAttack10Washing(t *testing.T) {
	t.Parallel()
	w := beginWith(t, "version = 1\n[danger]\nstrictness = \"maximum\"\n")
	workspace := t.TempDir()
	inWorkspace := func(c *api.CallRequest) *api.CallRequest {
		c.Dir = workspace
		return c
	}
	s := &api.SessionResponse{}
	if err := w.agent.Do(context.Background(), "POST", "/v1/sessions", &api.SessionRequest{Workspace: workspace}, s); err != nil {
		t.Fatal(err)
	}
	attack := func(session string) *api.CallResponse {
		c := inWorkspace(callOf("Bash", `{"command":"cat `+w.Home+`/keys/mac.key"}`))
		c.Session = session
		return w.want(gate.Denied, c)
	}
	attack(s.Session)
	attack(w.agentSession()) // violations follow the agent
	w.Stop()
	w.Up()
	attack(s.Session)
	if z := w.danger(); len(z) != 1 {
		t.Fatalf("after three violations in three sessions: %v", z)
	}
	other := w.Client(w.Gate.Agent(w.credential, "other"))
	so := &api.SessionResponse{}
	if err := other.Do(context.Background(), "POST", "/v1/sessions", &api.SessionRequest{Workspace: workspace}, so); err != nil {
		t.Fatal(err)
	}
	in := inWorkspace(callOf("list_elements", ""))
	in.Session = so.Session
	if got := submit(t, other, in); got.Verdict != gate.Denied {
		t.Errorf("another name in the workspace: %s", got.Message)
	}
	elsewhere := w.Client(w.Gate.Agent(w.credential, "elsewhere"))
	if got := submit(t, elsewhere, callOf("list_elements", "")); got.Verdict != gate.Allowed {
		t.Errorf("another agent, somewhere else: %s", got.Message)
	}
}

// TestStrictnessActs: each level does something that the one before does not,
// in the running gate.
func TestStrictnessActs(t *testing.T) {
	t.Parallel()
	attacks := func(w *world, n int) {
		for range n {
			w.want(gate.Denied, callOf("Bash", `{"command":"cat `+w.Home+`/keys/mac.key"}`))
		}
	}
	for level, want := range map[string]struct {
		blocksAt int // 0 is never
		pins     []string
	}{
		"minimal": {0, nil}, "standard": {25, nil},
		"elevated": {8, []string{"git push --force"}}, "maximum": {3, []string{"git push --force", "touch x"}},
	} {
		t.Run(level, func(t *testing.T) {
			t.Parallel()
			w := beginWith(t, "version = 1\n[danger]\nstrictness = \""+level+"\"\n")
			var pins []string
			for _, cmd := range []string{"git push --force", "touch x"} {
				got := w.submit(callOf("Bash", `{"command":"`+cmd+`"}`))
				if got.Request != "" && w.look(got.Request).Pinned {
					pins = append(pins, cmd)
				}
			}
			if fmt.Sprint(pins) != fmt.Sprint(want.pins) {
				t.Errorf("verified with a second factor: %v, want %v", pins, want.pins)
			}
			if want.blocksAt == 0 {
				attacks(w, 30)
				if z := w.danger(); len(z) != 0 {
					t.Errorf("blocked: %v", z)
				}
				return
			}
			attacks(w, want.blocksAt-1)
			if z := w.danger(); len(z) != 0 {
				t.Errorf("blocked after %d: %v", want.blocksAt-1, z)
			}
			attacks(w, 1)
			if z := w.danger(); len(z) != 1 {
				t.Errorf("not blocked after %d", want.blocksAt)
			}
		})
	}
}
