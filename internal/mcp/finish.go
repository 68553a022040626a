package mcp

import (
	"context"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
)

// Outcomes are recorded a moment after the client has its answer, several in
// one transaction: a commit costs more than all the rest of a call. A gate that
// stops before one is durable records it as unknown, as it does for every call
// whose end nobody told.

const (
	gather    = 20 * time.Millisecond
	maxGather = 512
)

// finish hands an outcome to whoever records them.
func (f *Front) finish(id string, p call.Principal, o gate.Outcome, detail string) {
	f.ended <- gate.Ended{CallID: id, Principal: p, Outcome: o, Detail: detail}
}

// finishNow records an outcome that later calls are judged by: whoever has the
// answer may go on at once.
func (f *Front) finishNow(id string, p call.Principal, o gate.Outcome, detail string) {
	if err := f.opts.Gate.FinishAll(context.Background(), []gate.Ended{{CallID: id, Principal: p, Outcome: o, Detail: detail}}); err != nil {
		f.log.Error("an outcome could not be recorded", "call", id, "error", err)
	}
}

// recordOutcomes records outcomes until the channel is closed.
func (f *Front) recordOutcomes() {
	for first := range f.ended {
		batch, open := f.collect(first)
		if err := f.opts.Gate.FinishAll(context.Background(), batch); err != nil {
			f.log.Error("an outcome could not be recorded", "calls", len(batch), "error", err)
		}
		if !open {
			return
		}
	}
}

// collect gathers what ends within a moment.
func (f *Front) collect(first gate.Ended) (batch []gate.Ended, open bool) {
	batch = append(batch, first)
	timer := time.NewTimer(gather)
	defer timer.Stop()
	for len(batch) < maxGather {
		select {
		case e, ok := <-f.ended:
			if !ok {
				return batch, false
			}
			batch = append(batch, e)
		case <-timer.C:
			return batch, true
		}
	}
	return batch, true
}
