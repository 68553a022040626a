package gateway_test

import (
	"strings"
	"testing"
)

// admissions denies single requests of every kind, and nothing else.
const admissions = free + `
[[rules]]
name = "no-prompts"
operation = "mcp__files:prompts/get"
level = "DENY"
reason = "prompts are forbidden"

[[rules]]
name = "no-completion"
operation = "mcp__files:completion/complete"
level = "DENY"
reason = "completion is forbidden"

[[rules]]
name = "no-subscription"
operation = "mcp__files:resources/subscribe"
level = "DENY"
reason = "subscribing is forbidden"

[[rules]]
name = "no-listening"
operation = "mcp__files:subscriptions/listen"
level = "DENY"
reason = "listening is forbidden"

[[rules]]
name = "no-reading"
operation = "mcp__other:resources/read"
level = "DENY"
reason = "reading is forbidden"
`

// TestEveryRequestIsAdmitted: prompts, resources, completions and subscriptions
// pass the same decision as tools: what is denied does not reach the server and
// is not listed, and what is allowed is on record.
func TestEveryRequestIsAdmitted(t *testing.T) {
	t.Parallel()
	h := newHouse(t, admissions)
	h.add("other")
	session := h.begin("/mcp/files", `{}`)
	for _, tt := range []struct{ method, params, reason string }{
		{"prompts/get", `{"name":"hello"}`, "prompts are forbidden"},
		{"completion/complete", `{"ref":{"type":"ref/prompt","name":"hello"},"argument":{"name":"a","value":"o"}}`, "completion is forbidden"},
		{"resources/subscribe", `{"uri":"notes:open"}`, "subscribing is forbidden"},
	} {
		r := h.say("/mcp/files", `{"jsonrpc":"2.0","id":1,"method":"`+tt.method+`","params":`+tt.params+`}`, session)
		if !strings.Contains(r.last(), tt.reason) {
			t.Errorf("%s: %s", tt.method, r.last())
		}
		if got := h.upstreamHeard(tt.method); len(got) != 0 {
			t.Errorf("%s reached the server: %q", tt.method, got)
		}
	}
	body, header := modern("1", "subscriptions/listen", `"notifications":{"resourceSubscriptions":["notes:open"]}`, `{}`)
	if r := h.say("/mcp/files", body, header); !strings.Contains(r.last(), "listening is forbidden") {
		t.Errorf("subscriptions/listen: %s", r.last())
	}
	if r := h.say("/mcp/files", `{"jsonrpc":"2.0","id":2,"method":"prompts/list"}`, session); strings.Contains(r.last(), "hello") {
		t.Errorf("a prompt that would be denied is listed: %s", r.last())
	}
	if r := h.say("/mcp/files", `{"jsonrpc":"2.0","id":3,"method":"resources/read","params":{"uri":"notes:open"}}`, session); !strings.Contains(r.last(), "a note") {
		t.Errorf("a resource: %s", r.last())
	}
	other := h.begin("/mcp/other", `{}`)
	if r := h.say("/mcp/other", `{"jsonrpc":"2.0","id":4,"method":"resources/list"}`, other); strings.Contains(r.last(), "notes:") {
		t.Errorf("resources that would be denied are listed: %s", r.last())
	}
	if calls := h.calls(); !strings.Contains(calls, "mcp__files:resources/read allowed") || !strings.Contains(calls, "mcp__files:resources/subscribe denied") {
		t.Errorf("on record: %s", calls)
	}
}

// TestListsArePerPrincipal: what one agent may not have is hidden from that agent
// alone, and from another session of nobody else.
func TestListsArePerPrincipal(t *testing.T) {
	t.Parallel()
	h := newHouse(t, free)
	list := func(token string) string {
		body, header := modern("1", "tools/list", "", `{}`)
		header["Authorization"] = "Bearer " + token
		return h.say("/mcp/files", body, header).last()
	}
	narrow := h.narrowed("version = 1\n[[rules]]\nname = \"no-echo\"\noperation = \"mcp__files__echo\"\nlevel = \"DENY\"\nreason = \"not in this session\"\n")
	mine, theirs := list(narrow), list(h.token)
	if strings.Contains(mine, `"name":"echo"`) || !strings.Contains(mine, `"name":"page"`) {
		t.Errorf("the narrowed session sees %s", mine)
	}
	if !strings.Contains(theirs, `"name":"echo"`) {
		t.Errorf("the other sees %s", theirs)
	}
	for _, got := range []string{mine, theirs} {
		if !strings.Contains(got, `"cacheScope":"private"`) || !strings.Contains(got, `"ttlMs":0`) {
			t.Errorf("the list may be cached: %s", got)
		}
	}
}
