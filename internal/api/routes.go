package api

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/audit"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
)

// routes is the whole API. What is not said about a half is the approver's.
func routes() []route {
	return slices.Concat(coreRoutes(), elementRoutes(), challengeRoutes(), neverAskRoutes(), planRoutes(), budgetRoutes(), restoreRoutes(), layerRoutes(), upstreamRoutes(), dispatchRoutes())
}

func coreRoutes() []route {
	return []route{
		// Open: nothing to protect.
		jsonRoute("GET", "/v1/health", openHalf, "How the gate is", (*Server).health),
		{method: "GET", path: "/v1/openapi.json", half: openHalf, summary: "This description", serve: (*Server).openAPI},

		// The agent half.
		jsonRoute("POST", "/v1/decide", agentHalf, "What a call would be decided to; nothing is recorded and nothing runs", (*Server).decide),
		as[CallResponse](jsonRoute("POST", "/v1/calls", agentHalf, "Submit a call; allowed means: recorded, run it now, once; one of the gate's own operations is performed by the gate", (*Server).submit)),
		jsonRoute("POST", "/v1/calls/{id}/receipt", agentHalf, "Show what holds a run that is about to start; it starts only if this succeeds", (*Server).receipt),
		jsonRoute("POST", "/v1/calls/{id}/outcome", agentHalf, "Report how an allowed call ended", (*Server).outcome),
		jsonRoute("GET", "/v1/requests/{id}", agentHalf, "How far the caller's own request has got", (*Server).requestStatus),
		jsonRoute("DELETE", "/v1/requests/{id}", agentHalf, "Withdraw the caller's own request", (*Server).withdraw),
		jsonRoute("POST", "/v1/sessions", agentHalf, "Open a session", (*Server).openSession),
		{method: "POST", path: "/v1/hook/{agent}", half: agentHalf, summary: "An event of an agent's hook, on the unix socket alone; the header Gatehouse-Answer takes the answer apart", serve: (*Server).hookEvent},
		jsonRoute("POST", "/v1/hook/{agent}/seen", agentHalf, "Which of a session's calls never came to the gate, on the unix socket alone", (*Server).seen),
		jsonRoute("DELETE", "/v1/sessions/{id}", agentHalf, "End the caller's own session", (*Server).endOwnSession),

		// The approver half.
		{method: "POST", path: "/v1/approvers", summary: "Enrol an approver; the credential is shown once. The first enrols without one, on the unix socket",
			half: openHalf, in: typeOf[NameRequest](), out: typeOf[SecretResponse](), serve: (*Server).addApprover},
		jsonRoute("GET", "/v1/approvers", approverHalf, "List approvers", (*Server).approvers),
		jsonRoute("DELETE", "/v1/approvers/{name}", approverHalf, "Remove an approver", (*Server).removeApprover),
		jsonRoute("POST", "/v1/link", approverHalf, "Make a sign-in link for the console, good once", (*Server).link),
		jsonRoute("POST", "/v1/totp", approverHalf, "Begin to enrol a second factor", (*Server).beginTOTP),
		jsonRoute("POST", "/v1/totp/confirm", approverHalf, "Confirm the second factor with its first code", (*Server).confirmTOTP),
		jsonRoute("POST", "/v1/agents", approverHalf, "Enrol an agent; its token is shown once", (*Server).addAgent),
		jsonRoute("GET", "/v1/agents", approverHalf, "List agents", (*Server).agents),
		jsonRoute("DELETE", "/v1/agents/{name}", approverHalf, "Remove an agent", (*Server).removeAgent),
		jsonRoute("GET", "/v1/approvals", approverHalf, "List requests; ?state=pending for those that wait", (*Server).approvals),
		jsonRoute("GET", "/v1/approvals/{id}", approverHalf, "One request, every byte of it while it waits", (*Server).approval),
		jsonRoute("POST", "/v1/approvals/{id}/approve", approverHalf, "Approve once, or take an offer for the session", (*Server).approve),
		jsonRoute("POST", "/v1/approvals/{id}/deny", approverHalf, "Deny", (*Server).denyRequest),
		jsonRoute("POST", "/v1/approvals/{id}/respond", approverHalf, "Answer in words; the call does not run", (*Server).respond),
		jsonRoute("POST", "/v1/approvals/{id}/edit", approverHalf, "Put other arguments in place; that is a request of its own", (*Server).edit),
		jsonRoute("GET", "/v1/sessions", approverHalf, "List sessions", (*Server).sessions),
		jsonRoute("POST", "/v1/sessions/{id}/end", approverHalf, "End a session; its grants end with it", (*Server).endSession),
		jsonRoute("GET", "/v1/grants", approverHalf, "List grants that are still good", (*Server).grants),
		jsonRoute("DELETE", "/v1/grants/{id}", approverHalf, "Revoke a grant", (*Server).revoke),
		jsonRoute("DELETE", "/v1/sessions/{id}/grants", approverHalf, "Revoke every grant of a session", (*Server).clearGrants),
		jsonRoute("GET", "/v1/taints", approverHalf, "What agents have taken in that makes what they send delicate", (*Server).taints),
		jsonRoute("DELETE", "/v1/taints/{agent}", approverHalf, "End what an agent carries", (*Server).clearTaints),
		jsonRoute("GET", "/v1/manifest", approverHalf, "The permission manifest of the gate: tools, MCP servers and their pins, agents", (*Server).manifest),
		jsonRoute("GET", "/v1/uses", approverHalf, "How often agents used tools whose declarations limit that", (*Server).uses),
		jsonRoute("DELETE", "/v1/uses/{agent}", approverHalf, "Have an agent's uses count no more", (*Server).clearUses),
		jsonRoute("GET", "/v1/log", approverHalf, "The log, newest first, with filters", (*Server).logPage),
		jsonRoute("GET", "/v1/log/{id}", approverHalf, "One record", (*Server).logRecord),
		jsonRoute("GET", "/v1/log/calls/{id}", approverHalf, "All records of one call", (*Server).callRecords),
		jsonRoute("GET", "/v1/log/proof/{index}", approverHalf, "Proof that a record is in the log", (*Server).proof),
		{method: "GET", path: "/v1/log/export", summary: "The whole log as JSON Lines, with all that verifying it needs", serve: (*Server).export},
		jsonRoute("GET", "/v1/policy", approverHalf, "The policy in force, what did not load, what waits", (*Server).policy),
		jsonRoute("POST", "/v1/policy/accept", approverHalf, "Accept a staged change that loosens", (*Server).acceptPolicy),
		jsonRoute("POST", "/v1/policy/trust", approverHalf, "Take a project's policy file as it is on disk", (*Server).trustPolicy),
		jsonRoute("GET", "/v1/kill", approverHalf, "The kill switch", (*Server).kill),
		jsonRoute("POST", "/v1/kill", approverHalf, "Throw the kill switch", (*Server).setKill),
		{method: "GET", path: "/v1/events", summary: "Server-sent events: something may have changed", serve: (*Server).events},
	}
}

