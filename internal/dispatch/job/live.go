package job

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// reason is why a job was ended from outside.
type reason struct {
	state    State
	code     int
	category string
	text     string
}

// live is a job of this node that is not over.
type live struct {
	spec    Spec
	tree    tree
	out     *outputLog
	errs    *outputLog
	broken  error         // why its output cannot be kept
	turn    chan struct{} // closed when it may run
	stopped chan struct{} // closed when it is to end
	told    chan struct{} // closed when its tree is dead and its end known, which is recorded next
	over    chan struct{} // closed when its end is recorded, or was given up
	running bool          // it has a place; guarded by Jobs.mu

	heard atomic.Int64 // when the process was last heard, in nanoseconds
	holds atomic.Int32 // waits that do not count as silence

	mu     sync.Mutex
	job    Job
	reason *reason
}

func (l *live) snapshot() Job {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.job
}

func (l *live) set(b Job) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.job = b
}

func (l *live) retried(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.job.Retries = n
}

// tell lets those who wait for the job here know how it ended.
func (l *live) tell(b Job) {
	b.Ended = time.Now().UTC().Truncate(time.Microsecond)
	b.Seq++
	l.set(b)
	close(l.told)
}

// stop ends a job. The first reason stays.
func (l *live) stop(r reason) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.reason == nil {
		l.reason = &r
		close(l.stopped)
	}
}

func (l *live) why() *reason {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reason
}

func (l *live) sign() { l.heard.Store(time.Now().UnixNano()) }

// Hold stops a job's idle clock until the returned function is called: nobody
// is idle while a person thinks about its question. A job that is not running
// here has no clock.
func (j *Jobs) Hold(id string) (release func()) {
	l := j.find(id)
	if l == nil {
		return func() {}
	}
	l.holds.Add(1)
	return sync.OnceFunc(func() {
		l.sign()
		l.holds.Add(-1)
	})
}

// Note adds an event to a job's progress. The words are the caller's own, never
// the CLI's.
func (j *Jobs) Note(ctx context.Context, id string, e Event) error {
	return j.store.Write(ctx, func(tx *store.Tx) error {
		now, err := tx.Now()
		if err != nil {
			return err
		}
		return note(tx, id, now, e)
	})
}

// attend sees a job through, from its start record to its end.
func (j *Jobs) attend(l *live) {
	defer j.leave(l)
	defer l.tree.release()
	l.sign()
	out, errs := l.out, l.errs
	err := l.broken
	if err == nil {
		err = l.tree.start(l.spec.ID, &l.spec)
	}
	if err != nil {
		j.dropLogs(l)
		j.giveUp(l, err)
		return
	}
	late := time.AfterFunc(fillWait, j.fill)
	defer late.Stop()
	e, driven := j.converse(l, out, errs)
	if e.Lost {
		// The supervisor was killed. What it held is found without it.
		if pids := endLeft([]Job{l.snapshot()}, leftPatience); len(pids) > 0 {
			j.log.Error("processes of a job could not be ended", "job", l.spec.ID, "pids", pids)
		}
	}
	l.mu.Lock()
	var errOut, errErr error
	l.job.Stdout, errOut = out.Close()
	l.job.Stderr, errErr = errs.Close()
	l.mu.Unlock()
	if err := errors.Join(errOut, errErr); err != nil && !errors.Is(err, errOverflow) {
		j.log.Warn("output of a job could not be kept", "job", l.spec.ID, "error", err)
	}
	j.finish(l, e, driven)
}

// openLogs makes the files for a job's output.
func (j *Jobs) openLogs(l *live) (err error) {
	if l.out, err = newLog(j.logPath(l.spec.ID, "out"), j.output(), j.opts.Redact); err != nil {
		return err
	}
	if l.errs, err = newLog(j.logPath(l.spec.ID, "err"), j.output(), j.opts.Redact); err != nil {
		j.dropLogs(l)
	}
	return err
}

// dropLogs removes the files of a job that did not start.
func (j *Jobs) dropLogs(l *live) {
	for stream, log := range map[string]*outputLog{"out": l.out, "err": l.errs} {
		if log != nil {
			_, _ = log.Close() // it is empty
			_ = os.Remove(j.logPath(l.spec.ID, stream))
		}
	}
	l.out, l.errs = nil, nil
}

func (j *Jobs) output() int64 { return j.opts.Limits().withDefaults().Output }

