package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch/flight"
	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch/job"
	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch/provider"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// Tool is a tool that agents call.
type Tool struct {
	Name        string
	Description string
	InputSchema jsontext.Value
	ReadOnly    bool
	run         func(*Service, context.Context, Caller, jsontext.Value) (any, error)
}

// Tools lists the tools. Together they are small enough to be in every model's
// context.
func (s *Service) Tools() []Tool { return allTools }

// Use calls a tool by its name. The answer is JSON; ok says that it did what it
// is for.
func (s *Service) Use(ctx context.Context, who Caller, name string, args jsontext.Value) (answer any, ok bool, err error) {
	i := slices.IndexFunc(allTools, func(t Tool) bool { return t.Name == name })
	if i < 0 {
		return nil, false, refuse("there is no tool %q", name)
	}
	if len(args) == 0 {
		args = jsontext.Value("{}")
	}
	if err := s.opts.Jobs.Recorded(ctx, who.Principal); err != nil {
		return nil, false, err
	}
	answer, err = allTools[i].run(s, ctx, who, args)
	if err != nil {
		return nil, false, err
	}
	a, request := answer.(*Answer)
	return answer, !request || a.Success, nil
}

var allTools = slices.Concat(requestTools(), jobTools(), sessionTools(), otherTools(), []Tool{traceTool()})

// typed makes a tool whose arguments are an In, strictly read.
func typed[In any](name, about, schema string, readOnly bool, fn func(*Service, context.Context, Caller, *In) (any, error)) Tool {
	return Tool{
		Name: name, Description: about, InputSchema: jsontext.Value(`{"type":"object","additionalProperties":false,` + schema + `}`), ReadOnly: readOnly,
		run: func(s *Service, ctx context.Context, who Caller, args jsontext.Value) (any, error) {
			in := new(In)
			if err := json.Unmarshal(args, in, json.RejectUnknownMembers(true)); err != nil {
				return nil, refuse("the arguments are not what %s takes: %v", name, err)
			}
			return fn(s, ctx, who, in)
		},
	}
}

// fieldSchemas are the fields of a request in JSON Schema, in their order.
var fieldSchemas = []struct{ name, schema string }{
	{"prompt", `{"type":"string"}`},
	{"promptParts", `{"type":"object","required":["task"]}`},
	{"workingDir", `{"type":"string"}`},
	{"model", `{"type":"string"}`},
	{"approvalStrategy", `{"enum":["legacy","mcp_managed"]}`},
	{"approvalPolicy", `{"enum":["strict","balanced","permissive"]}`},
	{"mcpServers", `{"type":"array","items":{"type":"string"}}`},
	{"strictMcpConfig", `{"type":"boolean"}`},
	{"allowedTools", `{"type":"array","items":{"type":"string"}}`},
	{"disallowedTools", `{"type":"array","items":{"type":"string"}}`},
	{"permissionMode", `{"type":"string"}`},
	{"approvalMode", `{"enum":["default","auto_edit","yolo","plan"]}`},
	{"fullAuto", `{"type":"boolean"}`},
	{"sandboxMode", `{"enum":["read-only","workspace-write","danger-full-access"]}`},
	{"dangerouslySkipPermissions", `{"type":"boolean"}`},
	{"dangerouslyBypassApprovalsAndSandbox", `{"type":"boolean"}`},
	{"alwaysApprove", `{"type":"boolean"}`},
	{"sessionId", `{"type":"string"}`},
	{"resumeLatest", `{"type":"boolean"}`},
	{"forkSession", `{"type":"boolean"}`},
	{"correlationId", `{"type":"string"}`},
	{"idleTimeoutMs", `{"type":"integer","minimum":30000,"maximum":3600000}`},
	{"forceRefresh", `{"type":"boolean"}`},
	{"worktree", `{"type":"boolean"}`},
	{"sandbox", `{"type":"boolean"}`},
	{"budget", `{"type":"object"}`},
}

// asyncSchema leaves the fields to the other tool of the CLI, for the sake of
// the models' context; what is not one of them is refused all the same.
var asyncSchema = jsontext.Value(`{"type":"object","properties":{"prompt":{"type":"string"},"promptParts":{"type":"object"},"workingDir":{"type":"string"}}}`)

