package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch/flight"
	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch/job"
	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch/provider"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
	"github.com/seed-3ebc6b8a/gatehouse/internal/inrun"
	"github.com/seed-3ebc6b8a/gatehouse/internal/keyring"
	"github.com/seed-3ebc6b8a/gatehouse/internal/policy"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
	"github.com/seed-3ebc6b8a/gatehouse/sandbox"
)

// The times of the public skill.
const (
	// SyncDeadline is how long a request is waited for before it is deferred.
	SyncDeadline = 45 * time.Second
	// PollAfter is how often to ask about a job: every 60 s.
	PollAfter = 60 * time.Second
)

// Options is what a service stands on.
type Options struct {
	Gate   *gate.Gate
	Policy func(*call.Call) (*policy.Snapshot, call.Digest)
	Jobs   *job.Jobs
	Flight *flight.Recorder
	Store  *store.Store
	Keys   *keyring.Keyring
	// Dir is the folder of the gate's for dispatch, UserHome the home of the
	// user whose logins the CLIs get.
	Dir, UserHome string
	// Env reads the gate's own environment.
	Env func(string) string
	// Ask decides the tool calls of a run.
	Ask func(Run) inrun.Ask
	// Confine adds to the sandbox of a run what keeps it from the gate, and
	// the receipt without which it does not start.
	Confine func(Run, *sandbox.Spec)
	// Hook is the command line of the gate's hook for Vibe, "" if there is none.
	Hook string
	// Awareness is what the policy says about caches.
	Awareness func() flight.Awareness
	// Tell has the recorder hear of a question's answer if there is one.
	Tell func(tx *store.Tx, request string) error
	// Records reads what the log has of an owner under a correlation id.
	Records func(ctx context.Context, who call.Principal, correlation string) ([]LogRecord, error)
	// Deadline is SyncDeadline if 0.
	Deadline time.Duration
	Log      *slog.Logger
}

// Run is a CLI that is being run, as far as those who decide its tool calls
// need to know it.
type Run struct {
	JobID, CLI, Dir string
	// Call is the request's own call, which let the run start, and CallID its id.
	Call   *call.Call
	CallID string
	// Confined says that it is in a sandbox.
	Confined bool
	// Budget is the part of the asker's that it may draw from, "" for none.
	Budget string
	Task   *call.Task
}

// Service hands requests to CLIs. It is safe for concurrent use.
type Service struct {
	opts     Options
	programs programs

	mu      sync.Mutex
	running map[string]*plan // by job
}

