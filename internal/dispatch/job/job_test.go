package job_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch/job"
)

// TestRuns: a process runs with its input, environment and directory, and its
// output, exit code and parsed result are kept.
func TestRuns(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, h *house) {
		s := script(t, `cat; echo "$NAME $(pwd)"; echo oops >&2`, func(s *job.Spec) {
			s.Stdin, s.Env = []byte("in\n"), append(s.Env, "NAME=value")
			s.Parse = func(out []byte) any { return map[string]int{"lines": strings.Count(string(out), "\n")} }
		})
		b := h.over(s)
		if b.State != job.Completed || b.ExitCode != 0 || b.Started.Before(b.Asked) || b.Ended.Before(b.Started) {
			t.Errorf("%+v", b)
		}
		dir, err := filepath.EvalSymlinks(s.Dir)
		if err != nil {
			t.Fatal(err)
		}
		out, errs := h.text(b.ID)
		if out != "in\nvalue "+dir+"\n" || errs != "oops\n" {
			t.Errorf("stdout %q, stderr %q", out, errs)
		}
		if string(b.Result) != `{"lines":2}` || b.Stdout != int64(len(out)) {
			t.Errorf("result %s, %d bytes", b.Result, b.Stdout)
		}
		failed := h.over(script(t, `exit 7`))
		if failed.State != job.Failed || failed.ExitCode != 7 || failed.Category != "cli_error" {
			t.Errorf("%+v", failed)
		}
		events, err := h.Progress(t.Context(), owner, b.ID, 0)
		if err != nil || len(events) != 2 || events[0].Phase != "starting" || events[1].Phase != "completed" {
			t.Errorf("events %+v, %v", events, err)
		}
	})
}

// TestNotFoundProgram: exit code 127, and nothing is tried again after the start
// record.
func TestNotFoundProgram(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, h *house) {
		b := h.over(script(t, ``, func(s *job.Spec) { s.Path = "/nowhere/cli" }))
		if b.State != job.Failed || b.ExitCode != job.ExitNotFound || b.Category != "spawn_error" || b.Retries != 0 {
			t.Errorf("%+v", b)
		}
	})
}

// TestOwners: another agent's job is not there; the operator sees all.
func TestOwners(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, h *house) {
		b := h.over(script(t, `echo hi`))
		for _, who := range []call.Principal{{}, {Agent: "other", Session: "s1"}, {Session: "s1"}} {
			_, errGet := h.Get(t.Context(), who, b.ID)
			_, errPage := h.Result(t.Context(), who, b.ID, 0, 10)
			errCancel := h.Cancel(t.Context(), who, b.ID)
			list, _ := h.List(t.Context(), who, "", 10)
			for _, err := range []error{errGet, errPage, errCancel} {
				if err != job.ErrNotFound {
					t.Errorf("%v: %v", who, err)
				}
			}
			if len(list) != 0 {
				t.Errorf("%v lists %+v", who, list)
			}
		}
		for _, who := range []call.Principal{{Agent: "coder", Session: "s2"}, job.Operator} {
			if list, err := h.List(t.Context(), who, "", 10); err != nil || len(list) != 1 {
				t.Errorf("%v: %+v %v", who, list, err)
			}
		}
		if _, err := h.Start(t.Context(), script(t, ``, func(s *job.Spec) { s.Owner = job.Operator })); err == nil {
			t.Error("a job belongs to the operator's wildcard")
		}
	})
}

// TestTreeDies: what a job leaves behind ends with it, double forks and new
// sessions included.
func TestTreeDies(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, h *house) {
		s := script(t, `
			(setsid sh -c 'echo $$ >> $D/pids; (setsid sleep 1000 & echo $! >> $D/pids); exec sleep 1000' &)
			while [ $(wc -l < $D/pids 2>/dev/null || echo 0) -lt 2 ]; do sleep 0.01; done`)
		b := h.over(s)
		if b.State != job.Completed {
			t.Errorf("%+v", b)
		}
		for _, pid := range appears(t, strings.TrimPrefix(s.Env[1], "D=")+"/pids", 2) {
			if alive(t, pid) {
				t.Errorf("process %s outlived its job", pid)
			}
		}
	})
}

// TestCancel answers when the tree is dead.
func TestCancel(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, h *house) {
		s := script(t, `trap '' TERM INT HUP
			(setsid sh -c 'trap "" TERM; echo $$ >> $D/pids; exec sleep 1000' &)
			echo $$ >> $D/pids; sleep 1000; sleep 1000`)
		b := h.start(s)
		pids := appears(t, strings.TrimPrefix(s.Env[1], "D=")+"/pids", 2)
		if err := h.Cancel(t.Context(), owner, b.ID); err != nil {
			t.Fatal(err)
		}
		for _, pid := range pids {
			if alive(t, pid) {
				t.Errorf("process %s lives after cancel answered", pid)
			}
		}
		if b, err := h.Get(t.Context(), owner, b.ID); err != nil || b.State != job.Cancelled {
			t.Errorf("%+v %v", b, err)
		}
		if err := h.Cancel(t.Context(), owner, b.ID); err != nil {
			t.Errorf("cancelled again: %v", err)
		}
	})
}

// TestNothingInPlain: neither arguments nor prompt nor output with a secret
// stands in the database or in the logs.
func TestNothingInPlain(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, h *house) {
		secret := "ghp_" + "aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5"
		b := h.over(script(t, `cat; echo "export TOKEN=`+secret+`"; echo '{"api_key":"`+secret+`","n":1}'; printf 'tail '`, func(s *job.Spec) {
			s.Stdin = []byte("the prompt " + secret + "\n")
			s.Parse = func(out []byte) any { return string(out) }
		}))
		out, _ := h.text(b.ID)
		if strings.Contains(out, secret) || strings.Contains(string(b.Result), secret) {
			t.Errorf("the output shows the secret: %s", out)
		}
		if !strings.Contains(out, `"n":1}`) || !strings.HasSuffix(out, "tail ") {
			t.Errorf("more than the secret is gone: %s", out)
		}
		entries, err := os.ReadDir(h.opts.Dir)
		if err != nil || len(entries) != 2 {
			t.Fatalf("%v %v", entries, err)
		}
		for _, e := range entries {
			raw, err := os.ReadFile(filepath.Join(h.opts.Dir, e.Name()))
			if err != nil || strings.Contains(string(raw), secret) {
				t.Errorf("%s shows the secret, %v", e.Name(), err)
			}
			if fi, err := e.Info(); err != nil || fi.Mode().Perm() != 0o600 {
				t.Errorf("%s has mode %v, %v", e.Name(), fi.Mode(), err)
			}
		}
		wantNowhere(t, h.opts.Store, secret)
		wantNowhere(t, h.opts.Store, "export TOKEN")
	})
}
