package e2e_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
)

// inForce reads what is in force and what waits.
func (k *keeper) inForce() *admin.Elements {
	k.t.Helper()
	out := &admin.Elements{}
	k.do("GET", "/v1/elements", nil, out)
	return out
}

// TestAttack03ElementLoosenedOnDisk: an element's file that is changed behind
// the gate's back takes effect by itself only if it loosens nothing; else it
// waits for an approver, after a restart too, and so does its removal.
func TestAttack03ElementLoosenedOnDisk(t *testing.T) {
	t.Parallel()
	k := beginKeeper(t, map[string]string{"personas/guard.md": persona("guard", lockedDown), "skills/s.md": persona("s", "")})
	k.ok("activate_element", "persona", named("guard"))
	delete := func() gate.Verdict { return k.op("delete_element", "skill", named("s")).Told.Verdict }

	k.element("personas/guard.md", persona("guard", "gatekeeper:\n  confirm: [addEntry]\n"))
	eventually(t, "the change is staged", func() bool { return len(k.inForce().Staged) == 1 })
	if v := delete(); v != gate.Denied {
		t.Fatalf("a file that loosens is in force: %s", v)
	}
	k.Stop()
	k.Up()
	k.connect("")
	eventually(t, "the change is staged after a restart", func() bool { return len(k.inForce().Staged) == 1 })
	if v := delete(); v != gate.Denied {
		t.Fatalf("a file that loosens is in force after a restart: %s", v)
	}
	s := k.inForce().Staged[0]
	if !strings.Contains(strings.Join(s.Changes, "\n"), "delete_element: DENY → CONFIRM_SINGLE_USE") {
		t.Errorf("the approver is told %q", s.Changes)
	}
	if page := k.SignedIn(k.credential).Get("/elements"); !strings.Contains(page.Body, `data-test="element-staged"`) {
		t.Error("the console does not show what waits")
	}
	accept := &api.ElementRequest{Agent: s.Agent, Workspace: s.Workspace, Element: s.Element, Digest: s.Digest}
	refused(t, "accepting with a token", k.agent.Do(t.Context(), "POST", "/v1/elements/accept", accept, nil), http.StatusForbidden)
	refused(t, "accepting with nothing", k.Client("").Do(t.Context(), "POST", "/v1/elements/accept", accept, nil), http.StatusUnauthorized)
	accept.Code = k.code()
	k.do("POST", "/v1/elements/accept", accept, nil)
	if v := delete(); v != gate.Pending {
		t.Errorf("an accepted change is not in force: %s", v)
	}

	// Tightening is taken at once.
	k.element("personas/guard.md", persona("guard", "gatekeeper:\n  confirm: [addEntry]\n  deny: [delete_element]\n"))
	eventually(t, "a stricter file is in force", func() bool { return delete() == gate.Denied })

	// Taking the file away takes nothing out of force.
	if err := os.Remove(filepath.Join(k.Home, "elements", "personas", "guard.md")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "its removal is staged", func() bool { return len(k.inForce().Staged) == 1 })
	if v := delete(); v != gate.Denied {
		t.Errorf("the file is gone and so is its policy: %s", v)
	}
	k.verify()
}

// TestAttack04ElementsByFileTools: the files of elements are the gate's own, out
// of reach of every tool.
func TestAttack04ElementsByFileTools(t *testing.T) {
	t.Parallel()
	k := beginKeeper(t, map[string]string{"personas/guard.md": persona("guard", lockedDown)})
	file := filepath.Join(k.Home, "elements", "personas", "guard.md")
	for _, in := range []*api.CallRequest{
		callOf("Write", fmt.Sprintf(`{"file_path":%q,"content":"x"}`, file)),
		callOf("Edit", fmt.Sprintf(`{"file_path":%q,"old_string":"deny","new_string":"allow"}`, file)),
		callOf("Bash", fmt.Sprintf(`{"command":"rm %s"}`, file)),
		callOf("Bash", fmt.Sprintf(`{"command":"cd %s && sed -i s/deny/allow/ guard.md"}`, filepath.Dir(file))),
	} {
		k.want(gate.Denied, in)
	}
}