// requestWords are said once, with the first of the CLIs.
const requestWords = ` Give prompt or promptParts{system,tools,context,task}. The request is scored and decided first; denied means nothing ran. ` +
	`Omit model; use approvalPolicy strict for what matters. Tool calls inside are decided one by one. Answers carry approval{id,status,score,policy,reasons}.`

func requestTools() (out []Tool) {
	for _, cli := range call.CLIs() {
		var fields []string
		for _, f := range fieldSchemas {
			if provider.Knows(cli, f.name) {
				fields = append(fields, fmt.Sprintf("%q:%s", f.name, f.schema))
			}
		}
		schema := jsontext.Value(`{"type":"object","additionalProperties":false,"properties":{` + strings.Join(fields, ",") + `}}`)
		for _, async := range []bool{false, true} {
			t := Tool{Name: call.RequestOperation(cli), Description: "Hand a request to " + cli + "; past 45 s the answer is a job.", InputSchema: schema}
			if cli == call.CLIs()[0] {
				t.Description += requestWords
			}
			if async {
				t.Name += "_async"
				t.Description = "As " + cli + "_request and with the same fields, answered with a job at once: ask for it every 60 s (pollAfterMs)."
				t.InputSchema = asyncSchema
			}
			t.run = func(s *Service, ctx context.Context, who Caller, args jsontext.Value) (any, error) {
				return s.Do(ctx, who, cli, args, async)
			}
			out = append(out, t)
		}
	}
	return out
}

type jobIn struct {
	JobID  string `json:"jobId"`
	After  int64  `json:"afterProgressSeq"`
	WaitMS int64  `json:"waitMs"`
	Offset int64  `json:"offset"`
	Max    int64  `json:"maxBytes"`
}

// JobStatus is a job with its progress.
type JobStatus struct {
	Job         *job.Job    `json:"job"`
	Progress    []job.Event `json:"progress"`
	PollAfterMS int64       `json:"pollAfterMs,omitzero"`
}

const jobID = `"required":["jobId"],"properties":{"jobId":{"type":"string"}`

func jobTools() []Tool {
	status := func(s *Service, ctx context.Context, who Caller, in *jobIn) (any, error) {
		return s.JobStatus(ctx, who.Principal, in.JobID, in.After)
	}
	return []Tool{
		typed("llm_job_status", "How far your job has got.", jobID+`,"afterProgressSeq":{"type":"integer"}}`, true, status),
		typed("llm_job_list", "Your jobs, newest first.", `"properties":{"limit":{"type":"integer"},"before":{"type":"string"}}`, true,
			func(s *Service, ctx context.Context, who Caller, in *struct {
				Limit  int    `json:"limit"`
				Before string `json:"before"`
			}) (any, error) {
				list, err := s.opts.Jobs.List(ctx, who.Principal, in.Before, min(max(in.Limit, 1), 500))
				return map[string]any{"jobs": list}, jobError(err)
			}),
		typed("llm_job_watch", "The same, once there is something new or waitMs (30000 at most) is over.",
			jobID+`,"afterProgressSeq":{"type":"integer"},"waitMs":{"type":"integer","maximum":30000}}`, true,
			func(s *Service, ctx context.Context, who Caller, in *jobIn) (any, error) {
				return s.JobWatch(ctx, who.Principal, in.JobID, in.After, time.Duration(in.WaitMS)*time.Millisecond)
			}),
		typed("llm_job_result", "Your job's answer, and its output in pages.", jobID+`,"offset":{"type":"integer"},"maxBytes":{"type":"integer"}}`, true,
			func(s *Service, ctx context.Context, who Caller, in *jobIn) (any, error) {
				return s.JobResult(ctx, who.Principal, in.JobID, in.Offset, in.Max)
			}),
		typed("llm_job_cancel", "End your job. Answers when its processes are gone.", jobID+`}`, false,
			func(s *Service, ctx context.Context, who Caller, in *jobIn) (any, error) {
				if err := s.opts.Jobs.Cancel(ctx, who.Principal, in.JobID); err != nil {
					return nil, jobError(err)
				}
				return s.JobStatus(ctx, who.Principal, in.JobID, 0)
			}),
	}
}

// jobError makes an error of the jobs one that may be shown.
func jobError(err error) error {
	for _, known := range []error{job.ErrNotFound, job.ErrInvalid, job.ErrAlive} {
		if errors.Is(err, known) {
			return &Refused{err.Error()}
		}
	}
	return err
}

