package admin

import (
	"context"
	"errors"

	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch"
	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch/job"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// Run is a run of an agent CLI with all that is on record about it.
type Run struct {
	job.Job
	// Request is the decision that led to it, nil where that is no longer kept.
	Request  *dispatch.TracedRequest `json:"request,omitzero"`
	Progress []job.Event             `json:"progress,omitzero"`
	// Records are those of the log: the request and each tool call inside.
	Records []dispatch.LogRecord `json:"records,omitzero"`
}

// Runs lists the runs of every agent, newest first, from the one after
// before on.
func (d *Desk) Runs(ctx context.Context, before string, limit int) ([]job.Job, error) {
	list, err := d.opts.Jobs.List(ctx, job.Operator, before, limit)
	return list, publicError(err)
}

// Run tells all about a run.
func (d *Desk) Run(ctx context.Context, id string) (*Run, error) {
	b, err := d.opts.Jobs.Get(ctx, job.Operator, id)
	if err != nil {
		return nil, publicError(err)
	}
	run := &Run{Job: b}
	if run.Progress, err = d.opts.Jobs.Progress(ctx, job.Operator, id, 0); err != nil {
		return nil, publicError(err)
	}
	trace, err := d.opts.Trace(ctx, job.Operator, b.CorrelationID)
	var none *dispatch.Refused
	switch {
	case errors.As(err, &none): // its record is no longer kept
	case err != nil:
		return nil, publicError(err)
	default:
		run.Records = trace.Records
		for i, r := range trace.Requests {
			if r.JobID == id {
				run.Request = &trace.Requests[i]
			}
		}
	}
	return run, nil
}

// CancelRun ends a run and answers when its processes are dead. Who wants that
// is on record before it happens.
func (d *Desk) CancelRun(ctx context.Context, a Actor, id string) error {
	if _, err := d.opts.Jobs.Get(ctx, job.Operator, id); err != nil {
		return publicError(err)
	}
	if err := d.act(ctx, func(*store.Tx) (Act, error) { return a.act("job.cancel", id, nil), nil }); err != nil {
		return err
	}
	err := d.opts.Jobs.Cancel(ctx, job.Operator, id)
	d.changes.Tell()
	return publicError(err)
}