// giveUp ends a job whose process never ran.
func (j *Jobs) giveUp(l *live, err error) {
	l.stop(reason{Failed, ExitFailure, "spawn_error", "it could not be started: " + err.Error()})
	j.finish(l, ending{Code: ExitNone}, nil)
}

// drainWait is how long output may come after the end of the tree: only a
// process outside it could still write.
const drainWait = 2 * time.Second

// converse moves the streams, watches the clocks and returns when the tree is
// dead and its output read.
func (j *Jobs) converse(l *live, out, errs *outputLog) (ending, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var streams sync.WaitGroup
	full := func() {
		l.stop(reason{Failed, ExitOverflow, "output_overflow", fmt.Sprintf("it wrote more than the %d bytes that are kept", j.output())})
	}
	streams.Go(func() { l.keep(errs, l.tree.stderr(), full) })
	driven := make(chan error, 1)
	if l.spec.Drive == nil {
		streams.Go(func() { l.keep(out, l.tree.stdout(), full) })
		streams.Go(func() {
			_, _ = l.tree.stdin().Write(l.spec.Stdin) // it may not want it all
			_ = l.tree.stdin().Close()
		})
		driven <- nil
	} else {
		streams.Go(func() {
			err := l.spec.Drive(ctx, l.tree.stdin(), &listener{l.tree.stdout(), l}, &watched{out, full})
			_ = l.tree.stdin().Close()
			driven <- err
			_, _ = io.Copy(io.Discard, &listener{l.tree.stdout(), l}) // so that it can end
		})
	}
	dead := make(chan ending, 1)
	go func() { dead <- l.tree.wait() }()
	e, err := j.watch(l, dead, driven)
	cancel()
	late := time.AfterFunc(drainWait, func() {
		_ = l.tree.stdout().Close()
		_ = l.tree.stderr().Close()
		_ = l.tree.stdin().Close()
	})
	streams.Wait()
	late.Stop()
	if l.spec.Drive != nil && err == nil {
		select {
		case err = <-driven:
		default:
		}
	}
	return e, err
}

// quitWait is how long a driven process may take to end once its conversation
// is over.
const quitWait = 5 * time.Second

// watch waits for the end of the tree and brings it about where it must.
func (j *Jobs) watch(l *live, dead <-chan ending, driven chan error) (ending, error) {
	idle := time.NewTimer(l.spec.Idle)
	defer idle.Stop()
	var wall, quit <-chan time.Time
	if l.spec.Wall > 0 {
		wall = time.After(l.spec.Wall)
	}
	var said <-chan error
	if l.spec.Drive != nil {
		said = driven
	}
	var conversation error
	stopped := l.stopped
	for {
		select {
		case e := <-dead:
			return e, conversation
		case <-stopped:
			stopped = nil
			l.tree.kill()
		case <-idle.C:
			quiet := time.Since(time.Unix(0, l.heard.Load()))
			if l.holds.Load() > 0 {
				quiet = 0
			}
			if quiet < l.spec.Idle {
				idle.Reset(l.spec.Idle - quiet)
				continue
			}
			l.stop(reason{Failed, ExitIdle, "idle_timeout", fmt.Sprintf("it said nothing for %s", l.spec.Idle)})
		case <-wall:
			l.stop(reason{Failed, ExitWall, "timeout", fmt.Sprintf("it ran for longer than %s", l.spec.Wall)})
		case conversation = <-said:
			said, quit = nil, time.After(quitWait)
			driven <- conversation
		case <-quit:
			l.tree.kill() // what was to be said has been said
		}
	}
}

// keep copies a stream into its log. What does not fit is read all the same, so
// that the process does not hang before it is ended.
func (l *live) keep(to *outputLog, from io.Reader, full func()) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			l.sign()
			if _, werr := to.Write(buf[:n]); errors.Is(werr, errOverflow) {
				full()
			}
		}
		if err != nil {
			return
		}
	}
}

// listener notes that a process was heard.
type listener struct {
	from io.Reader
	l    *live
}

func (r *listener) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	if n > 0 {
		r.l.sign()
	}
	return n, err
}

// watched ends a job whose log is full.
type watched struct {
	to   io.Writer
	full func()
}

func (w *watched) Write(p []byte) (int, error) {
	n, err := w.to.Write(p)
	if errors.Is(err, errOverflow) {
		w.full()
	}
	return n, err
}

