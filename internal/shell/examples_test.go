package shell_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-3ebc6b8a/gatehouse/internal/shell"
	"github.com/seed-3ebc6b8a/gatehouse/internal/shell/knowledge"
)

// Every table carries examples with the class it gives them; this checks
// that the engine reads the tables the way their authors meant them.
func TestExamples(t *testing.T) {
	t.Parallel()
	programs := knowledge.Builtin().Programs()
	if len(programs) < 120 {
		t.Errorf("%d programs, want at least 120", len(programs))
	}
	for _, p := range programs {
		if len(p.Examples) == 0 {
			t.Errorf("%s has no example", p.Name)
		}
		for _, e := range p.Examples {
			got := shell.Analyze(e.Command, shell.Options{})
			if diff := cmp.Diff(e.Class, got.Class.String()); diff != "" {
				t.Errorf("%s: %q (-want +got):\n%s%s", p.Name, e.Command, diff, explain(got))
			}
		}
	}
}

// explain lists the effects of an analysis for a failure message.
func explain(a *shell.Analysis) string {
	s := ""
	a.Effects(func(c *shell.Command, e *shell.Effect) bool {
		s += "  " + c.Program + " " + c.Subcommand + ": " + e.Kind.String() + " " + e.Why + " " + e.Path.Value + " (" + e.Class.String() + ")\n"
		return true
	})
	for _, n := range a.Notes {
		s += "  note: " + n.Text + "\n"
	}
	return s
}
