package gateway_test

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/mcp/wire"
)

// states lists the states of all requests.
func (h *house) states() string {
	h.t.Helper()
	got := &api.ApprovalList{}
	if err := h.Client(h.credential).Do(context.Background(), "GET", "/v1/approvals", nil, got); err != nil {
		h.t.Fatal(err)
	}
	var out []string
	for _, r := range got.Requests {
		out = append(out, r.State)
	}
	return strings.Join(out, " ")
}

// TestPendingAndRepeated: a client that can do nothing special is told that the
// call waits; the identical call, repeated, uses the approval once, and a
// changed one does not use it at all.
func TestPendingAndRepeated(t *testing.T) {
	t.Parallel()
	h := newHouse(t, asking)
	session := h.begin("/mcp/files", `{}`)
	call := func(id, args, meta string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"echo","arguments":` + args + `,"_meta":` + meta + `}}`
	}
	r := h.say("/mcp/files", call("1", `{"n":9007199254740992}`, `{"v":1}`), session)
	if !strings.Contains(r.last(), "Pending") || !strings.Contains(r.last(), `"isError":true`) {
		t.Fatalf("the first: %s", r.last())
	}
	h.approve()
	for name, body := range map[string]string{
		"another number":      call("2", `{"n":9007199254740993}`, `{"v":1}`),
		"other metadata":      call("3", `{"n":9007199254740992}`, `{"v":2}`),
		"another parameter":   strings.Replace(call("4", `{"n":9007199254740992}`, `{"v":1}`), `"params":{`, `"params":{"more":1,`, 1),
		"another tool":        strings.Replace(call("5", `{"n":9007199254740992}`, `{"v":1}`), `"echo"`, `"page"`, 1),
		"a header in the way": call("6", `{"n":9007199254740992}`, `{"v":1}`),
	} {
		header := map[string]string{}
		for k, v := range session {
			header[k] = v
		}
		if strings.HasPrefix(name, "a header") {
			header["Mcp-Param-Region"] = "eu"
		}
		if r := h.say("/mcp/files", body, header); !strings.Contains(r.last(), "Pending") {
			t.Errorf("%s: %s", name, r.last())
		}
	}
	if got := h.upstreamHeard("tools/call"); len(got) != 0 {
		t.Fatalf("the upstream hears %q", got)
	}
	// A new id, a new progress token and a new trace are the same call.
	if r := h.say("/mcp/files", call(`"again"`, `{"n": 9007199254740992}`, `{"v":1,"progressToken":7,"traceparent":"00-1"}`), session); !strings.Contains(r.last(), `"heard"`) {
		t.Fatalf("the repetition: %s", r.last())
	}
	if r := h.say("/mcp/files", call("8", `{"n":9007199254740992}`, `{"v":1}`), session); strings.Contains(r.last(), `"heard"`) {
		t.Errorf("the approval was used twice: %s", r.last())
	}
}

// TestInputRequired: on the newer wire the question comes back as input that is
// required, with a state that nobody else can use and nobody can change.
func TestInputRequired(t *testing.T) {
	t.Parallel()
	h := newHouse(t, asking)
	const caps = `{"elicitation":{"form":{},"url":{}}}`
	ask, header := modern("1", "tools/call", `"name":"echo","arguments":{"a":1}`, caps)
	r := h.say("/mcp/files", ask, header)
	m, err := wire.Parse([]byte(r.last()))
	if err != nil {
		t.Fatal(err)
	}
	result := m.Value(m.Result)
	state := wire.Text(wire.Member(result, "requestState"))
	request := wire.Member(wire.Member(result, "inputRequests"), "gatehouse-approval")
	url := wire.Text(wire.Member(wire.Member(request, "params"), "url"))
	if wire.Text(wire.Member(result, "resultType")) != "input_required" || state == "" || !strings.HasPrefix(url, h.URL+"/requests/") {
		t.Fatalf("the answer: %s", r.last())
	}
	retry := func(args, state, action string) (string, map[string]string) {
		return modern("2", "tools/call", `"name":"echo","arguments":`+args+`,"requestState":`+string(wire.Quote(state))+`,"inputResponses":{"gatehouse-approval":{"action":"`+action+`"}}`, caps)
	}
	h.approve()
	for name, tt := range map[string]struct{ args, state, want string }{
		"other arguments": {`{"a":2}`, state, "not the one that was asked about"},
		"a changed state": {`{"a":1}`, state[:len(state)-4] + "AAAA", "not one the gate gave you"},
	} {
		body, header := retry(tt.args, tt.state, "accept")
		if r := h.say("/mcp/files", body, header); !strings.Contains(r.last(), tt.want) {
			t.Errorf("%s: %s", name, r.last())
		}
	}
	body, header := retry(`{"a":1}`, state, "accept")
	mallory := map[string]string{"Authorization": "Bearer " + h.Agent(h.credential, "mallory")}
	for k, v := range header {
		mallory[k] = v
	}
	if r := h.say("/mcp/files", body, mallory); !strings.Contains(r.last(), "not one the gate gave you") {
		t.Errorf("another agent: %s", r.last())
	}
	if got := h.upstreamHeard("tools/call"); len(got) != 0 {
		t.Fatalf("the upstream hears %q", got)
	}
	if r := h.say("/mcp/files", body, header); !strings.Contains(r.last(), `"heard"`) {
		t.Fatalf("the retry: %s", r.last())
	}
	if got := h.upstreamHeard("tools/call"); len(got) != 1 || strings.Contains(got[0], "requestState") || strings.Contains(got[0], "gatehouse-approval") {
		t.Errorf("the upstream hears %q", got)
	}
	// The client's word is no approval, and its no withdraws the question.
	ask, header = modern("3", "tools/call", `"name":"echo","arguments":{"b":1}`, caps)
	r = h.say("/mcp/files", ask, header)
	m, _ = wire.Parse([]byte(r.last()))
	state = wire.Text(wire.Member(m.Value(m.Result), "requestState"))
	body, header = retry(`{"b":1}`, state, "decline")
	if r := h.say("/mcp/files", body, header); !strings.Contains(r.last(), "declined") {
		t.Errorf("declined: %s", r.last())
	}
	if got := h.states(); !strings.HasPrefix(got, "cancelled") {
		t.Errorf("the requests are %s", got)
	}
}

// stream sends a request and gives its events one by one.
func (h *house) stream(ctx context.Context, path, body string, header map[string]string) (next func() *wire.Message) {
	h.t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL+path, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Authorization", "Bearer "+h.token)
	for k, v := range header {
		req.Header.Set(k, v)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { resp.Body.Close() })
	in := wire.NewReader(bufio.NewReader(resp.Body))
	return func() *wire.Message {
		h.t.Helper()
		e, err := in.Next()
		if err != nil {
			h.t.Fatal(err)
		}
		m, err := wire.Parse(e.Data)
		if err != nil {
			h.t.Fatal(err)
		}
		return m
	}
}

// TestElicitation: on the older wire the client is asked to show the question
// while its call is held. Its yes is not an approval; its no withdraws.
func TestElicitation(t *testing.T) {
	t.Parallel()
	h := newHouse(t, asking)
	session := h.begin("/mcp/files", `{"elicitation":{}}`)
	next := h.stream(t.Context(), "/mcp/files", toolCall("1", "echo", `{"a":1}`), session)
	q := next()
	if q.Method != "elicitation/create" || !strings.Contains(q.String("message"), h.URL+"/requests/") {
		t.Fatalf("the question is %s", q.Raw)
	}
	reply := func(q *wire.Message, action string) {
		h.say("/mcp/files", `{"jsonrpc":"2.0","id":`+string(q.Value(q.ID))+`,"result":{"action":"`+action+`","content":{}}}`, session)
	}
	reply(q, "accept")
	if got := h.upstreamHeard("tools/call"); len(got) != 0 {
		t.Fatalf("the client's yes let it through: %q", got)
	}
	h.approve()
	if r := next(); !strings.Contains(string(r.Raw), `"heard"`) {
		t.Errorf("the answer: %s", r.Raw)
	}
	next = h.stream(t.Context(), "/mcp/files", toolCall("2", "echo", `{"b":1}`), session)
	reply(next(), "decline")
	if r := next(); !strings.Contains(string(r.Raw), "declined") {
		t.Errorf("the answer: %s", r.Raw)
	}
	if got := h.states(); got != "cancelled approved" {
		t.Errorf("the requests are %s", got)
	}
}

// TestProgressWhileWaiting: a client that sends a progress token has its call held
// and hears of it until a person has answered; then it runs.
func TestProgressWhileWaiting(t *testing.T) {
	t.Parallel()
	h := newHouse(t, asking)
	session := h.begin("/mcp/files", `{}`)
	next := h.stream(t.Context(), "/mcp/files",
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"a":1},"_meta":{"progressToken":"p-1"}}}`, session)
	first, second := next(), next()
	for _, m := range []*wire.Message{first, second} {
		if m.Method != "notifications/progress" || m.String("progressToken") != "p-1" {
			t.Fatalf("while it waits the client hears %s", m.Raw)
		}
	}
	if string(first.Value(first.Param("progress"))) == string(second.Value(second.Param("progress"))) {
		t.Errorf("the progress stands still: %s", second.Raw)
	}
	if got := h.upstreamHeard("tools/call"); len(got) != 0 {
		t.Fatalf("it ran before it was approved: %q", got)
	}
	h.approve()
	m := next()
	for m.Method == "notifications/progress" {
		m = next()
	}
	if !strings.Contains(string(m.Raw), `"heard"`) {
		t.Errorf("the answer: %s", m.Raw)
	}
}

