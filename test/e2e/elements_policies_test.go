package e2e_test

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
)

// TestEnsembleBringsItsMembers: with an ensemble the policies of all it names are in force, by the names
// of those who say so, and go out of force with a person's word alone.
func TestEnsembleBringsItsMembers(t *testing.T) {
	t.Parallel()
	k := beginKeeper(t, map[string]string{
		"personas/guard.md": persona("guard", lockedDown), "personas/reader.md": noWriting,
		"ensembles/team.md":  "---\nname: team\ndescription: d\nelements:\n  - element_name: guard\n    element_type: persona\n  - ensemble/inner\n---\n\nTogether.\n",
		"ensembles/inner.md": "---\nname: inner\ndescription: d\nelements:\n  - persona/reader\n---\n\nWithin.\n",
	})
	k.pending("delete_element", "skill", named("x"))
	k.ok("activate_element", "ensemble", named("team"))
	k.denied("delete_element", "skill", named("x"), "guard")
	if got, message := k.promptFor("Write", map[string]any{"file_path": "a", "content": "x"}); got != "deny" || !strings.Contains(message, "reader") {
		t.Errorf("what an ensemble inside brings: %s %s", got, message)
	}
	k.pending("deactivate_element", "ensemble", named("team"))
	k.denied("delete_element", "skill", named("x"), "guard")
}

// TestAgentToolsAreAPolicy: the tools that an agent's file lists are all that is left while it is active,
// the gate's own groups and the host's tools alike.
func TestAgentToolsAreAPolicy(t *testing.T) {
	t.Parallel()
	k := beginKeeper(t, map[string]string{"agents/scout.md": "---\nname: scout\ndescription: d\ntools:\n  allowed: [mcp_aql_read, Read]\n---\n\nLook.\n"})
	k.want(gate.Pending, create("before"))
	k.ok("activate_element", "agent", named("scout"))
	k.ok("list_elements", "skill", nil)
	k.denied("create_element", "skill", map[string]any{"name": "after", "description": "d"}, "scout")
	if got, message := k.promptFor("Write", map[string]any{"file_path": "a", "content": "x"}); got != "deny" || !strings.Contains(message, "scout") {
		t.Errorf("a tool that is not listed: %s %s", got, message)
	}
	if got, message := k.promptFor("Read", map[string]any{"file_path": "a"}); strings.Contains(message, "scout") {
		t.Errorf("a tool that is listed: %s %s", got, message)
	}
}

// TestExportIsImport: what is exported is imported again as it was, policy included.
func TestExportIsImport(t *testing.T) {
	t.Parallel()
	k := beginKeeper(t, map[string]string{"personas/guard.md": persona("guard", lockedDown)})
	export := func() string {
		var out struct{ Content string }
		if err := json.Unmarshal(k.ok("export_element", "persona", named("guard")).Raw, &out); err != nil || !strings.Contains(out.Content, "delete_element") {
			t.Fatalf("exported: %v %q", err, out.Content)
		}
		return out.Content
	}
	before := export()
	other := &keeper{world: begin(t)}
	other.connect("")
	other.approved("import_element", "persona", map[string]any{"content": before})
	k = other
	if after := export(); after != before {
		t.Errorf("exported %q, imported and exported again %q", before, after)
	}
	k.ok("activate_element", "persona", named("guard"))
	k.denied("delete_element", "skill", named("x"), "guard")
}
