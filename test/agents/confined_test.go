package agents_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/canary"
	"github.com/seed-3ebc6b8a/gatehouse/internal/needtest"
)

// TestConfined: code of the project runs in the sandbox where the agent takes a
// rewritten command; one yes is good for the session, the project's files are
// written and nothing else is.
func TestConfined(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"claude", "codex", "gemini", "grok", "copilot"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			needtest.Programs(t, "bwrap", "make")
			w := connected(t, name)
			outside, err := os.MkdirTemp("/var/tmp", "gh-outside-")
			must(t, err)
			t.Cleanup(func() { os.RemoveAll(outside) })
			w.write(filepath.Join(w.dir, "Makefile"), "one two:\n\ttouch $@.built\n\t-touch "+outside+"/escaped\n")
			w.present()
			done := make(chan []string)
			go func() {
				results, _ := w.run(canary.Run{Reckless: true}, canary.Step{Command: "make one"}, canary.Step{Command: "make two"})
				done <- results
			}()
			r := w.answerOr(done)
			if len(r.Offers) < 2 {
				t.Fatalf("nothing is offered for the session: %+v", r.Offers)
			}
			must(t, w.Client(w.credential).Do(context.Background(), "POST", "/v1/approvals/"+r.ID+"/approve", &api.ApproveRequest{Digest: r.Digest, Offer: 1}, nil))
			results := <-done
			if !w.exists("one.built") || !w.exists("two.built") {
				t.Errorf("the project's code did not run: %q", results)
			}
			if _, err := os.Stat(filepath.Join(outside, "escaped")); err == nil {
				t.Error("it wrote outside the workspace")
			}
			for _, r := range w.records("outcome") {
				if r.Outcome != "succeeded" {
					t.Errorf("outcome %s", r.Outcome)
				}
			}
			if body := w.bodies("call"); !strings.Contains(body, `"guarantees":[{"name":"confined"},`) {
				t.Errorf("the record does not say that it ran confined: %s", body)
			}
		})
	}
}
