package dispatch_test

import (
	"strings"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch"
	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch/flight"
)

// TestSeedTips goes through the public skill's tips and dispatch defaults in
// their order, each under its name. Where the gate does otherwise the name says
// so; docs/dispatch.md says why.
func TestSeedTips(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "")
	request := func(a args) *dispatch.Answer { return d.ask(d.agent, "claude_request", a) }
	list := func(a args) (page flight.Page) {
		t.Helper()
		if err := d.use(d.agent, "approval_list", a, &page); err != nil {
			t.Fatal(err)
		}
		return page
	}

	t.Run("omit model: no flag names one", func(t *testing.T) {
		request(args{"prompt": "one"})
		if strings.Contains(d.saw("args"), "--model") {
			t.Errorf("%s", d.saw("args"))
		}
	})
	t.Run("the mcp_managed flip is not scored as raw bypass", func(t *testing.T) {
		if a := request(args{"prompt": "two", "approvalStrategy": "mcp_managed", "approvalPolicy": "strict"}); a.Approval.Score != 0 || !a.Success {
			t.Errorf("%+v", a.Approval)
		}
	})
	t.Run("the schema's default is legacy, which here is scored and decided all the same", func(t *testing.T) {
		if a := request(args{"prompt": "delete the secret", "approvalPolicy": "strict"}); a.Status != "denied" {
			t.Errorf("%+v", a)
		}
	})
	t.Run("start strict, relax only when needed: a caller relaxes nothing beyond the operator's policy", func(t *testing.T) {
		strict := request(args{"prompt": "delete it", "approvalPolicy": "strict"})
		balanced := request(args{"prompt": "delete it", "approvalPolicy": "balanced"})
		permissive := request(args{"prompt": "delete it", "approvalPolicy": "permissive"})
		if strict.Status != "denied" || !balanced.Success || permissive.Approval.Policy != "balanced" {
			t.Errorf("%s, %s, %+v", strict.Status, balanced.Status, permissive.Approval)
		}
	})
	t.Run("review the audit trail regularly: approval_list with filters", func(t *testing.T) {
		denied, all := list(args{"status": "denied", "cli": "claude", "limit": 50}), list(args{"limit": 50})
		if len(denied.Approvals) != 2 || len(all.Approvals) != 6 {
			t.Errorf("%d denied of %d", len(denied.Approvals), len(all.Approvals))
		}
	})
	t.Run("use correlationId on every request: it joins decision, job and result", func(t *testing.T) {
		a := request(args{"prompt": "three", "correlationId": "my-trace"})
		var got struct{ Requests []struct{ ID, JobID string } }
		if err := d.use(d.agent, "llm_request_result", args{"correlationId": "my-trace"}, &got); err != nil {
			t.Fatal(err)
		}
		if len(got.Requests) != 1 || got.Requests[0].ID != a.Approval.ID || got.Requests[0].JobID != a.Job.ID || a.Job.CorrelationID != "my-trace" {
			t.Errorf("%+v of %+v", got, a)
		}
	})
	t.Run("denied requests return without executing, before deferral, sync and async alike", func(t *testing.T) {
		before := d.runs()
		for _, tool := range []string{"claude_request", "claude_request_async"} {
			if a := d.ask(d.agent, tool, args{"prompt": "wipe the credential", "approvalPolicy": "strict"}); a.Status != "denied" || a.Job != nil {
				t.Errorf("%s: %+v", tool, a)
			}
		}
		if d.runs() != before {
			t.Error("something ran")
		}
	})
	t.Run("idleTimeoutMs is a security control of 30 s to an hour", func(t *testing.T) {
		var a dispatch.Answer
		for _, ms := range []int{29_999, 3_600_001} {
			if err := d.use(d.agent, "claude_request", args{"prompt": "x", "idleTimeoutMs": ms}, &a); err == nil || !strings.Contains(err.Error(), "30000 to 3600000") {
				t.Errorf("%d: %v", ms, err)
			}
		}
		if a := request(args{"prompt": "Audit secrets module", "idleTimeoutMs": 120_000}); !a.Success {
			t.Errorf("%+v", a)
		}
	})
	t.Run("durable audit trail: decisions, jobs and results are there after a restart", func(t *testing.T) {
		before := list(args{"limit": 50})
		d.Kill()
		d.Up()
		after := list(args{"limit": 50})
		if len(before.Approvals) != len(after.Approvals) || before.Approvals[0].ID != after.Approvals[0].ID {
			t.Errorf("%d before, %d after", len(before.Approvals), len(after.Approvals))
		}
		var out dispatch.JobOutput
		if err := d.use(d.agent, "llm_job_result", args{"jobId": after.Approvals[0].JobID}, &out); err != nil || out.Result == nil || out.Result.Text != "got it" {
			t.Errorf("%+v, %v", out, err)
		}
	})
	t.Run("a replayed request reuses the original job; here it is decided first all the same", func(t *testing.T) {
		first, again := request(args{"prompt": "four"}), request(args{"prompt": "four"})
		if !again.Deduplicated || again.ApprovalOf != first.Approval.ID || again.Approval.ID == first.Approval.ID {
			t.Errorf("%+v", again)
		}
	})
	t.Run("raw bypass flags are scored and never silently passed", func(t *testing.T) {
		a := request(args{"prompt": "five", "dangerouslySkipPermissions": true})
		if a.Approval.Score != 3 || a.Approval.Factors[0].Name != "bypass" || list(args{"limit": 1}).Approvals[0].BypassRequested != true {
			t.Errorf("%+v", a.Approval)
		}
	})
	t.Run("omit model: list_models says who told of the models, when, and which answered", func(t *testing.T) {
		var got map[string]dispatch.Models
		if err := d.use(d.agent, "list_models", args{}, &got); err != nil || len(got) != 5 {
			t.Fatalf("%+v, %v", got, err)
		}
		if m := got["claude"]; len(m.Models) == 0 || !strings.Contains(m.Source, "table of 20") || len(m.Observed) != 1 || m.Observed[0] != "m" || !strings.Contains(m.Default, "leave model out") {
			t.Errorf("%+v", m)
		}
		write(t, d.Home+"/dispatch/models.json", `{"asOf":"2027-01-01","clis":{"claude":{"models":["house"],"by":"the house"}}}`)
		if err := d.use(d.agent, "list_models", args{"cli": "claude"}, &got); err != nil || got["claude"].Models[0] != "house" || !strings.Contains(got["claude"].Source, "operator's models.json") {
			t.Errorf("%+v, %v", got, err)
		}
	})
	t.Run("mcpServers is sqry by default, and strictMcpConfig fails if one is unavailable", func(t *testing.T) {
		if a := request(args{"prompt": "six"}); a.MCPServers.Requested[0] != "sqry" || a.MCPServers.Missing[0] != "sqry" {
			t.Errorf("%+v", a.MCPServers)
		}
		var a dispatch.Answer
		if err := d.use(d.agent, "claude_request", args{"prompt": "x", "mcpServers": []string{"sqry"}, "strictMcpConfig": true}, &a); err == nil || !strings.Contains(err.Error(), "sqry") {
			t.Errorf("%v", err)
		}
	})
}
