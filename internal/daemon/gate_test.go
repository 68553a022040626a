package daemon_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/audit"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
	"github.com/seed-3ebc6b8a/gatehouse/internal/place"
	"github.com/seed-3ebc6b8a/gatehouse/internal/session"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

const openCalls = `SELECT COUNT(*) FROM open_call`

func TestSubmit(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "[operations]\nget_config = \"DENY\"\n")
	ans := h.want(gate.Allowed, h.read(), "list_elements")
	if ans.CallID == "" || ans.Final || ans.Request != "" {
		t.Errorf("%+v", ans)
	}
	if n := h.count(openCalls); n != 1 {
		t.Errorf("%d calls are open, want the one that was let through", n)
	}
	if ans := h.want(gate.Denied, h.native("get_config", `{}`), "get_config", "DENY", "tell the person"); !ans.Final {
		t.Error("the agent is not told that a denial is final")
	}
	ans = h.want(gate.Pending, h.create(), "needs a person's approval", "CONFIRM_SESSION", "repeating the identical call")
	if ans.Request == "" || ans.Expires.IsZero() || !strings.Contains(ans.Message, ans.Request) {
		t.Errorf("the agent is not told which request waits: %+v", ans)
	}
	again := h.want(gate.Pending, h.create())
	if again.Request != ans.Request {
		t.Error("the identical call asked a second time")
	}
	if n := h.count(openCalls); n != 1 {
		t.Errorf("%d calls are open: one runs that was not let through", n)
	}
	// A call that cannot be read has no canonical form to decide on.
	h.want(gate.Denied, h.native("list_elements", `{"a":1,"a":2}`), "Correct the call")
	h.want(gate.Denied, &call.Call{Operation: "x"}, "kind")
}

// TestNothingIsAllowedThatIsNotDurable fails every statement of an allow in
// turn, the commit included.
func TestNothingIsAllowedThatIsNotDurable(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "")
	h.want(gate.Allowed, h.read())
	failed := errors.New("disk i/o error: secret detail of the driver")
	for i := 0; ; i++ {
		n := 0
		hit := ""
		before := h.count(openCalls)
		h.disk.Before(func(query string) error {
			if n++; n-1 == i {
				hit = query
				return failed
			}
			return nil
		})
		ans := h.submit(h.read())
		h.disk.Before(nil)
		if hit == "" {
			if i < 3 {
				t.Fatalf("an allow takes %d statements: the test is about nothing", i)
			}
			h.check(ans, gate.Allowed)
			break
		}
		if strings.Contains(ans.Message, "secret detail") {
			t.Errorf("%q: the agent hears what is none of its business: %s", hit, ans.Message)
		}
		after := h.count(openCalls)
		switch {
		case ans.Verdict == gate.Allowed && after == before+1:
			// The statement was one that can fail, or was tried again.
		case ans.Verdict == gate.Allowed:
			t.Errorf("%q failed, nothing is durable, and the call is allowed", hit)
		case ans.Verdict != gate.Denied || ans.Decision.Level != call.Deny:
			t.Errorf("%q failed: %s, level %s", hit, ans.Verdict, ans.Decision.Level)
		}
		h.count(openCalls) // the store has recovered
	}
}

// TestDecidedAgainInTheTransaction: the gate decides on what it read last; a
// switch that was thrown since counts.
func TestDecidedAgainInTheTransaction(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "")
	h.want(gate.Allowed, h.read())
	kill := func(on bool) {
		t.Helper()
		if err := h.Desk.SetKill(t.Context(), h.alice, on, "drill"); err != nil {
			t.Fatal(err)
		}
	}
	kill(true)
	h.want(gate.Denied, h.read(), "kill switch", "drill")
	h.want(gate.Denied, h.create(), "kill switch")
	if len(h.requests("pending")) > 0 {
		t.Error("a call under the kill switch was put before a person")
	}
	kill(false)
	h.want(gate.Allowed, h.read())
	h.tx(func(tx *store.Tx) error {
		_, err := h.Sessions.SetBlock(tx, session.Block{Agent: h.agent.Agent, By: "alice", Reason: "too wild"})
		return err
	})
	h.want(gate.Denied, h.read(), "too wild")
	other := h.read()
	other.Principal = h.enter("other")
	h.want(gate.Allowed, other)
}

// TestGrantFromBeforeTheKillSwitch: no grant passes a switch.
func TestGrantFromBeforeTheKillSwitch(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "")
	h.approve(h.want(gate.Pending, h.create()).Request, 0)
	if err := h.Desk.SetKill(t.Context(), h.alice, true, "drill"); err != nil {
		t.Fatal(err)
	}
	h.want(gate.Denied, h.create(), "kill switch")
	if err := h.Desk.SetKill(t.Context(), h.alice, false, ""); err != nil {
		t.Fatal(err)
	}
	h.want(gate.Allowed, h.create(), "alice") // it was not spent on the denial
}

