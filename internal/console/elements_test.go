package console_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-3ebc6b8a/gatehouse/internal/activation"
	"github.com/seed-3ebc6b8a/gatehouse/internal/console"
	"github.com/seed-3ebc6b8a/gatehouse/internal/element"
	"github.com/seed-3ebc6b8a/gatehouse/internal/session"
)

// TestElements: the page shows what is in force for whom, what is in
// quarantine and what waits, and every byte of a name that came from a file.
func TestElements(t *testing.T) {
	t.Parallel()
	cl := signedIn(t, console.Options{})
	if !strings.Contains(text(cl.get("/elements")), "No elements are in force") {
		t.Error("an empty page does not say so")
	}
	cl.desk.change(func() {
		cl.desk.elements.Active = []session.ActiveSet{{Agent: "coder", Workspace: "/src", Active: []session.Active{{
			Type: "persona", Name: "Careful\u202e", Broken: "line 3: no operation matches \"delet_element\"",
			Elements: []element.Element{{Type: "persona", Name: "Careful", Lists: element.Lists{Deny: []string{"delete_*"}}}},
		}}}}
		cl.desk.elements.Staged = []activation.Staged{{Agent: "coder", Element: "persona/Careful", Digest: digestOf("abc"), Changes: []string{"delete_element: DENY → CONFIRM_SINGLE_USE"}}}
	})
	page := cl.get("/elements")
	for _, want := range []string{`Careful\u202E`, "In quarantine: line 3", "delete_*", "DENY → CONFIRM_SINGLE_USE", "in sessions without a workspace"} {
		if !strings.Contains(text(page), want) && !strings.Contains(page, want) {
			t.Errorf("the page does not show %q", want)
		}
	}
	form := url.Values{"agent": {"coder"}, "element": {"persona/Careful"}, "digest": {digestOf("abc").String()}, "code": {"123456"}}
	cl.says("/elements/accept", form)
	cl.says("/elements/release", form)
	form.Set("digest", "zz")
	if got := cl.says("/elements/accept", form); !strings.Contains(got, "which change") {
		t.Error(got)
	}
	want := []string{"ann on console: accept element persona/Careful of coder 123456", "ann on console: release persona/Careful of coder 123456"}
	if diff := cmp.Diff(want, cl.desk.did()); diff != "" {
		t.Error(diff)
	}
}
