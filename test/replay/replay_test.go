package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
)

// The bars: prompts per hundred calls under supervised.
const (
	ownBar    = 8.0
	sharedBar = 10.0
)

func replay(t *testing.T, at string) []tally {
	t.Helper()
	sessions, err := loadAll(at, "")
	if err != nil {
		t.Fatal(err)
	}
	snap, err := compile("supervised")
	if err != nil {
		t.Fatal(err)
	}
	var all []tally
	for _, s := range sessions {
		outcomes := play(t.Context(), s, snap, true)
		all = append(all, count(s, outcomes))
		for i := range outcomes {
			if o := &outcomes[i]; o.wrong != "" {
				t.Errorf("%s: call %d went ahead unasked: %s: %s %s", s.name, i+1, o.wrong, o.step.Tool, short(string(o.step.Input), 120))
			}
		}
	}
	var table bytes.Buffer
	report(&table, all, true)
	t.Log("\n" + table.String())
	return all
}

func TestReplayOwnSessions(t *testing.T) {
	t.Parallel()
	all := replay(t, "testdata")
	if len(all) != 3 {
		t.Errorf("%d sessions, want the three that the repository carries", len(all))
	}
	for _, s := range all {
		if s.rate() > ownBar {
			t.Errorf("%s: %.1f prompts per hundred calls, want at most %.0f", s.name, s.rate(), ownBar)
		}
	}
}

// What the sessions must be to say anything.
func TestOwnSessionsAreWork(t *testing.T) {
	t.Parallel()
	sessions, err := loadAll("testdata", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sessions {
		changes, runs, edited := 0, 0, false
		for i := range s.steps {
			st := &s.steps[i]
			switch st.Truth {
			case "write", "ask":
				changes++
				edited = true
			case "code":
				if edited {
					runs++ // a run of tests or builds after an edit
				}
				edited = false
			case "read", "net":
			default:
				t.Errorf("%s: call %d is not marked", s.name, i+1)
			}
		}
		if n := len(s.steps); n < 60 || 3*changes < n || runs < 8 {
			t.Errorf("%s: %d calls, %d of them mutating, %d runs between edits; want 60, a third, 8", s.name, n, changes, runs)
		}
	}
}

// Recorded sessions of real agents are other people's data and not part of
// this repository: GATEHOUSE_CASES names a folder that holds sessions/.
func TestReplayRecordedSessions(t *testing.T) {
	t.Parallel()
	cases := os.Getenv("GATEHOUSE_CASES")
	if cases == "" {
		t.Skip("GATEHOUSE_CASES names no folder with recorded sessions")
	}
	var sum tally
	for _, s := range replay(t, filepath.Join(cases, "sessions")) {
		sum.calls, sum.prompts = sum.calls+s.calls, sum.prompts+s.prompts
	}
	if sum.rate() > sharedBar {
		t.Errorf("%.1f prompts per hundred calls, want at most %.0f on average", sum.rate(), sharedBar)
	}
}

// A judge that never objects would make every replay look good.
func TestJudgesObject(t *testing.T) {
	t.Parallel()
	allowed := func(st step) outcome { return outcome{step: &st, verdict: 2, level: call.AutoApprove} }
	for _, st := range []step{
		{Tool: "Bash", Input: []byte(`{"command":"rm -rf build"}`)},
		{Tool: "Bash", Input: []byte(`{"command":"curl https://example.com/x"}`)},
		{Tool: "Bash", Input: []byte(`{"command":"echo x > a.txt"}`)},
		{Tool: "Write", Input: []byte(`{"file_path":"/a"}`)},
		{Tool: "Bash", Input: []byte(`{"command":"ls"}`), Truth: "ask"},
		{Tool: "Bash", Input: []byte(`{"command":"ls"}`), Truth: "write", Touches: []string{"./a"}},
	} {
		o := allowed(st)
		if judge(&o) == "" {
			t.Errorf("nothing wrong is found with %s %s (%s)", st.Tool, st.Input, st.Truth)
		}
	}
	for _, st := range []step{
		{Tool: "Bash", Input: []byte(`{"command":"grep -rn 'rm -rf' src 2>/dev/null | head"}`)},
		{Tool: "Bash", Input: []byte(`{"command":"which python3 node; node -v"}`)},
		{Tool: "Read", Input: []byte(`{"file_path":"/a"}`)},
	} {
		o := allowed(st)
		if why := judge(&o); why != "" {
			t.Errorf("%s %s is called wrong: %s", st.Tool, st.Input, why)
		}
	}
}

// Without a host that takes rewritten input nothing runs confined, and then
// project code is asked about every time.
func TestReplayWithoutRewriting(t *testing.T) {
	t.Parallel()
	sessions, err := loadAll("testdata", "")
	if err != nil {
		t.Fatal(err)
	}
	snap, err := compile("supervised")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sessions {
		for i, o := range play(t.Context(), s, snap, false) {
			if o.step.Truth == "code" && o.asked == "" {
				t.Errorf("%s: call %d ran project code that nobody was asked about and nothing confines", s.name, i+1)
			}
		}
	}
}