func TestPolicyHeadMismatchDenies(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "")
	h.tx(func(tx *store.Tx) error { // another node puts another policy in force
		_, err := h.Sessions.SetPolicyHead(tx, "gate", h.Book.Current().Hash, call.Digest{1}, "other node")
		return err
	})
	if ans := h.want(gate.Denied, h.read(), "does not hold the policy in force"); ans.Final {
		t.Error("the agent is told that it need not try again")
	}
	if n := h.count(openCalls); n != 0 {
		t.Error("a denied call is open")
	}
}

func TestEndedSessionDenies(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "")
	h.approve(h.want(gate.Pending, h.create()).Request, 0)
	h.want(gate.Allowed, h.read())
	if err := h.Desk.EndSession(t.Context(), h.alice, h.agent.Session); err != nil {
		t.Fatal(err)
	}
	h.want(gate.Denied, h.read(), "session has ended")
	h.want(gate.Denied, h.create(), "session has ended")
	stranger := h.read()
	stranger.Principal.Session = "s_never_was"
	h.want(gate.Denied, stranger)
	foreign := h.read()
	foreign.Principal = call.Principal{Agent: h.agent.Agent, Session: h.enter("other").Session}
	h.want(gate.Denied, foreign)
}

func TestGrants(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "")
	h.approve(h.want(gate.Pending, h.create()).Request, 0)
	other := h.create()
	other.Args = []byte(`{"name":"y"}`)
	h.want(gate.Pending, other) // an approval of another call
	stranger := h.create()
	stranger.Principal = h.enter("other")
	h.want(gate.Pending, stranger) // of another agent
	h.want(gate.Allowed, h.create(), "alice")
	h.want(gate.Pending, h.create()) // used up
	if got := h.count(`SELECT COUNT(*) FROM approval_grant`); got != 1 {
		t.Errorf("%d grants", got)
	}
}

// TestGrantIsConsumedInTheSameCommit: an allow that does not become durable
// leaves its grant unspent, and one that does spends it.
func TestGrantIsConsumedInTheSameCommit(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "")
	h.approve(h.want(gate.Pending, h.create()).Request, 0)
	h.disk.Before(func(query string) error {
		if query == "COMMIT" || strings.HasPrefix(query, "INSERT INTO open_call") {
			return errors.New("disk i/o error")
		}
		return nil
	})
	ans := h.submit(h.create())
	h.disk.Before(nil)
	h.check(ans, gate.Denied)
	h.want(gate.Allowed, h.create(), "alice")
	h.want(gate.Pending, h.create())
}

func TestSessionGrant(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "")
	id := h.want(gate.Pending, h.create()).Request
	if offers := h.request(id).Offers; len(offers) < 2 {
		t.Fatalf("no session offer: %+v", offers)
	}
	h.approve(id, 1)
	h.want(gate.Allowed, h.create())
	other := h.create()
	other.Args = []byte(`{"name":"y"}`)
	h.want(gate.Allowed, other)
	grants, err := h.Desk.Grants(t.Context())
	if err != nil || len(grants) != 1 {
		t.Fatalf("%v %v", grants, err)
	}
	if err := h.Desk.RevokeGrant(t.Context(), h.alice, grants[0].ID); err != nil {
		t.Fatal(err)
	}
	h.want(gate.Pending, h.create())
}

func TestObserve(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "mode = \"observe\"\n[operations]\nget_config = \"DENY\"\n")
	for _, c := range []*call.Call{h.create(), h.native("get_config", `{}`)} {
		if ans := h.want(gate.Allowed, c); !ans.Observed || ans.Decision.Level == call.AutoApprove {
			t.Errorf("%+v", ans)
		}
	}
	if ans := h.want(gate.Allowed, h.read()); ans.Observed {
		t.Error("a call that needed no help is marked as observed")
	}
	if len(h.requests("")) > 0 {
		t.Error("somebody was asked")
	}
	if err := h.Desk.SetKill(t.Context(), h.alice, true, "drill"); err != nil {
		t.Fatal(err)
	}
	h.want(gate.Denied, h.create(), "kill switch")
	h.want(gate.Denied, h.read(), "kill switch")
}

