package mcp

import (
	"context"
	"crypto/rand"
	"net/http"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
	"github.com/seed-3ebc6b8a/gatehouse/internal/mcp/link"
	"github.com/seed-3ebc6b8a/gatehouse/internal/mcp/wire"
)

// A client that sends "task" with a call is ready to come back for the answer.
// If the call waits for a person it gets a task of the gate's own at once. The
// task belongs to whoever made it; it runs the call, once, when it is approved,
// and keeps the answer for a while.

const (
	taskPrefix = "gatehouse-task-"
	// taskLife is how long a task and its answer are kept.
	taskLife = 30 * time.Minute
	taskPoll = 2 * time.Second
)

// task is a call that waits for a person while its client does not.
type task struct {
	id      string
	owner   call.Principal
	created time.Time
	cancel  context.CancelFunc
	done    chan struct{}

	mu      sync.Mutex
	status  string
	message string
	answer  *wire.Message // the response of the upstream, or ours
}

// toTask puts a call that waits into a task and answers the client.
func (x *exchange) toTask(t *target, l *live, m *wire.Message, c *call.Call, ans *gate.Answer, out link.Out) {
	ctx, cancel := context.WithTimeout(context.Background(), taskLife)
	k := &task{
		id: taskPrefix + rand.Text(), owner: x.who.Principal, created: time.Now().UTC(), cancel: cancel,
		done: make(chan struct{}), status: "input_required", message: ans.Message,
	}
	f := x.front
	f.mu.Lock()
	f.tasks[k.id] = k
	f.running.Add(1)
	f.mu.Unlock()
	go func() {
		defer f.running.Done()
		defer close(k.done)
		defer cancel()
		x.runTask(ctx, k, t, l, m, c, ans.Request)
	}()
	out.Head(http.StatusOK, false)
	_ = out.Event(wire.Event{Data: response(m.Value(m.ID), "result", map[string]any{"task": k.view()})}) // a client that is gone does not come back either
}

// runTask waits for the person and runs the call if it is approved.
func (x *exchange) runTask(ctx context.Context, k *task, t *target, l *live, m *wire.Message, c *call.Call, request string) {
	id := m.Value(m.ID)
	ans := x.front.opts.Gate.Submit(ctx, gate.Submission{Call: c, Runs: "gate", Wait: taskLife, Shown: true})
	if ctx.Err() != nil {
		x.withdraw(context.Background(), request)
	}
	if ans.Verdict != gate.Allowed {
		k.end("failed", ans.Message, toolFailure(id, ans.Message, x.modern))
		return
	}
	k.set("working", "")
	// The upstream gets the call itself; the task is between us and the client.
	plain, err := wire.Parse(m.WithParams(map[string]jsontext.Value{"task": nil}))
	if err != nil {
		x.front.finish(ans.CallID, c.Principal, gate.Refused, err.Error())
		k.end("failed", err.Error(), toolFailure(id, err.Error(), x.modern))
		return
	}
	got := &capture{}
	err = l.conn.Send(ctx, plain, x.forward(plain), got)
	outcome, detail := outcomeOf(got.response, err)
	if got.response == nil {
		x.front.finishNow(ans.CallID, c.Principal, outcome, detail)
		k.end("failed", detail, toolFailure(id, "the MCP server "+t.name+" did not answer", x.modern))
		return
	}
	data, held := screen(got.response, m.Method, x.outputWay(t))
	x.front.finishNow(ans.CallID, c.Principal, outcome, noting(detail, held))
	k.end("completed", "", data)
}

func (k *task) set(status, message string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.status != "cancelled" {
		k.status, k.message = status, message
	}
}

func (k *task) end(status, message string, data []byte) {
	k.set(status, message)
	m, err := wire.Parse(data)
	if err != nil {
		return // the task stays without an answer and says failed
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.answer = m
}

// view is the task as a client sees it.
func (k *task) view() map[string]any {
	k.mu.Lock()
	defer k.mu.Unlock()
	out := map[string]any{
		"taskId": k.id, "status": k.status, "createdAt": k.created.Format(time.RFC3339), "lastUpdatedAt": time.Now().UTC().Format(time.RFC3339),
		"ttl": taskLife.Milliseconds(), "pollInterval": taskPoll.Milliseconds(),
	}
	if k.message != "" {
		out["statusMessage"] = k.message
	}
	return out
}

// ownTask answers a request about a task of the gate's own. It says whether it
// was one; tasks of upstreams are theirs.
func (x *exchange) ownTask(ctx context.Context, m *wire.Message, out link.Out) bool {
	f := x.front
	f.mu.Lock()
	k := f.tasks[m.String("taskId")]
	f.mu.Unlock()
	if k == nil || k.owner != x.who.Principal {
		return false
	}
	say := func(data []byte) {
		out.Head(http.StatusOK, false)
		_ = out.Event(wire.Event{Data: data}) // a client that is gone asks again
	}
	id := m.Value(m.ID)
	switch m.Method {
	case "tasks/get":
		say(response(id, "result", k.view()))
	case "tasks/cancel":
		k.set("cancelled", "")
		k.cancel()
		say(response(id, "result", k.view()))
	case "tasks/result":
		select {
		case <-k.done:
		case <-ctx.Done():
			return true
		}
		k.mu.Lock()
		answer := k.answer
		k.mu.Unlock()
		if answer == nil {
			say(errorMessage(id, codeRefused, "the task has no answer", nil))
			return true
		}
		say(wire.Splice(answer.Raw, wire.Edit{Span: answer.ID, New: id}))
	default:
		return false
	}
	return true
}

// sweepTasks ends tasks that are too old, or all at the zero time.
func (f *Front) sweepTasks(now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, k := range f.tasks {
		if now.IsZero() || now.Sub(k.created) > taskLife {
			k.cancel()
			delete(f.tasks, id)
		}
	}
}
