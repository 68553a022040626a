package mcp

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
	"github.com/seed-3ebc6b8a/gatehouse/internal/mcp/link"
	"github.com/seed-3ebc6b8a/gatehouse/internal/mcp/wire"
	"github.com/seed-3ebc6b8a/gatehouse/internal/policy"
)

// modernVersion is the first revision without sessions.
const modernVersion = "2026-07-28"

// Metadata of the newer wire.
const (
	metaVersion      = "io.modelcontextprotocol/protocolVersion"
	metaClient       = "io.modelcontextprotocol/clientInfo"
	metaCapabilities = "io.modelcontextprotocol/clientCapabilities"
)

// exchange is one message of a client and its answer.
type exchange struct {
	front   *Front
	request *http.Request
	header  http.Header
	who     Who
	only    string // the upstream that was addressed, "" for all
	session *session
	modern  bool
	message *wire.Message
	out     *httpOut
}

// classify finds out which wire the message belongs to, and refuses headers
// that say something else than the message: what routes or filters by them
// would see another call than the one that is decided on.
func (x *exchange) classify() bool {
	m := x.message
	version := x.header.Get("Mcp-Protocol-Version")
	inBody := wire.Text(m.Value(m.Meta(metaVersion)))
	x.modern = version >= modernVersion || inBody != "" && x.session == nil
	if m.Kind() == wire.Response {
		return true
	}
	if !x.modern {
		// The older wire has no such headers; one that is there all the same
		// must not lead anyone to another call.
		if problem := x.misleads(); problem != "" {
			x.out.fail(http.StatusBadRequest, m.Value(m.ID), codeHeader, "header mismatch: "+problem)
			return false
		}
		return true
	}
	if m.Kind() == wire.Request && (inBody == "" || m.Value(m.Meta(metaCapabilities)).Kind() != '{') {
		x.out.fail(http.StatusBadRequest, m.Value(m.ID), codeParams, "_meta must name the protocol's version and the client's capabilities")
		return false
	}
	if problem := x.disagrees(version, inBody); problem != "" {
		x.out.fail(http.StatusBadRequest, m.Value(m.ID), codeHeader, "header mismatch: "+problem)
		return false
	}
	return true
}

func (x *exchange) disagrees(version, inBody string) string {
	m := x.message
	if version == "" {
		return "the MCP-Protocol-Version header is missing"
	}
	if inBody != "" && inBody != version {
		return "MCP-Protocol-Version says " + version + ", the message " + inBody
	}
	if len(x.header.Values("Mcp-Method")) == 0 && m.Kind() == wire.Request {
		return "the Mcp-Method header is missing"
	}
	if _, named := nameOf(m); named && len(x.header.Values("Mcp-Name")) == 0 {
		return "the Mcp-Name header is missing"
	}
	return x.misleads()
}

// misleads says which header names something else than the message does.
func (x *exchange) misleads() string {
	m := x.message
	if method := x.header.Values("Mcp-Method"); len(method) > 1 || len(method) == 1 && method[0] != m.Method {
		return "Mcp-Method does not name the method of the message"
	}
	name, named := nameOf(m)
	if got := x.header.Values("Mcp-Name"); len(got) > 1 || len(got) == 1 && (!named || wire.DecodeHeader(got[0]) != name) {
		return "Mcp-Name does not name what the message names"
	}
	return ""
}

// nameOf is what the Mcp-Name header repeats.
func nameOf(m *wire.Message) (string, bool) {
	switch m.Method {
	case "tools/call", "prompts/get":
		return m.String("name"), true
	case "resources/read":
		return m.String("uri"), true
	}
	return "", false
}

// forwarded are the headers that go on to the upstream, besides Mcp-Param-*.
var forwarded = map[string]bool{"Mcp-Protocol-Version": true, "Mcp-Method": true, "Mcp-Name": true, "Traceparent": true, "Tracestate": true, "Baggage": true}

// forward returns the headers for the upstream.
func (x *exchange) forward(m *wire.Message) http.Header {
	out := http.Header{}
	for name, values := range x.header {
		if forwarded[name] || strings.HasPrefix(name, "Mcp-Param-") {
			out[name] = values
		}
	}
	if m != x.message && x.modern {
		out.Set("Mcp-Method", m.Method)
		out.Del("Mcp-Name")
		if name, ok := nameOf(m); ok {
			out.Set("Mcp-Name", wire.EncodeHeader(name))
		}
	}
	return out
}

