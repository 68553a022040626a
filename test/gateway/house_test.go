package gateway_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/mcp/wire"
	"github.com/seed-3ebc6b8a/gatehouse/test/gatetest"
)

// house is a gate with an upstream called files and an agent.
type house struct {
	*gatetest.Gate
	t          *testing.T
	credential string
	key        string // the file with the credential
	token      string
	heard      string // the file with what the upstream heard
	tools      string // the file with its tools, if the test writes one
	declared   string // the file of declarations of tools, beside the policy
}

// free lets every tool go ahead.
const free = `version = 1
profile = "free"

[profiles.free]
base = "supervised"

[profiles.free.classes]
unknown = "AUTO_APPROVE"

[[rules]]
name = "no-die"
operation = "mcp__*__forbidden"
level = "DENY"
reason = "it is forbidden"
`

// asking asks about every tool.
const asking = `version = 1
`

func newHouse(t *testing.T, policy string, extra ...string) *house {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "policy.toml")
	if err := os.WriteFile(file, []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	h := &house{Gate: gatetest.Start(t, "--policy", file), t: t, heard: filepath.Join(dir, "heard"), tools: filepath.Join(dir, "tools"), declared: filepath.Join(dir, "tools.yaml")}
	h.credential, h.key = h.Enrol("ann")
	h.token = h.Agent(h.credential, "coder")
	h.add("files", extra...)
	return h
}

// add enters the played upstream under a name.
func (h *house) add(name string, extra ...string) {
	h.t.Helper()
	args := []string{"upstream", "add", name, "--credential-file", h.key, "--env", "HEARD=" + h.heard, "--env", "TOOLS=" + h.tools}
	h.Must(append(append(args, extra...), "--", os.Args[0], "play-upstream")...)
}

// reply is an answer to a message.
type reply struct {
	status   int
	header   http.Header
	messages []string
}

// last is the last message.
func (r *reply) last() string {
	if len(r.messages) == 0 {
		return ""
	}
	return r.messages[len(r.messages)-1]
}

// post sends a message and reads the answer to its end.
func (h *house) post(ctx context.Context, path, body string, header map[string]string) (*reply, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Authorization", "Bearer "+h.token)
	for k, v := range header {
		req.Header.Set(k, v)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	r := &reply{status: resp.StatusCode, header: resp.Header}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		in := wire.NewReader(resp.Body)
		for {
			e, err := in.Next()
			if err == io.EOF {
				return r, nil
			}
			if err != nil {
				return r, err
			}
			r.messages = append(r.messages, string(e.Data))
		}
	}
	text, err := io.ReadAll(resp.Body)
	if len(text) > 0 {
		r.messages = append(r.messages, string(text))
	}
	return r, err
}

// say is post for messages that are answered.
func (h *house) say(path, body string, header map[string]string) *reply {
	h.t.Helper()
	r, err := h.post(h.t.Context(), path, body, header)
	if err != nil {
		h.t.Fatalf("%s: %v", body, err)
	}
	return r
}

// begin opens a session of the older wire and returns its header.
func (h *house) begin(path, capabilities string) map[string]string {
	h.t.Helper()
	r := h.say(path, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":`+capabilities+`,"clientInfo":{"name":"test","version":"1"}}}`, nil)
	id := r.header.Get("Mcp-Session-Id")
	if id == "" {
		h.t.Fatalf("no session: %d %q", r.status, r.messages)
	}
	header := map[string]string{"Mcp-Session-Id": id, "Mcp-Protocol-Version": "2025-11-25"}
	if r := h.say(path, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, header); r.status != http.StatusAccepted {
		h.t.Fatalf("initialized: %d", r.status)
	}
	return header
}

// modern makes a request of the newer wire.
func modern(id, method, params, capabilities string) (body string, header map[string]string) {
	if params != "" {
		params += ","
	}
	body = `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":{` + params +
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"},"io.modelcontextprotocol/clientCapabilities":` + capabilities + `}}}`
	header = map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": method}
	if m, err := wire.Parse([]byte(body)); err == nil && m.String("name") != "" {
		header["Mcp-Name"] = m.String("name")
	}
	return body, header
}

// toolCall is a call of the older wire.
func toolCall(id, tool, args string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + args + `}}`
}

// upstreamHeard returns the lines that the upstream heard and that hold a text.
func (h *house) upstreamHeard(text string) []string {
	data, err := os.ReadFile(h.heard)
	if err != nil {
		return nil
	}
	var out []string
	for line := range bytes.Lines(data) {
		if s := strings.TrimSpace(string(line)); strings.Contains(s, text) {
			out = append(out, s)
		}
	}
	return out
}

// pending waits for the one request that waits and returns it.
func (h *house) pending() *api.ApprovalList {
	h.t.Helper()
	client := h.Client(h.credential)
	for {
		got := &api.ApprovalList{}
		if err := client.Do(h.t.Context(), "GET", "/v1/approvals?state=pending", nil, got); err != nil {
			h.t.Fatal(err)
		}
		if len(got.Requests) > 0 {
			return got
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// approve approves the one request that waits.
func (h *house) approve() {
	h.t.Helper()
	r := h.pending().Requests[0]
	if err := h.Client(h.credential).Do(h.t.Context(), "POST", "/v1/approvals/"+r.ID+"/approve", &api.ApproveRequest{Digest: r.Digest}, nil); err != nil {
		h.t.Fatal(err)
	}
}

// narrowed opens a session with a policy of its own and returns a token for it.
func (h *house) narrowed(policy string) string {
	h.t.Helper()
	s := &api.SessionResponse{}
	if err := h.Client(h.token).Do(h.t.Context(), "POST", "/v1/sessions", &api.SessionRequest{Token: true, Policy: policy}, s); err != nil {
		h.t.Fatal(err)
	}
	return s.Token
}

// calls lists the operations on record with what became of them.
func (h *house) calls() string {
	h.t.Helper()
	list := &api.LogPage{}
	if err := h.Client(h.credential).Do(h.t.Context(), "GET", "/v1/log?kind=call", nil, list); err != nil {
		h.t.Fatal(err)
	}
	var out []string
	for _, r := range list.Records {
		out = append(out, r.Operation+" "+r.Outcome)
	}
	return strings.Join(out, ", ")
}
