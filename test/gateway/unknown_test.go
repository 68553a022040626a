package gateway_test

import (
	"strings"
	"testing"
)

// TestAttackHarmlessArguments: what a tool behind the gate does nobody here can
// tell. Arguments that name something harmless, such as a file that may be
// read, are the agent's own words and buy the call nothing: it is asked about.
func TestAttackHarmlessArguments(t *testing.T) {
	t.Parallel()
	for name, args := range map[string]string{
		"none":               `{}`,
		"a path":             `{"path":"./notes.txt"}`,
		"a path elsewhere":   `{"path":"/usr/share/doc/x"}`,
		"a path that is not": `{"note":"/usr/share/doc/x"}`,
		"several":            `{"path":"a","file":"b","paths":["c","d"]}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, asking)
			session := h.begin("/mcp/files", `{}`)
			r := h.say("/mcp/files", toolCall("1", "echo", args), session)
			if !strings.Contains(r.last(), "Pending") || len(h.upstreamHeard(`"tools/call"`)) != 0 {
				t.Fatalf("nobody was asked: %s", r.last())
			}
			// The request must ask every time: no session grant stands for a tool
			// that nobody can see through.
			if offers := h.pending().Requests[0].Offers; len(offers) != 1 {
				t.Errorf("it is offered for the session: %+v", offers)
			}
		})
	}
}
