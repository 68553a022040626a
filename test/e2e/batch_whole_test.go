package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
)

// part is one operation of a batch.
func part(operation, elementType string, params map[string]any) map[string]any {
	return map[string]any{"operation": operation, "element_type": elementType, "params": params}
}

// wholly is a batch that is done whole or not at all.
func wholly(items ...map[string]any) map[string]any {
	return map[string]any{"operations": items, "all_or_nothing": true}
}

// answered sends a batch, has it approved if it asks, and sends it again.
func (k *keeper) answered(batch map[string]any) said {
	k.t.Helper()
	out := k.tool("mcp_aql", batch)
	if out.Told.Verdict == gate.Pending && out.IsError {
		k.grant(out.Told.Request)
		out = k.tool("mcp_aql", batch)
	}
	return out
}

// tree is every file of the library with its text.
func (k *keeper) tree() string {
	k.t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(filepath.Join(k.Home, "elements"), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		fmt.Fprintf(&b, "%s\n%s\n", path, text)
		return err
	})
	if err != nil {
		k.t.Fatal(err)
	}
	return b.String()
}

// TestBatchTakenBack: of a batch that is done whole or not at all nothing is
// left when an item fails, on disk and in what is in force; and nothing that
// cannot be taken back is begun.
func TestBatchTakenBack(t *testing.T) {
	t.Parallel()
	k := beginKeeper(t, map[string]string{
		"personas/guard.md": persona("guard", "gatekeeper:\n  confirm: [addEntry]\n"), "personas/late.md": persona("late", "gatekeeper:\n  deny: [clear]\n"),
		"skills/there.md": persona("there", ""), "memories/m.yaml": "metadata:\n  name: m\n  description: d\nentries: []\n",
	})
	k.ok("activate_element", "persona", named("guard"))
	k.connect("?mode=single")
	before, active := k.tree(), k.tool("mcp_aql", part("get_active_elements", "", nil)).Text
	fails := part("create_element", "skill", map[string]any{"name": "there", "description": "the name is taken"})
	out := k.answered(wholly(
		part("create_element", "skill", map[string]any{"name": "fresh", "description": "x"}),
		part("addEntry", "memory", map[string]any{"name": "m", "content": "remember"}),
		part("edit_element", "persona", map[string]any{"name": "guard", "metadata": map[string]any{"gatekeeper": map[string]any{"confirm": []string{"addEntry"}, "deny": []string{"clear"}}}}),
		part("activate_element", "persona", named("late")),
		fails,
		part("create_element", "skill", map[string]any{"name": "never", "description": "x"}),
	))
	if !out.IsError || !strings.Contains(out.Text, `"succeeded":0,"failed":5,"not_run":1`) || strings.Count(out.Text, `"taken_back"`) != 4 ||
		!strings.Contains(out.Text, "already") || !strings.Contains(out.Text, "was taken back") {
		t.Errorf("the batch that fails: %s", out.Text)
	}
	if after := k.tree(); after != before {
		t.Errorf("the library was\n%s\nand is\n%s", before, after)
	}
	if now := k.tool("mcp_aql", part("get_active_elements", "", nil)).Text; now != active {
		t.Errorf("active was\n%s\nand is\n%s", active, now)
	}
	// The same without the item that fails is done whole.
	out = k.answered(wholly(
		part("create_element", "skill", map[string]any{"name": "fresh", "description": "x"}),
		part("addEntry", "memory", map[string]any{"name": "m", "content": "remember"}),
		part("activate_element", "persona", named("late")),
	))
	if out.IsError || k.file("skills/fresh.md") == "" || !strings.Contains(k.file("memories/m.yaml"), "remember") {
		t.Errorf("the batch that does not fail: %s", out.Text)
	}
	// An item that the one before it forbids takes the whole back as well.
	k.element("personas/lock.md", persona("lock", "gatekeeper:\n  deny: [activate_element]\n"))
	active = k.tool("mcp_aql", part("get_active_elements", "", nil)).Text
	out = k.answered(wholly(part("activate_element", "persona", named("lock")), part("activate_element", "skill", named("there"))))
	if now := k.tool("mcp_aql", part("get_active_elements", "", nil)).Text; !out.IsError || now != active {
		t.Errorf("%s\nactive was\n%s\nand is\n%s", out.Text, active, now)
	}
	// The mode of the session as well: the second item is denied in plan mode.
	out = k.answered(wholly(part("set_config", "", map[string]any{"key": "session.mode", "value": "plan"}), part("activate_element", "skill", named("there"))))
	if !out.IsError || !strings.Contains(out.Text, `"taken_back"`) {
		t.Errorf("a batch that sets the mode: %s", out.Text)
	}
	if out := k.tool("mcp_aql", part("activate_element", "skill", named("there"))); out.IsError {
		t.Errorf("the session's mode was not taken back: %s", out.Text)
	}
	// What has effects on people or executions is refused before anything runs.
	for _, op := range []string{"confirm_operation", "record_execution_step"} {
		params := map[string]any{"request": "r_x"}
		if op == "record_execution_step" {
			params = map[string]any{"execution_id": "x_1", "description": "d", "outcome": "success"}
		}
		out = k.tool("mcp_aql", wholly(part("create_element", "skill", map[string]any{"name": "early", "description": "x"}), part(op, "", params)))
		if !out.IsError || !strings.Contains(out.Text, "cannot be taken back") || k.file("skills/early.md") != "" {
			t.Errorf("%s: %s", op, out.Text)
		}
	}
	if log := k.Must("audit", "list", "--limit", "100", "--credential-file", k.key); !strings.Contains(log, "batch.taken_back") {
		t.Errorf("the log says nothing of it:\n%s", log)
	}
	k.verify()
}

