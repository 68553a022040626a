package job_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/content"
	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch/job"
	"github.com/seed-3ebc6b8a/gatehouse/internal/keyring"
	"github.com/seed-3ebc6b8a/gatehouse/internal/needtest"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store/storetest"
)

// gateOrder is what a gate in another process does, so that it can be killed.
type gateOrder struct {
	Dir, DSN, Node, Keys, Jobs, Work string
	Alone                            bool
	Count, Running                   int
	Lease                            time.Duration
	// Starved is how long the gate cannot open anything, from before the first
	// job is asked for.
	Starved time.Duration
}

// busy is a job that starts a double-forked child in a session of its own; both
// write down their process ids and ignore what can be ignored.
const busy = `trap '' TERM INT HUP
	echo run >> $D/runs
	(setsid sh -c 'trap "" TERM INT HUP; echo $$ >> $D/pids; exec sleep 1000' &)
	echo $$ >> $D/pids; sleep 1000; sleep 1000`

// maybeGate turns the test into such a gate.
func maybeGate() {
	raw := os.Getenv("JOB_TEST_GATE")
	if raw == "" {
		return
	}
	if err := gate(raw); err != nil {
		fmt.Println("failed", err)
		os.Exit(1)
	}
	select {}
}

func gate(raw string) error {
	var o gateOrder
	if err := json.Unmarshal([]byte(raw), &o); err != nil {
		return err
	}
	s, err := store.Open(context.Background(), store.Options{Dir: o.Dir, DSN: o.DSN, Node: o.Node, Alone: o.Alone})
	if err != nil {
		return err
	}
	jobs, err := job.Open(context.Background(), o.options(s))
	if err != nil {
		return err
	}
	go jobs.Run(context.Background())
	for i := range o.Count {
		dir := filepath.Join(o.Work, strconv.Itoa(i))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		if o.Starved > 0 {
			starve(o.Starved)
		}
		b, err := jobs.Start(context.Background(), job.Spec{CLI: "sh", Owner: owner, Path: "/bin/sh", Args: []string{"-c", busy},
			Env: []string{"PATH=/usr/bin:/bin", "D=" + dir}, Dir: dir})
		if err != nil {
			return err
		}
		fmt.Println(b.ID)
	}
	return nil
}

func (o *gateOrder) options(s *store.Store) job.Options {
	keys, err := keyring.Load(o.Keys, nil)
	if err != nil {
		panic(err) // a test's own directory
	}
	redactor := content.NewRedactor(content.RedactorConfig{})
	return job.Options{Store: s, Keys: keys, Dir: o.Jobs, Redact: func() *content.Redactor { return redactor }, Lease: o.Lease, Backoff: 50 * time.Millisecond,
		Limits: func() job.Limits { return job.Limits{Running: o.Running, PerCLI: o.Running} }}
}

// startGate starts a gate with jobs and returns it with the jobs' ids.
func startGate(t *testing.T, o gateOrder) (*exec.Cmd, []string) {
	t.Helper()
	raw, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), "JOB_TEST_GATE="+string(raw))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	var ids []string
	for lines := bufio.NewScanner(out); len(ids) < o.Count && lines.Scan(); {
		if !strings.HasPrefix(lines.Text(), "job_") {
			t.Fatal(lines.Text())
		}
		ids = append(ids, lines.Text())
	}
	if len(ids) < o.Count {
		t.Fatal("the gate ended early")
	}
	return cmd, ids
}

// order makes the order of a gate on a test's database.
func order(t *testing.T, opts store.Options, count int) gateOrder {
	dir := t.TempDir()
	return gateOrder{Dir: opts.Dir, DSN: opts.DSN, Node: opts.Node, Alone: opts.Alone, Keys: filepath.Join(dir, "keys"), Jobs: filepath.Join(dir, "jobs"),
		Work: filepath.Join(dir, "work"), Count: count, Running: count}
}

