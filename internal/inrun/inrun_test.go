package inrun_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"golang.org/x/tools/txtar"

	"github.com/seed-3ebc6b8a/gatehouse/internal/inrun"
)

var update = flag.Bool("update", false, "write what happens into the files in testdata")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestExchanges holds conversations with scripted CLIs. In a file's "talk" the
// CLI prints what follows "<" and waits at every ">" for a line, which is what
// must come. "verdicts" are given in order: yes, no and the words, rewrite and
// the arguments, panic, wait (until the question is taken back). What happened
// is in "asked", "log" and "end".
func TestExchanges(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no exchanges", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			want := sections(archive)
			host, _, _ := strings.Cut(name, "_")
			var got map[string]string
			// In a bubble, a line that does not come ends the test.
			synctest.Test(t, func(*testing.T) {
				got = hold(host, want["talk"], strings.Split(strings.TrimSpace(want["verdicts"]), "\n"))
			})
			if *update {
				archive.Files = nil
				for _, s := range []string{"verdicts", "talk", "asked", "log", "end"} {
					text := got[s]
					if s == "verdicts" {
						text = want[s]
					}
					archive.Files = append(archive.Files, txtar.File{Name: s, Data: []byte(text)})
				}
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			for _, s := range []string{"talk", "asked", "log", "end"} {
				if diff := cmp.Diff(want[s], got[s]); diff != "" {
					t.Errorf("%s (-want +got):\n%s", s, diff)
				}
			}
		})
	}
}

func sections(a *txtar.Archive) map[string]string {
	out := make(map[string]string)
	for _, f := range a.Files {
		out[f.Name] = string(f.Data)
	}
	return out
}

// drive is the conversation with a host's CLI, new unless its name says that it
// goes on.
func drive(host string, ask inrun.Ask) inrun.Drive {
	switch host {
	case "claude":
		return inrun.Claude([]byte("do it"), ask)
	case "codex":
		return inrun.Codex(inrun.CodexStart{Prompt: "do it", Dir: "/work", Sandbox: "workspace-write"}, ask)
	case "codexfork":
		return inrun.Codex(inrun.CodexStart{Prompt: "do it", Dir: "/work", Sandbox: "read-only", Model: "m", Session: "t0", Fork: true}, ask)
	case "geminiload":
		return inrun.ACP(inrun.ACPStart{Host: "gemini", Prompt: "do it", Dir: "/work", Session: "s0"}, ask)
	}
	return inrun.ACP(inrun.ACPStart{Host: host, Prompt: "do it", Dir: "/work"}, ask)
}

// recorder is what a conversation is given and what became of it.
type recorder struct {
	mu       sync.Mutex
	verdicts []string
	asked    strings.Builder
}

func (r *recorder) ask(ctx context.Context, t inrun.Tool) inrun.Verdict {
	r.mu.Lock()
	text, _ := json.Marshal(t, json.Deterministic(true))
	fmt.Fprintf(&r.asked, "%s\n", text)
	verdict, words := "", ""
	if len(r.verdicts) > 0 {
		verdict, words, _ = strings.Cut(r.verdicts[0], " ")
		r.verdicts = r.verdicts[1:]
	}
	r.mu.Unlock()
	v := inrun.Verdict{Why: words, Ended: func(o inrun.Outcome) {
		r.mu.Lock()
		defer r.mu.Unlock()
		fmt.Fprintf(&r.asked, "%s: %s\n", t.ID, o)
	}}
	switch verdict {
	case "yes":
		v.Answer = inrun.Run
	case "rewrite":
		v.Answer, v.Args = inrun.Run, []byte(words)
	case "panic":
		panic("the gate is broken")
	case "wait":
		<-ctx.Done()
		v.Answer = inrun.Run // too late
	}
	return v
}

// hold plays the CLI.
func hold(host, talk string, verdicts []string) map[string]string {
	r := &recorder{verdicts: verdicts}
	outR, outW := io.Pipe()
	inR, inW := io.Pipe()
	var log bytes.Buffer
	ended := make(chan error, 1)
	go func() {
		err := drive(host, r.ask)(context.Background(), inW, outR, &log)
		_ = outR.Close()
		ended <- err
	}()
	lines := bufio.NewReader(inR)
	var played strings.Builder
	for line := range strings.Lines(talk) {
		if strings.HasPrefix(line, "<") {
			synctest.Wait() // what was said before has been taken in
			played.WriteString(line)
			_, _ = io.WriteString(outW, strings.TrimPrefix(line, "<")) // who hangs up hears no more
			continue
		}
		said, _ := lines.ReadString('\n')
		played.WriteString(">" + strings.TrimSuffix(said, "\n") + "\n")
	}
	_ = outW.Close()
	rest, _ := io.ReadAll(lines)
	if len(rest) > 0 {
		fmt.Fprintf(&played, "and then: %s", rest)
	}
	end := "over\n"
	if err := <-ended; err != nil {
		end = err.Error() + "\n"
	}
	return map[string]string{"talk": played.String(), "asked": r.asked.String(), "log": log.String(), "end": end}
}

// TestContextEnds: when the run is to end, who waits for a person gets a no and
// the CLI's input ends.
func TestContextEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	outR, outW := io.Pipe()
	inR, inW := io.Pipe()
	waits := make(chan struct{})
	ask := func(ctx context.Context, _ inrun.Tool) inrun.Verdict {
		close(waits)
		<-ctx.Done()
		return inrun.Verdict{Answer: inrun.Run, Ended: func(o inrun.Outcome) {
			if o != inrun.Refused {
				t.Errorf("it ended as %s", o)
			}
		}}
	}
	ended := make(chan error, 1)
	go func() { ended <- inrun.Claude([]byte("do it"), ask)(ctx, inW, outR, io.Discard) }()
	go func() {
		_, _ = io.WriteString(outW, `{"type":"control_request","request_id":"1","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"ls"},"tool_use_id":"u1"}}`+"\n")
	}()
	go func() {
		<-waits
		cancel()
	}()
	said, err := io.ReadAll(inR)
	if err != nil || strings.Contains(string(said), `"allow"`) {
		t.Errorf("%v: %s", err, said)
	}
	_ = outW.Close() // the CLI ends when its input does
	if err := <-ended; !errors.Is(err, context.Canceled) || !errors.Is(err, inrun.ErrEnded) {
		t.Errorf("%v", err)
	}
}

// FuzzReader: whatever a CLI prints, nothing runs that was not let run, and the
// conversation ends.
func FuzzReader(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		a, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		var printed strings.Builder
		for line := range strings.Lines(sections(a)["talk"]) {
			if said, found := strings.CutPrefix(line, "<"); found {
				printed.WriteString(said)
			}
		}
		f.Add(printed.String())
	}
	f.Fuzz(func(t *testing.T, printed string) {
		for _, host := range []string{"claude", "codex", "gemini", "grok"} {
			var sent safeBuffer
			no := func(context.Context, inrun.Tool) inrun.Verdict { return inrun.Verdict{Why: "no"} }
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			_ = drive(host, no)(ctx, &sent, strings.NewReader(printed), io.Discard)
			cancel()
			for _, yes := range []string{`"behavior":"allow"`, `"decision":"accept"`, `"permissionDecision":"allow"`} {
				if strings.Contains(sent.String(), yes) {
					t.Fatalf("%s was told %s", host, sent.String())
				}
			}
		}
	})
}

type safeBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

func (b *safeBuffer) Close() error { return nil }
