package dispatch

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch/job"
	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch/provider"
	"github.com/seed-3ebc6b8a/gatehouse/internal/inrun"
	"github.com/seed-3ebc6b8a/gatehouse/internal/needtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func run(t *testing.T, dir string, words ...string) {
	t.Helper()
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@a.example", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@a.example")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", words, err, out)
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// state fails the test where there is none.
func state(t *testing.T, dir string) string {
	t.Helper()
	s, err := stateOf(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestStateRunsNothing: attack row 28. A repository has git run a program of
// its own on every look at its files; the state is read without.
func TestStateRunsNothing(t *testing.T) {
	t.Parallel()
	needtest.Programs(t, "git")
	dir := t.TempDir()
	ran := filepath.Join(t.TempDir(), "ran")
	run(t, dir, "git", "init", "-q")
	put(t, filepath.Join(dir, "a.txt"), "one\n")
	run(t, dir, "git", "add", ".")
	run(t, dir, "git", "commit", "-qm", "one")
	put(t, filepath.Join(dir, ".gitattributes"), "* filter=evil\n")
	run(t, dir, "git", "config", "filter.evil.clean", "touch "+ran+"; cat")
	put(t, filepath.Join(dir, "a.txt"), "two\n")
	run(t, dir, "git", "diff", "--stat")
	if _, err := os.Stat(ran); err != nil {
		t.Fatal("the attack does not work, so that this shows nothing")
	}
	if err := os.Remove(ran); err != nil {
		t.Fatal(err)
	}
	if state(t, dir) == "" {
		t.Error("no state")
	}
	if _, err := os.Stat(ran); !errors.Is(err, os.ErrNotExist) {
		t.Error("looking at the repository ran its program")
	}
}

// TestStateTells: a change of a file, a new file, a removed one, another
// commit and a file put back with its old time are other states; looking again
// is not.
func TestStateTells(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sub := filepath.Join(dir, "sub")
	if err := os.Mkdir(sub, 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "a.txt")
	put(t, file, "one\n")
	seen := map[string]string{}
	look := func(what string) {
		t.Helper()
		s := state(t, dir)
		if s != state(t, dir) {
			t.Errorf("%s: two looks, two states", what)
		}
		if was, ok := seen[s]; ok {
			t.Errorf("%s is the same state as %s", what, was)
		}
		seen[s] = what
	}
	look("the beginning")
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	put(t, file, "two\n")
	if err := os.Chtimes(file, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	look("another content of the same size and time")
	put(t, filepath.Join(sub, "b.txt"), "")
	look("a new file")
	if err := os.Remove(filepath.Join(sub, "b.txt")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("a.txt", filepath.Join(sub, "link")); err != nil {
		t.Fatal(err)
	}
	look("a link")
	if err := os.Chmod(file, 0o755); err != nil {
		t.Fatal(err)
	}
	look("another mode")
}

// TestSeedDefaults names the defaults of the seed that are this package's.
func TestSeedDefaults(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what      string
		got, want any
	}{
		{"a synchronous request is deferred after 45 s", SyncDeadline, 45 * time.Second},
		{"jobs are asked about every 60 s", PollAfter, time.Minute},
		{"the idle time-out is 10 minutes", job.DefaultIdle, 10 * time.Minute},
		{"idleTimeoutMs from 30 s", job.MinIdle, 30 * time.Second},
		{"idleTimeoutMs to an hour", job.MaxIdle, time.Hour},
		{"an idle CLI ends with 125", job.ExitIdle, 125},
		{"mcpServers is sqry", (&call.Task{}).Servers()[0], "sqry"},
		{"reviews are repeated three times", maxRounds, 3},
		{"the model is left to the CLI", (&call.Task{}).Model, ""},
	} {
		if c.got != c.want {
			t.Errorf("%s: %v", c.what, c.got)
		}
	}
	if _, err := call.ParseTask([]byte(`{"prompt":"x","idleTimeoutMs":29999}`)); err == nil {
		t.Error("an idle time-out under 30 s is taken")
	}
	if call.MinIdleMs != job.MinIdle.Milliseconds() || call.MaxIdleMs != job.MaxIdle.Milliseconds() {
		t.Error("two sets of limits")
	}
}

// TestPromptParts: the parts go in one order, and the hash of what stays the
// same does not depend on the task.
func TestPromptParts(t *testing.T) {
	t.Parallel()
	parts := func(task string) *call.Task {
		return &call.Task{PromptParts: &call.PromptParts{Context: "C", System: "S", Tools: "T", Task: task}}
	}
	if got := parts("do it").Text(); got != "S\n\nT\n\nC\n\ndo it" {
		t.Errorf("%q", got)
	}
	a, _ := parts("one").PrefixHash()
	b, n := parts("two").PrefixHash()
	if a != b || a == "" || n != len("S\n\nT\n\nC") {
		t.Errorf("%s, %s, %d", a, b, n)
	}
	if c, _ := (&call.Task{PromptParts: &call.PromptParts{System: "other", Task: "one"}}).PrefixHash(); c == a {
		t.Error("another prefix has the same hash")
	}
	if h, _ := (&call.Task{Prompt: "x"}).PrefixHash(); h != "" {
		t.Error("a plain prompt has a prefix")
	}
}

// TestOnlyTools: what a request's own lists leave out is refused before anybody
// is asked.
func TestOnlyTools(t *testing.T) {
	t.Parallel()
	asked := 0
	ask := onlyTools(&call.Task{AllowedTools: []string{"Read", "Bash(git:*)"}, DisallowedTools: []string{"WebFetch", "Bash(rm:*)"}}, func(context.Context, inrun.Tool) inrun.Verdict {
		asked++
		return inrun.Verdict{Answer: inrun.Run}
	})
	for name, want := range map[string]inrun.Answer{"Read": inrun.Run, "read_file": inrun.Run, "Bash": inrun.Run, "Write": inrun.Refuse, "WebFetch": inrun.Refuse, "": inrun.Refuse} {
		if got := ask(t.Context(), inrun.Tool{Name: name}); got.Answer != want || want == inrun.Refuse && got.Why == "" {
			t.Errorf("%q: %+v", name, got)
		}
	}
	if asked != 3 {
		t.Errorf("asked %d times", asked)
	}
}

// TestRawDrive: a CLI without a channel gets its input and is heard to the end,
// though it never reads.
func TestRawDrive(t *testing.T) {
	t.Parallel()
	said, log := &raw{}, &bytes.Buffer{}
	read, in := io.Pipe()
	out, write := io.Pipe()
	go func() {
		_, _ = io.WriteString(write, "hello")
		_ = read.Close()
		_ = write.Close()
	}()
	if err := said.drive(nil, bytes.Repeat([]byte("x"), 1<<20))(t.Context(), in, out, log); err != nil {
		t.Fatal(err)
	}
	if log.String() != "hello" || string(said.bytes()) != "hello" {
		t.Errorf("%q, %q", log, said.bytes())
	}
}

// TestPrograms: a program is found in the absolute folders of the gate's own
// PATH, once, and its hash is on record.
func TestPrograms(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	file := filepath.Join(bin, "vibe")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	p := programs{found: map[string]program{}, seen: map[string]string{}}
	if _, err := p.find("vibe", ".:relative"); err == nil {
		t.Error("a program was taken from a relative folder")
	}
	got, err := p.find(provider.Program("mistral"), ".:"+bin)
	if err != nil || got.path != file || len(got.sum) != 64 {
		t.Errorf("%+v, %v", got, err)
	}
	if err := os.WriteFile(file, []byte("#!/bin/sh\necho other\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	first := t.TempDir()
	if err := os.WriteFile(filepath.Join(first, "vibe"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if again, err := p.find("vibe", first+":"+bin); err != nil || again.path != got.path || again.sum == got.sum {
		t.Errorf("the file changed in its place, and another stands before it: %+v, %v", again, err)
	}
}
