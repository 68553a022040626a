package mcp

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
	"github.com/seed-3ebc6b8a/gatehouse/internal/mcp/link"
	"github.com/seed-3ebc6b8a/gatehouse/internal/mcp/wire"
)

// How a question waits for a person follows what the client can do, best first.
//
//   - The newer wire, elicitation declared: the request is answered at once
//     with "input required", which points the person to the gate's page, and a
//     sealed state that the client sends back. The retry is held for a while.
//   - The older wire, elicitation declared: the person is pointed there by a
//     request on the call's own stream while the call is held.
//   - A task asked for: the client gets one at once and comes back (task.go).
//   - A progress token: the call is held and reports progress.
//   - None of that: the call is held for a short time where a person is known
//     to look, and then answered with "pending"; the identical call, repeated,
//     finds the same question and uses its answer once.
//
// What a client says about a person is the client's word. It can withdraw a
// question; it never approves.

const (
	// retryHold is how long a retry is held: clients retry at once and give up
	// after a few rounds.
	retryHold = 25 * time.Second
	// beat is the time between two reports of progress.
	beat = 10 * time.Second
	// defaultHold is below the shortest limit that clients are known to have.
	defaultHold = 50 * time.Second
)

// holds are the limits of known clients, by the beginning of their names, with
// a margin.
var holds = []struct {
	client string
	limit  time.Duration
}{
	{"claude-code", 110 * time.Second},
	{"codex", 280 * time.Second},
	{"gemini-cli", 570 * time.Second},
}

func holdOf(client string) time.Duration {
	for _, h := range holds {
		if strings.HasPrefix(strings.ToLower(client), h.client) {
			return h.limit
		}
	}
	return defaultHold
}

// heldState is what a client of the newer wire keeps for us, sealed.
type heldState struct {
	Principal call.Principal `json:"principal"`
	Request   string         `json:"request"`
	Digest    call.Digest    `json:"digest"`
	Until     time.Time      `json:"until"`
	// State and Responses are the upstream's own, which the held request
	// carried.
	State     jsontext.Value `json:"state,omitzero"`
	Responses jsontext.Value `json:"responses,omitzero"`

	declined bool
}

const (
	statePrefix  = "gatehouse:"
	statePurpose = "mcp request state"
	inputName    = "gatehouse-approval"
)

// resume takes a state of ours out of a retried request, and returns the
// request as it was when it was held.
func (x *exchange) resume(m *wire.Message) (*heldState, *wire.Message, error) {
	text, ours := strings.CutPrefix(m.String("requestState"), statePrefix)
	if !ours {
		return nil, m, nil
	}
	errBad := denied("the state of the request is not one the gate gave you, or it has run out; send the request again without it")
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return nil, m, errBad
	}
	plain, err := x.front.opts.Open(statePurpose, sealed)
	if err != nil {
		return nil, m, errBad
	}
	st := &heldState{}
	if err := json.Unmarshal(plain, st); err != nil || st.Principal != x.who.Principal || time.Now().After(st.Until) {
		return nil, m, errBad
	}
	switch wire.Text(wire.Member(wire.Member(m.Value(m.Param("inputResponses")), inputName), "action")) {
	case "decline", "cancel":
		st.declined = true
	}
	m, err = wire.Parse(m.WithParams(map[string]jsontext.Value{"requestState": st.State, "inputResponses": st.Responses}))
	return st, m, err
}

// ask takes a call through the gate. It says so if the client has its answer
// already.
func (x *exchange) ask(ctx context.Context, t *target, l *live, m *wire.Message, c *call.Call, st *heldState, out link.Out) (ans *gate.Answer, answered bool) {
	sub := gate.Submission{Call: c, Runs: "gate"}
	if st != nil {
		if problem := x.changed(ctx, c, st); problem != "" {
			return &gate.Answer{Message: problem, Final: true}, false
		}
		sub.Wait, sub.Shown = retryHold, true
	}
	ans = x.front.opts.Gate.Submit(ctx, sub)
	if ans.Verdict != gate.Pending {
		return ans, false
	}
	if x.gone(ctx, ans) || !x.front.opts.Gate.Attended(c) {
		return ans, false
	}
	if x.session != nil && m.Value(m.Param("task")).Kind() == '{' {
		x.toTask(t, l, m, c, ans, out)
		return ans, true
	}
	elicit := x.elicitation(m)
	if x.modern && elicit != nil {
		return ans, x.inputRequired(m, ans, elicit, out)
	}
	return x.hold(ctx, m, c, ans, elicit, out), false
}

// changed says why a retry is not for the call that was asked about.
func (x *exchange) changed(ctx context.Context, c *call.Call, st *heldState) string {
	if st.declined {
		x.withdraw(ctx, st.Request)
		return "Denied: the person you work for declined."
	}
	if err := c.Normalize(); err != nil {
		return "Denied: " + err.Error()
	}
	if c.Digest() != st.Digest {
		return "Denied: the request is not the one that was asked about; send it anew, without the state."
	}
	return ""
}

