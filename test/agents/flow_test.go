package agents_test

import (
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/canary"
)

// each runs a test for every CLI that can be driven.
func each(t *testing.T, fn func(t *testing.T, name string)) {
	t.Helper()
	eachOf(t, canary.Names(), fn)
}

// eachOf runs a test for some CLIs.
func eachOf(t *testing.T, names []string, fn func(t *testing.T, name string)) {
	t.Helper()
	t.Parallel()
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fn(t, name)
		})
	}
}

// TestAllowed: what the policy allows runs, and its end is on record.
func TestAllowed(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		w := connected(t, name)
		w.write(w.dir+"/allowed.txt", "the content of the file\n")
		results, _ := w.run(canary.Run{Reckless: true}, canary.Step{Command: "cat allowed.txt"})
		if !saw(results, "the content of the file") {
			t.Error("the allowed command did not run")
		}
		calls, outcomes := w.records("call"), w.records("outcome")
		if len(calls) != 1 || calls[0].Outcome != "allowed" || calls[0].Operation != "shell" || calls[0].Surface != "hook:"+name {
			t.Errorf("calls on record: %+v", calls)
		}
		if len(outcomes) != 1 || outcomes[0].Outcome != "succeeded" {
			t.Errorf("outcomes on record: %+v", outcomes)
		}
	})
}

// TestDenied: what the policy denies does not run, though the agent's own
// questions are off, and the model is told why.
func TestDenied(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		w := connected(t, name)
		results, _ := w.run(canary.Run{Reckless: true}, canary.Step{Command: "touch never.txt"})
		if w.exists("never.txt") {
			t.Error("the denied command ran")
		}
		if !saw(results, "the test forbids it") {
			t.Error("the model was not told why")
		}
	})
}

// TestAsked: what the policy asks about waits, is approved through the API, and
// runs.
func TestAsked(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		w := connected(t, name)
		w.present()
		done := make(chan []string)
		go func() {
			results, _ := w.run(canary.Run{Reckless: true}, canary.Step{Command: "touch asked.txt"})
			done <- results
		}()
		r := w.answerOr(done)
		if w.exists("asked.txt") {
			t.Error("it ran before it was approved")
		}
		w.approve(r)
		<-done
		if !w.exists("asked.txt") {
			t.Error("what was approved did not run")
		}
	})
}

// TestAskedAndDenied: a person's no is heard.
func TestAskedAndDenied(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		w := connected(t, name)
		w.present()
		done := make(chan []string)
		go func() {
			results, _ := w.run(canary.Run{Reckless: true}, canary.Step{Command: "touch asked.txt"})
			done <- results
		}()
		w.deny(w.answerOr(done), "not today")
		results := <-done
		if w.exists("asked.txt") {
			t.Error("what was denied ran")
		}
		if !saw(results, "not today") {
			t.Error("the model did not hear the person's words")
		}
	})
}