// TestKill9: the gate is killed with 50 jobs running. Their trees die with it;
// after a restart every job has a truthful state and none runs again. So it is
// when the supervisors are killed too, and then the restart ends the trees.
func TestKill9(t *testing.T) {
	t.Parallel()
	for _, alsoSupervisors := range []bool{false, true} {
		t.Run(fmt.Sprintf("supervisors killed too: %v", alsoSupervisors), func(t *testing.T) {
			t.Parallel()
			storetest.BothOptions(t, func(t *testing.T, opts store.Options) { testKill9(t, opts, alsoSupervisors) })
		})
	}
}

func testKill9(t *testing.T, opts store.Options, alsoSupervisors bool) {
	const count, queued = 50, 5
	opts.Alone = opts.DSN == "" // as the gate has it: then starts are in the journal
	o := order(t, opts, count+queued)
	o.Running = count
	cmd, ids := startGate(t, o)
	var pids []string
	for i := range count {
		pids = append(pids, appears(t, filepath.Join(o.Work, strconv.Itoa(i), "pids"), 2)...)
	}
	var supervisors []int
	if alsoSupervisors {
		supervisors = needtest.Children(t, cmd.Process.Pid)
		for _, pid := range supervisors { // frozen, they do nothing while the gate dies
			if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	for _, pid := range supervisors {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	s := storetest.Open(t, opts)
	began := time.Now()
	jobs, err := job.Open(t.Context(), o.options(s))
	if err != nil {
		t.Fatal(err)
	}
	took := time.Since(began)
	for _, pid := range pids {
		if alive(t, pid) {
			t.Errorf("process %s runs unsupervised", pid)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- jobs.Run(ctx) }()
	defer func() { cancel(); <-done }()
	for i, id := range ids {
		b, err := jobs.Get(t.Context(), owner, id)
		if err != nil {
			t.Fatal(err)
		}
		want := job.Unknown
		if i >= count {
			want = job.Expired
		}
		if b.State != want || b.Ended.IsZero() || b.Error == "" {
			t.Errorf("job %d: %+v", i, b)
		}
		if err := jobs.Cancel(t.Context(), owner, id); err != nil {
			t.Errorf("cancelled after the restart: %v", err)
		}
		runs, _ := os.ReadFile(filepath.Join(o.Work, strconv.Itoa(i), "runs"))
		if n := strings.Count(string(runs), "run"); i < count && n != 1 || i >= count && n != 0 {
			t.Errorf("job %d ran %d times", i, n)
		}
	}
	t.Logf("the restart took %s", took)
	if took > 5*time.Second {
		t.Errorf("the restart took %s", took)
	}
}

// TestSupervisorKilled: a process that kills its own supervisor does not get
// away: its tree is found by what it inherited, and the state says unknown.
func TestSupervisorKilled(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, h *house) {
		s := script(t, `(setsid sh -c 'echo $$ > $D/pid; exec sleep 1000' &)
			until [ -s $D/pid ]; do sleep 0.01; done; kill -9 $PPID; sleep 1000`)
		b := h.over(s)
		if b.State != job.Unknown || b.Category != "supervisor_lost" {
			t.Errorf("%+v", b)
		}
		if pid := appears(t, strings.TrimPrefix(s.Env[1], "D=")+"/pid", 1)[0]; alive(t, pid) {
			t.Errorf("process %s got away", pid)
		}
	})
}

// TestShutdown: jobs end with the gate, and say so.
func TestShutdown(t *testing.T) {
	t.Parallel()
	one := func(o *job.Options) { o.Limits = func() job.Limits { return job.Limits{Running: 1} } }
	bothWith(t, one, func(t *testing.T, h *house) {
		s := script(t, busy)
		b := h.start(s)
		waiting := h.start(script(t, `true`))
		pids := appears(t, strings.TrimPrefix(s.Env[1], "D=")+"/pids", 2)
		h.stop()
		for _, pid := range pids {
			if alive(t, pid) {
				t.Errorf("process %s outlived the gate", pid)
			}
		}
		if _, err := h.Start(t.Context(), script(t, `true`)); !errors.Is(err, job.ErrClosing) {
			t.Errorf("a start after the end: %v", err)
		}
		h.open()
		if b, err := h.Get(t.Context(), owner, b.ID); err != nil || b.State != job.Cancelled || b.Category != "shutdown" {
			t.Errorf("%+v %v", b, err)
		}
		if b, err := h.Get(t.Context(), owner, waiting.ID); err != nil || b.State != job.Expired || b.ExitCode != job.ExitQueue {
			t.Errorf("the one that waited: %+v %v", b, err)
		}
	})
}

// TestLeaseLost: a node whose database is away kills its children before its
// lease ends, whatever else it can do.
func TestLeaseLost(t *testing.T) {
	t.Parallel()
	storetest.BothOptions(t, func(t *testing.T, opts store.Options) {
		var db storetest.Driver
		opts.Wrap = db.Wrap
		lease := 3 * time.Second
		on(t, storetest.Open(t, opts), func(o *job.Options) { o.Lease = lease }, func(t *testing.T, h *house) {
			s := script(t, busy)
			b := h.start(s)
			pids := appears(t, strings.TrimPrefix(s.Env[1], "D=")+"/pids", 2)
			db.Before(func(string) error { return errors.New("the database is away") })
			lost := time.Now()
			for alive(t, pids[0]) || alive(t, pids[1]) {
				time.Sleep(5 * time.Millisecond)
			}
			// The last renewal was before the database went away.
			if took := time.Since(lost); took > lease {
				t.Errorf("its processes lived for %s after the database went away, the lease is %s", took, lease)
			}
			db.Before(nil)
			if b := h.await(b.ID); b.State != job.Failed || b.Category != "lease_lost" {
				t.Errorf("%+v", b)
			}
			for { // and it goes on once the database is back
				b, err := h.Start(t.Context(), script(t, `true`))
				if err == nil {
					if b := h.await(b.ID); b.State != job.Completed {
						t.Errorf("%+v", b)
					}
					return
				}
				time.Sleep(50 * time.Millisecond)
			}
		})
	})
}

// TestNodes: another node cancels a job where it runs, and calls unknown what a
// node that stopped answering left.
func TestNodes(t *testing.T) {
	t.Parallel()
	opts := storetest.Postgres(t)
	o := order(t, opts, 2)
	o.Node, o.Lease = "one", 2*time.Second
	cmd, ids := startGate(t, o)
	pids := appears(t, filepath.Join(o.Work, "0", "pids"), 2)
	orphans := appears(t, filepath.Join(o.Work, "1", "pids"), 2)
	opts.Node = "two"
	s := storetest.Open(t, opts)
	there := o
	there.Jobs = t.TempDir()
	jobs, err := job.Open(t.Context(), there.options(s))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- jobs.Run(ctx) }()
	defer func() { cancel(); <-done }()
	if err := jobs.Cancel(t.Context(), owner, ids[0]); err != nil {
		t.Fatal(err)
	}
	for _, pid := range pids {
		if alive(t, pid) {
			t.Errorf("process %s lives after cancel answered on another node", pid)
		}
	}
	if p, err := jobs.Result(t.Context(), owner, ids[0], 0, 10); err != nil || p.Elsewhere != "one" || p.Job.State != job.Cancelled {
		t.Errorf("%+v %v", p, err)
	}
	if err := jobs.Cancel(t.Context(), call.Principal{Agent: "other"}, ids[1]); !errors.Is(err, job.ErrNotFound) {
		t.Errorf("another's job: %v", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	b, err := jobs.WaitOver(t.Context(), ids[1])
	if err != nil || b.State != job.Unknown || b.Category != "node_lost" {
		t.Errorf("%+v %v", b, err)
	}
	for _, pid := range orphans {
		if alive(t, pid) {
			t.Errorf("process %s of a dead node lives", pid)
		}
	}
}
