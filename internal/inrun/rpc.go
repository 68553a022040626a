package inrun

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// rpc is a conversation in JSON-RPC, where both sides ask.
type rpc struct {
	*conversation
	// version is written into every message; Codex leaves it out.
	version string
	// asked takes what the CLI asks, and told what it tells.
	asked func(ctx context.Context, m *message) error
	told  func(method string, params jsontext.Value) error

	next    int
	waiting map[int]func(result jsontext.Value) error
	over    bool
}

// message is a request, a notification or a response.
type message struct {
	ID     jsontext.Value `json:"id"`
	Method string         `json:"method"`
	Params jsontext.Value `json:"params"`
	Result jsontext.Value `json:"result"`
	Error  *struct {
		Message string         `json:"message"`
		Data    jsontext.Value `json:"data"`
	} `json:"error"`
	// strict says that the message has one meaning only.
	strict bool
}

// take handles one message.
func (r *rpc) take(ctx context.Context, line []byte) (over bool, err error) {
	var m message
	if err := json.Unmarshal(line, &m, lenient); err != nil {
		return false, fmt.Errorf("%w: %w", ErrGarbage, err)
	}
	m.strict = jsontext.Value(line).IsValid()
	switch {
	case m.Method != "" && len(m.ID) > 0:
		err = r.asked(ctx, &m)
	case m.Method != "":
		err = r.told(m.Method, m.Params)
	default:
		err = r.answered(&m)
	}
	return r.over, err
}

// answered goes on with what waited for a response.
func (r *rpc) answered(m *message) error {
	var id int
	if len(m.ID) == 0 {
		return fmt.Errorf("%w: a response without an id", ErrGarbage)
	}
	if json.Unmarshal(m.ID, &id) != nil {
		return nil // to a remark
	}
	then, waits := r.waiting[id]
	delete(r.waiting, id)
	switch {
	case !waits:
		return nil
	case m.Error != nil:
		return fmt.Errorf("the agent refuses to go on: %.300s %.300s", m.Error.Message, m.Error.Data)
	}
	return then(m.Result)
}

// request asks the CLI. It is called from the loop alone; then, too.
func (r *rpc) request(method string, params any, then func(result jsontext.Value) error) error {
	r.next++
	r.waiting[r.next] = then
	return r.write(object{"id": r.next, "method": method, "params": params})
}

// remark asks the CLI for something whose answer does not matter, from any
// goroutine.
func (r *rpc) remark(id, method string, params any) error {
	return r.write(object{"id": id, "method": method, "params": params})
}

func (r *rpc) respond(m *message, result any) error {
	return r.write(object{"id": m.ID, "result": result})
}

// decline refuses a request that the gate does not know or cannot read.
func (r *rpc) decline(m *message) error {
	const methodNotFound = -32601
	return r.write(object{"id": m.ID, "error": object{"code": methodNotFound, "message": "the gate does not answer this"}})
}

func (r *rpc) write(o object) error {
	if r.version != "" {
		o["jsonrpc"] = r.version
	}
	return r.send(o)
}
