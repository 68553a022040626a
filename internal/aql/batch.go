package aql

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
)

// MaxBatch is the largest number of operations in one call.
const MaxBatch = 50

// BatchResult is the answer to a batch.
type BatchResult struct {
	Total     int          `json:"total"`
	Succeeded int          `json:"succeeded"`
	Failed    int          `json:"failed"`
	NotRun    int          `json:"not_run"`
	Message   string       `json:"message,omitzero"`
	Results   []ItemResult `json:"results"`
}

// ItemResult is what became of one operation of a batch.
type ItemResult struct {
	Index     int    `json:"index"`
	Operation string `json:"operation"`
	// State is succeeded, failed, denied or not_run.
	State  string         `json:"state"`
	Result jsontext.Value `json:"result,omitzero"`
	Error  string         `json:"error,omitzero"`
}

// batch decides operations together and performs those that are let through,
// one after the other, each decided again just before. What was not foreseen
// ends the batch.
func (t *Tools) batch(ctx context.Context, who Caller, e call.Endpoint, in *input) Result {
	if in.Operation != "" || in.ElementType != "" || len(in.Params) > 0 {
		return failed(refused("give either operation or operations, not both"))
	}
	if len(in.Operations) == 0 || len(in.Operations) > MaxBatch {
		return failed(refused("a batch has 1 to %d operations, this has %d; nothing was done", MaxBatch, len(in.Operations)))
	}
	b := &gate.Batch{AllOrNothing: in.AllOrNothing}
	for i := range in.Operations {
		op := &in.Operations[i]
		c, err := t.build(who, e, &input{Operation: op.Operation, ElementType: op.ElementType, Params: op.Params})
		if err != nil {
			return failed(refused("item %d (%s): %v; nothing was done", i, op.Operation, err))
		}
		b.Calls = append(b.Calls, c)
	}
	ans := t.Gate.SubmitBatch(ctx, b)
	if ans.Verdict != gate.Allowed {
		r := told(&call.Call{Kind: call.Native, Operation: "batch"}, &ans.Answer)
		return r
	}
	out := t.runBatch(ctx, b, ans)
	outcome := gate.Succeeded
	if out.Succeeded < out.Total {
		outcome = gate.Failed
	}
	detail := fmt.Sprintf("%d of %d operations succeeded", out.Succeeded, out.Total)
	if err := t.Gate.Finish(context.WithoutCancel(ctx), ans.CallID, who.Principal, outcome, detail); err != nil {
		t.Log.Error("an outcome could not be recorded", "call", ans.CallID, "error", err)
	}
	r := structured(out)
	r.IsError = out.Succeeded < out.Total
	return r
}

// runBatch performs what was let through.
func (t *Tools) runBatch(ctx context.Context, b *gate.Batch, ans *gate.BatchAnswer) *BatchResult {
	out := &BatchResult{Total: len(b.Calls), Results: []ItemResult{}}
	stopped := ""
	for i, c := range b.Calls {
		r := ItemResult{Index: i, Operation: c.Operation}
		switch {
		case stopped != "":
			r.State, r.Error = "not_run", stopped
			out.NotRun++
		case ans.Items[i].Verdict != gate.Allowed:
			r.State, r.Error = "denied", ans.Items[i].Message
			out.Failed++
		default:
			ended := t.runItem(ctx, b, ans, i, &r)
			if ended != "" || r.State != "succeeded" && b.AllOrNothing {
				stopped = "the batch ended at item " + fmt.Sprint(i)
				out.Message = stopped + ": " + r.Error
			}
			if r.State == "succeeded" {
				out.Succeeded++
			} else {
				out.Failed++
			}
		}
		out.Results = append(out.Results, r)
	}
	return out
}

// runItem decides an item again and performs it. It returns why the batch
// must end, "" if it goes on.
func (t *Tools) runItem(ctx context.Context, b *gate.Batch, ans *gate.BatchAnswer, i int, r *ItemResult) (ended string) {
	now := t.Gate.SubmitItem(ctx, b, ans, i)
	if now.Verdict != gate.Allowed {
		r.State, r.Error = "denied", now.Message
		return now.Message
	}
	out, err := t.perform(ctx, b.Calls[i], now)
	if err != nil {
		r.State, r.Error = "failed", err.Error()
		return ""
	}
	done := structured(out)
	r.State, r.Result = "succeeded", done.Structured
	return ""
}
