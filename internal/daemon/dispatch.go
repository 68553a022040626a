package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/approval"
	"github.com/seed-3ebc6b8a/gatehouse/internal/aql"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch"
	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch/flight"
	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch/job"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
	"github.com/seed-3ebc6b8a/gatehouse/internal/inrun"
	"github.com/seed-3ebc6b8a/gatehouse/internal/risk"
	"github.com/seed-3ebc6b8a/gatehouse/internal/session"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
	"github.com/seed-3ebc6b8a/gatehouse/sandbox"
)

// dispatchPolicy is the threshold for requests to agent CLIs that the daemon's
// own environment names. It is read once, here: what an agent has in its
// environment means nothing.
func dispatchPolicy(env func(string) string) (string, error) {
	const name = "LLM_GATEWAY_APPROVAL_POLICY"
	policy := strings.TrimSpace(env(name))
	if _, ok := risk.Threshold(policy); policy != "" && !ok {
		return "", fmt.Errorf("%s is %q: use one of %s", name, policy, strings.Join(risk.Policies(), ", "))
	}
	return policy, nil
}

// openDispatch makes the service that hands requests to agent CLIs.
func (d *daemon) openDispatch() {
	home, _ := os.UserHomeDir() // without one the CLIs get no login
	d.dispatch = dispatch.New(dispatch.Options{
		Gate: d.gate, Policy: d.book.For, Jobs: d.jobs, Flight: d.flight, Store: d.store, Keys: d.keys,
		Dir: d.opts.Place.Dispatch(), UserHome: home, Env: os.Getenv, Hook: d.vibeHook(), Awareness: d.awareness, Records: d.correlated, Tell: d.desk.Tell, Log: d.log,
		Confine: d.confine,
		Ask: func(r dispatch.Run) inrun.Ask {
			return d.asker(&dispatched{
				CLI: r.CLI, Owner: r.Call.Principal, Job: r.JobID, Correlation: r.Call.Correlation, Dir: r.Dir, Confined: r.Confined, Plan: r.Task.Plans(), Budget: r.Budget,
				Hold: func() func() { return d.jobs.Hold(r.JobID) },
			})
		},
	})
	d.dispatch.Sweep()
}

// confine keeps a run's sandbox away from the gate, and has it show what holds
// it before anything of it runs. The launcher is this very process.
func (d *daemon) confine(r dispatch.Run, s *sandbox.Spec) {
	s.Net.Refuse = d.machine.Own.Listeners
	s.Before = func(st sandbox.Standing) error {
		chain, err := session.Ancestry(os.Getpid())
		if err != nil {
			return err
		}
		same := *r.Call
		return d.gate.Receive(context.Background(), r.CallID, r.Call.Principal, gate.Receipt{
			Call: &same, Backend: string(st.Backend), Shown: st.Guarantees.Names(),
			Seen: func() ([]string, error) { return api.Seen(&session.Peer{Chain: chain}, string(st.Backend), st.Process) },
		})
	}
}

// resolved gives requests to agent CLIs the answer to their question.
func (d *daemon) resolved(tx *store.Tx, r *approval.Request) error {
	if r.Kind != call.Dispatch {
		return nil
	}
	v := flight.Verdict{Status: flight.Denied, By: r.AnsweredBy, Words: r.Words}
	switch r.State {
	case approval.Approved:
		v.Status = flight.Approved
	case approval.Expired:
		v.Status, v.Words = flight.Expired, "nobody answered in time"
	case approval.Cancelled:
		v.Status = flight.Withdrawn
	case approval.Edited:
		v.Words = "another request was put in its place"
	}
	return d.flight.Answered(tx, r.ID, v)
}

// jobLimits are how many jobs the policy lets there be.
func (d *daemon) jobLimits() job.Limits {
	set := &d.book.Current().Settings.Dispatch
	return job.Limits{Running: set.MaxRunning, PerCLI: set.MaxRunningPerCLI, Queued: set.MaxQueued}
}

// awareness is what the policy says about caches.
func (d *daemon) awareness() flight.Awareness {
	set := &d.book.Current().Settings.Cache
	return flight.Awareness{TTL: set.TTL, Warn: set.Warn}
}

// vibeHook is the command line of the hook that Vibe runs on every tool call,
// "" where there is none.
func (d *daemon) vibeHook() string {
	program, err := os.Executable()
	if err != nil {
		return ""
	}
	hook := filepath.Join(filepath.Dir(program), "gatehouse-hook")
	if _, err := exec.LookPath(hook); err != nil {
		return ""
	}
	socket := d.opts.Socket
	if socket == "" {
		socket = d.opts.Place.Socket()
	}
	if strings.ContainsAny(hook+socket, " \t\n\\'\"") {
		return "" // Vibe splits the line into words, and leaves out hooks with a backslash
	}
	// It waits for a person for as long as Vibe waits for it.
	return fmt.Sprintf("%s vibe --socket %s --owner %d --deadline 3500", hook, socket, os.Getuid())
}

// dispatchTools puts the tools of dispatch beside the gate's own on the MCP
// front.
func (d *daemon) dispatchTools() aql.More { return moreTools{d.dispatch} }

type moreTools struct{ service *dispatch.Service }

// List lists the tools.
func (m moreTools) List() (out []aql.Tool) {
	for _, t := range m.service.Tools() {
		out = append(out, aql.Tool{Name: t.Name, Description: t.Description, InputSchema: t.InputSchema, ReadOnly: t.ReadOnly, Destructive: !t.ReadOnly})
	}
	return out
}

// Call calls one of them.
func (m moreTools) Call(ctx context.Context, who aql.Caller, name string, args jsontext.Value) aql.Result {
	answer, ok, err := m.service.Use(ctx, dispatch.Caller{Principal: who.Principal, Held: who.Held, Surface: who.Surface}, name, args)
	if err != nil {
		answer = map[string]any{"success": false, "error": dispatchError(err).Error()}
	}
	text, err := json.Marshal(answer, ours)
	if err != nil {
		return aql.Result{Text: "the answer cannot be written", IsError: true}
	}
	return aql.Result{Text: string(text), Structured: text, IsError: !ok}
}

// useTool calls a tool of dispatch for a caller of the API.
func (d *daemon) useTool(ctx context.Context, who *api.ToolCaller, name string, args jsontext.Value) (jsontext.Value, error) {
	answer, _, err := d.dispatch.Use(ctx, dispatch.Caller{Principal: who.Principal, Held: who.Held, Surface: who.Surface, Dir: who.Dir}, name, args)
	if err != nil {
		return nil, dispatchError(err)
	}
	return json.Marshal(answer, ours)
}

// ours are answers of our own making, in which no name occurs twice.
var ours = jsontext.AllowDuplicateNames(true)

// dispatchError is an error in words that may be shown.
func dispatchError(err error) error {
	var public interface{ Public() string }
	if errors.As(err, &public) {
		return errors.New(public.Public())
	}
	return admin.PublicError(err)
}
