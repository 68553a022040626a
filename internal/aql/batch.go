package aql

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-3ebc6b8a/gatehouse/internal/activation"
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
	// State is succeeded, failed, denied, not_run, or taken_back because
	// another item of a batch with all_or_nothing did not succeed.
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
		if in.AllOrNothing && t.Native.Serves(c.Operation) && !t.Native.Reversible(c.Operation) {
			return failed(refused("item %d (%s) cannot be taken back, so it cannot be part of a batch with all_or_nothing; nothing was done", i, c.Operation))
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
	t.finish(ctx, gate.Ended{
		CallID: ans.CallID, Principal: who.Principal, Outcome: outcome, Detail: fmt.Sprintf("%d of %d operations succeeded", out.Succeeded, out.Total),
	})
	r := structured(out)
	r.IsError = out.Succeeded < out.Total
	return r
}

// runBatch performs what was let through.
func (t *Tools) runBatch(ctx context.Context, b *gate.Batch, ans *gate.BatchAnswer) *BatchResult {
	out := &BatchResult{Total: len(b.Calls), Results: []ItemResult{}}
	perform, settle := t.perform, func(*BatchResult) {}
	if b.AllOrNothing {
		w := &whole{tools: t, trail: t.Begin(ans.CallID)}
		t.turn.Lock()
		defer t.turn.Unlock()
		perform, settle = w.perform, func(out *BatchResult) { w.settle(context.WithoutCancel(ctx), out) }
	}
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
			ended := t.runItem(ctx, b, ans, i, &r, perform)
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
	settle(out)
	return out
}

// runItem decides an item again and performs it. It returns why the batch
// must end, "" if it goes on.
func (t *Tools) runItem(ctx context.Context, b *gate.Batch, ans *gate.BatchAnswer, i int, r *ItemResult,
	perform func(context.Context, *call.Call, *gate.Answer) (any, error)) (ended string) {
	now := t.Gate.SubmitItem(ctx, b, ans, i)
	if now.Verdict != gate.Allowed {
		r.State, r.Error = "denied", now.Message
		return now.Message
	}
	out, err := perform(ctx, b.Calls[i], now)
	if err != nil {
		r.State, r.Error = "failed", err.Error()
		return ""
	}
	done := structured(out)
	r.State, r.Result = "succeeded", done.Structured
	return ""
}

// whole is a batch that is done whole or not at all. How its items ended is
// known, and recorded, when it is over.
type whole struct {
	tools *Tools
	trail *activation.Trail
	ended []gate.Ended
}

// perform runs an item and keeps what it changes.
func (w *whole) perform(ctx context.Context, c *call.Call, ans *gate.Answer) (any, error) {
	out, err := w.tools.Native.Run(ctx, job(c, ans, w.trail))
	end := gate.Ended{CallID: ans.CallID, Principal: c.Principal, Outcome: gate.Succeeded}
	if err != nil {
		end.Outcome, end.Detail = gate.Failed, err.Error()
	}
	w.ended = append(w.ended, end)
	return out, err
}

// settle keeps what was done if all of it was, and takes it back if not.
func (w *whole) settle(ctx context.Context, out *BatchResult) {
	if out.Succeeded == out.Total {
		err := w.trail.Keep(ctx)
		if err == nil {
			w.finish(ctx)
			return
		}
		out.Message = "the batch could not be made durable: " + err.Error()
	}
	left, err := w.trail.TakeBack(ctx)
	what := "taken back"
	switch {
	case err != nil:
		w.tools.Log.Error("a batch could not be taken back", "error", err)
		what = "not taken back yet, because of a failure of the gate; it will be when the gate starts again"
	case len(left) > 0:
		what = "taken back, except that " + strings.Join(left, "; ")
	}
	for i := range out.Results {
		if r := &out.Results[i]; r.State == "succeeded" {
			r.State, r.Result, r.Error = "taken_back", nil, what
		}
	}
	for i := range w.ended {
		if e := &w.ended[i]; e.Outcome == gate.Succeeded {
			e.Outcome, e.Detail = gate.Failed, what
		}
	}
	out.Message += ". What was done before it was " + what + "."
	out.Failed, out.Succeeded = out.Failed+out.Succeeded, 0
	w.finish(ctx)
}

func (w *whole) finish(ctx context.Context) {
	if len(w.ended) > 0 {
		w.tools.finish(ctx, w.ended...)
	}
}
