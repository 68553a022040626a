package dispatch_test

import (
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
)

// TestRunsOnTheConsole: a person sees what runs, on whose behalf, and what was
// decided about it; they can end it, and the log says who did.
func TestRunsOnTheConsole(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "")
	d.ask(d.agent, "claude_request", args{"prompt": "Write docs", "correlationId": "docs-1"})
	write(t, filepath.Join(d.standIn, "slow"), "")
	first := d.ask(d.agent, "claude_request_async", args{"prompt": "take your time"})
	second := d.ask(d.another, "codex_request_async", args{"prompt": "take yours"})
	if first.Job == nil || second.Job == nil {
		t.Fatalf("%+v %+v", first, second)
	}
	person := d.SignedIn(d.credential)
	list := person.Get("/runs").Body
	for _, want := range []string{"/runs/" + first.Job.ID, "/runs/" + second.Job.ID, "coder", "other", "completed", "docs-1"} {
		if !strings.Contains(list, want) {
			t.Errorf("the list of runs does not show %q", want)
		}
	}
	page := person.Get("/runs/" + first.Job.ID).Body
	for _, want := range []string{"take your time", "running", "0, policy balanced", "coder", "allowed", "/log/"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page of a run does not show %q:\n%s", want, page)
		}
	}
	// Without the page's proof nothing ends; with it, and in the terminal, it does.
	stranger := *person
	stranger.Proof = ""
	if p := stranger.Post("/runs/"+first.Job.ID+"/cancel", url.Values{}); p.Status == http.StatusOK || p.Status == http.StatusSeeOther && !strings.Contains(person.Get("/runs/"+first.Job.ID).Body, "run-cancel") {
		t.Errorf("a cookie alone ended a run: %d", p.Status)
	}
	person.Post("/runs/"+first.Job.ID+"/cancel", url.Values{})
	file := filepath.Join(t.TempDir(), "ann.key")
	write(t, file, d.credential)
	d.Must("jobs", "cancel", second.Job.ID, "--credential-file", file)
	for _, id := range []string{first.Job.ID, second.Job.ID} {
		if page := person.Get("/runs/" + id).Body; !strings.Contains(page, "cancelled") || strings.Contains(page, "run-cancel") {
			t.Errorf("the run %s is not over:\n%s", id, page)
		}
		// The export has what is in the tree, which takes in records in the background.
		acts := 0
		for range 200 {
			for line := range strings.Lines(d.Must("audit", "export", "--credential-file", file)) {
				if strings.Contains(line, `"job.cancel"`) && strings.Contains(line, id) && strings.Contains(line, `"ann"`) {
					acts++
				}
			}
			if acts > 0 {
				break
			}
		}
		if acts != 1 {
			t.Errorf("that ann ended %s is on record %d times", id, acts)
		}
	}
	if p := person.Get("/runs/job_none"); p.Status != http.StatusNotFound || !strings.Contains(p.Body, "no such run") {
		t.Errorf("a run that is not there: %d", p.Status)
	}
}
