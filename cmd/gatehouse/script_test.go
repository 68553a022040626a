package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/seed-3ebc6b8a/gatehouse/internal/client"
	"github.com/seed-3ebc6b8a/gatehouse/internal/place"
	"github.com/seed-3ebc6b8a/gatehouse/sandbox"
)

// TestMain lets the test binary be the command itself, so that the scripts
// run the very tree that newRoot builds.
func TestMain(m *testing.M) {
	sandbox.MaybeLaunch() // before anything else, as main does
	testscript.Main(m, map[string]func(){"gatehouse": main})
}

// TestScripts runs testdata/script: every command as a user types it. Each
// script has a directory and a gate of its own.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			home := filepath.Join(env.WorkDir, "home")
			env.Setenv("HOME", home)
			env.Setenv("GATEHOUSE_HOME", filepath.Join(env.WorkDir, "g"))
			env.Setenv("NO_COLOR", "1")
			return os.MkdirAll(home, 0o700)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "ready": ready, "gone": gone, "grab": grab,
		},
	})
}

// exits runs a command and compares its exit code: exits CODE COMMAND ARGS…
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND ARGS…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("%s: exit code %d, want %d", strings.Join(args[1:], " "), got, want)
	}
}

// answers says whether a gate answers on the script's socket.
func answers(ts *testscript.TestScript) bool {
	p := place.Place{Home: ts.Getenv("GATEHOUSE_HOME")}
	return client.Unix(p.Socket(), "").Do(context.Background(), "GET", "/v1/health", nil, nil) == nil
}

// ready waits until the gate that the script started answers.
func ready(ts *testscript.TestScript, _ bool, _ []string) {
	for !answers(ts) {
		time.Sleep(5 * time.Millisecond)
	}
}

// gone waits until the gate that the script stopped does not answer any more.
func gone(ts *testscript.TestScript, _ bool, _ []string) {
	for answers(ts) {
		time.Sleep(5 * time.Millisecond)
	}
}

// grab takes the first word of the last output that starts with a prefix into
// a variable, from the first line that holds a text if one is given: grab NAME
// PREFIX [TEXT].
func grab(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: grab NAME PREFIX [TEXT]")
	}
	for line := range strings.Lines(ts.ReadFile("stdout")) {
		if len(args) == 3 && !strings.Contains(line, args[2]) {
			continue
		}
		for _, word := range strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t\r\n\"',;", r) }) {
			if strings.HasPrefix(word, args[1]) {
				ts.Setenv(args[0], word)
				return
			}
		}
	}
	ts.Fatalf("no word of the output starts with %q", args[1])
}
