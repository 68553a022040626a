package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/approval"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
)

// forget is a call that asks once per session.
var forget = map[string]any{"operation": "complete_execution", "params": map[string]any{"execution_id": "x_none"}}

// TestW01HumanInTheLoop: confirming is asking. Nothing an agent can call
// approves, and only a person's word, on the page or by a code that only
// people were shown, makes the call go ahead, once.
func TestW01HumanInTheLoop(t *testing.T) {
	t.Parallel()
	w := begin(t)
	m := w.model(t, w.token)
	asked := m.ok("confirm_operation", forget)
	id, ch := asked.str("request"), asked.str("challenge", "challenge_id")
	if asked.str("state") != "pending" || !strings.HasPrefix(id, "r_") || !strings.HasPrefix(ch, "ch_") {
		t.Fatalf("confirm_operation: %s", asked.text)
	}
	m.ok("approve_cli_permission", map[string]any{"request_id": id, "scope": "tool_session"})
	for range 3 {
		m.ok("confirm_operation", map[string]any{"request": id})
	}
	if got := w.look(id).State; got != "pending" {
		t.Fatalf("the agent alone made the request %s", got)
	}
	m.refused("needs a person", "complete_execution", map[string]any{"execution_id": "x_none"})

	code := w.code(ch)
	got := m.ok("verify_challenge", map[string]any{"challenge_id": ch, "code": strings.ToLower(code)})
	if !got.is("verified") || got.str("state") != "moved" {
		t.Errorf("the right code: %s", got.text)
	}
	r := w.look(id)
	if r.State != "approved" || r.AnsweredBy != "ann" || !strings.HasPrefix(r.Channel, "code") {
		t.Errorf("the request is %s by %q on %q", r.State, r.AnsweredBy, r.Channel)
	}
	// It runs now (there is no such execution, which is the operation's own
	// answer), once; the next asks again.
	m.refused("no such execution", "complete_execution", map[string]any{"execution_id": "x_none"})
	m.refused("needs a person", "complete_execution", map[string]any{"execution_id": "x_none"})
	m.refused("over", "verify_challenge", map[string]any{"challenge_id": ch, "code": code})

	// On the page it is as good.
	again := m.ok("confirm_operation", forget)
	w.approve(again.str("request"))
	if s := m.ok("confirm_operation", map[string]any{"request": again.str("request")}).str("state"); s != "approved" {
		t.Errorf("followed, the request is %s", s)
	}
	if s := m.ok("confirm_operation", forget).str("state"); s != "not_needed" {
		t.Errorf("asking for what is granted: %s", s)
	}
	m.refused("no such execution", "complete_execution", map[string]any{"execution_id": "x_none"})
}

// TestC07OutOfBand: an approval on the approver's channel lets the call go
// ahead, a refusal rejects it for good.
func TestC07OutOfBand(t *testing.T) {
	t.Parallel()
	w := begin(t)
	m := w.model(t, w.token)
	yes, no := map[string]any{"execution_id": "x_yes"}, map[string]any{"execution_id": "x_no"}
	asked := m.op("complete_execution", yes)
	w.approve(asked.str("request"))
	m.refused("no such execution", "complete_execution", yes)
	asked = m.op("complete_execution", no)
	err := w.answer(asked.str("request"), "deny", func(r *admin.Request) any { return &api.ReplyRequest{Digest: r.Digest, Text: "not today"} })
	if err != nil {
		t.Fatal(err)
	}
	got := m.ok("confirm_operation", map[string]any{"request": asked.str("request")})
	if got.str("state") != "denied" || !strings.Contains(got.text, "not today") {
		t.Errorf("the refused request: %s", got.text)
	}
	if r := m.op("complete_execution", no); !r.failed || r.str("request") == asked.str("request") {
		t.Errorf("after a refusal: %s", r.text)
	}
}

// TestC06ConfirmedOnce: what was confirmed for the session goes on without
// asking, what was confirmed for one use asks again.
func TestC06ConfirmedOnce(t *testing.T) {
	t.Parallel()
	w := begin(t)
	m := w.model(t, w.token)
	params := map[string]any{"execution_id": "x_1"}
	asked := m.op("complete_execution", params)
	w.approve(asked.str("request"))
	m.refused("no such execution", "complete_execution", params)
	asked = m.refused("needs a person", "complete_execution", params)
	if err := w.answer(asked.str("request"), "approve", func(r *admin.Request) any { return &api.ApproveRequest{Digest: r.Digest, Offer: 1} }); err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		m.refused("no such execution", "complete_execution", map[string]any{"execution_id": fmt.Sprintf("x_%d", n)})
	}
	m.refused("needs a person", "continue_execution", params)
}

