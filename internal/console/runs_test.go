package console_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/console"
	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch"
	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch/flight"
	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch/job"
)

// Runs lists the runs after one.
func (d *desk) Runs(_ context.Context, before string, limit int) ([]job.Job, error) {
	var list []job.Job
	for _, r := range d.runs {
		if before == "" && len(list) < limit {
			list = append(list, r.Job)
		}
		if r.ID == before {
			before = ""
		}
	}
	return list, d.broken
}

// Run finds a run.
func (d *desk) Run(_ context.Context, id string) (*admin.Run, error) {
	for _, r := range d.runs {
		if r.ID == id {
			return &r, d.broken
		}
	}
	return nil, public("there is no such run (any more)")
}

// CancelRun notes that a run was to end.
func (d *desk) CancelRun(_ context.Context, a admin.Actor, id string) error {
	if _, err := d.Run(context.Background(), id); err != nil {
		return err
	}
	d.act(a, "cancel %s", id)
	return nil
}

// someRuns are one that runs and one that is over.
func someRuns() []admin.Run {
	on := admin.Run{Job: job.Job{ID: "job_on", CLI: "codex", CorrelationID: "fix-cart", Owner: call.Principal{Agent: "planner"}, State: job.Running, ExitCode: job.ExitNone, Asked: day, Started: day, Node: "shop"}}
	on.Progress = []job.Event{{Seq: 1, Time: day, Phase: "starting", Text: "it starts"}, {Seq: 2, Time: day, Phase: "tool", Text: "a tool call is decided"}}
	over := on
	over.ID, over.CLI, over.State, over.ExitCode, over.Ended = "job_over", "claude", job.Completed, 0, day.Add(1500*time.Millisecond)
	over.Result = []byte(`{"text":"The lines are added up with the discount.\nTests pass."}`)
	over.Request = &dispatch.TracedRequest{Record: &flight.Record{
		JobID: "job_over", Status: flight.Approved, Policy: "balanced", Score: 3, Reasons: []string{"full-auto was asked for (+3)"}, PromptPreview: "Fix the total of the cart",
		Usage: &flight.Usage{InputTokens: 1200, OutputTokens: 300}, CostUSD: 0.0123, CostBasis: "provider", Denials: 1, Model: "small",
	}}
	over.Records = []dispatch.LogRecord{{ID: "rec-001", Time: day, Kind: "verdict", Operation: "shell", Outcome: "allowed"}, {ID: "rec-002", Time: day, Kind: "verdict", Operation: "shell", Outcome: "denied"}}
	return []admin.Run{on, over}
}

func TestRuns(t *testing.T) {
	t.Parallel()
	cl := signedIn(t, console.Options{})
	cl.desk.change(func() { cl.desk.runs = nil })
	if got := text(cl.get("/runs")); !strings.Contains(got, "Nothing was handed to an agent CLI yet") {
		t.Error("an empty page does not say so: ", got)
	}
	cl.desk.change(func() { cl.desk.runs = someRuns() })
	for path, wants := range map[string][]string{
		"/runs":          {"codex", "running", "planner", "claude", "completed"},
		"/runs/job_on":   {"Run of codex", "running", "a tool call is decided", "End it"},
		"/runs/job_over": {"Fix the total of the cart", "The lines are added up with the discount.", "approved", "3, policy balanced", "full-auto was asked for", "1200 in, 300 out", "$0.0123 (provider)", "Refused inside1 call", "1.5s", "Exit code0"},
	} {
		page := text(cl.get(path))
		for _, want := range wants {
			if !strings.Contains(page, want) {
				t.Errorf("%s does not show %q:\n%s", path, want, page)
			}
		}
	}
	if page := cl.get("/runs/job_over"); strings.Contains(page, "run-cancel") || !strings.Contains(page, `href="/log/rec-002"`) {
		t.Error("a run that is over can be ended, or its calls are not linked")
	}
	cl.says("/runs/job_on/cancel", url.Values{})
	if got := cl.says("/runs/job_no/cancel", url.Values{}); !strings.Contains(got, "there is no such run") {
		t.Error(got)
	}
	if diff := cmp.Diff([]string{"ann on console: cancel job_on"}, cl.desk.did()); diff != "" {
		t.Error(diff)
	}
}

// TestRunsArePaged: older ones are behind a link.
func TestRunsArePaged(t *testing.T) {
	t.Parallel()
	cl := signedIn(t, console.Options{})
	cl.desk.change(func() {
		over := someRuns()[1]
		cl.desk.runs = nil
		for i := range 60 {
			over.ID = fmt.Sprintf("job_%02d", i)
			cl.desk.runs = append(cl.desk.runs, over)
		}
	})
	first := cl.get("/runs")
	if !strings.Contains(first, "/runs?before=job_49") || strings.Contains(first, "/runs/job_50") {
		t.Error("the first page does not end at the fiftieth run with a link to the next")
	}
	if second := cl.get("/runs?before=job_49"); !strings.Contains(second, "/runs/job_50") || strings.Contains(second, "before=") {
		t.Error("the second page is not the rest")
	}
}

// TestRunsAreEscaped: an answer, a prompt and a name come from agents.
func TestRunsAreEscaped(t *testing.T) {
	t.Parallel()
	cl := signedIn(t, console.Options{})
	const evil = "<img src=x>\x1b[2J\u202e\"'"
	cl.desk.change(func() {
		cl.desk.runs = someRuns()
		for i := range cl.desk.runs {
			r := &cl.desk.runs[i]
			r.CorrelationID, r.Owner.Agent, r.Error, r.Node = evil, evil, evil, evil
			r.Result = []byte(`{"text":"<img src=x>\u001b\u202e"}`)
			r.Progress[0].Text = evil
			if r.Request != nil {
				r.Request.PromptPreview, r.Request.Reasons, r.Request.Model = evil, []string{evil}, evil
				r.Records[0].Operation = evil
			}
		}
	})
	for _, path := range []string{"/runs", "/runs/job_on", "/runs/job_over"} {
		page := cl.get(path)
		for _, bad := range []string{"<img", "\x1b", "\u202e"} {
			if strings.Contains(page, bad) {
				t.Errorf("%s holds %q", path, bad)
			}
		}
	}
}
