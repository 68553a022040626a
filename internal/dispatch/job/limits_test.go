package job_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch/job"
	"github.com/seed-3ebc6b8a/gatehouse/internal/keyring"
	"github.com/seed-3ebc6b8a/gatehouse/internal/needtest"
	"github.com/seed-3ebc6b8a/gatehouse/internal/session"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store/storetest"
	"github.com/seed-3ebc6b8a/gatehouse/sandbox"
)

// TestIdle: a process that says nothing for too long is ended with exit code
// 125 and not tried again; one that talks, or whose question a person thinks
// about, is not.
func TestIdle(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, h *house) {
		idle := func(s *job.Spec) { s.Idle = 300 * time.Millisecond }
		silent := h.start(script(t, `sleep 1000`, idle))
		// It talks for longer than its idle time, with pauses so short that a busy machine's do not count.
		talks := h.start(script(t, `for i in 1 2 3 4 5 6 7 8 9 10; do echo $i; sleep 0.3; done`, func(s *job.Spec) { s.Idle = 2 * time.Second }))
		s := script(t, `sleep 1; echo done`, idle)
		s.ID, _ = h.NewID()
		asked := make(chan struct{})
		s.Drive = func(_ context.Context, in io.WriteCloser, out io.Reader, log io.Writer) error {
			defer h.Hold(s.ID)()
			close(asked)
			_, err := io.Copy(log, out)
			return err
		}
		asking := h.start(s)
		<-asked
		if b := h.await(silent.ID); b.State != job.Failed || b.ExitCode != job.ExitIdle || b.Category != "idle_timeout" || b.Retries != 0 {
			t.Errorf("silent: %+v", b)
		}
		if b := h.await(talks.ID); b.State != job.Completed {
			t.Errorf("talking: %+v", b)
		}
		if b := h.await(asking.ID); b.State != job.Completed {
			t.Errorf("asking: %+v", b)
		}
	})
}

// TestIdleBounds: 30 s to an hour, ten minutes if nothing is said.
func TestIdleBounds(t *testing.T) {
	t.Parallel()
	for d, good := range map[time.Duration]bool{0: true, 30 * time.Second: true, time.Hour: true, 29999 * time.Millisecond: false, time.Hour + 1: false, -1: false} {
		if err := job.CheckIdle(d); (err == nil) != good {
			t.Errorf("%s: %v", d, err)
		}
	}
	if job.DefaultIdle != 10*time.Minute {
		t.Error(job.DefaultIdle)
	}
	bothWith(t, func(o *job.Options) { o.MinIdle = 0 }, func(t *testing.T, h *house) {
		if _, err := h.Start(t.Context(), script(t, ``, func(s *job.Spec) { s.Idle = time.Second })); !errors.Is(err, job.ErrInvalid) {
			t.Errorf("an idle time of a second: %v", err)
		}
	})
}

// TestWall: exit code 124.
func TestWall(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, h *house) {
		b := h.over(script(t, `while :; do echo x; sleep 0.05; done`, func(s *job.Spec) { s.Wall = 200 * time.Millisecond }))
		if b.State != job.Failed || b.ExitCode != job.ExitWall || b.Category != "timeout" {
			t.Errorf("%+v", b)
		}
	})
}

// TestOverflow: a process that writes without end is ended with exit code 126;
// the log has no more than its limit, and is append-only all along.
func TestOverflow(t *testing.T) {
	t.Parallel()
	limits := func(o *job.Options) { o.Limits = func() job.Limits { return job.Limits{Output: 100_000} } }
	bothWith(t, limits, func(t *testing.T, h *house) {
		for name, drive := range map[string]func(context.Context, io.WriteCloser, io.Reader, io.Writer) error{
			"plain": nil,
			"driven": func(_ context.Context, _ io.WriteCloser, out io.Reader, log io.Writer) error {
				_, err := io.Copy(log, out)
				return err
			},
		} {
			b := h.over(script(t, `exec yes 'a line é'`, func(s *job.Spec) { s.Drive = drive }))
			if b.State != job.Failed || b.ExitCode != job.ExitOverflow || b.Category != "output_overflow" || b.Stdout > 100_000 || b.Stdout < 50_000 {
				t.Errorf("%s: %+v", name, b)
			}
		}
	})
}