// JobStatus returns a job of the caller's.
func (s *Service) JobStatus(ctx context.Context, who call.Principal, id string, after int64) (*JobStatus, error) {
	b, err := s.opts.Jobs.Get(ctx, who, id)
	if err != nil {
		return nil, jobError(err)
	}
	events, err := s.opts.Jobs.Progress(ctx, who, id, after)
	if err != nil {
		return nil, jobError(err)
	}
	out := &JobStatus{Job: &b, Progress: events}
	if !b.State.Over() {
		out.PollAfterMS = PollAfter.Milliseconds()
	}
	return out, nil
}

// JobWatch is JobStatus once there is something new.
func (s *Service) JobWatch(ctx context.Context, who call.Principal, id string, after int64, wait time.Duration) (*JobStatus, error) {
	if _, err := s.opts.Jobs.Get(ctx, who, id); err != nil {
		return nil, jobError(err)
	}
	limited, cancel := context.WithTimeout(ctx, min(max(wait, 0), 30*time.Second))
	defer cancel()
	if _, err := s.opts.Jobs.Wait(limited, id, after); err != nil && limited.Err() == nil {
		return nil, jobError(err)
	}
	return s.JobStatus(ctx, who, id, after)
}

// JobOutput is what a job printed and what was made of it.
type JobOutput struct {
	job.Page
	Result *provider.Result `json:"result,omitzero"`
}

// JobResult returns a page of a job's output.
func (s *Service) JobResult(ctx context.Context, who call.Principal, id string, offset, most int64) (*JobOutput, error) {
	if most <= 0 {
		most = 200_000
	}
	page, err := s.opts.Jobs.Result(ctx, who, id, offset, min(most, 2_000_000))
	if err != nil {
		return nil, jobError(err)
	}
	out := &JobOutput{Page: page}
	var r provider.Result
	if len(page.Job.Result) > 0 && json.Unmarshal(page.Job.Result, &r) == nil {
		out.Result = &r
	}
	return out, nil
}

type sessionIn struct {
	CLI         string `json:"cli"`
	Description string `json:"description"`
	SessionID   string `json:"sessionId"`
}

type done struct {
	Success bool  `json:"success"`
	Cleared int64 `json:"cleared,omitzero"`
}

const (
	cliField     = `"cli":{"enum":["claude","codex","gemini","grok","mistral"]}`
	sessionField = `"sessionId":{"type":"string"}`
)

func sessionTools() []Tool {
	return []Tool{
		typed("session_create", "Make a session; the first request with its id begins it.", `"required":["cli"],"properties":{`+cliField+`,"description":{"type":"string"}}`, false,
			func(s *Service, ctx context.Context, who Caller, in *sessionIn) (any, error) {
				return s.SessionCreate(ctx, who.Principal, in.CLI, in.Description)
			}),
		typed("session_list", "Your sessions.", `"properties":{`+cliField+`}`, true, func(s *Service, ctx context.Context, who Caller, in *sessionIn) (any, error) {
			list, err := s.SessionList(ctx, who.Principal, in.CLI)
			return map[string]any{"sessions": list}, err
		}),
		typed("session_get", "One session, with its cacheState.", `"required":["sessionId"],"properties":{`+sessionField+`}`, true,
			func(s *Service, ctx context.Context, who Caller, in *sessionIn) (any, error) {
				return s.SessionGet(ctx, who.Principal, in.SessionID)
			}),
		typed("session_delete", "Forget a session.", `"required":["sessionId"],"properties":{`+sessionField+`}`, false,
			func(s *Service, ctx context.Context, who Caller, in *sessionIn) (any, error) {
				return done{Success: true}, s.SessionDelete(ctx, who.Principal, in.SessionID)
			}),
		typed("session_set_active", "The session that resumeLatest means; without sessionId none.", `"required":["cli"],"properties":{`+cliField+`,`+sessionField+`}`, false,
			func(s *Service, ctx context.Context, who Caller, in *sessionIn) (any, error) {
				return done{Success: true}, s.SessionSetActive(ctx, who.Principal, in.CLI, in.SessionID)
			}),
		typed("session_clear", "Forget your sessions, of one CLI or all.", `"properties":{`+cliField+`}`, false,
			func(s *Service, ctx context.Context, who Caller, in *sessionIn) (any, error) {
				n, err := s.SessionClear(ctx, who.Principal, in.CLI)
				return done{Success: true, Cleared: n}, err
			}),
	}
}

