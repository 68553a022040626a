package e2e_test

import (
	"strings"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
)

// TestEveryOperationIsPerformed: no operation of the table is let through, or
// asked about, and then not done because nobody performs it.
func TestEveryOperationIsPerformed(t *testing.T) {
	t.Parallel()
	k := beginKeeper(t, nil)
	k.connect("?mode=single")
	for _, op := range call.Operations() {
		out := k.tool("mcp_aql", map[string]any{"operation": op.Name})
		if strings.Contains(out.Text, "is not performed") {
			t.Errorf("%s: %s", op.Name, out.Text)
		}
	}
}