// New makes a service.
func New(opts Options) *Service {
	if opts.Deadline == 0 {
		opts.Deadline = SyncDeadline
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	return &Service{opts: opts, programs: programs{found: map[string]program{}, seen: map[string]string{}}, running: map[string]*plan{}}
}

// Caller is who makes a request, as the door knows it.
type Caller struct {
	Principal call.Principal
	Held      bool
	Surface   string
	// Dir is the caller's working directory, for a request that names none.
	Dir string
}

func knownCLI(cli string) error {
	if !slices.Contains(call.CLIs(), cli) {
		return refuse("there is no CLI %q: use one of %s", cli, strings.Join(call.CLIs(), ", "))
	}
	return nil
}

// Do takes a request from entry to answer. The gate decides before anything is
// looked up, written or started; an asynchronous request is decided the same
// way and answered with its job at once.
func (s *Service) Do(ctx context.Context, who Caller, cli string, args jsontext.Value, async bool) (*Answer, error) {
	if err := knownCLI(cli); err != nil {
		return nil, err
	}
	task, err := call.ParseTask(args)
	if err != nil {
		return nil, s.refused(ctx, who, &plan{cli: cli, task: task}, &Refused{err.Error()})
	}
	if task.CorrelationID == "" {
		if task.CorrelationID, err = newUUID(); err != nil {
			return nil, err
		}
	}
	p, err := s.plan(ctx, who, cli, task)
	if err != nil {
		return nil, s.refused(ctx, who, p, err)
	}
	c, err := p.call(who)
	if err != nil {
		return nil, err
	}
	sub := gate.Submission{Call: c}
	if !async {
		sub.Wait = s.opts.Deadline
	}
	given, rec, err := s.decide(ctx, p, sub)
	if err == nil && given.Verdict == gate.Allowed && given.Edited != nil {
		// What the person made of the request is what runs.
		c = given.Edited
		if p, err = s.edited(ctx, who, cli, task, c); err != nil {
			return nil, errors.Join(err, s.finish(ctx, given.CallID, c.Principal, gate.Refused, err.Error()))
		}
		rec, err = s.decided(ctx, p, c, given)
	}
	if err != nil {
		if given.Verdict == gate.Allowed {
			err = errors.Join(err, s.finish(ctx, given.CallID, c.Principal, gate.Failed, "the decision could not be recorded"))
		}
		return nil, err
	}
	return s.carryOut(ctx, p, c, given, rec, async)
}

// edited plans the request that a person put in place of another.
func (s *Service) edited(ctx context.Context, who Caller, cli string, was *call.Task, c *call.Call) (*plan, error) {
	task, err := call.ParseTask(c.Args)
	if err != nil {
		return nil, &Refused{err.Error()}
	}
	task.CorrelationID, task.ForceRefresh = was.CorrelationID, was.ForceRefresh
	return s.plan(ctx, who, cli, task)
}

// carryOut starts what was let through.
func (s *Service) carryOut(ctx context.Context, p *plan, c *call.Call, given *gate.Answer, rec *flight.Record, async bool) (*Answer, error) {
	if given.Verdict != gate.Allowed {
		ans := p.answer(rec)
		ans.denied(given)
		return ans, nil
	}
	b, err := s.start(ctx, p, c, rec)
	if err != nil {
		outcome, text := gate.Failed, publicText(err)
		err = s.keep(ctx, p, rec, flight.End{State: string(job.Failed), Error: text})
		return nil, errors.Join(&Refused{text}, err, s.finish(ctx, given.CallID, c.Principal, outcome, text))
	}
	ans := p.answer(rec)
	if b.Deduplicated {
		if err := s.keep(ctx, p, rec, flight.End{State: flight.Reused}); err != nil {
			return nil, errors.Join(err, s.finish(ctx, given.CallID, c.Principal, gate.Failed, "the decision could not be recorded"))
		}
		if err := s.finish(ctx, given.CallID, c.Principal, gate.Succeeded, "answered by the job "+b.ID); err != nil {
			return nil, err
		}
	}
	if !async {
		wait, cancel := context.WithTimeout(ctx, s.opts.Deadline)
		defer cancel()
		if over, err := s.opts.Jobs.Outcome(wait, b.ID); err == nil {
			over.Deduplicated, over.Age = b.Deduplicated, b.Age
			b = over
		} else if !errors.Is(err, context.DeadlineExceeded) {
			return nil, err
		}
	}
	ans.tell(&b)
	ans.held(p)
	return ans, nil
}

// keep puts on record a decision that became no job of its own, and what became
// of it instead.
func (s *Service) keep(ctx context.Context, p *plan, rec *flight.Record, end flight.End) error {
	return s.opts.Store.Write(context.WithoutCancel(ctx), func(tx *store.Tx) error {
		// It is there if a person was asked, or if a start took it along after all.
		_, err := s.opts.Flight.Get(tx, flight.Operator, rec.ID)
		if errors.Is(err, flight.ErrNotFound) {
			err = s.opts.Flight.Decided(tx, rec, p.task.Text())
		}
		if err != nil {
			return err
		}
		return s.opts.Flight.Ended(tx, rec.ID, end)
	})
}

// start looks for an equal request, writes the files of the launch and starts
// the process.
func (s *Service) start(ctx context.Context, p *plan, c *call.Call, rec *flight.Record) (job.Job, error) {
	spec := job.Spec{
		ID: p.jobID, CLI: p.cli, CorrelationID: p.task.CorrelationID, Approval: rec.ID, Owner: c.Principal,
		Path: p.launch.Path, Args: p.launch.Args, Env: p.launch.Env, Dir: p.launch.Dir,
		Idle: time.Duration(p.task.IdleTimeoutMs) * time.Millisecond,
		Over: func(b job.Job) { s.over(rec.CallID, b) },
	}
	if rec.Time.IsZero() { // it is put on record with the start, in one commit
		spec.Entering = func(tx *store.Tx) error { return s.opts.Flight.Decided(tx, rec, p.task.Text()) }
	}
	if spec.RequestKey = s.requestKey(p, c); spec.RequestKey != "" && !p.task.ForceRefresh {
		spec.Reuse = true
		if b, found, err := s.opts.Jobs.Find(ctx, spec.RequestKey); err != nil || found {
			return b, err
		}
	}
	if err := p.write(ctx); err != nil {
		return job.Job{}, err
	}
	run := Run{JobID: p.jobID, CLI: p.cli, Dir: p.launch.Dir, Call: c, CallID: rec.CallID, Confined: p.confined, Task: p.task}
	part, err := s.setAside(ctx, &run)
	if err != nil {
		p.clean(s.opts.Log)
		return job.Job{}, err
	}
	run.Budget = part
	back := sync.OnceFunc(func() { s.giveBack(part, c.Principal) })
	spec.After = func() {
		p.clean(s.opts.Log)
		back()
	}
	if p.confined {
		spec.Sandbox = p.sandbox()
		s.opts.Confine(run, spec.Sandbox)
	}
	var hold inrun.Drive
	if p.launch.Channel != nil {
		hold = p.launch.Channel(onlyTools(p.task, s.opts.Ask(run)))
	}
	said := &raw{}
	spec.Drive, spec.Listens = said.drive(hold, p.launch.Stdin), hold == nil
	spec.Parse = func(out []byte) any {
		r := p.launch.Parse(out)
		r.Session = p.launch.Parse(said.bytes()).Session
		return r
	}
	s.note(p.jobID, p)
	b, err := s.opts.Jobs.Start(ctx, spec)
	if err != nil || b.Deduplicated {
		back()
		s.note(p.jobID, nil)
		p.clean(s.opts.Log)
	}
	return b, err
}

// note remembers the plan of a job that runs; nil forgets it.
func (s *Service) note(jobID string, p *plan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p == nil {
		delete(s.running, jobID)
	} else {
		s.running[jobID] = p
	}
}

// onlyTools refuses what the request's own lists leave out, before anybody
// else is asked. A caller may always want less.
func onlyTools(t *call.Task, ask inrun.Ask) inrun.Ask {
	if t.AllowedTools == nil && len(t.DisallowedTools) == 0 {
		return ask
	}
	return func(ctx context.Context, tool inrun.Tool) inrun.Verdict {
		if t.AllowedTools != nil && !listed(t.AllowedTools, tool.Name) {
			return inrun.Verdict{Why: "this request does not allow the tool " + tool.Name}
		}
		if denied(t.DisallowedTools, tool.Name) {
			return inrun.Verdict{Why: "this request takes away the tool " + tool.Name}
		}
		return ask(ctx, tool)
	}
}

// listed says whether a list allows a tool: by its name, without patterns. What
// a pattern allows of it the gate judges.
func listed(list []string, name string) bool {
	return slices.ContainsFunc(list, func(l string) bool {
		l, _, _ = strings.Cut(l, "(")
		return sameTool(strings.TrimSpace(l), name)
	})
}

// denied says whether a list takes a whole tool away. What has a pattern the
// CLI itself holds.
func denied(list []string, name string) bool {
	return slices.ContainsFunc(list, func(l string) bool { return !strings.Contains(l, "(") && sameTool(strings.TrimSpace(l), name) })
}

func sameTool(a, b string) bool {
	return strings.EqualFold(a, b) || call.FoldTool(a) != a && call.FoldTool(a) == call.FoldTool(b)
}

// over records how a run ended, whether anybody waits for it or not.
func (s *Service) over(callID string, b job.Job) {
	s.note(b.ID, nil)
	outcome := gate.Failed
	switch b.State {
	case job.Completed:
		outcome = gate.Succeeded
	case job.Unknown:
		outcome = gate.Unknown
	}
	if err := s.finish(context.Background(), callID, b.Owner, outcome, b.Error); err != nil {
		s.opts.Log.Error("the end of a request could not be recorded", "job", b.ID, "error", err)
	}
}

// Bind notes the CLI's own name of the conversation that a job was, in the
// transaction that ends the job.
func (s *Service) Bind(tx *store.Tx, b *job.Job) error {
	var r provider.Result
	if !b.State.Over() || b.Approval == "" || len(b.Result) == 0 {
		return nil
	}
	if err := json.Unmarshal(b.Result, &r); err != nil || r.Session == "" {
		return err
	}
	rec, err := s.opts.Flight.Get(tx, flight.Operator, b.Approval)
	if err != nil {
		return err
	}
	id := rec.SessionID
	if id == "" {
		id = r.Session
		if err := s.opts.Flight.Runs(tx, rec.ID, flight.Run{JobID: b.ID, SessionID: id}); err != nil {
			return err
		}
	}
	v, err := s.session(tx, b.Owner, id)
	if errors.Is(err, ErrNoSession) {
		v, err = &Session{ID: id, CLI: b.CLI, agent: b.Owner.Agent}, nil
	}
	if err != nil {
		return err
	}
	now, err := tx.Now()
	if err != nil {
		return err
	}
	if v.Created.IsZero() {
		v.Created = now
	}
	v.Begun, v.Provider, v.Used = true, r.Session, now
	s.mu.Lock()
	if p := s.running[b.ID]; p != nil {
		v.Dir, v.Posture = p.launch.Dir, p.launch.Posture
	}
	s.mu.Unlock()
	return s.putSession(tx, v)
}

// finish closes the call.
func (s *Service) finish(ctx context.Context, callID string, who call.Principal, o gate.Outcome, detail string) error {
	return s.opts.Gate.Finish(context.WithoutCancel(ctx), callID, who, o, detail)
}

// publicText is an error in words that may be shown.
func publicText(err error) string {
	var public interface{ Public() string }
	if errors.As(err, &public) {
		return public.Public()
	}
	for _, known := range []error{job.ErrSaturated, job.ErrOpen, job.ErrStopped, job.ErrClosing, job.ErrInvalid} {
		if errors.Is(err, known) {
			return err.Error()
		}
	}
	return fmt.Sprintf("the CLI could not be started: %v", err)
}
