package gateway_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// TestCallsAreForwardedAsBytes: ids, numbers, unknown members and their order
// arrive and come back as they were sent, on both wires.
func TestCallsAreForwardedAsBytes(t *testing.T) {
	t.Parallel()
	h := newHouse(t, free)
	session := h.begin("/mcp/files", `{}`)
	const sent = `{"x-first":1,"jsonrpc":"2.0","id":9007199254740993,"method":"tools/call","params":{"arguments":{"n":9007199254740993,"f":1.0,"e":1e2},"name":"echo","_meta":{"v":[1.50],"progressToken":0.10},"extra":{"a":1.0}}}`
	r := h.say("/mcp/files", sent, session)
	if got := h.upstreamHeard("x-first"); len(got) != 1 || got[0] != sent {
		t.Errorf("the upstream hears %q\nwant %q", got, sent)
	}
	want := `{"jsonrpc":"2.0","id":9007199254740993,"result":{"resultType":"complete","content":[{"type":"text","text":"heard","vendor":1.0}],"structuredContent":{"params":{"arguments":{"n":9007199254740993,"f":1.0,"e":1e2},"name":"echo","_meta":{"v":[1.50],"progressToken":0.10},"extra":{"a":1.0}},"big":9007199254740993}}}`
	if r.last() != want {
		t.Errorf("the client hears %s\nwant %s", r.last(), want)
	}
	body, header := modern(`"i\u0064"`, "tools/call", `"name":"echo","arguments":{"n":9007199254740993}`, `{}`)
	if r := h.say("/mcp/files", body, header); !strings.HasPrefix(r.last(), `{"jsonrpc":"2.0","id":"i\u0064",`) || !strings.Contains(r.last(), `"n":9007199254740993`) {
		t.Errorf("on the newer wire the client hears %s", r.last())
	}
	// The list keeps what the front does not know, and is private to the caller.
	body, header = modern("7", "tools/list", "", `{}`)
	r = h.say("/mcp/files", body, header)
	for _, want := range []string{`"x-vendor":{"big":9007199254740993}`, `"ttlMs":0`, `"cacheScope":"private"`} {
		if !strings.Contains(r.last(), want) {
			t.Errorf("the list lacks %s: %s", want, r.last())
		}
	}
	if records := h.Must("audit", "list", "--operation", "mcp__files__echo", "--credential-file", h.key); strings.Count(records, "mcp__files__echo") < 2 {
		t.Errorf("the calls are not on record:\n%s", records)
	}
}

