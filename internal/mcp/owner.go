package mcp

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/mcp/link"
	"github.com/seed-3ebc6b8a/gatehouse/internal/mcp/wire"
)

// A task of an upstream belongs to the agent whose call began it. Upstreams
// that several agents use know them apart by nothing but the task's id, and
// some count their tasks: so whoever names a task that is not theirs hears that
// there is none, and the upstream does not hear of it. What is not known any
// more, because the gate was started anew, is nobody's.

const (
	// ownedLife is how long a task that nobody asks about stays its owner's.
	ownedLife = 24 * time.Hour
	// maxOwned is how many tasks are known at a time; beyond it the oldest go.
	maxOwned = 10_000
)

// owners knows whose the tasks of upstreams are.
type owners struct {
	mu    sync.Mutex
	tasks map[ownedTask]owned
}

type ownedTask struct{ upstream, id string }

type owned struct {
	agent string
	used  time.Time
}

// note gives a task to an agent. A task that has an owner keeps it.
func (o *owners) note(t ownedTask, agent string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, known := o.tasks[t]; known {
		return
	}
	if o.tasks == nil {
		o.tasks = make(map[ownedTask]owned)
	}
	if len(o.tasks) >= maxOwned {
		o.forgetOldest()
	}
	o.tasks[t] = owned{agent, time.Now()}
}

// forgetOldest drops what was not asked about for long, or else the oldest.
func (o *owners) forgetOldest() {
	var oldest ownedTask
	for t, by := range o.tasks {
		if time.Since(by.used) > ownedLife {
			delete(o.tasks, t)
		} else if first := o.tasks[oldest]; first.used.IsZero() || by.used.Before(first.used) {
			oldest = t
		}
	}
	if len(o.tasks) >= maxOwned {
		delete(o.tasks, oldest)
	}
}

// is says whether a task is an agent's.
func (o *owners) is(t ownedTask, agent string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	by, ok := o.tasks[t]
	if !ok || by.agent != agent {
		return false
	}
	o.tasks[t] = owned{agent, time.Now()}
	return true
}

// noteTask notes the task that a response says has begun, if it does.
func (x *exchange) noteTask(t *target, r *wire.Message) {
	if r.Result.IsZero() {
		return
	}
	result := r.Value(r.Result)
	id := wire.Text(wire.Member(wire.Member(result, "task"), "taskId"))
	if id == "" {
		id = wire.Text(wire.Member(result, "taskId"))
	}
	if id != "" {
		x.front.owners.note(ownedTask{t.pinName(x.who), id}, x.who.Principal.Agent)
	}
}

// upstreamTask serves a request about tasks of an upstream: about the caller's
// own, and no others. A task's result is what the tool says, and is screened
// like an answer to the call itself.
func (x *exchange) upstreamTask(ctx context.Context, t *target, l *live, m *wire.Message, out link.Out) {
	mine := func(id string) bool {
		return x.front.owners.is(ownedTask{t.pinName(x.who), id}, x.who.Principal.Agent)
	}
	if m.Method == "tasks/list" {
		x.pass(ctx, t, l, m, out, func(r *wire.Message) []byte {
			if r.Result.IsZero() {
				return r.Raw
			}
			list, err := wire.ParseList(r, "tasks", "taskId")
			if err != nil {
				return errorMessage(m.Value(m.ID), codeInternal, "the MCP server "+t.name+" sent a list that cannot be read: "+err.Error(), nil)
			}
			return list.Write(func(it wire.Item) []byte {
				if !mine(it.Name) {
					return nil
				}
				return it.Of(r.Raw)
			}, nil)
		})
		return
	}
	if !mine(m.String("taskId")) {
		out.Head(http.StatusOK, false)
		_ = out.Event(wire.Event{Data: errorMessage(m.Value(m.ID), codeParams, "you have no such task", nil)}) // a client that is gone hears nothing
		return
	}
	x.pass(ctx, t, l, m, out, func(r *wire.Message) []byte {
		data, note := screen(r, "tools/call", x.outputWay(t))
		if note != "" {
			x.front.log.Warn("the result of a task", "upstream", t.name, "agent", x.who.Principal.Agent, "note", note)
		}
		return data
	})
}
