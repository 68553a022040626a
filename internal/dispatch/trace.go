package dispatch

import (
	"context"
	"errors"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch/flight"
	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch/job"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// Trace is a past dispatch, put together again from what is stored.
type Trace struct {
	CorrelationID string          `json:"correlationId"`
	Requests      []TracedRequest `json:"requests"`
	// Records are those of the log: the request's own call and every tool call
	// inside the run, oldest first.
	Records []LogRecord `json:"records"`
}

// TracedRequest is a decision with what it led to.
type TracedRequest struct {
	*flight.Record
	Job      *job.Job    `json:"job,omitzero"`
	Progress []job.Event `json:"progress,omitzero"`
}

// LogRecord is a record of the log, as far as a trace shows it.
type LogRecord struct {
	ID        string    `json:"id"`
	Time      time.Time `json:"ts"`
	Kind      string    `json:"kind"`
	Call      string    `json:"callId"`
	Agent     string    `json:"agent"`
	Surface   string    `json:"surface"`
	Operation string    `json:"operation"`
	Level     string    `json:"level,omitzero"`
	Outcome   string    `json:"outcome,omitzero"`
}

func traceTool() Tool {
	return typed("dispatch_trace", "All that is recorded about a correlationId: decisions, jobs with their progress, tool calls.",
		`"required":["correlationId"],"properties":{"correlationId":{"type":"string"}}`, true,
		func(s *Service, ctx context.Context, who Caller, in *struct {
			CorrelationID string `json:"correlationId"`
		}) (any, error) {
			return s.Trace(ctx, who.Principal, in.CorrelationID)
		})
}

// Trace rebuilds the owner's dispatches with a correlation id.
func (s *Service) Trace(ctx context.Context, who call.Principal, correlation string) (*Trace, error) {
	t := &Trace{CorrelationID: correlation, Requests: []TracedRequest{}, Records: []LogRecord{}}
	var list []*flight.Record
	err := s.opts.Store.Read(ctx, func(tx *store.Tx) (err error) {
		list, err = s.opts.Flight.Correlated(tx, who, correlation)
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, refuse("nothing of yours is recorded under the correlation id %q", correlation)
	}
	for _, rec := range list {
		r := TracedRequest{Record: rec}
		if rec.JobID != "" {
			b, err := s.opts.Jobs.Get(ctx, who, rec.JobID)
			if err == nil {
				r.Job = &b
				r.Progress, err = s.opts.Jobs.Progress(ctx, who, rec.JobID, 0)
			}
			if err != nil && !errors.Is(err, job.ErrNotFound) { // one that is too old leaves its record
				return nil, err
			}
		}
		t.Requests = append(t.Requests, r)
	}
	if s.opts.Records != nil {
		records, err := s.opts.Records(ctx, who, correlation)
		if err != nil {
			return nil, err
		}
		t.Records = append(t.Records, records...)
	}
	return t, nil
}
