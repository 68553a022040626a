package admin

import (
	"context"
	"errors"
	"io"

	"github.com/seed-3ebc6b8a/gatehouse/internal/audit"
)

// Records lists records of the log, newest first.
func (d *Desk) Records(ctx context.Context, f RecordFilter, cursor string, limit int) ([]Record, string, error) {
	page, err := d.opts.Log.List(ctx, audit.Filter{
		Kind: f.Kind, Principal: f.Principal, Session: f.Session, Surface: f.Surface, Operation: f.Operation,
		Level: f.Level, Outcome: f.Outcome, CallID: f.CallID, From: f.Since, Until: f.Until,
	}, cursor, limit)
	return records(page.Records), page.Next, publicError(err)
}

// Record returns one record.
func (d *Desk) Record(ctx context.Context, id string) (*Record, error) {
	r, err := d.opts.Log.Get(ctx, id)
	if err != nil {
		return nil, publicError(err)
	}
	out := record(r)
	return &out, nil
}

// CallRecords returns all records of one call, oldest first.
func (d *Desk) CallRecords(ctx context.Context, callID string) ([]Record, error) {
	list, err := d.opts.Log.ByCall(ctx, callID)
	return records(list), publicError(err)
}

// Proof proves that a record is in the log. A record that no checkpoint covers
// yet gets one.
func (d *Desk) Proof(ctx context.Context, index int64) (*audit.Proof, error) {
	p, err := d.opts.Log.Prove(ctx, index)
	if errors.Is(err, audit.ErrNotFound) && d.opts.Checkpoint(ctx) == nil {
		p, err = d.opts.Log.Prove(ctx, index)
	}
	return p, publicError(err)
}

// Export writes the whole log as JSON Lines.
func (d *Desk) Export(ctx context.Context, w io.Writer) error {
	return publicError(d.opts.Log.Export(ctx, w))
}

func records(list []*audit.Record) []Record {
	out := make([]Record, len(list))
	for i, r := range list {
		out[i] = record(r)
	}
	return out
}

func record(r *audit.Record) Record {
	return Record{
		Index: r.Index, ID: r.ID, CallID: r.CallID, Time: r.Time, Kind: r.Kind, Principal: r.Principal, Session: r.Session,
		Surface: r.Surface, Operation: r.Operation, Level: r.Level, Outcome: r.Outcome, Body: r.Body,
	}
}
