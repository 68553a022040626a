package gateway_test

import (
	"bufio"
	"net/http"
	"strings"
	"testing"
)

// TestPermissionPromptHolds: a host that asks over MCP whether it may run a
// tool is told "pending" at once while nobody can be reached, and is held for
// the answer while somebody can.
func TestPermissionPromptHolds(t *testing.T) {
	t.Parallel()
	h := newHouse(t, asking)
	session := h.begin("/mcp/gatehouse", `{}`)
	prompt := func(path string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"mcp_aql_read","arguments":{"operation":"permission_prompt","params":{"tool_name":"Bash","input":{"command":"rm -rf ` + path + `"}}}}}`
	}
	if got := h.say("/mcp/gatehouse", prompt("/srv/one"), session).last(); !strings.Contains(got, "Pending") {
		t.Fatalf("with nobody there: %s", got)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.URL+"/v1/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+h.credential)
	watch, err := http.DefaultClient.Do(req)
	if err != nil || watch.StatusCode != http.StatusOK {
		t.Fatal(watch, err)
	}
	defer watch.Body.Close()
	if _, err := bufio.NewReader(watch.Body).ReadString('\n'); err != nil { // it has begun
		t.Fatal(err)
	}
	h.approve() // the first, so that the second is the one that waits
	answer := make(chan string, 1)
	go func() { answer <- h.say("/mcp/gatehouse", prompt("/srv/two"), session).last() }()
	h.pending()
	select {
	case got := <-answer:
		t.Fatalf("with somebody there it is not held: %s", got)
	default:
	}
	h.approve()
	if got := <-answer; !strings.Contains(got, `"behavior":"allow"`) && !strings.Contains(got, `\"behavior\":\"allow\"`) {
		t.Errorf("approved: %s", got)
	}
}