// TestTask: a client that asks for a task gets one at once, and the call runs
// when it is approved, once, for its owner.
func TestTask(t *testing.T) {
	t.Parallel()
	h := newHouse(t, asking)
	session := h.begin("/mcp/files", `{"elicitation":{}}`)
	r := h.say("/mcp/files", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"a":1},"task":{"ttl":60000}}}`, session)
	m, err := wire.Parse([]byte(r.last()))
	if err != nil {
		t.Fatal(err)
	}
	task := wire.Text(wire.Member(wire.Member(m.Value(m.Result), "task"), "taskId"))
	if task == "" || !strings.Contains(r.last(), `"status":"input_required"`) {
		t.Fatalf("the answer: %s", r.last())
	}
	about := func(method string, header map[string]string) string {
		return h.say("/mcp/files", `{"jsonrpc":"2.0","id":"t","method":"tasks/`+method+`","params":{"taskId":"`+task+`"}}`, header).last()
	}
	other := h.begin("/mcp/files", `{}`)
	if got := about("result", other); strings.Contains(got, "heard") || !strings.Contains(got, "error") {
		t.Errorf("another session's client hears %s", got)
	}
	h.approve()
	if got := about("result", session); !strings.Contains(got, `"id":"t"`) || !strings.Contains(got, `"heard"`) {
		t.Errorf("the result: %s", got)
	}
	if got := about("get", session); !strings.Contains(got, `"status":"completed"`) {
		t.Errorf("the task: %s", got)
	}
	if got := h.upstreamHeard(`"method":"tools/call"`); len(got) != 1 || strings.Contains(got[0], `"task"`) {
		t.Errorf("the upstream hears %q", got)
	}
}

// TestLeavingWithdraws: the question goes when the client does, by closing or
// by cancelling.
func TestLeavingWithdraws(t *testing.T) {
	t.Parallel()
	h := newHouse(t, asking)
	session := h.begin("/mcp/files", `{"elicitation":{}}`)
	ctx, leave := context.WithCancel(t.Context())
	next := h.stream(ctx, "/mcp/files", toolCall("1", "echo", `{"a":1}`), session)
	next()
	h.pending()
	leave()
	h.until("the question is withdrawn", func() bool { return h.states() == "cancelled" })

	next = h.stream(t.Context(), "/mcp/files", toolCall("2", "echo", `{"b":1}`), session)
	next()
	h.say("/mcp/files", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`, session)
	h.until("the question is withdrawn", func() bool { return h.states() == "cancelled cancelled" })
	if got := h.upstreamHeard(`"method":"tools/call"`); len(got) != 0 {
		t.Errorf("the upstream hears %q", got)
	}
}

