package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
)

// groupAttempts is how often a group that other nodes interfered with is tried before its functions go one by one,
// and then how often each of those is tried.
const groupAttempts = 3

// errSpoilt asks for another attempt: a function failed after it had written, and there was no savepoint to go back to.
var errSpoilt = errors.New("store: a function of the group failed")

// Write runs fn in a transaction and returns nil once its writes are durable. Functions that wait at the same time
// share one commit, yet each stands alone: an error or panic takes back its writes only, and is told to its caller
// only.
//
// A full queue refuses at once with [ErrBusy]. A context that ends while fn is queued withdraws it; once fn has been
// taken into a group, the answer is the truth about the commit, however long that takes. fn may run several times, of
// which the last counts, so it must set what it returns through captured variables and not add to it. fn must not
// call Write itself: it would wait for its own end.
func (s *Store) Write(ctx context.Context, fn func(*Tx) error) error {
	return s.write(ctx, &job{fn: fn, answer: make(chan error, 1)})
}

// WriteLight is Write for a function that as a rule reads only what is [Tx.Settled], and writes only rows that can wait
// ([Tx.Put], [Tx.Drop]). Then no transaction of the database is needed to make them durable. A function that does more
// is run again in one.
func (s *Store) WriteLight(ctx context.Context, fn func(*Tx) error) error {
	return s.write(ctx, &job{fn: fn, light: true, answer: make(chan error, 1)})
}

func (s *Store) write(ctx context.Context, j *job) error {
	if s.writer.alone(s, ctx, j) {
		return <-j.answer
	}
	if err := s.enqueue(ctx, j); err != nil {
		return err
	}
	select {
	case err := <-j.answer:
		return err
	case <-ctx.Done():
		if j.state.CompareAndSwap(queued, withdrawn) {
			return context.Cause(ctx)
		}
		return <-j.answer
	}
}

// refuses says why nothing is written any more.
func (s *Store) refuses() error {
	switch {
	case s.closed:
		return ErrClosed
	case s.replaced.Load():
		return ErrInUse
	}
	return nil
}

func (s *Store) enqueue(ctx context.Context, j *job) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.refuses(); err != nil {
		return err
	}
	select {
	case s.writer.queue <- j:
		select {
		case s.writer.wake <- struct{}{}:
		default: // it will look anyway
		}
		return nil
	default:
		return ErrBusy
	}
}

// The states of a job: whoever moves it from queued owns it.
const (
	queued int32 = iota
	taken
	withdrawn
)

// job is one queued function.
type job struct {
	state  atomic.Int32
	fn     func(*Tx) error
	light  bool       // see WriteLight
	err    error      // of fn in the current attempt
	answer chan error // buffered, so that the writer never waits for a caller
	told   bool
}

func (j *job) tell(err error) {
	j.told = true
	j.answer <- err
}

// writer is the only one that writes: whoever has its turn.
type writer struct {
	store *Store
	queue chan *job
	wake  chan struct{} // says that something is in the queue
	crowd atomic.Int32  // how many the last group from the queue had

	turn    sync.Mutex
	session *session    // nil until needed, and after a failure
	memory  map[any]any // what committed functions remembered
	index   index
	journal *journal // nil where there is none, and after a failure
	seq     int64    // of the last entry of the journal
	settled int64    // of the last one that is in the database
	waiting []entry  // those in between
	stuck   bool     // they could not be put into the database when that was last tried
	rows    atomic.Int64
}

func newWriter(s *Store) *writer {
	return &writer{store: s, queue: make(chan *job, s.opts.Queue), wake: make(chan struct{}, 1), memory: make(map[any]any)}
}

// alone serves a job at once if nobody else writes or waits: handing it to another goroutine and back would take as
// long as the write itself. Where the last group had several, the others are about to come, and the job waits for them.
func (w *writer) alone(s *Store, ctx context.Context, j *job) bool {
	if w.crowd.Load() > 1 || len(w.queue) > 0 || ctx.Err() != nil || !w.turn.TryLock() {
		return false
	}
	defer w.turn.Unlock()
	s.mu.RLock()
	err := s.refuses()
	s.mu.RUnlock()
	if err != nil {
		return false // the queue says so
	}
	j.state.Store(taken)
	jobs := []*job{j}
	defer w.answerRest(jobs)
	w.serve(jobs)
	return true
}

