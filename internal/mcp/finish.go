package mcp

import (
	"context"
	"sync"
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

// endings are the outcomes that nobody has recorded yet.
type endings struct {
	mu   sync.Mutex
	list []gate.Ended
	some chan struct{} // says that there are some; closed when no more come
}

// add puts an outcome to the others. One of many wakes whoever records them, and
// where they are too many whoever brings the last has to take them all.
func (e *endings) add(one gate.Ended) (many []gate.Ended) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch e.list = append(e.list, one); len(e.list) {
	case 1:
		select {
		case e.some <- struct{}{}:
		default: // it was told already
		}
	case maxGather:
		many, e.list = e.list, nil
	}
	return many
}

func (e *endings) take() (all []gate.Ended) {
	e.mu.Lock()
	defer e.mu.Unlock()
	all, e.list = e.list, nil
	return all
}

// finish hands an outcome to whoever records them.
func (f *Front) finish(id string, p call.Principal, o gate.Outcome, detail string) {
	f.record(f.ended.add(gate.Ended{CallID: id, Principal: p, Outcome: o, Detail: detail}))
}

// finishNow records an outcome that later calls are judged by: whoever has the
// answer may go on at once.
func (f *Front) finishNow(id string, p call.Principal, o gate.Outcome, detail string) {
	if err := f.opts.Gate.FinishAll(context.Background(), []gate.Ended{{CallID: id, Principal: p, Outcome: o, Detail: detail}}); err != nil {
		f.log.Error("an outcome could not be recorded", "call", id, "error", err)
	}
}

// recordOutcomes records outcomes, those of a moment together, until no more
// come.
func (f *Front) recordOutcomes() {
	for open := true; open; {
		_, open = <-f.ended.some
		if open {
			time.Sleep(gather)
		}
		f.record(f.ended.take())
	}
}

func (f *Front) record(batch []gate.Ended) {
	if len(batch) == 0 {
		return
	}
	if err := f.opts.Gate.FinishAll(context.Background(), batch); err != nil {
		f.log.Error("an outcome could not be recorded", "calls", len(batch), "error", err)
	}
}