type listIn struct {
	Limit    int       `json:"limit"`
	CLI      string    `json:"cli"`
	Status   string    `json:"status"`
	Policy   string    `json:"policy"`
	Hash     string    `json:"promptSha256"`
	Agent    string    `json:"principal"`
	MinScore *int      `json:"minScore"`
	MaxScore *int      `json:"maxScore"`
	Since    time.Time `json:"since"`
	Until    time.Time `json:"until"`
	Cursor   string    `json:"cursor"`
}

func otherTools() []Tool {
	return []Tool{
		typed("approval_list", "Decisions about your requests, newest first.",
			`"properties":{"limit":{"type":"integer","minimum":1,"maximum":500},`+cliField+`,"status":{"enum":["approved","denied","asked","expired","withdrawn"]},"policy":{"type":"string"},"promptSha256":{"type":"string"},"principal":{"type":"string"},"minScore":{"type":"integer"},"maxScore":{"type":"integer"},"since":{"type":"string"},"until":{"type":"string"},"cursor":{"type":"string"}}`,
			true, func(s *Service, ctx context.Context, who Caller, in *listIn) (any, error) {
				return s.approvals(ctx, who.Principal, in)
			}),
		typed("llm_request_result", "What became of the requests with a correlationId, across restarts.", `"required":["correlationId"],"properties":{"correlationId":{"type":"string"}}`, true,
			func(s *Service, ctx context.Context, who Caller, in *struct {
				CorrelationID string `json:"correlationId"`
			}) (any, error) {
				return s.requestResult(ctx, who.Principal, in.CorrelationID)
			}),
		typed("list_models", "Models of each CLI, who told of them and when; leave model out for the CLI's default.", `"properties":{`+cliField+`}`, true,
			func(s *Service, ctx context.Context, who Caller, in *sessionIn) (any, error) {
				return s.ListModels(ctx, who.Principal, in.CLI)
			}),
		typed("cli_versions", "Which CLIs are installed, where, their hash and version.", `"properties":{}`, true,
			func(s *Service, ctx context.Context, _ Caller, _ *struct{}) (any, error) {
				return map[string]any{"clis": s.versions(ctx)}, nil
			}),
		typed("review", "Have a CLI review until it says APPROVED: three rounds of review and fix at most, then a person is asked.",
			`"required":["prompt","workingDir"],"properties":{`+cliField+`,"fixer":{"type":"string"},"prompt":{"type":"string"},"workingDir":{"type":"string"},"approvalPolicy":{"enum":["strict","balanced","permissive"]},"rounds":{"type":"integer","minimum":1,"maximum":3},"correlationId":{"type":"string"}}`,
			false, func(s *Service, ctx context.Context, who Caller, in *ReviewRequest) (any, error) {
				return s.Review(ctx, who, in)
			}),
	}
}

func (s *Service) approvals(ctx context.Context, who call.Principal, in *listIn) (page *flight.Page, err error) {
	if in.Limit == 0 {
		in.Limit = flight.DefaultList
	}
	err = s.opts.Store.Read(ctx, func(tx *store.Tx) error {
		page, err = s.opts.Flight.List(tx, who, flight.Filter{
			CLI: in.CLI, Status: in.Status, Policy: in.Policy, Hash: in.Hash, Principal: in.Agent, MinScore: in.MinScore, MaxScore: in.MaxScore, From: in.Since, Until: in.Until,
		}, in.Cursor, in.Limit)
		return err
	})
	return page, err
}

func (s *Service) requestResult(ctx context.Context, who call.Principal, correlation string) (any, error) {
	var list []*flight.Record
	err := s.opts.Store.Read(ctx, func(tx *store.Tx) (err error) {
		list, err = s.opts.Flight.Correlated(tx, who, correlation)
		return err
	})
	if err != nil {
		return nil, err
	}
	type row struct {
		*flight.Record
		Output *JobOutput `json:"output,omitzero"`
	}
	out := []row{}
	for _, rec := range list {
		r := row{Record: rec}
		if rec.JobID != "" {
			if o, err := s.JobResult(ctx, who, rec.JobID, 0, 100_000); err == nil {
				r.Output = o // a job that is not there any more leaves its record
			}
		}
		out = append(out, r)
	}
	return map[string]any{"correlationId": correlation, "requests": out}, nil
}
