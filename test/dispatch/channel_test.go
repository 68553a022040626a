package dispatch_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/canary"
	"github.com/seed-3ebc6b8a/gatehouse/internal/inrun"
)

// TestChannelAllows: a call that is let run runs, and its end is told.
func TestChannelAllows(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		a := newAgent(t, name)
		_, _, err := a.turn(yes, canary.Step{Command: "touch made.txt"})
		if err != nil {
			t.Fatal(err)
		}
		if !a.exists("made.txt") {
			t.Error("what was let run did not run")
		}
		if len(a.asked) != 1 || call.FoldTool(a.asked[0].Name) != call.OpShell {
			t.Fatalf("asked: %+v", a.asked)
		}
		if command, _ := call.StringArg(a.asked[0].Args, "command"); command != "touch made.txt" {
			t.Errorf("asked about %s", a.asked[0].Args)
		}
		if diff := cmp.Diff([]inrun.Outcome{inrun.Succeeded}, a.ends); diff != "" {
			t.Error(diff)
		}
	})
}

// TestChannelDenies: a call that is refused does not run, and the model is told
// why in words.
func TestChannelDenies(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		a := newAgent(t, name)
		told, _, err := a.turn(no, canary.Step{Command: "touch made.txt"})
		if err != nil {
			t.Fatal(err)
		}
		if a.exists("made.txt") {
			t.Error("what was refused ran")
		}
		if !said(told, "the test forbids it") {
			t.Errorf("the model was told %q", told)
		}
		if len(a.asked) == 0 || len(a.ends) > 0 {
			t.Errorf("asked %v, ended %v", a.asked, a.ends)
		}
	})
}

// TestChannelAsksAboutReading: what the CLI would run by itself is asked about,
// too.
func TestChannelAsksAboutReading(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		a := newAgent(t, name)
		write(t, a.dir+"/a.txt", "what a.txt holds\n")
		told, _, err := a.turn(no, canary.Step{Command: "cat a.txt"})
		if err != nil {
			t.Fatal(err)
		}
		if len(a.asked) == 0 || said(told, "what a.txt holds") {
			t.Errorf("asked %v, told %q", a.asked, told)
		}
	})
}