// TestPages: pages put together are the output, and none cuts a character.
func TestPages(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, h *house) {
		b := h.over(script(t, `for i in 1 2 3 4 5 6 7 8 9 10; do echo "äöü€𝄞 $i"; done`))
		var whole strings.Builder
		for at := int64(0); ; {
			p, err := h.Result(t.Context(), owner, b.ID, at, 7)
			if err != nil {
				t.Fatal(err)
			}
			if strings.ContainsRune(p.Stdout.Text, '�') {
				t.Errorf("a page at %d cuts a character: %q", at, p.Stdout.Text)
			}
			whole.WriteString(p.Stdout.Text)
			if at = p.Stdout.Next; at == p.Stdout.Total {
				break
			}
		}
		want, _ := h.text(b.ID)
		if whole.String() != want || !strings.HasSuffix(want, "äöü€𝄞 10\n") {
			t.Errorf("%q, want %q", whole.String(), want)
		}
	})
}

// TestPrivateKey: a key over many lines is taken out whole, however it comes.
func TestPrivateKey(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, h *house) {
		b := h.over(script(t, `echo before; echo '-----BEGIN RSA PRIVATE KEY-----'; sleep 0.1; echo MIIEowIBAAKCAQEAx1secretlinesabcdefghijklmnopqrstuvwxyzABCDEFGHIJKL; sleep 0.1
			echo abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ; echo '-----END RSA PRIVATE KEY-----'; echo after`))
		out, _ := h.text(b.ID)
		if strings.Contains(out, "secretlines") || strings.Contains(out, "0123456789") || !strings.HasPrefix(out, "before\n") || !strings.HasSuffix(out, "after\n") {
			t.Errorf("%q", out)
		}
	})
}

