package agents_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/test/gatetest"
)

// TestAttackOwnServerName: a tool of a server that only calls itself the gate's
// is asked about like any other. A name is all that a hook is told, and whoever
// writes the agent's settings chooses it; so the gate's own tools, called through
// an agent with a hook, are asked about there and by the gate itself.
func TestAttackOwnServerName(t *testing.T) {
	t.Parallel()
	g := gatetest.Start(t)
	a := newAgent(t, 0, hookArgs(g, t, os.Geteuid())...)
	for i, tool := range []string{"mcp__gatehouse__mcp_aql_read", "mcp__gatehouse__mcp_aql_execute", "mcp__gate__mcp_aql_read", "mcp__gatehouse__anything"} {
		r := a.raw(fmt.Sprintf(`{"session_id":"s","cwd":"/tmp","permission_mode":"dontAsk","hook_event_name":"PreToolUse","tool_name":%q,"tool_input":{"operation":"list_elements"},"tool_use_id":"t%d"}`, tool, i))
		if r.Exit != 2 || !strings.Contains(r.Stderr, "needs a person's approval") {
			t.Errorf("%s: %+v", tool, r)
		}
	}
}
