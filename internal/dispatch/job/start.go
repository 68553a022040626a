package job

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// maxAttempts is how often a start is tried before its start record.
const maxAttempts = 5

// Start runs a process. When it returns, the job is durable: running, or queued
// if too many are. With Spec.Reuse it may be another that was asked for before.
func (j *Jobs) Start(ctx context.Context, s Spec) (Job, error) {
	if err := s.verify(j.opts.MinIdle); err != nil {
		return Job{}, err
	}
	l, err := j.newLive(s)
	if err != nil {
		return Job{}, err
	}
	now, err := j.admit(l)
	if err != nil {
		return Job{}, err
	}
	if now {
		err = j.begin(ctx, l)
		now = !errors.Is(err, errFull)
	}
	if !now {
		err = j.queue(ctx, l)
	}
	b := l.snapshot()
	if err != nil || b.Deduplicated {
		j.leave(l)
		return b, err
	}
	if now {
		go j.attend(l)
	}
	return b, nil
}

func (j *Jobs) newLive(s Spec) (*live, error) {
	if s.ID == "" {
		var err error
		if s.ID, err = j.NewID(); err != nil {
			return nil, err
		}
	}
	if s.Idle == 0 {
		s.Idle = DefaultIdle
	}
	sealed, err := j.seal(s.ID, &s)
	if err != nil {
		return nil, err
	}
	l := &live{spec: s, told: make(chan struct{}), over: make(chan struct{}), turn: make(chan struct{}), stopped: make(chan struct{})}
	l.job = Job{ID: s.ID, CLI: s.CLI, CorrelationID: s.CorrelationID, RequestKey: s.RequestKey, Approval: s.Approval, Owner: s.Owner,
		ExitCode: ExitNone, Node: j.store.Node(), run: j.run, sealed: sealed, Confined: s.Sandbox != nil}
	return l, nil
}

// admit gives a job a place among those that run, or among those that wait.
func (j *Jobs) admit(l *live) (now bool, err error) {
	limits := j.opts.Limits().withDefaults()
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.closing:
		return false, ErrClosing
	case !j.breaker(l.spec.CLI).allows(time.Now()):
		return false, fmt.Errorf("%w (%s)", ErrOpen, l.spec.CLI)
	case j.live[l.spec.ID] != nil:
		return false, fmt.Errorf("%w: the job's id is in use", ErrInvalid)
	}
	if j.free(limits, l.spec.CLI) {
		j.running[""]++
		j.running[l.spec.CLI]++
		l.running = true
	} else if len(j.waiting) >= limits.Queued {
		return false, ErrSaturated
	}
	j.live[l.spec.ID] = l
	j.work.Add(1)
	return l.running, nil
}

func (j *Jobs) free(limits Limits, cli string) bool {
	return j.running[""] < limits.Running && j.running[cli] < limits.PerCLI
}

// leave gives a job's place to the next that can have it.
func (j *Jobs) leave(l *live) {
	limits := j.opts.Limits().withDefaults()
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.live, l.spec.ID)
	j.waiting = slices.DeleteFunc(j.waiting, func(w *live) bool { return w == l })
	if l.running {
		l.running = false
		j.running[""]--
		j.running[l.spec.CLI]--
	}
	// In order of arrival, but a CLI at its limit does not hold up the others.
	for i := 0; i < len(j.waiting); {
		w := j.waiting[i]
		if !j.free(limits, w.spec.CLI) {
			i++
			continue
		}
		j.running[""]++
		j.running[w.spec.CLI]++
		w.running = true
		j.waiting = slices.Delete(j.waiting, i, i+1)
		close(w.turn)
	}
	close(l.over)
	j.work.Done()
}

// queue makes a waiting job durable and lets it wait.
func (j *Jobs) queue(ctx context.Context, l *live) error {
	base := l.snapshot()
	base.State = Queued
	var got Job
	err := j.store.WriteLight(ctx, func(tx *store.Tx) (err error) {
		got, err = j.enter(tx, l, base, Event{Phase: "queued", Kind: "lifecycle", Text: "it waits for its turn"})
		return err
	})
	if err != nil {
		return err
	}
	if l.set(got); got.Deduplicated {
		return nil
	}
	limits := j.opts.Limits().withDefaults()
	j.mu.Lock()
	switch {
	case l.running: // it has a place here, and waits for other nodes
		close(l.turn)
	case j.free(limits, l.spec.CLI): // a place became free meanwhile
		j.running[""]++
		j.running[l.spec.CLI]++
		l.running = true
		close(l.turn)
	default:
		j.waiting = append(j.waiting, l)
	}
	j.mu.Unlock()
	go j.await(l, limits.QueueWait)
	return nil
}