// TestW09OneChallengeEndToEnd: the id that an agent is given is the one that
// verify_challenge takes; the challenge outlives a restart; where nobody can
// be reached the answer says so; where someone is, it says where.
func TestW09OneChallengeEndToEnd(t *testing.T) {
	t.Parallel()
	w := begin(t)
	m := w.model(t, w.token)
	asked := m.ok("confirm_operation", forget)
	ch := asked.str("challenge", "challenge_id")
	if said := asked.str("challenge", "message"); asked.str("challenge", "shown") != "" || !strings.Contains(said, "Nobody can be reached") {
		t.Errorf("with nobody there the agent is told %q", said)
	}
	before := w.code(ch)
	w.Kill()
	w.Up()
	m = w.model(t, w.token)
	if after := w.code(ch); after != before {
		t.Errorf("after a restart the code is %s, not %s", after, before)
	}
	if got := m.ok("verify_challenge", map[string]any{"challenge_id": ch, "code": before}); got.str("state") != "moved" {
		t.Errorf("after a restart: %s", got.text)
	}

	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	looking := make(chan struct{})
	go func() {
		_ = w.Client(w.credential).Watch(ctx, func() error { // ends with the test
			select {
			case looking <- struct{}{}:
			case <-ctx.Done():
			}
			return nil
		})
	}()
	<-looking
	other := map[string]any{"operation": "continue_execution", "params": map[string]any{"execution_id": "x_none"}}
	if asked = m.ok("confirm_operation", other); !strings.Contains(asked.str("challenge", "shown"), "terminal") {
		t.Errorf("with a terminal that watches: %s", asked.text)
	}
}

// TestW09Channels: the code is on the console's pages, in the terminal and in
// a webhook's notice, and nowhere without signing in.
func TestW09Channels(t *testing.T) {
	t.Parallel()
	h := newHook(t)
	w := beginWith(t, "version = 1\n[[notify]]\nkind = \"webhook\"\nurl = \""+h.URL+"\"\n")
	m := w.model(t, w.token)
	asked := m.ok("confirm_operation", forget)
	ch := asked.str("challenge", "challenge_id")
	if !strings.Contains(asked.str("challenge", "shown"), "notice") {
		t.Errorf("with a webhook: %s", asked.text)
	}
	code := w.code(ch)
	noticed := ""
	for noticed == "" {
		var n approval.Notice
		if err := json.Unmarshal([]byte((<-h.got).body), &n); err != nil {
			t.Fatal(err)
		}
		if n.Challenge == ch {
			noticed = n.Code
		}
	}
	if noticed != code {
		t.Errorf("the webhook was sent %q, the code is %q", noticed, code)
	}
	me := w.SignedIn(w.credential)
	id := asked.str("request")
	for where, text := range map[string]string{
		"approvals list": w.Must("approvals", "list", "--credential-file", w.key), "approvals show": w.Must("approvals", "show", id, "--credential-file", w.key),
		"the inbox": me.Get("/").Body, "the request's page": me.Get("/requests/" + id).Body,
	} {
		if !strings.Contains(text, code) {
			t.Errorf("%s does not show the code", where)
		}
	}
	for where, text := range map[string]string{
		"the inbox": w.Visit().Get("/").Body, "approvals list": first3(w.Run("approvals", "list")), "the agent's own": first3(w.Run("approvals", "show", id)),
	} {
		if strings.Contains(text, code) {
			t.Errorf("without signing in %s shows the code", where)
		}
	}
	refused(t, "the codes with an agent's token", w.agent.Do(context.Background(), "GET", "/v1/challenges", nil, nil), http.StatusForbidden)
}

func first3(stdout, stderr string, _ int) string { return stdout + stderr }

// TestAttack09Guessing: codes cannot be guessed over challenges, sessions and
// restarts, and one code moves nothing but what it was issued for.
func TestAttack09Guessing(t *testing.T) {
	t.Parallel()
	w := begin(t)
	m := w.model(t, w.token)
	challenge := func(n int) string {
		return m.ok("confirm_operation", map[string]any{"operation": "complete_execution", "params": map[string]any{"execution_id": fmt.Sprint("x_", n)}}).str("challenge", "challenge_id")
	}
	one, two := challenge(1), challenge(2)
	codeOne, codeTwo := w.code(one), w.code(two)
	m.refused("wrong", "verify_challenge", map[string]any{"challenge_id": two, "code": codeOne})
	other := w.model(t, w.Gate.Agent(w.credential, "other"))
	other.refused("no such challenge", "verify_challenge", map[string]any{"challenge_id": two, "code": codeTwo})
	other.refused("no such challenge", "verify_challenge", map[string]any{"challenge_id": "challenge_1700000000_abcdefabcdef", "code": codeTwo})
	for n := range 4 {
		m.refused("wrong", "verify_challenge", map[string]any{"challenge_id": two, "code": fmt.Sprintf("AAAAA%c", 'A'+n)})
	}
	m.refused("over", "verify_challenge", map[string]any{"challenge_id": two, "code": codeTwo})
	w.Stop()
	w.Up()
	m = w.model(t, w.token)
	three := challenge(3)
	w.code(three)
	for n := range 5 {
		if n == 3 { // a new session is the same agent
			w.agentSession()
		}
		m.refused("wrong", "verify_challenge", map[string]any{"challenge_id": three, "code": fmt.Sprintf("BBBBB%c", 'A'+n)})
	}
	m.refused("too many wrong codes", "verify_challenge", map[string]any{"challenge_id": one, "code": codeOne})
	if n := len(w.pending()); n != 3 {
		t.Errorf("%d of three requests wait", n)
	}
	for id := range w.pending() { // a person still answers on the page
		w.approve(id)
	}
}