// TestNoSessionNoSessionGrant (ATTACKS row 19): on the wire without sessions an
// approval is for one call, unless the token is good for one session only.
func TestNoSessionNoSessionGrant(t *testing.T) {
	t.Parallel()
	h := newHouse(t, `version = 1
profile = "careful"

[profiles.careful]
base = "supervised"

[profiles.careful.capabilities]
"fs.read" = "CONFIRM_SESSION"
`)
	offers := func(header map[string]string) int {
		h.t.Helper()
		body, more := modern("1", "resources/read", `"uri":"file:///srv/notes.txt"`, `{}`)
		more["Mcp-Name"] = "file:///srv/notes.txt"
		for k, v := range header {
			more[k] = v
		}
		if r := h.say("/mcp/files", body, more); !strings.Contains(r.last(), "Pending") {
			t.Fatalf("the answer: %s", r.last())
		}
		list := h.pending()
		r := list.Requests[0]
		if err := h.Client(h.credential).Do(t.Context(), "POST", "/v1/approvals/"+r.ID+"/deny", &api.ReplyRequest{Digest: r.Digest}, nil); err != nil {
			t.Fatal(err)
		}
		return len(r.Offers)
	}
	if n := offers(nil); n != 1 {
		t.Errorf("without a session %d answers are offered, want only this call", n)
	}
	got := &api.SessionResponse{}
	if err := h.Client(h.token).Do(t.Context(), "POST", "/v1/sessions", &api.SessionRequest{Token: true}, got); err != nil {
		t.Fatal(err)
	}
	if n := offers(map[string]string{"Authorization": "Bearer " + got.Token}); n != 2 {
		t.Errorf("with a token for one session %d answers are offered, want the session too", n)
	}
	if err := h.Client(got.Token).Do(t.Context(), "DELETE", "/v1/sessions/"+got.Session, nil, nil); err != nil {
		t.Fatal(err)
	}
	body, header := modern("1", "tools/call", `"name":"echo","arguments":{}`, `{}`)
	header["Authorization"] = "Bearer " + got.Token
	if r := h.say("/mcp/files", body, header); strings.Contains(r.last(), "Pending") || strings.Contains(r.last(), `"heard"`) {
		t.Errorf("the token outlives its session: %d %s", r.status, r.last())
	}
}
