package mcp

import (
	"net/http"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-3ebc6b8a/gatehouse/internal/mcp/wire"
)

// The error codes of JSON-RPC and MCP that the front uses.
const (
	codeParse    = -32700
	codeInvalid  = -32600
	codeNoMethod = -32601
	codeParams   = -32602
	codeInternal = -32603
	codeRefused  = -32000
	codeHeader   = -32020
)

// Members of messages.
const (
	errorMember     = "error"
	resultTypeField = "resultType"
)

// httpOut writes an answer to a client: one JSON message, or a stream of
// server-sent events.
type httpOut struct {
	w      http.ResponseWriter
	status int
	stream bool
	begun  bool
	buf    []byte
}

// Head notes how the answer begins. Once it has begun that cannot change.
func (o *httpOut) Head(status int, stream bool) {
	if !o.begun {
		o.status, o.stream = status, stream
	}
}

// Event writes one message.
func (o *httpOut) Event(e wire.Event) error {
	if !o.stream {
		if o.begun {
			return nil // one message is all there is
		}
		o.begun = true
		h := o.w.Header()
		h.Set("Content-Type", "application/json")
		h.Set("Content-Length", strconv.Itoa(len(e.Data)))
		o.w.WriteHeader(max(o.status, http.StatusOK))
		_, err := o.w.Write(e.Data)
		return err
	}
	if !o.begun {
		o.begun = true
		h := o.w.Header()
		h.Set("Content-Type", "text/event-stream")
		h.Set("Cache-Control", "no-cache, no-transform")
		o.w.WriteHeader(max(o.status, http.StatusOK))
	}
	o.buf = e.Append(o.buf[:0])
	if _, err := o.w.Write(o.buf); err != nil {
		return err
	}
	return http.NewResponseController(o.w).Flush()
}

// open begins a stream before there is a message in it.
func (o *httpOut) open() {
	if o.begun || !o.stream {
		return
	}
	o.begun = true
	o.w.Header().Set("Content-Type", "text/event-stream")
	o.w.Header().Set("Cache-Control", "no-cache, no-transform")
	o.w.WriteHeader(max(o.status, http.StatusOK))
	_ = http.NewResponseController(o.w).Flush() // a client that is gone is noticed at the first message
}

// done ends an answer that had no message.
func (o *httpOut) done() {
	if !o.begun {
		o.begun = true
		o.w.WriteHeader(max(o.status, http.StatusAccepted))
	}
}

// fail answers with an error of the protocol.
func (o *httpOut) fail(status int, id jsontext.Value, code int, text string) {
	o.Head(status, false)
	_ = o.Event(wire.Event{Data: errorMessage(id, code, text, nil)}) // a client that is gone hears nothing
}

// errorMessage is a response with an error.
func errorMessage(id jsontext.Value, code int, text string, data any) []byte {
	if id == nil {
		id = jsontext.Value("null")
	}
	body := map[string]any{"code": code, "message": text}
	if data != nil {
		body["data"] = data
	}
	return response(id, errorMember, body)
}

// response is a response with a result or an error.
func response(id jsontext.Value, member string, body any) []byte {
	out, err := json.Marshal(struct {
		Version string         `json:"jsonrpc"`
		ID      jsontext.Value `json:"id"`
		Result  any            `json:"result,omitzero"`
		Error   any            `json:"error,omitzero"`
	}{Version: "2.0", ID: id, Result: pick(member == "result", body), Error: pick(member == errorMember, body)}, json.Deterministic(true))
	if err != nil {
		// What the front writes itself always encodes; an id that came in does too.
		return []byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"internal error"}}`)
	}
	return out
}

func pick(yes bool, v any) any {
	if yes {
		return v
	}
	return nil
}

// toolFailure is the result of a tool call that did not happen, for the model
// to read.
func toolFailure(id jsontext.Value, text string, modern bool) []byte {
	body := map[string]any{"content": []any{map[string]any{"type": "text", "text": text}}, "isError": true}
	if modern {
		body[resultTypeField] = "complete"
	}
	return response(id, "result", body)
}

// capture is an [link.Out] that keeps the response.
type capture struct {
	status   int
	response *wire.Message
	// also gets what comes before the response.
	also func(wire.Event) error
}

// Head notes the status.
func (c *capture) Head(status int, _ bool) { c.status = status }

// Event keeps the response and hands on the rest.
func (c *capture) Event(e wire.Event) error {
	m, err := wire.Parse(e.Data)
	if err != nil {
		return err
	}
	if m.Kind() == wire.Response {
		c.response = m
		return nil
	}
	if c.also != nil {
		return c.also(e)
	}
	return nil
}