// loop serves the queue until it is closed and empty.
func (w *writer) loop() {
	for open := true; open; {
		_, open = <-w.wake
		for w.next() {
		}
	}
}

// next serves a group, if anybody waits.
func (w *writer) next() bool {
	w.turn.Lock()
	defer w.turn.Unlock()
	jobs := w.collect()
	if len(jobs) == 0 {
		return false
	}
	w.crowd.Store(int32(len(jobs)))
	done := make(chan struct{})
	go func() { // its own goroutine, so that runtime.Goexit in a function does not end the writer
		defer close(done)
		defer w.answerRest(jobs)
		w.serve(jobs)
	}()
	<-done
	return true
}

// collect takes everything that waits, up to the size of a group.
func (w *writer) collect() (jobs []*job) {
	for len(jobs) < w.store.opts.Group {
		select {
		case j, open := <-w.queue:
			if !open {
				return jobs
			}
			if j.state.CompareAndSwap(queued, taken) {
				jobs = append(jobs, j)
			}
		default:
			return jobs
		}
	}
	return jobs
}

// serve commits the jobs and answers each of them. Savepoints cost as much as a small write, and few functions fail
// after writing, so the first attempt does without them. Interference by other nodes is met by trying again, first
// together, then one by one so that a job which cannot succeed does not fail the others.
func (w *writer) serve(jobs []*job) {
	if w.store.opts.Twice {
		w.rehearse(jobs)
	}
	if jobs = w.light(jobs); len(jobs) == 0 {
		return
	}
	err := w.attempt(jobs, false)
	if errors.Is(err, errSpoilt) {
		err = w.attempt(jobs, true)
	}
	for n := 1; n < groupAttempts && errors.Is(err, ErrConflict); n++ {
		err = w.attempt(jobs, true)
	}
	if errors.Is(err, ErrConflict) && len(jobs) > 1 {
		for _, j := range jobs {
			w.serve([]*job{j})
		}
		return
	}
	for _, j := range jobs {
		if err != nil {
			j.err = err
		}
		j.tell(j.err)
	}
}

// answerRest makes sure that nobody waits for ever when a function ended the goroutine.
func (w *writer) answerRest(jobs []*job) {
	for _, j := range jobs {
		if !j.told {
			j.tell(fmt.Errorf("%w: %w", ErrCommit, ErrPanic))
		}
	}
}

// attempt runs the jobs in one transaction. It returns nil if each job's own error is the whole truth about it.
func (w *writer) attempt(jobs []*job, savepoints bool) error {
	ctx, cancel := w.store.dialect.groupContext()
	defer cancel()
	w.stuck = len(w.waiting) > 0 // until this or another one is committed
	if err := w.begin(ctx); err != nil {
		return fmt.Errorf("%w: %w", ErrCommit, fault(err))
	}
	g := newGroup(w, ctx)
	g.alone, g.savepoints = len(jobs) == 1, savepoints
	committed := false
	defer func() {
		if !committed {
			w.abandon()
		}
	}()
	if err := g.settle(); err != nil {
		return fmt.Errorf("%w: %w", ErrCommit, err)
	}
	for _, j := range jobs {
		if err := g.run(j); err != nil {
			return fmt.Errorf("%w: %w", ErrCommit, err)
		}
	}
	if g.kept == 0 {
		w.stuck = false // what failed is the functions' own
		return nil
	}
	if err := g.commit(); err != nil {
		return err
	}
	committed = true
	w.emptied()
	g.done()
	return nil
}

// done is what follows a commit.
func (g *group) done() {
	w := g.writer
	for key, value := range g.memory {
		if value == nil {
			delete(w.memory, key)
		} else {
			w.memory[key] = value
		}
	}
	w.store.hub.deliver(g.notices)
}

// rehearse runs the jobs for nothing.
func (w *writer) rehearse(jobs []*job) {
	ctx, cancel := w.store.dialect.groupContext()
	defer cancel()
	if err := w.begin(ctx); err != nil {
		return // the attempt that counts will say so
	}
	defer w.abandon()
	g := newGroup(w, ctx)
	for _, j := range jobs {
		if g.run(j) != nil {
			return
		}
	}
}