// await starts a job when it is its turn.
func (j *Jobs) await(l *live, most time.Duration) {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-l.turn:
	case <-l.stopped:
	case <-timer.C:
		l.stop(reason{Expired, ExitQueue, "saturated", "it waited too long for its turn; nothing was run"})
	}
	if l.why() != nil {
		j.finish(l, ending{Code: ExitNone}, nil)
		j.leave(l)
		return
	}
	if err := j.beginIfRoom(l, timer.C); err != nil {
		l.stop(reason{Failed, ExitFailure, "spawn_error", "it could not be started: " + err.Error()})
		j.finish(l, ending{Code: ExitNone}, nil)
		j.leave(l)
		return
	}
	j.attend(l)
}

// beginIfRoom begins a job when the nodes together have room for it.
func (j *Jobs) beginIfRoom(l *live, late <-chan time.Time) error {
	waiting, done := context.WithCancel(context.Background())
	defer done()
	freed := j.store.Subscribe(waiting, freeTopic)
	for {
		ctx, cancel := context.WithTimeout(waiting, j.opts.Lease)
		err := j.begin(ctx, l)
		cancel()
		if !errors.Is(err, errFull) {
			return err
		}
		select {
		case <-freed:
		case <-time.After(j.opts.Lease): // that a node went away with its jobs is told by nobody
		case <-l.stopped:
			return err
		case <-late:
			l.stop(reason{Expired, ExitQueue, "saturated", "it waited too long for its turn; nothing was run"})
			return err
		}
	}
}

// errFull says that the nodes together run as many jobs as they may.
var errFull = errors.New("as many jobs run on all nodes as may")

// room judges, in the transaction of the start record, whether the nodes that
// share a database together have room for another job of a CLI. Nodes judge one
// after the other: each locks the leases of all. A node that is alone has
// counted already.
func (j *Jobs) room(tx *store.Tx, cli string) error {
	if tx.Alone() {
		return nil
	}
	if _, err := store.All(tx, func(rows *store.Rows) (run string, err error) { return run, rows.Scan(&run) },
		`SELECT run FROM job_lease ORDER BY run`+tx.ForUpdate()); err != nil {
		return err
	}
	var all, same int
	err := tx.QueryRow(`SELECT count(*), coalesce(sum(CASE WHEN cli = $1 THEN 1 ELSE 0 END), 0) FROM job WHERE state = 'running'`, cli).Scan(&all, &same)
	if limits := j.opts.Limits().withDefaults(); err == nil && (all >= limits.Running || same >= limits.PerCLI) {
		err = errFull
	}
	return err
}

// begin makes the process ready and the start record durable, in this order,
// so that the record names who holds the tree. Up to here, and no further, a
// failure is tried again.
func (j *Jobs) begin(ctx context.Context, l *live) (err error) {
	wait := j.opts.Backoff
	for tried := 1; ; tried++ {
		if err = j.beginOnce(ctx, l); err == nil || !transient(err) || tried >= maxAttempts {
			break
		}
		l.retried(tried)
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-l.stopped:
			return errors.Join(ErrClosing, err)
		case <-time.After(wait):
		}
		wait = min(2*wait, 30*time.Second)
	}
	if errors.Is(err, errSpawn) {
		j.outcome(l.spec.CLI, false)
	}
	return err
}

// errSpawn marks a failure to start a supervisor.
var errSpawn = errors.New("no process could be made")