func (s *Server) health(ctx context.Context, _ *caller, _ *http.Request, _ *none) (*Health, error) {
	h := s.opts.Health(ctx)
	h.Posture = (&call.Call{Held: held(peerOf(ctx))}).Posture()
	return &h, nil
}

func (c *caller) actor() admin.Actor { return admin.Actor{Approver: c.approver, Channel: "api"} }

func (s *Server) approvals(ctx context.Context, c *caller, req *http.Request, _ *none) (*ApprovalList, error) {
	q := req.URL.Query()
	requests, next, err := s.opts.Desk.Requests(ctx, q.Get("state"), q.Get("cursor"), pageSize(q.Get("limit")))
	s.opts.Desk.Shown(c.actor(), requests...)
	return &ApprovalList{Requests: requests, Next: next}, err
}

func (s *Server) approval(ctx context.Context, c *caller, req *http.Request, _ *none) (*admin.Request, error) {
	r, err := s.opts.Desk.Request(ctx, req.PathValue("id"))
	if err == nil {
		s.opts.Desk.Shown(c.actor(), *r)
	}
	return r, err
}

func (s *Server) approve(ctx context.Context, c *caller, req *http.Request, in *ApproveRequest) (*none, error) {
	if in.Digest.IsZero() {
		return nil, &Error{
			Status: http.StatusBadRequest, Text: "an approval carries the digest of the call that was looked at, and this has none",
			Hint: "GET /v1/approvals/" + req.PathValue("id") + " shows the call and its digest",
		}
	}
	return nil, s.opts.Desk.Approve(ctx, c.actor(), req.PathValue("id"), admin.Approval{Shown: in.Digest, Offer: in.Offer, Code: in.Code})
}

func (s *Server) denyRequest(ctx context.Context, c *caller, req *http.Request, in *ReplyRequest) (*none, error) {
	return nil, s.opts.Desk.Deny(ctx, c.actor(), req.PathValue("id"), in.Digest, in.Text)
}

