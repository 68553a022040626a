//go:build linux

package sandbox_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-3ebc6b8a/gatehouse/sandbox"
)

// work makes a directory the sandbox user can work in.
func work(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "gh-work-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	return dir
}

func run(t testing.TB, s sandbox.Spec) *sandbox.Result {
	t.Helper()
	r, err := sandbox.Run(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func script(dir, text string) sandbox.Spec {
	return sandbox.Spec{Command: []string{"/bin/sh", "-c", text}, Dir: dir, Write: []string{dir}}
}

func TestSupported(t *testing.T) {
	s := sandbox.Supported()
	t.Logf("\n%s", s)
	b := s.Of(sandbox.Bubblewrap)
	if want := sandbox.WriteRoots | sandbox.ReadAbsent | sandbox.NoNetwork | sandbox.HostNames | sandbox.TreeDead; !b.Guarantees.Has(want) {
		t.Errorf("bubblewrap holds %v (%s), want %v", b.Guarantees, b.Reason, want)
	}
}

func TestOutputAndExitCode(t *testing.T) {
	dir := work(t)
	s := script(dir, `cat; echo err >&2; exit 7`)
	s.Stdin = strings.NewReader("in\n")
	r := run(t, s)
	got := []any{r.ExitCode, string(r.Stdout), string(r.Stderr), r.Ended}
	if diff := cmp.Diff([]any{7, "in\n", "err\n", sandbox.EndExit}, got); diff != "" {
		t.Error(diff)
	}
}

func TestKilledBySignal(t *testing.T) {
	r := run(t, script(work(t), `kill -KILL $$`))
	if r.ExitCode != 128+9 {
		t.Errorf("exit code %d", r.ExitCode)
	}
}

func TestOutputIsTruncatedWithAFlag(t *testing.T) {
	s := script(work(t), `head -c 5000 /dev/zero | tr '\0' x; echo short >&2`)
	s.Limits.Output = 1000
	r := run(t, s)
	if len(r.Stdout) != 1000 || !r.StdoutTruncated || r.StderrTruncated {
		t.Errorf("%d bytes, truncated %v %v", len(r.Stdout), r.StdoutTruncated, r.StderrTruncated)
	}
}

func TestClocks(t *testing.T) {
	for name, c := range map[string]struct {
		limits sandbox.Limits
		want   sandbox.Ending
	}{
		"wall": {sandbox.Limits{Wall: 200 * time.Millisecond}, sandbox.EndWall},
		"idle": {sandbox.Limits{Idle: 200 * time.Millisecond}, sandbox.EndIdle},
	} {
		t.Run(name, func(t *testing.T) {
			s := script(work(t), `trap '' TERM INT; sleep 60`)
			s.Limits = c.limits
			if r := run(t, s); r.Ended != c.want || r.ExitCode == 0 {
				t.Errorf("ended by %s with %d", r.Ended, r.ExitCode)
			}
		})
	}
}

func TestCancelledContextKillsTheTree(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := script(work(t), `echo up; sleep 60`)
	out := notifyWriter{got: make(chan struct{})}
	up := out.got
	s.Stdout = &out
	p, err := sandbox.Start(ctx, s)
	if err != nil {
		t.Fatal(err)
	}
	<-up
	cancel()
	r, err := p.Wait()
	if err != nil || r.Ended != sandbox.EndCancelled {
		t.Errorf("%v, %v", r.Ended, err)
	}
}

type notifyWriter struct {
	bytes.Buffer
	got chan struct{}
}

func (w *notifyWriter) Write(b []byte) (int, error) {
	if w.got != nil {
		close(w.got)
		w.got = nil
	}
	return w.Buffer.Write(b)
}

func TestSignalReachesTheCommand(t *testing.T) {
	s := script(work(t), `trap 'echo caught; exit 3' USR1; echo up; while :; do sleep 0.05; done`)
	out := notifyWriter{got: make(chan struct{})}
	up := out.got
	s.Stdout = &out
	p, err := sandbox.Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	<-up
	if err := p.Signal(syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	r, err := p.Wait()
	if err != nil || r.ExitCode != 3 || !strings.Contains(out.String(), "caught") {
		t.Errorf("exit %d, %q, %v", r.ExitCode, out.String(), err)
	}
}

func TestWriteGlobsAreExactOrRefused(t *testing.T) {
	dir := work(t)
	for _, g := range []string{"*.txt", "a/*/b", "/**/x", "out?", "[ab]/**", "a/**/b"} {
		s := script(dir, "true")
		s.Write = []string{g}
		var inexact *sandbox.InexactGlobError
		if _, err := sandbox.Run(t.Context(), s); !errors.As(err, &inexact) {
			t.Errorf("%s: %v", g, err)
		}
	}
	for _, g := range []string{"/", "/**", "/proc/**", "/sys", "/dev/shm/**"} {
		s := script(dir, "true")
		s.Write = []string{g}
		if _, err := sandbox.Run(t.Context(), s); err == nil {
			t.Errorf("%s: accepted", g)
		}
	}
}

func TestDeclaredFilesAndTrees(t *testing.T) {
	dir := work(t)
	for _, f := range []string{"file", "other"} {
		if err := os.WriteFile(filepath.Join(dir, f), []byte("old"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s := script(dir, `echo new > file; echo new > other; echo new > fresh; mkdir -p made/deep; echo new > made/deep/x; echo new > undeclared; echo a > {b,c}/x; echo a > b/x; echo a > c/x`)
	s.Write = []string{"file", "fresh", "made/**", "unused", "{b,c}/**"}
	run(t, s)
	got := map[string]string{}
	for _, f := range []string{"file", "other", "fresh", "made/deep/x", "undeclared", "unused", "b/x", "c/x"} {
		b, err := os.ReadFile(filepath.Join(dir, f))
		if err != nil {
			continue
		}
		got[f] = strings.TrimSpace(string(b))
	}
	want := map[string]string{"file": "new", "other": "old", "fresh": "new", "made/deep/x": "new", "b/x": "a", "c/x": "a"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestReadGlobs(t *testing.T) {
	dir := work(t)
	for _, f := range []string{"a.md", "b.md", "c.txt", "d/e.md"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, f)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, f), []byte(f+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	// A link that a pattern matches is not a way to what it points to.
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link.md")); err != nil {
		t.Fatal(err)
	}
	s := sandbox.Spec{Command: []string{"/bin/sh", "-c", "cat *.md d/* *.txt 2>/dev/null"}, Dir: dir, Read: []string{"*.md"}}
	r := run(t, s)
	if diff := cmp.Diff("a.md\nb.md\n", string(r.Stdout)); diff != "" {
		t.Error(diff)
	}
}

func TestRefusalsAreFacts(t *testing.T) {
	r := run(t, script(work(t), `unshare -U true; true`))
	for _, f := range r.Refusals {
		if f.Kind == sandbox.RefusedSyscall && f.Subject == "unshare" && f.Program == "unshare" {
			return
		}
	}
	t.Errorf("%+v", r.Refusals)
}

func TestNewRepositoryStays(t *testing.T) {
	dir := work(t)
	r := run(t, script(dir, `git init -q repo && cd repo && git config user.name x && echo x > f && git add f && git -c user.email=x@y commit -qm x && git log --oneline`))
	if r.ExitCode != 0 || len(r.Quarantined) != 0 {
		t.Fatalf("%s %+v", r.Stderr, r.Quarantined)
	}
	if _, err := os.Stat(filepath.Join(dir, "repo/.git/config")); err != nil {
		t.Error(err)
	}
}

func TestNoBackendRefusesAndUnconfinedIsExplicit(t *testing.T) {
	dir := work(t)
	s := script(dir, "echo ran > ran")
	s.Backend = sandbox.Landlock // cannot protect inside a writable root
	_, err := sandbox.Run(t.Context(), s)
	var refused *sandbox.NoBackendError
	if !errors.As(err, &refused) || refused.Tried[0].Missing != sandbox.ProtectedPaths {
		t.Errorf("%v", err)
	}
	s.Backend = sandbox.Unconfined
	if _, err := sandbox.Run(t.Context(), s); err == nil {
		t.Error("ran unconfined without being allowed to")
	}
	if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil {
		t.Fatal("the command ran")
	}
	s.AllowUnconfined = true
	r := run(t, s)
	if r.Guarantees != 0 || !strings.Contains(string(r.Stderr), "UNCONFINED") {
		t.Errorf("%v %q", r.Guarantees, r.Stderr)
	}
}

func TestMissingProgram(t *testing.T) {
	s := script(work(t), "")
	s.Command = []string{"no-such-program-anywhere"}
	if _, err := sandbox.Run(t.Context(), s); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("%v", err)
	}
}

func TestTerminal(t *testing.T) {
	s := script(work(t), `test -t 0 && test -t 1 && echo terminal; stty size; read x; echo "got $x"; stty size; exit 5`)
	s.TTY = &sandbox.Terminal{Rows: 33, Cols: 101}
	pr, pw, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer pw.Close()
	s.Stdin = pr
	out := &notifyWriter{got: make(chan struct{})}
	up := out.got
	s.Stdout = out
	p, err := sandbox.Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	<-up
	if err := p.Resize(10, 20); err != nil {
		t.Fatal(err)
	}
	_, _ = pw.WriteString("hello\n")
	r, err := p.Wait()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"terminal", "got hello", "10 20"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q lacks %q", out.String(), want)
		}
	}
	if r.ExitCode != 5 {
		t.Errorf("exit code %d", r.ExitCode)
	}
}

func TestExplain(t *testing.T) {
	s := script(work(t), "true")
	text, err := sandbox.Explain(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"bubblewrap", "protected-paths", "network    none", ".git/hooks"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
}
