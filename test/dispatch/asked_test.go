package dispatch_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch"
	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch/flight"
)

// over is a request that a person is asked about.
func over(prompt, correlation string) args {
	return args{"prompt": prompt + ": delete the old credential", "approvalPolicy": "strict", "correlationId": correlation, "forceRefresh": true}
}

// row is the one decision about the request with a correlation id.
func (d *desk) row(correlation string) (r flight.Record) {
	d.t.Helper()
	var page struct {
		Approvals []flight.Record `json:"approvals"`
	}
	if err := d.use(d.agent, "approval_list", args{"limit": 500}, &page); err != nil {
		d.t.Fatal(err)
	}
	i := slices.IndexFunc(page.Approvals, func(r flight.Record) bool { return r.CorrelationID == correlation })
	if i < 0 {
		d.t.Fatalf("no decision with the correlation id %s among %d", correlation, len(page.Approvals))
	}
	return page.Approvals[i]
}

// question waits for the one question that is open.
func (d *desk) question() admin.Request {
	d.t.Helper()
	for {
		list := &api.ApprovalList{}
		if err := d.Client(d.credential).Do(context.Background(), "GET", "/v1/approvals?state=pending", nil, list); err != nil {
			d.t.Fatal(err)
		}
		if len(list.Requests) > 0 {
			return list.Requests[0]
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (d *desk) person(method, path string, in any) {
	d.t.Helper()
	if err := d.Client(d.credential).Do(context.Background(), method, path, in, nil); err != nil {
		d.t.Fatal(err)
	}
}

// TestAskedEnds: the row of a request that a person is asked about says so while
// it waits, and ends with what the answer was and whose.
func TestAskedEnds(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "over = \"ask\"\n[limits]\nrequest_life = \"6s\"\n")
	ask := func(name string) (*dispatch.Answer, admin.Request) {
		t.Helper()
		a := d.ask(d.agent, "claude_request_async", over(name, name))
		if r := d.row(name); a.Approval.Status != "asked" || r.Status != "asked" || r.State != "waiting" || r.Request != a.Request || r.JobID != "" {
			t.Fatalf("%s: %+v %+v", name, a.Approval, r)
		}
		return a, d.question()
	}
	check := func(name, status, state, by, words string) {
		t.Helper()
		r := d.row(name)
		if r.Status != status || r.State != state || r.DecidedBy != by || (by != "") != !r.DecidedAt.IsZero() && status != "expired" && status != "withdrawn" ||
			words != "" && !slices.Contains(r.Reasons, words) || r.JobID != "" {
			t.Errorf("%s: %s, %s by %q, because %q, job %q", name, r.Status, r.State, r.DecidedBy, r.Reasons, r.JobID)
		}
		var filtered flight.Page
		if err := d.use(d.agent, "approval_list", args{"status": status, "promptSha256": r.PromptSHA256}, &filtered); err != nil || len(filtered.Approvals) != 1 {
			t.Errorf("%s: %d with status %s, %v", name, len(filtered.Approvals), status, err)
		}
		if out, _, code := d.Run("trace", name, "--credential-file", d.file); code != 0 || !strings.Contains(out, ": "+status+", score") || by != "" && !strings.Contains(out, "answered   by "+by) {
			t.Errorf("%s: trace says %d %s", name, code, out)
		}
	}

	_, r := ask("denied")
	d.person("POST", "/v1/approvals/"+r.ID+"/deny", &api.ReplyRequest{Digest: r.Digest, Text: "not today"})
	check("denied", "denied", "refused", "ann", "not today")

	a, _ := ask("withdrawn")
	if err := d.Client(d.agent).Do(context.Background(), "DELETE", "/v1/requests/"+a.Request, nil, nil); err != nil {
		t.Fatal(err)
	}
	check("withdrawn", "withdrawn", "refused", "", "withdrawn by the agent")

	ask("expired")
	for d.row("expired").Status == "asked" {
		time.Sleep(200 * time.Millisecond)
	}
	check("expired", "expired", "refused", "", "nobody answered in time")

	_, r = ask("approved")
	time.Sleep(1100 * time.Millisecond) // a request is answered once it has been shown for a second
	d.person("POST", "/v1/approvals/"+r.ID+"/approve", &api.ApproveRequest{Digest: r.Digest})
	check("approved", "approved", "granted", "ann", "")
	again := over("approved", "sent-again")
	if a := d.ask(d.agent, "claude_request", again); !a.Success || a.Approval.By != "ann" {
		t.Errorf("sent again: %+v %+v", a, a.Approval)
	}
	if r := d.row("sent-again"); r.Status != "approved" || r.DecidedBy != "ann" || r.State != "completed" || r.JobID == "" {
		t.Errorf("sent again: %+v", r)
	}
	if d.runs() != 1 {
		t.Errorf("%d runs", d.runs())
	}
	// What was asked before the gate died is answered after it.
	_, r = ask("restarted")
	d.Kill()
	d.Up()
	d.person("POST", "/v1/approvals/"+r.ID+"/deny", &api.ReplyRequest{Digest: r.Digest, Text: "too late"})
	check("restarted", "denied", "refused", "ann", "too late")
}

// TestAskedWhileWaiting: somebody who waits for the answer has one row: asked
// while the person thinks, then what the person said, then what became of it. A
// person's other request is a request of its own.
func TestAskedWhileWaiting(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "over = \"ask\"\n")
	d.present()
	begin := func(name string) (chan *dispatch.Answer, admin.Request) {
		t.Helper()
		done := make(chan *dispatch.Answer, 1)
		go func() { done <- d.ask(d.agent, "claude_request", over(name, name)) }()
		q := d.question()
		for r := d.row(name); r.Status != "asked" || r.State != "waiting"; r = d.row(name) {
			t.Fatalf("%s while it waits: %+v", name, r)
		}
		time.Sleep(1100 * time.Millisecond)
		return done, q
	}
	done, q := begin("yes")
	id := d.row("yes").ID
	d.person("POST", "/v1/approvals/"+q.ID+"/approve", &api.ApproveRequest{Digest: q.Digest})
	a := <-done
	if r := d.row("yes"); !a.Success || a.Approval.ID != id || a.Approval.Status != "approved" || a.Approval.By != "ann" || r.ID != id || r.Status != "approved" ||
		r.DecidedBy != "ann" || r.State != "completed" || r.JobID != a.Job.ID || r.Usage == nil {
		t.Errorf("%+v %+v %+v", a, a.Approval, r)
	}
	done, q = begin("no")
	d.person("POST", "/v1/approvals/"+q.ID+"/deny", &api.ReplyRequest{Digest: q.Digest, Text: "no"})
	a = <-done
	if r := d.row("no"); a.Status != "denied" || a.Approval.Status != "denied" || a.Approval.By != "ann" || r.Status != "denied" || r.DecidedBy != "ann" || r.State != "refused" {
		t.Errorf("%+v %+v %+v", a, a.Approval, r)
	}
	done, q = begin("other")
	edited, err := json.Marshal(args{"prompt": "other: rotate the credential, and delete nothing", "approvalPolicy": "strict"})
	if err != nil {
		t.Fatal(err)
	}
	var made api.EditResponse
	if err := d.Client(d.credential).Do(context.Background(), "POST", "/v1/approvals/"+q.ID+"/edit", &api.EditRequest{Digest: q.Digest, Args: edited}, &made); err != nil {
		t.Fatal(err)
	}
	next := d.question()
	time.Sleep(1100 * time.Millisecond)
	d.person("POST", "/v1/approvals/"+next.ID+"/approve", &api.ApproveRequest{Digest: next.Digest})
	if a = <-done; !a.Success || a.Approval.By != "ann" || d.saw("prompt") != "other: rotate the credential, and delete nothing" {
		t.Errorf("%+v %+v", a, a.Approval)
	}
	var got struct{ Requests []flight.Record }
	if err := d.use(d.agent, "llm_request_result", args{"correlationId": "other"}, &got); err != nil || len(got.Requests) != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	was, is := got.Requests[0], got.Requests[1]
	if was.Status != "denied" || was.DecidedBy != "ann" || was.State != "refused" || is.Status != "approved" || is.JobID != a.Job.ID || is.PromptSHA256 == was.PromptSHA256 {
		t.Errorf("%+v\n%+v", was, is)
	}
}

// TestRefusedAreOnRecord: a request that cannot be carried out as it is stands
// in the list as denied, with the reason and without a secret.
func TestRefusedAreOnRecord(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "")
	const secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
	for name, c := range map[string]struct {
		tool string
		args args
		why  string
	}{
		"word":      {"claude_request", args{"prompt": "x", "approvalPolicy": "lax"}, "approvalPolicy"},
		"field":     {"claude_request", args{"prompt": "x", "fullAuto": true}, "fullAuto is refused for claude: it is a flag of Codex"},
		"idle":      {"codex_request", args{"prompt": "x", "idleTimeoutMs": 1}, "30000 to 3600000"},
		"async":     {"codex_request_async", args{"prompt": "delete it", "allowedTools": []string{"Read"}}, "allowedTools"},
		"directory": {"claude_request", args{"prompt": "x", "workingDir": "/no/such/place"}, "/no/such/place"},
		"session":   {"codex_request", args{"prompt": "x", "sessionId": "nobody's"}, "sessionId"},
		"secret":    {"claude_request", args{"prompt": "use " + secret, "permissionMode": secret}, "permissionMode"},
		"missing":   {"gemini_request", args{"prompt": "x"}, "not installed"},
	} {
		c.args["correlationId"] = name
		var a dispatch.Answer
		if err := d.use(d.agent, c.tool, c.args, &a); err == nil {
			t.Errorf("%s was not refused: %+v", name, a)
			continue
		}
		r := d.row(name)
		cli, _, _ := strings.Cut(c.tool, "_")
		if r.Status != "denied" || r.State != "refused" || r.CLI != cli || r.JobID != "" || !strings.Contains(strings.Join(r.Reasons, "\n"), c.why) {
			t.Errorf("%s: %+v", name, r)
		}
		raw, err := json.Marshal(&r)
		if err != nil || strings.Contains(string(raw), secret) {
			t.Errorf("%s: the secret is on record: %s %v", name, raw, err)
		}
	}
	if d.row("async").Score != 3 {
		t.Errorf("it was not scored: %+v", d.row("async"))
	}
	// What cannot even be read has no correlation id of its own.
	var a dispatch.Answer
	if err := d.use(d.agent, "claude_request", args{"prompt": "x", secret: true}, &a); err == nil {
		t.Error("an unknown field was taken")
	}
	var page flight.Page
	var raw json.RawMessage
	if err := d.use(d.agent, "approval_list", args{"limit": 1}, &raw); err != nil || json.Unmarshal(raw, &page) != nil || len(page.Approvals) != 1 ||
		page.Approvals[0].Status != "denied" || strings.Contains(string(raw), secret) || !strings.Contains(strings.Join(page.Approvals[0].Reasons, "\n"), "is not one that this gate takes") {
		t.Errorf("%s, %v", raw, err)
	}
	if d.runs() != 0 {
		t.Error("something ran")
	}
}