func transient(err error) bool {
	for _, e := range []error{errSpawn, store.ErrBusy, store.ErrLocked, store.ErrConflict, store.ErrUnavailable, store.ErrCommit} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

func (j *Jobs) beginOnce(ctx context.Context, l *live) error {
	if time.Now().After(j.deadline()) {
		return fmt.Errorf("%w: this node's hold on its jobs ran out", store.ErrUnavailable)
	}
	t, err := j.take(&l.spec)
	if err != nil {
		return fmt.Errorf("%w: %w", errSpawn, err)
	}
	base := l.snapshot()
	base.State, base.process = Running, t.process()
	logs := make(chan error, 1)
	go func() { logs <- j.openLogs(l) }() // while the record is written
	var got Job
	err = j.store.WriteLight(ctx, func(tx *store.Tx) (err error) {
		e := Event{Phase: "starting", Kind: "lifecycle", Text: "its process is started"}
		if base.Asked.IsZero() {
			got, err = j.enter(tx, l, base, e)
		} else {
			got, err = j.promote(tx, l, base, e)
		}
		return err
	})
	if errors.Is(err, store.ErrInDoubt) {
		err = j.confirm(ctx, l, err)
	}
	noLogs := <-logs
	if err != nil || got.Deduplicated {
		j.dropLogs(l)
		t.release()
	}
	if err == nil {
		l.set(got)
		l.tree, l.broken = t, noLogs
	}
	return err
}

// confirm reads whether a start record whose commit was in doubt is there.
func (j *Jobs) confirm(ctx context.Context, l *live, doubt error) error {
	b, err := j.Get(ctx, Operator, l.spec.ID)
	if err == nil && b.State == Running {
		return nil
	}
	if errors.Is(err, ErrNotFound) {
		return doubt // which counts as transient: it is not there
	}
	return errors.Join(store.ErrClosed, doubt, err)
}

// enter writes a new job, unless there is one like it that may be used.
func (j *Jobs) enter(tx *store.Tx, l *live, b Job, e Event) (Job, error) {
	now, err := j.mayRun(tx, l)
	if err != nil {
		return b, err
	}
	if l.spec.Reuse && j.recent.known(l.spec.RequestKey) {
		same, found, err := j.reusable(tx, l.spec.RequestKey, l.spec.Owner.Agent, now)
		if err != nil || found {
			return same, err
		}
	}
	j.recent.add(l.spec.RequestKey, now)
	b.Asked, b.Seq = now, 1
	if b.State == Running {
		b.Started = now
		if err := j.room(tx, b.CLI); err != nil {
			return b, err
		}
		if err := j.record(tx, &b); err != nil {
			return b, err
		}
	}
	if l.spec.Entering != nil {
		if err := l.spec.Entering(tx); err != nil {
			return b, err
		}
	}
	return b, errors.Join(j.insert(tx, &b), begin(tx, b.ID, now, e))
}

// promote writes the start record of a job that waited.
func (j *Jobs) promote(tx *store.Tx, l *live, base Job, e Event) (Job, error) {
	now, err := j.mayRun(tx, l)
	if err != nil {
		return base, err
	}
	b, err := j.read(tx, base.ID, tx.ForUpdate())
	if err != nil {
		return base, err
	}
	if b.State != Queued || b.run != j.run || b.cancel {
		return base, fmt.Errorf("%w: the job is not waiting any more", ErrInvalid)
	}
	if err := j.room(tx, b.CLI); err != nil {
		return base, err
	}
	b.State, b.process, b.Started, b.Retries = Running, base.process, now, base.Retries
	b.Seq++
	return b, errors.Join(j.update(tx, &b), j.record(tx, &b), note(tx, b.ID, now, e))
}

// mayRun judges in the transaction of the start record: the node's lease holds
// by the database's clock, and the owner is not stopped.
func (j *Jobs) mayRun(tx *store.Tx, l *live) (time.Time, error) {
	now, err := tx.Now()
	if err != nil {
		return now, err
	}
	var until int64
	if err := tx.Settled(`SELECT coalesce(max(until), 0) FROM job_lease WHERE run = $1`, j.run).Scan(&until); err != nil {
		return now, err
	}
	if until < now.UnixMicro() {
		return now, fmt.Errorf("%w: this node's hold on its jobs ran out", store.ErrUnavailable)
	}
	if j.opts.Standing != nil {
		if err := j.opts.Standing(tx, l.spec.Owner); err != nil {
			return now, fmt.Errorf("%w: %w", ErrStopped, err)
		}
	}
	return now, nil
}

func (j *Jobs) record(tx *store.Tx, b *Job) error {
	if j.opts.Record == nil {
		return nil
	}
	return j.opts.Record(tx, b)
}

// take returns a tree that waits for its order.
func (j *Jobs) take(s *Spec) (tree, error) {
	if s.Sandbox != nil {
		return newConfined(), nil
	}
	j.mu.Lock()
	h := j.spare
	j.spare = nil
	j.mu.Unlock()
	if h != nil {
		return h, nil
	}
	return newHolder()
}

// fillWait is how long a job may run before a supervisor for the next one is
// started beside it.
const fillWait = 100 * time.Millisecond

// fill starts a supervisor for the next job, unless one is ready.
func (j *Jobs) fill() {
	j.mu.Lock()
	if j.filling || j.closing || j.spare != nil {
		j.mu.Unlock()
		return
	}
	j.filling = true
	j.work.Add(1)
	j.mu.Unlock()
	go func() {
		defer j.work.Done()
		h, err := newHolder()
		j.mu.Lock()
		j.filling = false
		keep := err == nil && !j.closing
		if keep {
			j.spare = h
		}
		j.mu.Unlock()
		if !keep && err == nil {
			h.release()
		}
	}()
}