// begin opens a transaction. A connection from before may have died since, so it is given a second chance.
func (w *writer) begin(ctx context.Context) error {
	d := w.store.dialect
	if w.session != nil {
		err := w.session.control(ctx, d.beginWrite())
		if err == nil || !errors.Is(fault(err), ErrUnavailable) {
			return err
		}
		w.discard()
	}
	se, err := openSession(ctx, w.store.writeDB, d.cacheStatements())
	if err != nil {
		return err
	}
	w.session = se
	return se.control(ctx, d.beginWrite())
}

// abandon takes back the open transaction and everything remembered; a connection on which that fails is dropped.
func (w *writer) abandon() {
	clear(w.memory)
	if w.session == nil {
		return
	}
	ctx, cancel := w.store.dialect.groupContext()
	defer cancel()
	if err := w.session.control(ctx, "ROLLBACK"); err != nil {
		w.discard()
	}
}

func (w *writer) discard() {
	w.index.lost = true
	w.session.discard()
	w.session = nil
}

func (w *writer) close() error {
	err := w.closeJournal()
	if w.session == nil {
		return err
	}
	return errors.Join(err, w.session.close())
}

// group is one transaction shared by several functions.
type group struct {
	writer     *writer
	ctx        context.Context
	light      bool     // for the journal: no transaction is open
	changes    []change // that go there
	alone      bool     // one function only, whose failure takes back the whole transaction
	savepoints bool
	started    bool
	kept       int // functions whose writes are in the transaction
	notices    []Notice
	memory     map[any]any
	shared     map[any]any // what functions of this transaction tell each other
}

func newGroup(w *writer, ctx context.Context) *group {
	return &group{writer: w, ctx: ctx, memory: make(map[any]any)}
}

// run runs j in the transaction. The error returned is one that ends the whole group; j's own error is left in j.
func (g *group) run(j *job) error {
	w := g.writer
	if g.savepoints {
		if err := w.session.control(g.ctx, w.store.dialect.savepoint(!g.started)...); err != nil {
			return fault(err)
		}
		g.started = true
	}
	tx := &Tx{store: w.store, ctx: g.ctx, session: w.session, group: g}
	if j.err = tx.call(j.fn); j.err == nil {
		g.kept++
		g.changes = append(g.changes, tx.changes...)
		g.notices = append(g.notices, tx.notices...)
		maps.Copy(g.memory, tx.remember)
		return nil
	}
	return g.takeBack(tx)
}

// takeBack undoes what a function did before it failed.
func (g *group) takeBack(tx *Tx) error {
	switch {
	case g.light && tx.err != nil:
		return errHeavy // whatever it is, a transaction will say it better
	case g.light:
		return nil
	case errors.Is(tx.err, ErrConflict):
		return tx.err
	case tx.err == nil && !tx.wrote, g.alone:
		return nil
	case !g.savepoints:
		return errSpoilt
	}
	clear(g.memory)
	clear(g.shared)
	clear(g.writer.memory)
	if err := g.writer.session.control(g.ctx, "ROLLBACK TO SAVEPOINT f"); err != nil {
		// SQLite takes back the whole transaction on some failures, and a lost connection takes everything with it:
		// then what failed one function failed everyone.
		return fault(errors.Join(tx.err, err))
	}
	return nil
}

func (g *group) recall(key any) any {
	if v, ok := g.memory[key]; ok {
		return v
	}
	return g.writer.memory[key]
}

// commit makes the group durable: the clock it saw, the notices to other nodes, then everything at once.
func (g *group) commit() error {
	s := g.writer.store
	tx := &Tx{store: s, ctx: g.ctx, session: g.writer.session, group: g}
	if err := errors.Join(s.clock.save(tx), g.writer.note(tx)); err != nil {
		return fmt.Errorf("%w: %w", ErrCommit, err)
	}
	g.notices = unique(g.notices)
	if err := s.dialect.notify(tx, g.notices); err != nil {
		return fmt.Errorf("%w: %w", ErrCommit, err)
	}
	if err := g.writer.session.control(g.ctx, "COMMIT"); err != nil {
		if err = fault(err); errors.Is(err, ErrUnavailable) {
			return fmt.Errorf("%w: %w", ErrInDoubt, err)
		}
		return fmt.Errorf("%w: %w", ErrCommit, err)
	}
	return nil
}
