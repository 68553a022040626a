package dispatch

import (
	"context"
	"errors"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch/flight"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// decide has the gate decide a request, and puts on record what it says: at
// once where a person is asked, so that the question is there to be seen while
// somebody waits, and again when there is an answer.
func (s *Service) decide(ctx context.Context, p *plan, sub gate.Submission) (given *gate.Answer, rec *flight.Record, err error) {
	c := sub.Call
	sub.Runs = "gate"
	sub.Asked = func(a *gate.Answer) { rec, err = s.decided(ctx, p, c, a) }
	given = s.opts.Gate.Submit(ctx, sub)
	switch {
	case err != nil:
	case given.Edited != nil:
		rec = nil // another request runs, and gets a record of its own
	case rec == nil:
		rec, err = s.decided(ctx, p, c, given)
	case given.Verdict != gate.Pending:
		rec, err = s.settled(ctx, p, rec, given)
	}
	return given, rec, err
}

// record is what is on record about a request whatever is decided.
func (p *plan) record(who call.Principal) *flight.Record {
	t := p.task
	hash, size := t.PrefixHash()
	return &flight.Record{
		Policy: p.policy, Profile: p.score.Profile, CLI: p.cli, Operation: call.RequestOperation(p.cli), Score: p.score.Value, Reasons: p.score.Reasons(),
		RequestedMCPServers: t.Servers(), BypassRequested: len(t.Bypass()) > 0, FullAuto: t.FullAuto, CorrelationID: t.CorrelationID,
		Principal: who, SessionID: p.sessionID(), Model: t.Model, Strategy: t.ApprovalStrategy, PrefixHash: hash, PrefixTokens: int64(size+3) / 4,
	}
}

// decided puts the decision on record. One that lets the request through at once
// is put there together with its start.
func (s *Service) decided(ctx context.Context, p *plan, c *call.Call, given *gate.Answer) (*flight.Record, error) {
	rec := p.record(c.Principal)
	rec.Status, rec.CallID, rec.Request = flight.Denied, given.CallID, given.Request
	switch given.Verdict {
	case gate.Allowed:
		rec.Status, rec.JobID = flight.Approved, p.jobID
	case gate.Pending:
		rec.Status = flight.Asked
	}
	if given.Verdict != gate.Allowed && p.score.Value <= p.highest {
		rec.Reasons = append(rec.Reasons, given.Decision.Why()) // not the score, something else
	}
	if given.By != "" && given.By != "policy" {
		rec.DecidedBy, rec.DecidedAt = given.By, time.Now()
	}
	var err error
	if rec.ID, err = s.opts.Flight.NewID(); err != nil || given.Verdict == gate.Allowed {
		return rec, err
	}
	err = s.opts.Store.Write(context.WithoutCancel(ctx), func(tx *store.Tx) error {
		if err := s.opts.Flight.Decided(tx, rec, p.task.Text()); err != nil || rec.Status != flight.Asked {
			return err
		}
		return s.opts.Tell(tx, rec.Request) // it may have been answered meanwhile
	})
	return rec, err
}

// settled puts on record how a request went on that a person was asked about.
// The answer itself is on record since it was given; what is left to say is
// what the gate made of it, which looks again at everything.
func (s *Service) settled(ctx context.Context, p *plan, rec *flight.Record, given *gate.Answer) (*flight.Record, error) {
	err := s.opts.Store.Write(context.WithoutCancel(ctx), func(tx *store.Tx) (err error) {
		if err = s.opts.Tell(tx, rec.Request); err != nil {
			return err
		}
		if rec, err = s.opts.Flight.Get(tx, flight.Operator, rec.ID); err != nil {
			return err
		}
		switch allowed := given.Verdict == gate.Allowed; {
		case allowed && rec.Status == flight.Asked:
			err = s.opts.Flight.Judged(tx, rec.ID, flight.Verdict{Status: flight.Approved, By: given.By})
		case !allowed && (rec.Status == flight.Asked || rec.Status == flight.Approved):
			err = s.opts.Flight.Judged(tx, rec.ID, flight.Verdict{Status: flight.Denied, By: given.By, Words: given.Decision.Why()})
		}
		if err == nil && given.Verdict == gate.Allowed {
			err = s.opts.Flight.Runs(tx, rec.ID, flight.Run{JobID: p.jobID, CallID: given.CallID})
		}
		if err == nil {
			rec, err = s.opts.Flight.Get(tx, flight.Operator, rec.ID)
		}
		return err
	})
	return rec, err
}

// refused puts a request on record that cannot be carried out as it is, and
// so was denied without being asked about. The gate's own trouble is no
// decision.
func (s *Service) refused(ctx context.Context, who Caller, p *plan, cause error) error {
	var public interface{ Public() string }
	if !errors.As(cause, &public) {
		return cause
	}
	if p.task == nil {
		p.task = &call.Task{} // it could not even be read
	}
	if p.task.CorrelationID == "" {
		var err error
		if p.task.CorrelationID, err = newUUID(); err != nil {
			return errors.Join(cause, err)
		}
	}
	rec := p.record(who.Principal)
	rec.Status, rec.Reasons = flight.Denied, append(rec.Reasons, public.Public())
	err := s.opts.Store.Write(context.WithoutCancel(ctx), func(tx *store.Tx) error { return s.opts.Flight.Decided(tx, rec, p.task.Text()) })
	return errors.Join(cause, err)
}