// serve answers the message.
func (x *exchange) serve(ctx context.Context) {
	m := x.message
	if x.session != nil {
		x.session.touch()
		switch {
		case m.Kind() == wire.Response && x.session.answer(m):
			x.out.done() // it was a question of ours
			return
		case m.Method == "notifications/cancelled":
			x.session.cancel(string(m.Value(m.Param("requestId"))))
		case m.Kind() == wire.Request:
			var end func()
			ctx, end = x.session.begin(ctx, string(m.Value(m.ID)))
			defer end()
		}
	}
	switch {
	case strings.HasPrefix(m.Method, "tasks/") && x.ownTask(ctx, m, x.out):
	case m.Method == "initialize" && !x.modern:
		x.initialize(ctx)
	case x.only == "":
		x.serveAll(ctx)
	default:
		t, err := x.front.target(ctx, x.who.Principal, x.only)
		if err != nil {
			x.out.fail(http.StatusNotFound, m.Value(m.ID), codeRefused, err.Error())
			return
		}
		x.handle(ctx, t, m, x.out)
	}
	x.out.done()
}

// handle takes one message to one upstream: through the gate where it asks for
// something, past the filters on the way back.
func (x *exchange) handle(ctx context.Context, t *target, m *wire.Message, out link.Out) {
	if t.own {
		ctx = x.as(ctx)
	}
	l, err := x.live(ctx, t)
	if err != nil {
		x.broken(t, m, out, err)
		return
	}
	if m.Kind() != wire.Request {
		if err := l.conn.Send(ctx, m, x.forward(m), out); err != nil && m.Kind() == wire.Response {
			x.broken(t, m, out, err)
		}
		return
	}
	switch {
	case t.own:
		x.pass(ctx, t, l, m, out, nil)
	case lists[m.Method] != (listing{}):
		x.list(ctx, t, l, m, out)
	case m.Method == "server/discover":
		x.pass(ctx, t, l, m, out, func(r *wire.Message) []byte { return x.pinInstructions(ctx, t, r) })
	case strings.HasPrefix(m.Method, "tasks/"):
		x.upstreamTask(ctx, t, l, m, out)
	case free[m.Method]:
		x.pass(ctx, t, l, m, out, nil)
	default:
		x.admitted(ctx, t, l, m, out)
	}
}

// free are the requests that do nothing anyone has to decide about.
var free = map[string]bool{
	"ping": true, "logging/setLevel": true, "resources/unsubscribe": true,
}

// pass forwards a request and its answer; change may change the response.
func (x *exchange) pass(ctx context.Context, t *target, l *live, m *wire.Message, out link.Out, change func(*wire.Message) []byte) (*wire.Message, error) {
	f := &filter{out: out, target: t, live: l, change: change, way: x.outputWay(t), modern: x.modern}
	err := l.conn.Send(ctx, m, x.forward(m), f)
	if err == nil && f.response == nil {
		err = errors.New("the upstream did not answer")
	}
	if err != nil {
		if f.response == nil {
			x.broken(t, m, out, err)
		}
		return f.response, err
	}
	return f.response, nil
}

// filter is what an upstream's messages pass on their way to the client.
type filter struct {
	out      link.Out
	target   *target
	live     *live
	change   func(*wire.Message) []byte
	way      func() string // what happens to suspicious output
	response *wire.Message
	modern   bool
	plain    bool // the answer is one message, with status 200 so far
}

// Head is passed on.
func (f *filter) Head(status int, stream bool) {
	f.plain = status == http.StatusOK && !stream
	f.out.Head(status, stream)
}

// statuses are the HTTP statuses that belong to errors on the newer wire. An
// upstream that speaks HTTP sets them itself.
var statuses = map[string]int{
	"-32601": http.StatusNotFound, "-32020": http.StatusBadRequest, "-32021": http.StatusBadRequest, "-32022": http.StatusBadRequest,
}

// Event passes a message on. What cannot be read strictly is not passed: the
// client might read it in another way.
func (f *filter) Event(e wire.Event) error {
	if len(e.Data) == 0 {
		return f.out.Event(e) // only an event id, for taking up a stream
	}
	m, err := wire.Parse(e.Data)
	if err != nil {
		return err
	}
	switch {
	case m.Kind() == wire.Response:
		f.response = m
		if f.modern && f.plain && !m.Error.IsZero() {
			if status := statuses[string(wire.Member(m.Value(m.Error), "code"))]; status != 0 {
				f.out.Head(status, false)
			}
		}
		if f.change != nil {
			e.Data = f.change(m)
		}
	case strings.HasSuffix(m.Method, "/list_changed"):
		f.live.stale()
	case f.unwanted(m):
		return nil
	}
	return f.out.Event(e)
}

