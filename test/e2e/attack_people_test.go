package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
	"github.com/seed-3ebc6b8a/gatehouse/internal/needtest"
	"github.com/seed-3ebc6b8a/gatehouse/test/gatetest"
)

// TestAttack01TheAgentEnrolsItself: after the first approver nobody enrols
// without a credential, on any way in, and the record of the first names the
// process and those that started it.
func TestAttack01TheAgentEnrolsItself(t *testing.T) {
	t.Parallel()
	w := begin(t)
	before := w.dump()
	for name, c := range map[string]error{
		"nothing": w.Client("").Do(context.Background(), "POST", "/v1/approvers", &api.NameRequest{Name: "eve"}, nil),
		"a token": w.agent.Do(context.Background(), "POST", "/v1/approvers", &api.NameRequest{Name: "eve"}, nil),
		"rubbish": w.Client("gha_x").Do(context.Background(), "POST", "/v1/approvers", &api.NameRequest{Name: "eve"}, nil),
	} {
		refused(t, "enrolling with "+name, c, http.StatusUnauthorized, http.StatusForbidden)
	}
	resp, _ := w.HTTP("POST", "/v1/approvers", "", nil, &api.NameRequest{Name: "eve"})
	if resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("enrolling over TCP: %d", resp.StatusCode)
	}
	if after := w.dump(); after != before {
		t.Errorf("the state changed:\n%s", after)
	}
	page := &api.LogPage{}
	w.do("GET", "/v1/log?operation=approver.enrol", nil, page)
	if len(page.Records) != 1 {
		t.Fatalf("the first approver left %d records", len(page.Records))
	}
	one := &admin.Record{}
	w.do("GET", "/v1/log/"+page.Records[0].ID, nil, one)
	if body := string(one.Body); !strings.Contains(body, `"process":"`) || !strings.Contains(body, `"ancestors":["`) {
		t.Errorf("the record of the first approver: %s", body)
	}
}

// TestAttack01NobodyEnrolsOverTCP: while nobody is enrolled the network is no
// way in either: only a process on this machine, whose ancestry is recorded.
func TestAttack01NobodyEnrolsOverTCP(t *testing.T) {
	t.Parallel()
	g := gatetest.Start(t)
	resp, body := g.HTTP("POST", "/v1/approvers", "", nil, &api.NameRequest{Name: "eve"})
	if resp.StatusCode != http.StatusUnauthorized || len(gatetest.Secrets(string(body))) > 0 {
		t.Errorf("%d %s", resp.StatusCode, gatetest.Hide(string(body)))
	}
	if p := g.Visit().SignIn("ghl_" + strings.Repeat("a", 52)); p.Status != http.StatusForbidden {
		t.Errorf("signing in with a guess: %d", p.Status)
	}
	g.Enrol("ann") // the way in is still there for a person
}

// TestAttack01RemovedAgentsAreGone: a removed agent's token is refused from
// that moment on, though the gate remembers whom it saw a moment ago.
func TestAttack01RemovedAgentsAreGone(t *testing.T) {
	t.Parallel()
	w := begin(t)
	look := callOf("list_elements", "")
	for n := range 5 {
		name := fmt.Sprintf("temp%d", n)
		agent := w.Client(w.Gate.Agent(w.credential, name))
		if got := submit(t, agent, look); got.Verdict != gate.Allowed {
			t.Fatalf("before: %s", got.Message)
		}
		asked := submit(t, agent, create("x"))
		w.do("DELETE", "/v1/agents/"+name, nil, nil)
		for _, session := range []string{"", "new"} {
			in := *look
			in.Session = session
			got := &api.CallResponse{}
			if err := agent.Do(context.Background(), "POST", "/v1/calls", &in, got); err == nil && got.Verdict == gate.Allowed {
				t.Errorf("session %q: a removed agent's call was let through", session)
			}
		}
		opened := &api.SessionResponse{}
		if err := agent.Do(context.Background(), "POST", "/v1/sessions", &api.SessionRequest{}, opened); err == nil {
			in := *look
			in.Session = opened.Session
			t.Errorf("a removed agent opened a session: %s", submit(t, agent, &in).Message)
		}
		if r := w.look(asked.Request); r.State != "cancelled" {
			t.Errorf("a removed agent's request is %s", r.State)
		}
	}
}

// nobody is an unprivileged user, as an agent under another user is.
func nobody(t testing.TB) *syscall.SysProcAttr {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("becoming another user needs root")
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}, Setsid: true}
}

