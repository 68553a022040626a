package job_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch/job"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store/storetest"
)

// starve takes all further descriptors from this process for a while: no pipe
// and no file can be made.
func starve(d time.Duration) {
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
		panic(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 3, Max: was.Max}); err != nil {
		panic(err)
	}
	time.AfterFunc(d, func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
			panic(err)
		}
	})
}

// TestRetryNoProcess: a node that can make no process tries again, later and
// later, and runs the job once when it can.
func TestRetryNoProcess(t *testing.T) {
	t.Parallel()
	storetest.BothOptions(t, func(t *testing.T, opts store.Options) {
		o := order(t, opts, 1)
		o.Starved = 200 * time.Millisecond // the waits are 50, 100, 200, 400 ms
		_, ids := startGate(t, o)
		appears(t, filepath.Join(o.Work, "0", "pids"), 2)
		var state string
		var retries int
		err := storetest.Open(t, opts).Read(t.Context(), func(tx *store.Tx) error {
			return tx.QueryRow(`SELECT state, retries FROM job WHERE id = $1`, ids[0]).Scan(&state, &retries)
		})
		if err != nil || state != "running" || retries < 2 {
			t.Errorf("%s after %d retries, %v", state, retries, err)
		}
		if runs, err := os.ReadFile(filepath.Join(o.Work, "0", "runs")); err != nil || string(runs) != "run\n" {
			t.Errorf("it ran %q %v", runs, err)
		}
	})
}

// TestRetryDatabase: a start whose record cannot be written is tried again, and
// gives up after five; nothing runs without its record.
func TestRetryDatabase(t *testing.T) {
	t.Parallel()
	storetest.BothOptions(t, func(t *testing.T, opts store.Options) {
		var db storetest.Driver
		opts.Wrap = db.Wrap
		on(t, storetest.Open(t, opts), func(o *job.Options) { o.Backoff = 5 * time.Millisecond }, func(t *testing.T, h *house) {
			for _, fails := range []int64{2, 1000} {
				var failed atomic.Int64
				db.Before(func(query string) error {
					if strings.HasPrefix(query, "BEGIN") && failed.Add(1) <= fails {
						return errors.New("the database is away")
					}
					return nil
				})
				s := script(t, `echo run >> $D/runs`)
				runs := strings.TrimPrefix(s.Env[1], "D=") + "/runs"
				b, err := h.Start(t.Context(), s)
				db.Before(nil)
				if fails > 100 {
					if _, missing := os.Stat(runs); err == nil || !os.IsNotExist(missing) {
						t.Errorf("without a database: %+v %v %v", b, err, missing)
					}
					if n := failed.Load(); n < 5 {
						t.Errorf("it was tried with %d transactions", n)
					}
					continue
				}
				if err != nil || b.Retries == 0 {
					t.Fatalf("%+v %v", b, err)
				}
				if b = h.await(b.ID); b.State != job.Completed {
					t.Errorf("%+v", b)
				}
				if got := appears(t, runs, 1); len(got) != 1 {
					t.Errorf("it ran %d times", len(got))
				}
			}
		})
	})
}

// TestNoRetryAfterStart: what fails after the start record is not tried again,
// even if it would work by now: the program that appears, the directory that
// does, an exit code that says to try again.
func TestNoRetryAfterStart(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, h *house) {
		late := filepath.Join(t.TempDir(), "cli")
		for name, change := range map[string]func(*job.Spec){
			"a program that appears":   func(s *job.Spec) { s.Path = late },
			"a directory that appears": func(s *job.Spec) { s.Dir = late + ".dir" },
			"to be tried again":        func(s *job.Spec) { s.Args = []string{"-c", "echo run >> $D/runs; exit 75"} },
		} {
			s := script(t, `echo run >> $D/runs`, change)
			b := h.start(s)
			b = h.await(b.ID)
			if err := errors.Join(os.Mkdir(late+".dir", 0o700), os.WriteFile(late, []byte("#!/bin/sh\necho run >> $D/runs\n"), 0o755)); err != nil {
				t.Fatal(err)
			}
			if b.State != job.Failed || b.Retries != 0 {
				t.Errorf("%s: %+v", name, b)
			}
			time.Sleep(50 * time.Millisecond) // many times the first wait
			raw, _ := os.ReadFile(strings.TrimPrefix(s.Env[1], "D=") + "/runs")
			if n := strings.Count(string(raw), "run"); n > 1 || n == 1 && name != "to be tried again" {
				t.Errorf("%s: it ran %d times", name, n)
			}
			events, err := h.Progress(t.Context(), owner, b.ID, 0)
			if err != nil || len(events) != 2 {
				t.Errorf("%s: %+v %v", name, events, err)
			}
			if err := errors.Join(os.Remove(late), os.Remove(late+".dir")); err != nil {
				t.Fatal(err)
			}
		}
	})
}