// TestObserveModeLoosensNothing: observe mode lets calls of tools go ahead; it
// does not let an agent take away what holds it.
func TestObserveModeLoosensNothing(t *testing.T) {
	t.Parallel()
	k := &keeper{world: beginWith(t, "version = 1\nmode = \"observe\"\n")}
	k.element("personas/guard.md", persona("guard", lockedDown))
	k.connect("")
	k.ok("activate_element", "persona", named("guard"))
	for what, out := range map[string]said{
		"deactivating": k.op("deactivate_element", "persona", named("guard")),
		"editing":      k.op("edit_element", "persona", map[string]any{"name": "guard", "metadata": map[string]any{"gatekeeper": nil}}),
		"deleting":     k.op("delete_element", "persona", named("guard")),
	} {
		if !out.IsError {
			t.Errorf("%s: %s", what, out.Text)
		}
	}
	if got := k.ok("get_active_elements", "", nil); !strings.Contains(got.Text, "guard") || k.file("personas/guard.md") == "" {
		t.Errorf("active: %s", got.Text)
	}
}

// TestAttack12ElementSwapped: what was approved is the element as it was
// shown; one whose file changed meanwhile is another question.
func TestAttack12ElementSwapped(t *testing.T) {
	t.Parallel()
	k := beginKeeper(t, map[string]string{"personas/p.md": persona("p", "gatekeeper:\n  allow: [create_element]\n")})
	id := k.pending("activate_element", "persona", named("p")).Told.Request
	k.grant(id)
	k.element("personas/p.md", persona("p", "gatekeeper:\n  allow: [create_element, addEntry, import_element]\n"))
	again := k.pending("activate_element", "persona", named("p"))
	if again.Told.Request == id {
		t.Error("it is the same question")
	}
	k.pending("create_element", "skill", map[string]any{"name": "x", "description": "x"})
}

// TestAttack17Batch: 49 harmless operations around one that loosens are not
// let through, and nothing of them is done.
func TestAttack17Batch(t *testing.T) {
	t.Parallel()
	k := beginKeeper(t, map[string]string{"personas/guard.md": persona("guard", lockedDown), "personas/plain.md": persona("plain", "")})
	k.ok("activate_element", "persona", named("guard"))
	var items []map[string]any
	for range 49 {
		items = append(items, map[string]any{"operation": "activate_element", "element_type": "persona", "params": named("plain")})
	}
	items = append(items[:30], append([]map[string]any{{"operation": "deactivate_element", "element_type": "persona", "params": named("guard")}}, items[30:]...)...)
	k.expect(gate.Denied, k.tool("mcp_aql_update", map[string]any{"operations": items}), "batch", "item 30")
	if got := k.ok("get_active_elements", "", nil); strings.Contains(got.Text, "plain") {
		t.Errorf("something of it was done: %s", got.Text)
	}
	if len(k.requests()) != 0 {
		t.Error("a person is asked about it")
	}
}

// TestAttackElementFiles: names and files that reach out of the library reach
// nothing.
func TestAttackElementFiles(t *testing.T) {
	t.Parallel()
	k := beginKeeper(t, nil)
	secret := filepath.Join(t.TempDir(), "secret.md")
	write(t, secret, "---\nname: secret\ndescription: hush\n---\nhush\n")
	if err := os.Symlink(secret, filepath.Join(k.Home, "elements", "skills", "link.md")); err != nil {
		t.Fatal(err)
	}
	k.element("skills/bomb.md", "---\nname: bomb\na: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c,*c,*c,*c,*c,*c]\n---\n")
	k.element("skills/one.md", persona("Same Name", ""))
	k.element("skills/two.md", persona("same-name", "gatekeeper:\n  allow: [create_element]\n"))
	for _, name := range []string{"../../policy", "/etc/passwd", "..", "link", "bomb", "same name"} {
		out := k.op("get_element", "skill", named(name))
		if strings.Contains(out.Text, "hush") || strings.Contains(out.Text, "root:") || strings.Contains(out.Text, `"metadata"`) {
			t.Errorf("%s is read: %s", name, out.Text)
		}
	}
	for _, name := range []string{"../../x", "..", "", strings.Repeat("x", 200), "a\u202eb"} {
		if out := k.op("create_element", "skill", map[string]any{"name": name, "description": "x"}); out.Told.Verdict == gate.Pending {
			k.grant(out.Told.Request)
			out = k.op("create_element", "skill", map[string]any{"name": name, "description": "x"})
			if !out.IsError && name != "../../x" {
				t.Errorf("%q was created: %s", name, out.Text)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(k.Home, "x.md")); err == nil {
		t.Error("a file was written outside of the library")
	}
	if got := k.ok("list_elements", "skill", nil); !strings.Contains(got.Text, "two files claim") || !strings.Contains(got.Text, "alias") {
		t.Errorf("the list does not say what is wrong: %s", got.Text)
	}
}