// TestAttack02AnotherUserReachesNothing: as another user the agent neither
// reads nor writes the gate's files, its memory or its socket, and cannot end
// it.
func TestAttack02AnotherUserReachesNothing(t *testing.T) {
	t.Parallel()
	as := nobody(t)
	w := begin(t)
	asked := w.want(gate.Pending, create("notes"))
	before := w.dump() + files(t, w.Home)
	proc := fmt.Sprintf("/proc/%d", w.PID())
	db := filepath.Join(w.Home, "gatehouse.db")
	for _, line := range []string{
		"ls " + w.Home,
		"cat " + filepath.Join(w.Home, "keys", "mac.key"),
		"cat " + db, "cat " + db + "-wal", "cp " + db + " /tmp/stolen.db",
		"sqlite3 " + db + " 'SELECT * FROM approver'",
		"sqlite3 " + db + " 'UPDATE switches SET killed = 0'",
		"echo x >> " + db, "rm -f " + db, "rm " + w.Socket(), "mv " + w.Home + " " + w.Home + ".gone",
		"ln -s /tmp " + filepath.Join(w.Home, "x"),
		"head -c 1 " + proc + "/mem", "cat " + proc + "/environ", "ls " + proc + "/fd", "cat " + proc + "/maps",
		fmt.Sprintf("kill -9 %d", w.PID()), fmt.Sprintf("kill -STOP %d", w.PID()),
		fmt.Sprintf("strace -p %d -o /dev/null", w.PID()), fmt.Sprintf("gdb -p %d -batch", w.PID()),
		"curl -sf --unix-socket " + w.Socket() + " http://gatehouse/v1/health",
		"cat " + w.key,
	} {
		cmd := exec.Command("/bin/sh", "-c", line)
		cmd.SysProcAttr = as
		cmd.Dir = "/"
		if out, err := cmd.CombinedOutput(); err == nil {
			t.Errorf("%s succeeded: %s", line, gatetest.Hide(string(out)))
		}
	}
	if after := w.dump() + files(t, w.Home); after != before {
		t.Error("something was changed")
	}
	w.approve(asked.Request)
	w.want(gate.Allowed, create("notes"))
}

// TestAttack02MemoryIsHidden: not even the gate's own user reads its memory
// without being root, because the process says that it is not to be dumped.
func TestAttack02MemoryIsHidden(t *testing.T) {
	t.Parallel()
	w := begin(t)
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", w.PID()))
	if err != nil {
		t.Skipf("there is no /proc: %v", err)
	}
	info, err := os.Stat(fmt.Sprintf("/proc/%d/mem", w.PID()))
	if err != nil {
		t.Fatal(err)
	}
	// The kernel gives the files of such a process to root; for root itself
	// the flag shows in nothing but a core that is not written.
	if os.Geteuid() != 0 {
		if owner := info.Sys().(*syscall.Stat_t).Uid; owner != 0 {
			t.Errorf("the memory belongs to user %d\n%s", owner, status)
		}
		return
	}
	g := gatetest.New(t)
	if err := os.Chown(g.Home, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	setpriv := needtest.OneOf(t, "setpriv")
	if err := os.Chmod(filepath.Dir(gatetest.Binary(t)), 0o755); err != nil {
		t.Fatal(err)
	}
	g.Wrap = []string{setpriv, "--reuid=65534", "--regid=65534", "--clear-groups"}
	g.Up()
	proc := fmt.Sprintf("/proc/%d", g.PID())
	for _, line := range []string{"head -c 1 " + proc + "/mem", "cat " + proc + "/environ", "cat " + proc + "/maps", fmt.Sprintf("strace -p %d -o /dev/null", g.PID())} {
		cmd := exec.Command("/bin/sh", "-c", line)
		cmd.SysProcAttr = nobody(t)
		if out, err := cmd.CombinedOutput(); err == nil {
			t.Errorf("%s succeeded as the gate's own user: %s", line, out)
		}
	}
}

// TestAttack02EditedRowsDeny: whoever can write the database but has not the
// key changes rows. Each edit of a signed table denies, or voids what it made.
func TestAttack02EditedRowsDeny(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]struct {
		sql   string
		check func(t *testing.T, w *world, granted *api.CallRequest)
	}{
		"a grant made good again": {`UPDATE approval_grant SET state = 'good', uses = 0, ended = 0`, denies},
		"a grant's scope":         {`UPDATE approval_grant SET operation = 'delete_element'`, denies},
		"a grant's expiry":        {`UPDATE approval_grant SET expires = expires + 86400000000`, denies},
		"a request approved":      {`UPDATE approval_request SET state = 'approved', answered_by = 'ann' WHERE state = 'pending'`, waits},
		"a request's level":       {`UPDATE approval_request SET pinned = 0, level = 'CONFIRM_SESSION' WHERE state = 'pending'`, waits},
		"the kill switch":         {`UPDATE switches SET killed = 0, reason = '', version = version + 1`, denies},
		"the switches deleted":    {`DELETE FROM switches`, denies},
		"a session reopened":      {`UPDATE agent_session SET ended = 0, ended_by = '', token = token || 'x'`, afterRestart},
		"the policy in force":     {`UPDATE policy_head SET epoch = epoch + 1`, afterRestart},
		"the policy's files":      {`UPDATE policy_files SET content = x'5b205d'`, afterRestart},
		"a credential's hash":     {`UPDATE approver SET hash = zeroblob(32)`, nobodyActs},
		"an approver's factor":    {`UPDATE approver SET totp_confirmed = 1`, nobodyActs},
		"a removed approver":      {`UPDATE approver SET removed = 0, removed_by = 'x'`, nobodyActs},
		"the mark of enrolment":   {`DELETE FROM approval_mark`, nobodyEnrols},
		"an agent's name":         {`UPDATE agent SET name = 'admin'`, agentIsOut},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := begin(t)
			offer := w.want(gate.Pending, create("granted"))
			if err := w.answer(offer.Request, "approve", func(r *admin.Request) any { return &api.ApproveRequest{Digest: r.Digest, Offer: 1} }); err != nil {
				t.Fatal(err)
			}
			granted := create("granted")
			w.want(gate.Allowed, granted)
			w.want(gate.Pending, remove("waiting"))
			w.Edit(edit.sql)
			edit.check(t, w, granted)
		})
	}
}

