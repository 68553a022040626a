package e2e_test

import (
	"strings"
	"testing"
)

// TestElementsLifeOfOne takes an element from its creation to its end, over
// the tools and with a person where one is needed.
func TestElementsLifeOfOne(t *testing.T) {
	t.Parallel()
	k := beginKeeper(t, nil)
	params := map[string]any{
		"name": "Careful Coder", "description": "thinks first", "content": "Think first.\n",
		"gatekeeper": map[string]any{"deny": []string{"clear"}, "confirm": []string{"addEntry"}},
	}
	k.approved("create_element", "persona", params)
	if text := k.file("personas/careful-coder.md"); !strings.Contains(text, "Think first.") || !strings.Contains(text, "deny:") {
		t.Errorf("the file holds %q", text)
	}
	for _, spelling := range []string{"Careful Coder", "careful-coder", "CAREFUL coder"} {
		if got := k.ok("get_element", "personas", named(spelling)); !strings.Contains(got.Text, "thinks first") {
			t.Errorf("%s: %s", spelling, got.Text)
		}
	}
	if got := k.op("get_element", "persona", named("carefull-coder")); !got.IsError || !strings.Contains(got.Text, `did you mean "Careful Coder"`) {
		t.Errorf("a slip of the pen: %s", got.Text)
	}
	if got := k.ok("search_elements", "", map[string]any{"query": "first think"}); !strings.Contains(got.Text, "Careful Coder") {
		t.Errorf("search: %s", got.Text)
	}
	k.ok("activate_element", "persona", named("careful-coder")) // it loosens nothing
	if got := k.ok("get_active_elements", "", nil); !strings.Contains(got.Text, "Careful Coder") {
		t.Errorf("active: %s", got.Text)
	}
	k.denied("clear", "memory", named("x"), "Careful Coder", "DENY")
	k.approved("deactivate_element", "persona", named("careful-coder"))
	k.approved("delete_element", "persona", named("careful-coder"))
	if k.file("personas/careful-coder.md") != "" {
		t.Error("the file is still there")
	}
	k.verify()
}