// gone withdraws a question that nobody waits for any more.
func (x *exchange) gone(ctx context.Context, ans *gate.Answer) bool {
	if ctx.Err() == nil {
		return false
	}
	x.withdraw(ctx, ans.Request)
	return true
}

func (x *exchange) withdraw(ctx context.Context, request string) {
	err := x.front.opts.Gate.Withdraw(context.WithoutCancel(ctx), x.who.Principal.Agent, request)
	if err != nil {
		x.front.log.Debug("a question could not be withdrawn; it may be answered already", "request", request, "error", err)
	}
}

// elicitation returns what the client declared about asking its user, nil if
// it cannot.
func (x *exchange) elicitation(m *wire.Message) jsontext.Value {
	caps := m.Value(m.Meta(metaCapabilities))
	if x.session != nil {
		caps = x.session.caps
	}
	return wire.Member(caps, "elicitation")
}

// page is where a person answers a request.
func (x *exchange) page(request string) string {
	return x.front.opts.BaseURL + "/requests/" + url.PathEscape(request)
}

// elicitParams is what a client is asked to show: the address of the gate's
// page where it can, else a form with nothing to fill in.
func (x *exchange) elicitParams(id string, ans *gate.Answer, declared jsontext.Value) map[string]any {
	page := x.page(ans.Request)
	if wire.Member(declared, "url") != nil {
		p := map[string]any{"mode": "url", "url": page, "message": "The gate asks for your approval. " + ans.Message}
		if !x.modern {
			p["elicitationId"] = id
		}
		return p
	}
	p := map[string]any{
		"message":         "The gate asks for an approval, which is given at " + page + " and not here. " + ans.Message,
		"requestedSchema": map[string]any{"type": "object", "properties": map[string]any{}},
	}
	if x.modern || wire.Member(declared, "form") != nil {
		p["mode"] = "form"
	}
	return p
}

// inputRequired answers a request of the newer wire with a question.
func (x *exchange) inputRequired(m *wire.Message, ans *gate.Answer, declared jsontext.Value, out link.Out) bool {
	st := &heldState{
		Principal: x.who.Principal, Request: ans.Request, Digest: ans.Decision.Digest, Until: ans.Expires,
		State: m.Value(m.Param("requestState")), Responses: m.Value(m.Param("inputResponses")),
	}
	plain, err := json.Marshal(st)
	if err != nil {
		return false
	}
	sealed, err := x.front.opts.Seal(statePurpose, plain)
	if err != nil {
		return false
	}
	out.Head(http.StatusOK, false)
	data := response(m.Value(m.ID), "result", map[string]any{
		resultTypeField: "input_required",
		"inputRequests": map[string]any{inputName: map[string]any{"method": "elicitation/create", "params": x.elicitParams("", ans, declared)}},
		"requestState":  statePrefix + base64.RawURLEncoding.EncodeToString(sealed),
	})
	_ = out.Event(wire.Event{Data: data}) // a client that is gone repeats the call and finds the question
	return true
}

// hold keeps a call until a person answers, the client's patience ends or the
// client goes away.
func (x *exchange) hold(ctx context.Context, m *wire.Message, c *call.Call, ans *gate.Answer, declared jsontext.Value, out link.Out) *gate.Answer {
	limit := holdOf(x.clientName(m))
	token := m.Value(m.Meta("progressToken"))
	shown := declared != nil && x.session != nil
	done := make(chan *gate.Answer, 1)
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		done <- x.front.opts.Gate.Submit(waiting, gate.Submission{Call: c, Runs: "gate", Wait: limit, Shown: shown || token != nil})
	}()
	var reply <-chan *wire.Message
	if shown {
		id := inputName + "-" + rand.Text()
		var forget func()
		reply, forget = x.session.question(id)
		defer forget()
		out.Head(http.StatusOK, true)
		question, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": x.elicitParams(id, ans, declared)}, json.Deterministic(true))
		if err == nil {
			err = out.Event(wire.Event{Data: question})
		}
		if err != nil {
			stop()
		}
	}
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case got := <-done:
			if got.Verdict != gate.Allowed && ctx.Err() != nil {
				x.withdraw(ctx, ans.Request)
			}
			return got
		case r := <-reply:
			reply = nil
			if action := wire.Text(wire.Member(r.Value(r.Result), "action")); action == "decline" || action == "cancel" {
				stop()
				<-done
				x.withdraw(ctx, ans.Request)
				return &gate.Answer{Message: "Denied: the person you work for declined.", Final: true}
			}
		case <-tick.C:
			if token == nil {
				continue
			}
			out.Head(http.StatusOK, true)
			note := `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + string(token) + `,"progress":` + string(jsontext.Int(int64(n)).String()) +
				`,"message":` + string(wire.Quote("waiting for approval "+ans.Request)) + `}}`
			if out.Event(wire.Event{Data: []byte(note)}) != nil {
				stop() // the client is gone
			}
		}
	}
}

// clientName is what the client calls itself.
func (x *exchange) clientName(m *wire.Message) string {
	if x.session != nil {
		return x.session.client
	}
	return wire.Text(wire.Member(m.Value(m.Meta(metaClient)), "name"))
}
