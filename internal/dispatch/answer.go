package dispatch

import (
	"github.com/go-json-experiment/json"

	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch/flight"
	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch/job"
	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch/provider"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
	"github.com/seed-3ebc6b8a/gatehouse/internal/risk"
)

// Approval is the decision about a request, in the public skill's form.
type Approval struct {
	ID      string   `json:"id"`
	Status  string   `json:"status"` // approved, denied, asked, expired, withdrawn
	By      string   `json:"decidedBy,omitzero"`
	Score   int      `json:"score"`
	Policy  string   `json:"policy"`
	Reasons []string `json:"reasons"`
	// Factors are the reasons with their points and evidence.
	Factors []risk.Factor `json:"factors,omitzero"`
	Profile string        `json:"profile"`
}

// Servers says which MCP servers a CLI got.
type Servers struct {
	Requested []string `json:"requested"`
	Enabled   []string `json:"enabled,omitzero"`
	Missing   []string `json:"missing,omitzero"`
}

// Answer is what a request is answered with.
type Answer struct {
	Success bool `json:"success"`
	// Status is completed, failed, deferred, denied or pending.
	Status        string           `json:"status"`
	Response      string           `json:"response,omitzero"`
	CLI           string           `json:"cli"`
	CorrelationID string           `json:"correlationId"`
	Approval      *Approval        `json:"approval"`
	Job           *job.Job         `json:"job,omitzero"`
	Result        *provider.Result `json:"result,omitzero"`
	SessionID     string           `json:"sessionId,omitzero"`
	// Posture is what holds the CLI; SourcePosture what held the session that
	// is gone on with, when it was last used.
	Posture       *provider.Posture `json:"posture,omitzero"`
	SourcePosture *provider.Posture `json:"sourcePosture,omitzero"`
	MCPServers    *Servers          `json:"mcpServers,omitzero"`
	Warnings      []any             `json:"warnings,omitzero"`
	// Deduplicated says that an earlier request's job answers this one, with
	// its age and the approval of record, which is that of the job.
	Deduplicated  bool   `json:"deduplicated,omitzero"`
	OriginalJobID string `json:"originalJobId,omitzero"`
	AgeMS         int64  `json:"ageMs,omitzero"`
	ApprovalOf    string `json:"approvalOfRecord,omitzero"`
	// PollAfterMS is how long to wait before asking about the job.
	PollAfterMS int64 `json:"pollAfterMs,omitzero"`
	// Worktree is the private clone that the CLI works in.
	Worktree string `json:"worktree,omitzero"`
	// Error and Message are for the model.
	Error   string `json:"error,omitzero"`
	Message string `json:"message,omitzero"`
	// Request is the question that waits for a person.
	Request string `json:"request,omitzero"`
}

// answer begins the answer with what is known once the decision is made.
func (p *plan) answer(rec *flight.Record) *Answer {
	a := &Answer{
		CLI: p.cli, CorrelationID: p.task.CorrelationID,
		Approval: &Approval{
			ID: rec.ID, Status: rec.Status, By: rec.DecidedBy, Score: rec.Score, Policy: rec.Policy, Reasons: rec.Reasons, Factors: p.score.Factors, Profile: rec.Profile,
		},
		MCPServers: &Servers{Requested: p.task.Servers(), Enabled: p.launch.Servers, Missing: p.launch.Missing},
	}
	for _, w := range p.launch.Warnings {
		a.Warnings = append(a.Warnings, w)
	}
	return a
}

// denied says that nothing was started, and why.
func (a *Answer) denied(given *gate.Answer) {
	a.Status, a.Error, a.Request = flight.Denied, given.Message, given.Request
	if given.Verdict == gate.Pending {
		a.Status = "pending"
	}
	a.MCPServers = nil
}

// tell says how far the job has got.
func (a *Answer) tell(b *job.Job) {
	a.Job = b
	if b.Deduplicated {
		a.Deduplicated, a.OriginalJobID, a.AgeMS, a.ApprovalOf = true, b.ID, b.Age.Milliseconds(), b.Approval
	}
	if !b.State.Over() {
		a.Success, a.Status, a.PollAfterMS = true, "deferred", PollAfter.Milliseconds()
		a.Message = "The job runs on: ask for it with llm_job_status or llm_job_result, and end it with llm_job_cancel."
		return
	}
	var r provider.Result
	if len(b.Result) > 0 && json.Unmarshal(b.Result, &r) == nil {
		a.Result, a.Response = &r, r.Text
		if a.SessionID == "" {
			a.SessionID = r.Session
		}
	}
	a.Success, a.Status = b.State == job.Completed && !r.Failed, string(b.State)
	if !a.Success {
		a.Error = b.Error
		if a.Error == "" {
			a.Error = r.Error
		}
		if b.State == job.Completed {
			a.Status = string(job.Failed) // it said so itself, with exit code 0
		}
	}
}

// held says what holds the run that the caller got.
func (a *Answer) held(p *plan) {
	posture := p.launch.Posture
	a.Posture = &posture
	if id := p.sessionID(); id != "" {
		a.SessionID = id
	}
	if p.known {
		source := p.session.Posture
		a.SourcePosture = &source
	}
	if p.clone != "" {
		a.Worktree = p.launch.Dir
	}
	if p.expiring != nil {
		a.Warnings = append(a.Warnings, p.expiring)
	}
}
