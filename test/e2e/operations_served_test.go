package e2e_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
)

// comes are operations of challenges and executions, which are added with
// those.
var comes = strings.Fields(`record_execution_step verify_challenge release_deadlock get_execution_state get_gathered_data confirm_operation
	execute_agent abort_execution resume_from_handoff complete_execution continue_execution prepare_handoff`)

// TestEveryOperationIsPerformed: no operation of the table is let through, or
// asked about, and then not done because nobody performs it.
func TestEveryOperationIsPerformed(t *testing.T) {
	t.Parallel()
	k := beginKeeper(t, nil)
	k.connect("?mode=single")
	for _, op := range call.Operations() {
		out := k.tool("mcp_aql", map[string]any{"operation": op.Name})
		if strings.Contains(out.Text, "is not performed") && !slices.Contains(comes, op.Name) {
			t.Errorf("%s: %s", op.Name, out.Text)
		}
	}
}
