package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-3ebc6b8a/gatehouse/internal/audit"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch"
	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch/flight"
	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch/job"
	"github.com/seed-3ebc6b8a/gatehouse/internal/rulebook"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// The variables of the daemon's own environment that say how long jobs are kept
// and for how long one stands for another. What an agent has in its environment
// means nothing.
const (
	retentionVariable = "LLM_GATEWAY_JOB_RETENTION_DAYS"
	windowVariable    = "LLM_GATEWAY_DEDUP_WINDOW_MS"
)

// openJobs takes over this node's jobs: what an earlier run left is ended first.
func (d *daemon) openJobs(ctx context.Context, env func(string) string) error {
	retention, err := amount(env, retentionVariable, 24*time.Hour, 30)
	if err != nil {
		return err
	}
	window, err := amount(env, windowVariable, time.Millisecond, 3_600_000)
	if err != nil {
		return err
	}
	d.retention = retention
	d.flight = flight.New(d.keys, d.record.redactor)
	d.desk.Resolved = d.resolved
	d.jobs, err = job.Open(ctx, job.Options{
		Store: d.store, Keys: d.keys, Dir: d.opts.Place.Jobs(), Redact: d.record.redactor, Log: d.log,
		Standing: d.mayRun, Record: d.jobRecord, Retention: retention, Window: window, Limits: d.jobLimits,
	})
	return err
}

// amount reads a whole number of units from the environment. What is no such
// number is a refusal to start, not a default.
func amount(env func(string) string, name string, unit time.Duration, otherwise int64) (time.Duration, error) {
	text := strings.TrimSpace(env(name))
	if text == "" {
		return time.Duration(otherwise) * unit, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 || n > int64(10*365*24*time.Hour/unit) {
		return 0, fmt.Errorf("%s is %q: use a whole number from 1 on", name, text)
	}
	return time.Duration(n) * unit, nil
}

// mayRun says why a principal must not have anything running.
func (d *daemon) mayRun(tx *store.Tx, p call.Principal) error {
	st, err := d.sessions.CheckStanding(tx, p, rulebook.Scope)
	if err == nil && (st.Kill || st.Danger) {
		err = errors.New(st.Why)
	}
	return err
}

// ran is what the flight recorder takes from a run's result.
type ran struct {
	Model   string           `json:"model"`
	Usage   *flight.Usage    `json:"usage"`
	Cost    float64          `json:"costUsd"`
	Stop    string           `json:"stopReason"`
	Session string           `json:"sessionId"`
	Denials []jsontext.Value `json:"permissionDenials"`
	Error   string           `json:"error"`
}

// jobRecord completes the flight record of a job in the transaction that ends
// it, so that it is complete whoever waits for the job, and after a restart.
func (d *daemon) jobRecord(tx *store.Tx, b *job.Job) error {
	if !b.State.Over() || b.Approval == "" {
		return nil
	}
	var r ran
	if len(b.Result) > 0 {
		if err := json.Unmarshal(b.Result, &r); err != nil {
			d.log.Warn("a result has no usage that can be read", "job", b.ID, "error", err)
		}
	}
	if b.Error != "" {
		r.Error = b.Error
	}
	if d.dispatch != nil { // while jobs of an earlier run are closed there is none yet
		if err := d.dispatch.Bind(tx, b); err != nil && !errors.Is(err, flight.ErrNotFound) {
			return err
		}
	}
	err := d.flight.Ended(tx, b.Approval, flight.End{State: string(b.State), Model: r.Model, Usage: r.Usage, CostUSD: r.Cost, StopReason: r.Stop,
		Denials: len(r.Denials), ExitCode: b.ExitCode, ProviderSession: r.Session, Error: r.Error})
	if errors.Is(err, flight.ErrNotFound) {
		return nil // it was too old, or never a dispatch
	}
	return err
}

// tidyFlight drops flight records that are older than jobs are kept.
func (d *daemon) tidyFlight(ctx context.Context) error {
	tick := time.NewTicker(time.Hour)
	defer tick.Stop()
	for {
		for more := true; more; {
			err := d.store.Write(ctx, func(tx *store.Tx) error {
				now, err := tx.Now()
				if err != nil {
					return err
				}
				more, err = d.flight.Drop(tx, now.Add(-d.retention))
				return err
			})
			if err != nil {
				more = false
				if ctx.Err() == nil {
					d.log.Warn("old flight records could not be dropped", "error", err)
				}
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// trace tells what is on record under a correlation id.
func (d *daemon) trace(ctx context.Context, who call.Principal, correlation string) (*dispatch.Trace, error) {
	return d.dispatch.Trace(ctx, who, correlation)
}

// maxTraced bounds the records of one correlation id that are shown.
const maxTraced = 500

// correlated reads the log's records of an owner under a correlation id, oldest
// first: those that carry it, and the others of the same calls.
func (d *daemon) correlated(ctx context.Context, who call.Principal, correlation string) ([]dispatch.LogRecord, error) {
	f := audit.Filter{Correlation: correlation}
	if who.Agent != flight.Operator.Agent {
		f.Principal = who.Agent
	}
	page, err := d.audit.List(ctx, f, "", maxTraced)
	if err != nil {
		return nil, err
	}
	all := map[string]*audit.Record{}
	calls := map[string]bool{}
	for _, r := range page.Records {
		all[r.ID] = r
		calls[r.CallID] = r.CallID != ""
	}
	for id, named := range calls {
		if !named {
			continue
		}
		page, err := d.audit.List(ctx, audit.Filter{CallID: id}, "", maxTraced)
		if err != nil {
			return nil, err
		}
		for _, r := range page.Records {
			all[r.ID] = r
		}
	}
	var out []dispatch.LogRecord
	for _, r := range all {
		out = append(out, dispatch.LogRecord{ID: r.ID, Time: r.Time, Kind: r.Kind, Call: r.CallID, Agent: r.Principal, Surface: r.Surface,
			Operation: r.Operation, Level: r.Level, Outcome: r.Outcome})
	}
	slices.SortFunc(out, func(a, b dispatch.LogRecord) int { return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.ID, b.ID)) })
	return out, nil
}