// TestLimits: no more run than may, of one CLI and in all; the others wait in
// order, without holding up another CLI; beyond the queue there is a refusal.
func TestLimits(t *testing.T) {
	t.Parallel()
	limits := func(o *job.Options) {
		o.Limits = func() job.Limits { return job.Limits{Running: 2, PerCLI: 1, Queued: 3} }
	}
	bothWith(t, limits, func(t *testing.T, h *house) {
		wait := func(cli string) job.Spec {
			return script(t, `until [ -e go ]; do sleep 0.02; done`, func(s *job.Spec) { s.CLI = cli })
		}
		a1, a2, b1 := wait("a"), wait("a"), wait("b")
		first, second, other := h.start(a1), h.start(a2), h.start(b1)
		if first.State != job.Running || second.State != job.Queued || other.State != job.Running {
			t.Fatalf("%s %s %s", first.State, second.State, other.State)
		}
		third := h.start(wait("c"))
		gone := h.start(wait("c"))
		if _, err := h.Start(t.Context(), wait("d")); !errors.Is(err, job.ErrSaturated) {
			t.Errorf("beyond the queue: %v", err)
		}
		if err := h.Cancel(t.Context(), owner, gone.ID); err != nil {
			t.Error(err)
		}
		if b, _ := h.Get(t.Context(), owner, gone.ID); b.State != job.Cancelled || !b.Started.IsZero() {
			t.Errorf("cancelled in the queue: %+v", b)
		}
		release := func(s job.Spec) {
			if err := os.WriteFile(filepath.Join(s.Dir, "go"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		release(b1)
		h.await(other.ID)
		for b := third; b.State != job.Running; { // it passes the one whose CLI is at its limit
			var err error
			if b, err = h.Wait(t.Context(), third.ID, b.Seq); err != nil || b.State.Over() {
				t.Fatalf("%+v, %v", b, err)
			}
		}
		if b, _ := h.Get(t.Context(), owner, second.ID); b.State != job.Queued {
			t.Errorf("a second of one CLI: %s", b.State)
		}
		release(a1)
		release(a2)
		if b := h.await(second.ID); b.State != job.Completed {
			t.Errorf("%+v", b)
		}
		if err := h.Cancel(t.Context(), owner, third.ID); err != nil {
			t.Error(err)
		}
	})
}

// TestLimitsOfNodes: nodes that share a database together run no more than may;
// what is too much waits, and starts when a job of another node is over.
func TestLimitsOfNodes(t *testing.T) {
	t.Parallel()
	opts := storetest.Postgres(t)
	keys := filepath.Join(t.TempDir(), "keys")
	node := func(name string, fn func(*house)) {
		opts.Node = name
		on(t, storetest.Open(t, opts), func(o *job.Options) {
			shared, err := keyring.Load(keys, nil)
			if err != nil {
				t.Fatal(err)
			}
			o.Keys = shared
			o.Limits = func() job.Limits { return job.Limits{Running: 3, PerCLI: 2} }
		}, func(_ *testing.T, h *house) { fn(h) })
	}
	node("one", func(one *house) {
		node("two", func(two *house) {
			cli := func(name string) func(*job.Spec) { return func(s *job.Spec) { s.CLI = name } }
			a1 := one.start(script(t, `sleep 1000`, cli("a")))
			a2 := two.start(script(t, `sleep 1000`, cli("a")))
			a3 := two.start(script(t, `sleep 1000`, cli("a"))) // one too many of this CLI
			b1 := two.start(script(t, `sleep 1000`, cli("b")))
			c1 := one.start(script(t, `true`, cli("c"))) // one too many in all
			for name, b := range map[string]job.Job{"a1": a1, "a2": a2, "b1": b1} {
				if b.State != job.Running {
					t.Errorf("%s: %+v", name, b)
				}
			}
			for name, b := range map[string]job.Job{"a3": a3, "c1": c1} {
				if b.State != job.Queued {
					t.Errorf("%s: %+v", name, b)
				}
			}
			if err := two.Cancel(t.Context(), owner, b1.ID); err != nil {
				t.Fatal(err)
			}
			if b := one.await(c1.ID); b.State != job.Completed {
				t.Errorf("it had to wait for another node: %+v", b)
			}
			if err := one.Cancel(t.Context(), owner, a1.ID); err != nil {
				t.Fatal(err)
			}
			for b := a3; b.State != job.Running; {
				var err error
				if b, err = two.Wait(t.Context(), a3.ID, b.Seq); err != nil || b.State.Over() {
					t.Fatalf("%+v %v", b, err)
				}
			}
		})
	})
}

// TestQueueTime: who waits too long expires with exit code 75, and nothing ran.
func TestQueueTime(t *testing.T) {
	t.Parallel()
	limits := func(o *job.Options) {
		o.Limits = func() job.Limits { return job.Limits{Running: 1, QueueWait: 50 * time.Millisecond} }
	}
	bothWith(t, limits, func(t *testing.T, h *house) {
		long := h.start(script(t, `sleep 1000`))
		s := script(t, `touch ran`)
		if b := h.over(s); b.State != job.Expired || b.ExitCode != job.ExitQueue || !b.Started.IsZero() {
			t.Errorf("%+v", b)
		}
		if _, err := os.Stat(filepath.Join(s.Dir, "ran")); err == nil {
			t.Error("it ran")
		}
		if err := h.Cancel(t.Context(), owner, long.ID); err != nil {
			t.Error(err)
		}
	})
}

// TestBreaker: a CLI that cannot be started five times in a row is left alone;
// another is not.
func TestBreaker(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, h *house) {
		bad := func(s *job.Spec) { s.CLI, s.Path = "bad", "/nowhere/cli" }
		for range 5 {
			h.over(script(t, ``, bad))
		}
		if _, err := h.Start(t.Context(), script(t, ``, bad)); !errors.Is(err, job.ErrOpen) {
			t.Errorf("the sixth: %v", err)
		}
		if b := h.over(script(t, `true`)); b.State != job.Completed {
			t.Errorf("%+v", b)
		}
		for range 6 { // failing is not the same as not starting
			if b := h.over(script(t, `exit 1`, func(s *job.Spec) { s.CLI = "fails" })); b.State != job.Failed {
				t.Errorf("%+v", b)
			}
		}
	})
}

// TestDeduplication: the same key within the window finds the job, of the same
// owner and not failed, even when two ask at once.
func TestDeduplication(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, h *house) {
		keyed := func(s *job.Spec) { s.RequestKey, s.Reuse, s.Approval = "key", true, "appr-1" }
		if _, found, err := h.Find(t.Context(), "key"); found || err != nil {
			t.Errorf("found before: %v", err)
		}
		failed := h.over(script(t, `exit 3`, keyed))
		var jobs [8]job.Job
		var all sync.WaitGroup
		for i := range jobs {
			s := script(t, `sleep 0.2; echo hi`, keyed)
			all.Go(func() {
				var err error
				if jobs[i], err = h.Start(t.Context(), s); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		fresh := 0
		for _, b := range jobs {
			if b.ID != jobs[0].ID || b.ID == failed.ID || b.Approval != "appr-1" {
				t.Errorf("%+v", b)
			}
			if !b.Deduplicated {
				fresh++
			}
		}
		if fresh != 1 {
			t.Errorf("%d of 8 equal requests ran", fresh)
		}
		h.await(jobs[0].ID)
		b, found, err := h.Find(t.Context(), "key")
		if !found || err != nil || b.ID != jobs[0].ID || !b.Deduplicated || b.Age <= 0 || b.Approval != "appr-1" || b.State != job.Completed {
			t.Errorf("%+v %v %v", b, found, err)
		}
		another := h.over(script(t, `true`, keyed, func(s *job.Spec) { s.Owner = call.Principal{Agent: "other"} }))
		if another.ID == b.ID {
			t.Error("another principal got the result")
		}
		anew := h.over(script(t, `true`, keyed, func(s *job.Spec) { s.Reuse = false }))
		if anew.ID == b.ID || anew.Deduplicated {
			t.Errorf("forced: %+v", anew)
		}
	})
}

// TestWindow: after the window a job stands for no other.
func TestWindow(t *testing.T) {
	t.Parallel()
	bothWith(t, func(o *job.Options) { o.Window = time.Millisecond }, func(t *testing.T, h *house) {
		keyed := func(s *job.Spec) { s.RequestKey, s.Reuse = "key", true }
		first := h.over(script(t, `sleep 0.01`, keyed))
		if second := h.over(script(t, `true`, keyed)); second.ID == first.ID {
			t.Errorf("%+v", second)
		}
	})
}

// TestStopped: the kill switch and the danger zone end a job's processes and
// keep another from starting.
func TestStopped(t *testing.T) {
	t.Parallel()
	var blocked atomic.Bool
	standing := func(o *job.Options) {
		o.Standing = func(_ *store.Tx, p call.Principal) error {
			if p.Agent == "coder" && blocked.Load() {
				return errors.New("blocked by ann")
			}
			return nil
		}
	}
	both := func(t *testing.T, h *house) {
		blocked.Store(false)
		s := script(t, `(setsid sh -c 'echo $$ > $D/pid; exec sleep 1000' &) ; sleep 1000`)
		b := h.start(s)
		pid := appears(t, strings.TrimPrefix(s.Env[1], "D=")+"/pid", 1)[0]
		other := h.start(script(t, `sleep 1000`, func(s *job.Spec) { s.Owner = call.Principal{Agent: "other"} }))
		blocked.Store(true)
		if err := h.opts.Store.Write(t.Context(), func(tx *store.Tx) error {
			store.Notify(tx, session.Topic, "block")
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if b := h.await(b.ID); b.State != job.Cancelled || b.Category != "stopped" || !strings.Contains(b.Error, "blocked by ann") || alive(t, pid) {
			t.Errorf("%+v, process alive %v", b, alive(t, pid))
		}
		if _, err := h.Start(t.Context(), script(t, `true`)); !errors.Is(err, job.ErrStopped) {
			t.Errorf("a start while blocked: %v", err)
		}
		if b, _ := h.Get(t.Context(), job.Operator, other.ID); b.State != job.Running {
			t.Errorf("another's job: %+v", b)
		}
	}
	t.Run("one after the other", func(t *testing.T) {
		// The switch is shared, so the databases take turns.
		for _, fn := range []func(*testing.T, func(*job.Options), func(*testing.T, *house)){onSQLite, onPostgres} {
			fn(t, standing, both)
		}
	})
}

// TestDrive: a conversation is the job; its error fails it, its end ends the
// process, and what it logs is the output.
func TestDrive(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, h *house) {
		talk := func(fail error) func(*job.Spec) {
			return func(s *job.Spec) {
				s.Drive = func(ctx context.Context, in io.WriteCloser, out io.Reader, log io.Writer) error {
					if _, err := fmt.Fprintln(in, "question"); err != nil {
						return err
					}
					buf := make([]byte, 100)
					n, err := out.Read(buf)
					if err != nil {
						return err
					}
					_, err = fmt.Fprintf(log, "heard %s", buf[:n])
					return errors.Join(err, fail)
				}
			}
		}
		b := h.over(script(t, `read q; echo "answer to $q"; cat >/dev/null; exit 3`, talk(nil)))
		if out, _ := h.text(b.ID); out != "heard answer to question\n" || b.State != job.Completed || b.ExitCode != 0 {
			t.Errorf("%q %+v", out, b)
		}
		b = h.over(script(t, `read q; echo "$q"; cat >/dev/null`, talk(errors.New("the protocol broke"))))
		if b.State != job.Failed || b.Category != "channel_error" || b.Error != "the protocol broke" {
			t.Errorf("%+v", b)
		}
		b = h.over(script(t, `exit 4`, talk(nil)))
		if b.State != job.Failed {
			t.Errorf("a process that left the conversation: %+v", b)
		}
	})
}

// TestConfined: with a sandbox the process has only what that gives it, and
// cancelling ends all of it.
func TestConfined(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, h *house) {
		outside := filepath.Join(t.TempDir(), "outside")
		in := func(s *job.Spec) { s.Sandbox = &sandbox.Spec{Write: []string{s.Dir}} }
		s := script(t, `echo in > file; echo out > `+outside+`; cat file`, in)
		b := h.over(s)
		out, errs := h.text(b.ID)
		if b.Category == "spawn_error" && strings.Contains(b.Error, "no back-end") {
			needtest.Missing(t, b.Error)
		}
		if out != "in\n" || !b.Confined {
			t.Errorf("%q %q %+v", out, errs, b)
		}
		if _, err := os.Stat(outside); err == nil {
			t.Error("it wrote outside its directory")
		}
		long := script(t, `sleep 1000 & sleep 1000`, in)
		b = h.start(long)
		if err := h.Cancel(t.Context(), owner, b.ID); err != nil {
			t.Fatal(err)
		}
		if b, _ := h.Get(t.Context(), owner, b.ID); b.State != job.Cancelled {
			t.Errorf("%+v", b)
		}
	})
}

// TestRetention: a job is dropped with its output when its time is over.
func TestRetention(t *testing.T) {
	t.Parallel()
	bothWith(t, func(o *job.Options) { o.Retention = time.Millisecond }, func(t *testing.T, h *house) {
		b := h.over(script(t, `echo hi`))
		time.Sleep(5 * time.Millisecond)
		h.stop()
		h.open()
		for {
			_, err := h.Get(t.Context(), owner, b.ID)
			if entries, _ := os.ReadDir(h.opts.Dir); errors.Is(err, job.ErrNotFound) && len(entries) == 0 {
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
	})
}

// TestEditedRow: a job whose row was edited is not shown, nor ended by it.
func TestEditedRow(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, h *house) {
		b := h.over(script(t, `true`))
		for _, edit := range []string{`pid = 1`, `state = 'failed'`, `agent = 'other'`} {
			if err := h.opts.Store.Write(t.Context(), func(tx *store.Tx) error {
				_, err := tx.Exec(`UPDATE job SET ` + edit)
				return err
			}); err != nil {
				t.Fatal(err)
			}
			if _, err := h.Get(t.Context(), job.Operator, b.ID); !errors.Is(err, job.ErrForged) {
				t.Errorf("%s: %v", edit, err)
			}
		}
	})
}