// finish tells how a job ended, and records it. That is tried until it is
// durable, or until the lease is over and others have said that nobody knows.
func (j *Jobs) finish(l *live, e ending, driven error) {
	b := l.snapshot()
	j.judge(l, &b, e, driven)
	if b.State == Completed || b.State == Failed {
		j.outcome(b.CLI, b.Category != "spawn_error" && b.Category != "idle_timeout" && b.Category != "timeout")
	}
	if err := j.parse(l, &b); err != nil {
		j.log.Warn("the result of a job could not be kept", "job", b.ID, "error", err)
	}
	l.tell(b)
	j.fill()
	if l.spec.After != nil {
		l.spec.After()
	}
	wait := 10 * time.Millisecond
	for began := time.Now(); ; wait = min(2*wait, time.Second) {
		ctx, cancel := context.WithTimeout(context.Background(), j.opts.Lease)
		var final Job
		err := j.store.Write(ctx, func(tx *store.Tx) (err error) {
			final, err = j.conclude(tx, b)
			return err
		})
		cancel()
		if err == nil {
			if l.spec.Over != nil {
				l.spec.Over(final)
			}
			return
		}
		if errors.Is(err, store.ErrClosed) || time.Since(began) > j.opts.Lease {
			j.log.Error("the end of a job could not be recorded; it will be called unknown", "job", b.ID, "error", err)
			return
		}
		time.Sleep(wait)
	}
}

// judge says what an ending means.
func (j *Jobs) judge(l *live, b *Job, e ending, driven error) {
	why := l.why()
	b.ExitCode = e.Code
	switch {
	case why != nil:
		b.State, b.Category, b.Error = why.state, why.category, why.text
		if why.code != ExitNone {
			b.ExitCode = why.code
		}
		if b.Started.IsZero() && (why.category == "shutdown" || why.category == "lease_lost") {
			b.State, b.ExitCode, b.Error = Expired, ExitQueue, why.text+"; nothing was run" // it may be asked for again
		}
	case e.Failed != "":
		b.State, b.Category, b.Error = Failed, "spawn_error", "it could not be started: "+e.Failed
	case e.Lost:
		b.State, b.Category, b.Error, b.ExitCode = Unknown, "supervisor_lost", "its supervisor was killed; what it held was ended", ExitNone
	case driven != nil:
		b.State, b.Category, b.Error = Failed, "channel_error", driven.Error()
	case l.spec.Drive != nil && !l.spec.Listens:
		b.State, b.ExitCode = Completed, 0
	case e.Code != 0:
		b.State, b.Category, b.Error = Failed, "cli_error", fmt.Sprintf("it ended with exit code %d", e.Code)
	default:
		b.State = Completed
	}
	if b.Error != "" {
		b.Error, _ = j.opts.Redact().Text(b.Error)
	}
}

// maxResult bounds a stored result; the log has all of it.
const maxResult = 4 << 20

// parse makes the stored result from the log, that is, from what has no secrets.
func (j *Jobs) parse(l *live, b *Job) error {
	if l.spec.Parse == nil || l.tree == nil {
		return nil
	}
	raw, err := os.ReadFile(j.logPath(b.ID, "out"))
	if err != nil {
		return err
	}
	plain, err := json.Marshal(l.spec.Parse(raw))
	if err != nil {
		return err
	}
	if len(plain) > maxResult {
		return fmt.Errorf("it has %d bytes", len(plain))
	}
	if b.result, err = j.keys.Seal("job result "+b.ID, plain); err != nil {
		return err
	}
	b.Result = plain
	return nil
}

// conclude writes the end, if the job is still this run's, and returns what is on
// record then.
func (j *Jobs) conclude(tx *store.Tx, b Job) (Job, error) {
	now, err := tx.Now()
	if err != nil {
		return b, err
	}
	was, err := j.read(tx, b.ID, tx.ForUpdate())
	if err != nil {
		return b, err
	}
	if was.State.Over() || was.run != j.run {
		return was, nil // others have said what they could
	}
	b.cancel, b.Seq = was.cancel, was.Seq
	return b, j.over(tx, &b, now)
}

// over writes a final state.
func (j *Jobs) over(tx *store.Tx, b *Job, now time.Time) error {
	b.Ended, b.Expires = now, now.Add(j.opts.Retention)
	phase := "failed"
	if b.State == Completed {
		phase = "completed"
	}
	b.Seq++
	store.Notify(tx, freeTopic, "")
	return errors.Join(j.update(tx, b), j.record(tx, b), note(tx, b.ID, now, Event{Phase: phase, Kind: "terminal", Text: string(b.State)}))
}