// TestBatchSurvivesNoCrash: the gate dies in the middle of such a batch; when
// it is up again, all of it is there or none.
func TestBatchSurvivesNoCrash(t *testing.T) {
	t.Parallel()
	k := beginKeeper(t, nil)
	cut := 0
	for round, at := range []int{1, 7, 20, 33, 47} {
		var items []map[string]any
		for i := range 49 {
			items = append(items, part("create_element", "skill", map[string]any{"name": fmt.Sprintf("r%d-%d", round, i), "description": "x"}))
		}
		items = append(items, part("activate_element", "skill", named(fmt.Sprintf("r%d-0", round))))
		k.connect("?mode=single")
		batch := wholly(items...)
		k.grant(k.expect(gate.Pending, k.tool("mcp_aql", batch), "the batch").Told.Request)
		count := func() int {
			files, err := filepath.Glob(filepath.Join(k.Home, "elements", "skills", fmt.Sprintf("r%d-*.md", round)))
			if err != nil {
				t.Fatal(err)
			}
			return len(files)
		}
		running := make(chan struct{})
		go func() {
			defer close(running)
			_, _ = k.session.CallTool(t.Context(), callTool("mcp_aql", batch)) // the gate dies under it
		}()
		for count() < at {
			time.Sleep(time.Millisecond)
		}
		k.Kill()
		<-running
		if n := count(); n < 49 {
			cut++
		}
		k.Up()
		k.connect("")
		n, active := count(), strings.Contains(k.ok("get_active_elements", "", nil).Text, fmt.Sprintf(`"name":"r%d-0"`, round))
		if n != 0 && n != 49 || (n == 49) != active {
			t.Errorf("round %d: %d of 49 files are there, the first is active: %v\n%s", round, n, active, k.Log())
		}
	}
	if cut == 0 {
		t.Error("no batch was cut off in the middle: the test says nothing")
	}
	k.verify()
}

func callTool(name string, args any) *sdk.CallToolParams {
	return &sdk.CallToolParams{Name: name, Arguments: args}
}