func TestFinish(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "")
	ans := h.want(gate.Allowed, h.read())
	asked := h.want(gate.Pending, h.create())
	sub := h.agent
	sub.Path = "sub"
	finish := func(id string, p call.Principal, o gate.Outcome) error {
		return h.Gate.Finish(t.Context(), id, p, o, "")
	}
	for name, err := range map[string]error{
		"another agent":         finish(ans.CallID, h.enter("other"), gate.Succeeded),
		"another sub-agent":     finish(ans.CallID, sub, gate.Succeeded),
		"no outcome":            finish(ans.CallID, h.agent, "fine"),
		"a call that waits":     finish(asked.CallID, h.agent, gate.Succeeded),
		"a call that never was": finish("c_none", h.agent, gate.Succeeded),
		"a call without an id":  finish("", h.agent, gate.Succeeded),
	} {
		if err == nil {
			t.Errorf("%s: closed", name)
		}
	}
	if err := finish(ans.CallID, h.agent, gate.Failed); err != nil {
		t.Fatal(err)
	}
	err := finish(ans.CallID, h.agent, gate.Succeeded)
	var public interface{ Public() string }
	if !errors.As(err, &public) {
		t.Errorf("closed twice: %v", err)
	}
	if n := h.count(openCalls); n != 0 {
		t.Errorf("%d calls are open", n)
	}
}

// TestOwnRequests: an agent follows and withdraws its own requests, and cannot
// tell another's from none.
func TestOwnRequests(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "")
	id := h.want(gate.Pending, h.create()).Request
	if st, err := h.Gate.Request(t.Context(), h.agent.Agent, id); err != nil || st.State != "pending" {
		t.Errorf("%+v %v", st, err)
	}
	if _, err := h.Gate.Request(t.Context(), "other", id); !errors.Is(err, gate.ErrNoRequest) {
		t.Errorf("another agent sees it: %v", err)
	}
	if err := h.Gate.Withdraw(t.Context(), "other", id); !errors.Is(err, gate.ErrNoRequest) {
		t.Errorf("another agent withdraws it: %v", err)
	}
	if err := h.Gate.Withdraw(t.Context(), h.agent.Agent, id); err != nil {
		t.Fatal(err)
	}
	if err := h.Desk.Approve(t.Context(), h.alice, id, admin.Approval{Shown: h.request(id).Digest}); err == nil {
		t.Error("a withdrawn request was approved")
	}
}

// TestRecordHoldsNoSecret: neither a call's arguments, nor its note, nor what
// the caller says about the outcome stores a credential.
func TestRecordHoldsNoSecret(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "")
	const secret = "ghp_R8x2LqZ5vN1kTy7WbC4dFg9HjM3pSa6UeXoQ" // of no account
	c := h.run("echo hello")
	c.Note = "with " + secret
	ans := h.want(gate.Allowed, c)
	h.submit(h.run("curl -H 'Authorization: Bearer " + secret + "' https://api.example.com"))
	if err := h.Gate.Finish(t.Context(), ans.CallID, h.agent, gate.Failed, "401 for token "+secret); err != nil {
		t.Fatal(err)
	}
	var dump strings.Builder
	h.tx(func(tx *store.Tx) error {
		rows, err := tx.Query(`SELECT body FROM audit_record`)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var body []byte
			if err := rows.Scan(&body); err != nil {
				return err
			}
			dump.Write(append(audit.Unpack(body), '\n'))
		}
		return rows.Err()
	})
	if !strings.Contains(dump.String(), "401 for token") {
		t.Fatal("the outcome is not on record: the test is about nothing")
	}
	for _, line := range strings.Split(dump.String(), "\n") {
		if strings.Contains(line, secret) {
			t.Errorf("a secret is on record: %s", line)
		}
	}
}

// TestApprovalIsOfOnePolicy: a person who approved under another policy was
// shown other reasons.
func TestApprovalIsOfOnePolicy(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "")
	h.approve(h.want(gate.Pending, h.create()).Request, 0)
	h.writePolicy("[limits]\nasks_per_hour = 30\n")
	if err := h.Book.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.want(gate.Pending, h.create())
}

// TestProjectThatDoesNotLoadDenies: and says so, to the agent too.
func TestProjectThatDoesNotLoadDenies(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "")
	h.write(place.ProjectPolicy, "version = 1\nnonsense = 1\n")
	ans := h.want(gate.Denied, h.read())
	h.want(gate.Denied, h.run("ls"))
	if strings.Contains(ans.Message, "because .") {
		t.Errorf("a denial without a reason: %s", ans.Message)
	}
	if _, err := h.Gate.Prepare(t.Context(), h.create(), ""); err == nil {
		t.Error("a call was put before a person that no policy is in force for")
	}
	h.write(place.ProjectPolicy, "version = 1\n")
	h.want(gate.Allowed, h.read())
}

// TestAttentionIsBounded: beyond the limit a call is denied, not queued.
func TestAttentionIsBounded(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "[limits]\npending_per_session = 1\n")
	h.want(gate.Pending, h.create())
	other := h.create()
	other.Args = []byte(`{"name":"y"}`)
	h.want(gate.Denied, other)
	if n := len(h.requests("pending")); n != 1 {
		t.Errorf("%d requests wait", n)
	}
}