// denies: what was granted is not let through, nor is what waited.
func denies(t *testing.T, w *world, granted *api.CallRequest) {
	t.Helper()
	for _, in := range []*api.CallRequest{granted, remove("waiting")} {
		got := &api.CallResponse{}
		if err := w.agent.Do(context.Background(), "POST", "/v1/calls", in, got); err == nil && got.Verdict == gate.Allowed {
			t.Errorf("%s was let through", in.Operation)
		}
	}
	w.Stop()
	if err := w.TryUp(); err != nil {
		return // it does not even start on it
	}
	for _, in := range []*api.CallRequest{granted, remove("waiting")} {
		got := &api.CallResponse{}
		if err := w.agent.Do(context.Background(), "POST", "/v1/calls", in, got); err == nil && got.Verdict == gate.Allowed {
			t.Errorf("%s was let through after a restart", in.Operation)
		}
	}
}

// waits: what waited is not let through, before and after a restart, and
// nobody can answer it.
func waits(t *testing.T, w *world, _ *api.CallRequest) {
	t.Helper()
	for range 2 {
		got := &api.CallResponse{}
		if err := w.agent.Do(context.Background(), "POST", "/v1/calls", remove("waiting"), got); err == nil && got.Verdict == gate.Allowed {
			t.Error("what waited was let through")
		}
		if err := w.person.Do(context.Background(), "GET", "/v1/approvals?state=pending", nil, &api.ApprovalList{}); err == nil && got.Request == "" && got.Verdict != gate.Denied {
			t.Error("neither the inbox nor the answer says that a request was edited")
		}
		w.Stop()
		w.Up()
	}
}

// afterRestart: a gate that is started on it does not start, or denies.
func afterRestart(t *testing.T, w *world, granted *api.CallRequest) {
	t.Helper()
	w.Stop()
	if err := w.TryUp(); err != nil {
		if !strings.Contains(w.Log(), "signature") {
			t.Errorf("the gate does not say why it does not start:\n%s", w.Log())
		}
		return
	}
	denies(t, w, granted)
}

// nobodyActs: no credential acts any more.
func nobodyActs(t *testing.T, w *world, _ *api.CallRequest) {
	t.Helper()
	err := w.person.Do(context.Background(), "POST", "/v1/kill", &api.KillRequest{On: true, Reason: "x"}, nil)
	refused(t, "an act after the edit", err, http.StatusUnauthorized, http.StatusConflict)
}

// nobodyEnrols: deleting the mark does not bring the first approver back.
func nobodyEnrols(t *testing.T, w *world, _ *api.CallRequest) {
	t.Helper()
	err := w.Client("").Do(context.Background(), "POST", "/v1/approvers", &api.NameRequest{Name: "eve"}, nil)
	refused(t, "enrolling after the mark was deleted", err, http.StatusForbidden)
}

// agentIsOut: the token of an edited agent opens nothing.
func agentIsOut(t *testing.T, w *world, granted *api.CallRequest) {
	t.Helper()
	w.Stop()
	w.Up()
	got := &api.CallResponse{}
	if err := w.agent.Do(context.Background(), "POST", "/v1/calls", granted, got); err == nil && got.Verdict == gate.Allowed {
		t.Error("the call of an edited agent was let through")
	}
}
