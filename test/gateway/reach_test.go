package gateway_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/seed-3ebc6b8a/gatehouse/internal/needtest"
)

// TestHeaders: the headers of the protocol reach an upstream at a URL, with the
// credential of the gate and never with the agent's own; nothing else does.
func TestHeaders(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var calls []http.Header
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // what is cut short is no call
		w.Header().Set("Content-Type", "application/json")
		if strings.Contains(string(body), `"tools/list"`) {
			fmt.Fprint(w, `{"jsonrpc":"2.0","id":"gatehouse-tools/list-0","result":{"tools":[{"name":"echo","inputSchema":{}}]}}`)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		calls = append(calls, r.Header.Clone())
		fmt.Fprint(w, `{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`)
	}))
	defer up.Close()
	h := newHouse(t, free)
	h.Must("upstream", "add", "far", "--url", up.URL, "--credential-file", h.key)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("tok-123456789"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.Must("upstream", "credential", "far", "--agent", "coder", "--secret-file", secret, "--credential-file", h.key)
	body, header := modern("1", "tools/call", `"name":"echo","arguments":{"region":"eu"}`, `{}`)
	header["Mcp-Param-Region"], header["Traceparent"], header["Cookie"], header["X-Other"] = "eu", "00-1", "a=b", "c"
	if r := h.say("/mcp/far", body, header); r.status != 200 || !strings.Contains(r.last(), "content") {
		t.Fatalf("%d %s", r.status, r.last())
	}
	mu.Lock()
	defer mu.Unlock()
	got := calls[len(calls)-1]
	for name, want := range map[string]string{
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "echo", "Mcp-Param-Region": "eu", "Traceparent": "00-1",
		"Authorization": "Bearer tok-123456789", "Cookie": "", "X-Other": "",
	} {
		if got.Get(name) != want {
			t.Errorf("%s is %q, want %q", name, got.Get(name), want)
		}
	}
}

// TestOlderHTTP: a server that speaks HTTP with server-sent events.
func TestOlderHTTP(t *testing.T) {
	t.Parallel()
	srv := sdk.NewServer(&sdk.Implementation{Name: "old", Version: "1"}, nil)
	sdk.AddTool(srv, &sdk.Tool{Name: "hello"}, func(_ context.Context, _ *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "hello"}}}, nil, nil
	})
	up := httptest.NewServer(sdk.NewSSEHandler(func(*http.Request) *sdk.Server { return srv }, nil))
	t.Cleanup(up.CloseClientConnections)
	h := newHouse(t, free)
	h.Must("upstream", "add", "old", "--url", up.URL, "--sse", "--credential-file", h.key)
	session := h.begin("/mcp/old", `{}`)
	if r := h.say("/mcp/old", toolCall("1", "hello", "{}"), session); !strings.Contains(r.last(), `"text":"hello"`) {
		t.Errorf("%s", r.last())
	}
}

// TestConfined: a server whose entry says so runs in the sandbox, and cannot
// read what its entry does not name.
func TestConfined(t *testing.T) {
	t.Parallel()
	h := newHouse(t, free)
	dir, other := t.TempDir(), t.TempDir()
	for _, f := range []string{filepath.Join(dir, "mine"), filepath.Join(other, "theirs")} {
		if err := os.WriteFile(f, []byte("content"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	h.Must("upstream", "add", "tight", "--confined", "--cwd", dir, "--read", dir, "--read", filepath.Dir(os.Args[0]),
		"--env", "MINE="+filepath.Join(dir, "mine"), "--env", "THEIRS="+filepath.Join(other, "theirs"), "--credential-file", h.key, "--", os.Args[0], "play-upstream")
	session, err := h.post(t.Context(), "/mcp/tight", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`, nil)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(session.last(), "no back-end") {
		needtest.Missing(t, "no sandbox works here ("+session.last()+")")
	}
	header := map[string]string{"Mcp-Session-Id": session.header.Get("Mcp-Session-Id")}
	r := h.say("/mcp/tight", toolCall("1", "look", "{}"), header)
	if !strings.Contains(r.last(), "mine readable, theirs not") {
		t.Errorf("%s %s", session.last(), r.last())
	}
}