// unwanted keeps back a message that a server sends by itself and that tries to
// give orders: there is no answer of a call in which it could be marked. A
// request is refused in the client's name.
func (f *filter) unwanted(m *wire.Message) bool {
	if f.target.own || m.Method == "notifications/progress" || !suspicious(m.Value(m.Params)) || f.way() == policy.OutputFlag {
		return false
	}
	if m.Kind() == wire.Request {
		if no, err := wire.Parse(errorMessage(m.Value(m.ID), codeRefused, "refused by the gate: it looks like an attack", nil)); err == nil {
			_ = f.live.conn.Send(context.Background(), no, nil, link.Discard{}) // a server that is gone needs no answer
		}
	}
	return true
}

// broken answers a request whose upstream did not.
func (x *exchange) broken(t *target, m *wire.Message, out link.Out, err error) {
	if x.request.Context().Err() == nil {
		x.front.log.Warn("an upstream failed", "upstream", t.name, "method", m.Method, "error", err)
	}
	if status := link.Status(err); status == http.StatusNotFound && !x.modern {
		out.Head(status, false) // its session is gone; the client begins again
		if m.Kind() == wire.Request {
			_ = out.Event(wire.Event{Data: errorMessage(m.Value(m.ID), codeRefused, "the upstream does not know the session any more", nil)}) // a client that is gone hears nothing
		}
		return
	}
	if m.Kind() != wire.Request {
		return
	}
	out.Head(http.StatusOK, false)
	_ = out.Event(wire.Event{Data: errorMessage(m.Value(m.ID), codeInternal, "the MCP server "+t.name+" did not answer: "+err.Error(), nil)}) // as above
}

// admitted takes a request through the gate and forwards it if it is allowed.
func (x *exchange) admitted(ctx context.Context, t *target, l *live, m *wire.Message, out link.Out) {
	id := m.Value(m.ID)
	refuse := func(text string) {
		out.Head(http.StatusOK, false)
		data := errorMessage(id, codeRefused, text, nil)
		if m.Method == "tools/call" {
			data = toolFailure(id, text, x.modern)
		}
		_ = out.Event(wire.Event{Data: data}) // a client that is gone hears nothing
	}
	state, m, err := x.resume(m)
	if err != nil {
		refuse(err.Error())
		return
	}
	c, err := x.call(ctx, t, l, m)
	if err != nil {
		refuse(err.Error())
		return
	}
	ans, answered := x.ask(ctx, t, l, m, c, state, out)
	switch {
	case answered:
		return
	case ans.Verdict != gate.Allowed:
		refuse(ans.Message)
		return
	}
	if ans.Edited != nil {
		// The person changed the arguments; what was approved is what runs.
		if m, err = edited(m, ans.Edited); err != nil {
			x.front.finish(ans.Edited.ID, c.Principal, gate.Refused, err.Error())
			refuse("Not run: " + err.Error())
			return
		}
		ans.CallID = ans.Edited.ID
	}
	told := false
	var held string
	resp, err := x.pass(ctx, t, l, m, out, func(r *wire.Message) []byte {
		x.noteTask(t, r)
		data, note := screen(r, m.Method, x.outputWay(t))
		if held = note; ans.Counted && !told {
			told = true
			outcome, detail := outcomeOf(r, nil)
			x.front.finishNow(ans.CallID, c.Principal, outcome, noting(detail, held))
		}
		return data
	})
	if told {
		return
	}
	outcome, detail := outcomeOf(resp, err)
	x.front.finish(ans.CallID, c.Principal, outcome, noting(detail, held))
}

// noting adds what was held back of an answer to how the call ended.
func noting(detail, held string) string {
	if held == "" {
		return detail
	}
	return strings.TrimPrefix(detail+"; "+held, "; ")
}

// edited returns the request with the arguments that a person gave it.
func edited(m *wire.Message, c *call.Call) (*wire.Message, error) {
	if m.Method != "tools/call" {
		return nil, errors.New("only the arguments of a tool can be edited")
	}
	return wire.Parse(m.WithParams(map[string]jsontext.Value{"arguments": c.Args}))
}

// outcomeOf says how a forwarded request ended.
func outcomeOf(r *wire.Message, err error) (gate.Outcome, string) {
	switch {
	case r == nil && err != nil:
		return gate.Unknown, "no answer came: " + err.Error()
	case r == nil:
		return gate.Unknown, "no answer came"
	case !r.Error.IsZero():
		return gate.Failed, wire.Text(wire.Member(r.Value(r.Error), "message"))
	case string(wire.Member(r.Value(r.Result), "isError")) == "true":
		return gate.Failed, "the tool reported an error"
	case wire.Text(wire.Member(r.Value(r.Result), resultTypeField)) == "input_required":
		return gate.Succeeded, "the server asks for more input"
	}
	return gate.Succeeded, ""
}