// agentSession opens another session of the agent's.
func (w *world) agentSession() string {
	w.t.Helper()
	s := &api.SessionResponse{}
	if err := w.agent.Do(context.Background(), "POST", "/v1/sessions", &api.SessionRequest{}, s); err != nil {
		w.t.Fatal(err)
	}
	return s.Session
}

// TestAttack09PinnedNeedsMore: a code alone never meets a pinned call: none is
// issued for one.
func TestAttack09PinnedNeedsMore(t *testing.T) {
	t.Parallel()
	w := begin(t)
	m := w.model(t, w.token)
	asked := m.ok("confirm_operation", map[string]any{"operation": "delete_element", "element_type": "skill", "params": map[string]any{"name": "x"}})
	if asked.str("state") != "pending" || asked.str("challenge", "challenge_id") != "" {
		t.Errorf("a pinned call: %s", asked.text)
	}
	if codes := w.codes(); len(codes) != 0 {
		t.Errorf("codes were issued: %+v", codes)
	}
	err := w.answer(asked.str("request"), "approve", func(r *admin.Request) any { return &api.ApproveRequest{Digest: r.Digest} })
	refused(t, "approving it without a factor", err, http.StatusForbidden)
}

// TestI9CodesReachNoAgent: of every code that people were shown during a busy
// day, nothing an agent was told holds one, on any surface.
func TestI9CodesReachNoAgent(t *testing.T) {
	t.Parallel()
	w := begin(t)
	(&keeper{world: w}).element("agents/builder.md", builder)
	a := w.factor()
	m := w.model(t, w.token)
	var codes []string
	collect := func() {
		for _, c := range w.codes() {
			codes = append(codes, c.Code)
		}
	}
	var heard strings.Builder
	asked := m.ok("confirm_operation", forget)
	collect()
	x := w.confirmed(m, a, "execute_agent", map[string]any{"name": "builder", "goal": "build it"}).str("id")
	w.sessionOK(m, "record_execution_step", map[string]any{"execution_id": x, "description": "a step", "outcome": "success"})
	m.ok("record_execution_step", map[string]any{"execution_id": x, "description": "a step", "outcome": "failure"})
	collect()
	m.op("continue_execution", map[string]any{"execution_id": x})
	m.op("get_execution_state", map[string]any{"execution_id": x})
	m.op("get_execution_state", nil)
	w.do("POST", "/v1/danger", &api.BlockRequest{Agent: "coder", Reason: "drill"}, nil)
	m.op("release_deadlock", nil)
	collect()
	m.op("release_deadlock", map[string]any{"challenge_id": asked.str("challenge", "challenge_id"), "code": "AAAAAA"})
	for _, op := range []string{"introspect", "get_capabilities", "get_pending_cli_approvals", "query_logs", "get_effective_cli_policies", "get_active_elements"} {
		m.op(op, nil)
	}
	for _, path := range []string{"/v1/health", "/v1/requests/" + asked.str("request"), "/v1/openapi.json", "/v1/challenges", "/v1/log", "/v1/danger", "/"} {
		for _, secret := range []string{w.token, ""} {
			_, body := w.HTTP("GET", path, secret, nil, nil)
			heard.Write(body)
		}
	}
	got := w.submit(callOf("list_elements", ""))
	heard.WriteString(got.Message)
	heard.WriteString(m.heard.String())
	if len(codes) < 3 {
		t.Fatalf("only %d codes were shown to people", len(codes))
	}
	for _, code := range codes {
		for _, form := range []string{code, strings.ToLower(code), code[:3] + " " + code[3:], code[:3] + "-" + code[3:]} {
			if i := strings.Index(heard.String(), form); i >= 0 {
				t.Errorf("an agent was told %q: …%s…", form, heard.String()[max(0, i-60):min(heard.Len(), i+60)])
			}
		}
		if strings.Contains(w.Log(), code) {
			t.Errorf("the daemon's log holds the code %s", code)
		}
	}
	w.want(gate.Denied, callOf("list_elements", ""))
}