// TestRefusals: what two readers could read in two ways, batches, and headers
// that do not agree with the message reach no upstream.
func TestRefusals(t *testing.T) {
	t.Parallel()
	h := newHouse(t, free)
	session := h.begin("/mcp/files", `{}`)
	good, header := modern("1", "tools/call", `"name":"echo","arguments":{}`, `{}`)
	with := func(name, value string) map[string]string {
		out := map[string]string{}
		for k, v := range header {
			out[k] = v
		}
		out[name] = value
		return out
	}
	tests := []struct {
		name, body string
		header     map[string]string
		status     int
		code       string
	}{
		{"a batch", "[" + toolCall("1", "echo", "{}") + "]", session, 400, "-32600"},
		{"a name twice", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","name":"die"}}`, session, 400, "-32700"},
		{"trailing data", toolCall("1", "echo", "{}") + toolCall("2", "die", "{}"), session, 400, "-32700"},
		{"another method in the header", good, with("Mcp-Method", "tools/list"), 400, "-32020"},
		{"another tool in a header of the older wire", toolCall("1", "echo", "{}"), map[string]string{"Mcp-Session-Id": session["Mcp-Session-Id"], "Mcp-Name": "die"}, 400, "-32020"},
		{"another tool in the header", good, with("Mcp-Name", "die"), 400, "-32020"},
		{"another version in the header", good, with("Mcp-Protocol-Version", "2026-12-31"), 400, "-32020"},
		{"another type of body", good, with("Content-Type", "text/plain"), 415, ""},
		{"another's session", toolCall("1", "echo", "{}"), map[string]string{"Mcp-Session-Id": "gh-NONE"}, 404, ""},
		{"no token", good, with("Authorization", "Bearer ghg_nobody"), 401, ""},
		{"an approver's credential", good, with("Authorization", "Bearer "+h.credential), 401, ""},
		{"a page of another site", good, with("Origin", "https://evil.example.net"), 403, ""},
	}
	for _, tt := range tests {
		r := h.say("/mcp/files", tt.body, tt.header)
		if r.status != tt.status || !strings.Contains(r.last(), tt.code) {
			t.Errorf("%s: %d %q, want %d %s", tt.name, r.status, r.messages, tt.status, tt.code)
		}
	}
	if got := h.upstreamHeard("tools/call"); len(got) != 0 {
		t.Errorf("the upstream hears %q", got)
	}
	// Where to get a token is said as OAuth says it.
	r := h.say("/mcp", good, with("Authorization", ""))
	if v := r.header.Get("WWW-Authenticate"); !strings.Contains(v, `resource_metadata="`+h.URL+`/.well-known/oauth-protected-resource/mcp"`) {
		t.Errorf("WWW-Authenticate is %q", v)
	}
	if resp, body := h.HTTP("GET", "/.well-known/oauth-protected-resource/mcp", "", nil, nil); resp.StatusCode != 200 || !strings.Contains(string(body), `"resource":"`+h.URL+`/mcp"`) {
		t.Errorf("the metadata: %d %s", resp.StatusCode, body)
	}
}

// TestSessionsAreTheirOwners: one agent cannot use another's session.
func TestSessionsAreTheirOwners(t *testing.T) {
	t.Parallel()
	h := newHouse(t, free)
	session := h.begin("/mcp/files", `{}`)
	mallory := h.Agent(h.credential, "mallory")
	session["Authorization"] = "Bearer " + mallory
	if r := h.say("/mcp/files", toolCall("1", "echo", "{}"), session); r.status < 400 {
		t.Errorf("another agent uses the session: %d %q", r.status, r.messages)
	}
	if got := h.upstreamHeard("tools/call"); len(got) != 0 {
		t.Errorf("the upstream hears %q", got)
	}
}

// TestProgressKeepsItsOrder: what belongs to a call comes on its own stream,
// before the response, in order.
func TestProgressKeepsItsOrder(t *testing.T) {
	t.Parallel()
	h := newHouse(t, free)
	session := h.begin("/mcp/files", `{}`)
	r := h.say("/mcp/files", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"steps","_meta":{"progressToken":"p"}}}`, session)
	if len(r.messages) != 21 {
		t.Fatalf("%d messages", len(r.messages))
	}
	for i, m := range r.messages[:20] {
		if !strings.Contains(m, fmt.Sprintf(`"progress":%d.0}`, i)) {
			t.Errorf("message %d is %s", i, m)
		}
	}
}

// TestDisconnectCancels: a client that goes away takes its call with it, on
// both wires, and one that cancels too.
func TestDisconnectCancels(t *testing.T) {
	t.Parallel()
	h := newHouse(t, free)
	session := h.begin("/mcp/files", `{}`)
	newer, header := modern(`"m"`, "tools/call", `"name":"slow","arguments":{"w":"newer"}`, `{}`)
	for name, send := range map[string]struct {
		body   string
		header map[string]string
	}{
		"older": {toolCall("5", "slow", `{"w":"older"}`), session},
		"newer": {newer, header},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = h.post(ctx, "/mcp/files", send.body, send.header) // it is cut off
		}()
		h.until(name+" arrives", func() bool { return len(h.upstreamHeard(`"w":"`+name+`"`)) == 1 })
		before := len(h.upstreamHeard("notifications/cancelled"))
		cancel()
		<-done
		h.until(name+" is cancelled", func() bool { return len(h.upstreamHeard("notifications/cancelled")) > before })
	}
}

// until waits for something to become so; the test's own deadline ends it.
func (h *house) until(what string, so func() bool) {
	h.t.Helper()
	for !so() {
		if h.t.Context().Err() != nil {
			h.t.Fatalf("never: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// TestCrash: a server that dies harms no other, and is started again.
func TestCrash(t *testing.T) {
	t.Parallel()
	h := newHouse(t, free)
	h.add("other")
	session := h.begin("/mcp", `{}`)
	if r := h.say("/mcp", toolCall("1", "files__die", "{}"), session); !strings.Contains(r.last(), "did not answer") {
		t.Errorf("the call that killed it: %s", r.last())
	}
	if r := h.say("/mcp", toolCall("2", "other__echo", "{}"), session); !strings.Contains(r.last(), `"heard"`) {
		t.Errorf("the other server: %s", r.last())
	}
	h.until("it is back", func() bool {
		return strings.Contains(h.say("/mcp", toolCall("3", "files__echo", "{}"), session).last(), `"heard"`)
	})
}

// TestAllAsOne: all servers are one, each in its own space of names; one that
// cannot be started is left out.
func TestAllAsOne(t *testing.T) {
	t.Parallel()
	h := newHouse(t, free)
	h.add("other")
	h.Must("upstream", "add", "broken", "--credential-file", h.key, "--", "/no/such/program")
	session := h.begin("/mcp", `{}`)
	r := h.say("/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, session)
	for _, want := range []string{`"name":"mcp_aql_read"`, `"name":"files__echo"`, `"name":"other__echo"`} {
		if !strings.Contains(r.last(), want) {
			t.Errorf("the list lacks %s: %s", want, r.last())
		}
	}
	if r := h.say("/mcp", toolCall("2", "other__echo", `{"n":1.0}`), session); !strings.Contains(r.last(), `"name":"echo"`) || !strings.Contains(r.last(), `{"n":1.0}`) {
		t.Errorf("the call: %s", r.last())
	}
	if r := h.say("/mcp", `{"jsonrpc":"2.0","id":3,"method":"prompts/get","params":{"name":"files__hello"}}`, session); !strings.Contains(r.last(), `"text":"hello"`) {
		t.Errorf("the prompt: %s", r.last())
	}
	if r := h.say("/mcp", toolCall("4", "mcp_aql_read", `{"operation":"introspect"}`), session); !strings.Contains(r.last(), "delete_element") {
		t.Errorf("the gate's own tool: %s", r.last())
	}
	body, header := modern("5", "tools/list", "", `{}`)
	if r := h.say("/mcp", body, header); !strings.Contains(r.last(), `"name":"files__echo"`) || !strings.Contains(r.last(), `"cacheScope":"private"`) {
		t.Errorf("the list on the newer wire: %s", r.last())
	}
	body, header = modern("6", "server/discover", "", `{}`)
	if r := h.say("/mcp", body, header); !strings.Contains(r.last(), `"supportedVersions":["2026-07-28"]`) {
		t.Errorf("discover: %s", r.last())
	}
	if r := h.say("/mcp/nowhere", body, header); r.status != http.StatusNotFound {
		t.Errorf("a server that is not there: %d", r.status)
	}
}

// TestListsAreFiltered: what would be denied is not shown, and calling it all
// the same reaches nobody.
func TestListsAreFiltered(t *testing.T) {
	t.Parallel()
	h := newHouse(t, free)
	if err := os.WriteFile(h.tools, []byte(`[{"name":"echo","inputSchema":{}},{"name":"forbidden","inputSchema":{}}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	session := h.begin("/mcp/files", `{}`)
	if r := h.say("/mcp/files", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, session); strings.Contains(r.last(), "forbidden") || !strings.Contains(r.last(), "echo") {
		t.Errorf("the list: %s", r.last())
	}
	if r := h.say("/mcp/files", toolCall("2", "forbidden", "{}"), session); !strings.Contains(r.last(), `"isError":true`) || !strings.Contains(r.last(), "it is forbidden") {
		t.Errorf("the call: %s", r.last())
	}
	if got := h.upstreamHeard(`"name":"forbidden"`); len(got) != 0 {
		t.Errorf("the upstream hears %q", got)
	}
}
