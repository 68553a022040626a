package job_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/content"
	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch/job"
	"github.com/seed-3ebc6b8a/gatehouse/internal/keyring"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store/storetest"
)

var owner = call.Principal{Agent: "coder", Session: "s1"}

// house is jobs on one database, which can be closed and opened again.
type house struct {
	t    *testing.T
	opts job.Options
	*job.Jobs
	stop func()
}

// both runs a test on both databases.
func both(t *testing.T, fn func(t *testing.T, h *house)) {
	t.Helper()
	bothWith(t, func(*job.Options) {}, fn)
}

func bothWith(t *testing.T, change func(*job.Options), fn func(t *testing.T, h *house)) {
	t.Helper()
	storetest.Both(t, func(t *testing.T, s *store.Store) { on(t, s, change, fn) })
}

func onSQLite(t *testing.T, change func(*job.Options), fn func(t *testing.T, h *house)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { on(t, storetest.Open(t, storetest.SQLite(t)), change, fn) })
}

func onPostgres(t *testing.T, change func(*job.Options), fn func(t *testing.T, h *house)) {
	t.Helper()
	t.Run("postgres", func(t *testing.T) { on(t, storetest.Open(t, storetest.Postgres(t)), change, fn) })
}

// on runs a test with jobs on a store.
func on(t *testing.T, s *store.Store, change func(*job.Options), fn func(t *testing.T, h *house)) {
	t.Helper()
	keys, err := keyring.Load(filepath.Join(t.TempDir(), "keys"), nil)
	if err != nil {
		t.Fatal(err)
	}
	redactor := content.NewRedactor(content.RedactorConfig{})
	opts := job.Options{Store: s, Keys: keys, Dir: filepath.Join(t.TempDir(), "jobs"), Redact: func() *content.Redactor { return redactor },
		MinIdle: time.Millisecond, Backoff: time.Millisecond}
	change(&opts)
	h := &house{t: t, opts: opts}
	h.open()
	t.Cleanup(func() { h.stop() })
	fn(t, h)
}

func (h *house) open() {
	h.t.Helper()
	jobs, err := job.Open(h.t.Context(), h.opts)
	if err != nil {
		h.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- jobs.Run(ctx) }()
	h.Jobs = jobs
	h.stop = func() {
		cancel()
		if err := <-done; err != nil {
			h.t.Error(err)
		}
		h.stop = func() {}
	}
}

// script is a job that runs a shell script.
func script(t *testing.T, text string, change ...func(*job.Spec)) job.Spec {
	s := job.Spec{CLI: "sh", CorrelationID: "corr-1", Owner: owner, Path: "/bin/sh", Args: []string{"-c", text},
		Env: []string{"PATH=/usr/bin:/bin", "D=" + t.TempDir()}, Dir: t.TempDir()}
	for _, c := range change {
		c(&s)
	}
	return s
}

func (h *house) start(s job.Spec) job.Job {
	h.t.Helper()
	b, err := h.Start(h.t.Context(), s)
	if err != nil {
		h.t.Fatal(err)
	}
	return b
}

func (h *house) over(s job.Spec) job.Job {
	h.t.Helper()
	return h.await(h.start(s).ID)
}

func (h *house) await(id string) job.Job {
	h.t.Helper()
	b, err := h.WaitOver(h.t.Context(), id)
	if err != nil {
		h.t.Fatal(err)
	}
	return b
}

func (h *house) text(id string) (string, string) {
	h.t.Helper()
	p, err := h.Result(h.t.Context(), owner, id, 0, 1<<20)
	if err != nil {
		h.t.Fatal(err)
	}
	return p.Stdout.Text, p.Stderr.Text
}

// appears waits for a file that a job writes and returns its lines.
func appears(t *testing.T, path string, lines int) []string {
	t.Helper()
	for {
		raw, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		if got := strings.Fields(string(raw)); len(got) >= lines {
			return got
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// alive says whether a process runs.
func alive(t *testing.T, pid string) bool {
	t.Helper()
	if _, err := strconv.Atoi(pid); err != nil {
		t.Fatalf("%q is no process id", pid)
	}
	raw, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return false
	}
	_, after, _ := strings.Cut(string(raw), ") ")
	return after[0] != 'Z' && after[0] != 'X'
}

// wantNowhere looks for a text in every column of every job.
func wantNowhere(t *testing.T, s *store.Store, text string) {
	t.Helper()
	err := s.Read(t.Context(), func(tx *store.Tx) error {
		rows, err := store.All(tx, func(rows *store.Rows) ([]byte, error) {
			var words string
			var sealed, result []byte
			err := rows.Scan(&words, &sealed, &result)
			return append(append(append([]byte(words), 0), sealed...), result...), err
		}, `SELECT cli || error || category || request_key || correlation || node || path, sealed, result FROM job`)
		for _, r := range rows {
			if strings.Contains(string(r), text) {
				t.Errorf("a job's row shows %q", text)
			}
		}
		if len(rows) == 0 {
			t.Error("there is no row to look at")
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