func (s *Server) respond(ctx context.Context, c *caller, req *http.Request, in *ReplyRequest) (*none, error) {
	return nil, s.opts.Desk.Respond(ctx, c.actor(), req.PathValue("id"), in.Digest, in.Text)
}

func (s *Server) edit(ctx context.Context, c *caller, req *http.Request, in *EditRequest) (*EditResponse, error) {
	id, err := s.opts.Desk.Edit(ctx, c.actor(), req.PathValue("id"), in.Digest, in.Args)
	return &EditResponse{Request: id}, err
}

func (s *Server) sessions(ctx context.Context, _ *caller, _ *http.Request, _ *none) (*SessionList, error) {
	list, err := s.opts.Desk.Sessions(ctx)
	return &SessionList{Sessions: list}, err
}

func (s *Server) endSession(ctx context.Context, c *caller, req *http.Request, _ *none) (*none, error) {
	return nil, s.opts.Desk.EndSession(ctx, c.actor(), req.PathValue("id"))
}

func (s *Server) grants(ctx context.Context, _ *caller, _ *http.Request, _ *none) (*GrantList, error) {
	list, err := s.opts.Desk.Grants(ctx)
	return &GrantList{Grants: list}, err
}

func (s *Server) revoke(ctx context.Context, c *caller, req *http.Request, _ *none) (*none, error) {
	return nil, s.opts.Desk.RevokeGrant(ctx, c.actor(), req.PathValue("id"))
}

func (s *Server) logPage(ctx context.Context, _ *caller, req *http.Request, _ *none) (*LogPage, error) {
	q := req.URL.Query()
	f := admin.RecordFilter{
		Kind: q.Get("kind"), Principal: q.Get("principal"), Session: q.Get("session"), Surface: q.Get("surface"),
		Operation: q.Get("operation"), Level: q.Get("level"), Outcome: q.Get("outcome"), CallID: q.Get("call"),
	}
	for name, at := range map[string]*time.Time{"since": &f.Since, "until": &f.Until} {
		if v := q.Get(name); v != "" {
			t, err := time.Parse(time.RFC3339, v)
			if err != nil {
				return nil, &Error{Status: http.StatusBadRequest, Text: name + " is not a time", Hint: "write it as 2006-01-02T15:04:05Z"}
			}
			*at = t
		}
	}
	records, next, err := s.opts.Desk.Records(ctx, f, q.Get("cursor"), pageSize(q.Get("limit")))
	return &LogPage{Records: records, Next: next}, err
}

func (s *Server) logRecord(ctx context.Context, _ *caller, req *http.Request, _ *none) (*admin.Record, error) {
	return s.opts.Desk.Record(ctx, req.PathValue("id"))
}

func (s *Server) callRecords(ctx context.Context, _ *caller, req *http.Request, _ *none) (*LogPage, error) {
	records, err := s.opts.Desk.CallRecords(ctx, req.PathValue("id"))
	return &LogPage{Records: records}, err
}

func (s *Server) proof(ctx context.Context, _ *caller, req *http.Request, _ *none) (*audit.Proof, error) {
	index, err := strconv.ParseInt(req.PathValue("index"), 10, 64)
	if err != nil {
		return nil, &Error{Status: http.StatusBadRequest, Text: "an index is a whole number", Hint: "`gatehouse audit list` shows it"}
	}
	return s.opts.Desk.Proof(ctx, index)
}

func (s *Server) policy(ctx context.Context, _ *caller, _ *http.Request, _ *none) (*admin.Policy, error) {
	p, err := s.opts.Desk.Policy(ctx)
	return &p, err
}

func (s *Server) acceptPolicy(ctx context.Context, c *caller, _ *http.Request, in *AcceptRequest) (*none, error) {
	return nil, s.opts.Desk.AcceptPolicy(ctx, c.actor(), in.Hash, in.Code)
}

func (s *Server) trustPolicy(ctx context.Context, c *caller, _ *http.Request, in *TrustRequest) (*none, error) {
	return nil, s.opts.Desk.TrustPolicy(ctx, c.actor(), in.Path, in.Code)
}

func (s *Server) kill(ctx context.Context, _ *caller, _ *http.Request, _ *none) (*admin.Kill, error) {
	k, err := s.opts.Desk.Kill(ctx)
	return &k, err
}

func (s *Server) setKill(ctx context.Context, c *caller, _ *http.Request, in *KillRequest) (*none, error) {
	return nil, s.opts.Desk.SetKill(ctx, c.actor(), in.On, in.Reason)
}

// pageSize reads a limit, with a sensible default and ceiling.
func pageSize(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil || n <= 0 {
		return 50
	}
	return min(n, 1000)
}
