package job

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/content"
	"github.com/seed-3ebc6b8a/gatehouse/internal/keyring"
	"github.com/seed-3ebc6b8a/gatehouse/internal/session"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// Limits bound what runs at once. Zero fields are the defaults.
type Limits struct {
	Running   int           // in all: 32
	PerCLI    int           // of one CLI: 16
	Queued    int           // waiting: 128
	QueueWait time.Duration // before a job expires: 2 minutes
	Output    int64         // of each stream of a job: 50 MiB
}

func (l Limits) withDefaults() Limits {
	return Limits{
		Running: cmp.Or(l.Running, 32), PerCLI: cmp.Or(l.PerCLI, 16), Queued: cmp.Or(l.Queued, 128),
		QueueWait: cmp.Or(l.QueueWait, 2*time.Minute), Output: cmp.Or(l.Output, 50<<20),
	}
}

// Options is what jobs stand on.
type Options struct {
	Store *store.Store
	Keys  *keyring.Keyring
	// Dir is where the logs are. It is made with mode 0700.
	Dir string
	// Redact is what takes secrets out of output.
	Redact func() *content.Redactor
	Log    *slog.Logger
	// Limits are asked for at every start; nil is the defaults.
	Limits func() Limits
	// Standing says why a principal must not have anything running; nil if it
	// may. It is asked in the transaction of the start record, and whenever
	// sessions, blocks or switches change.
	Standing func(*store.Tx, call.Principal) error
	// Record is told of every start and end in the transaction that writes it.
	Record func(*store.Tx, *Job) error
	// Retention is how long ended jobs are kept: 30 days. Window is how old a job
	// may be that is returned in place of a new one: an hour.
	Retention, Window time.Duration
	// Lease is how long the node answers for its jobs without renewing.
	Lease time.Duration
	// Backoff is the first wait before a start is tried again; MinIdle lets tests
	// use shorter idle times.
	Backoff, MinIdle time.Duration
}

// Jobs runs jobs. It is safe for concurrent use.
type Jobs struct {
	opts  Options
	store *store.Store
	keys  *keyring.Keyring
	log   *slog.Logger
	dir   string
	run   string // this run of the gate

	recent recent

	work sync.WaitGroup
	quit chan struct{} // closed when no more jobs are taken

	mu       sync.Mutex
	closing  bool
	live     map[string]*live
	running  map[string]int // by CLI; "" is all
	waiting  []*live
	breakers map[string]*breaker
	spare    *holder
	filling  bool
	until    time.Time // the lease must be renewed before, by this process's clock
	guard    *time.Timer
}

// Open takes over the node's jobs: it ends what an earlier run of the gate left
// running, says what became of its jobs, and takes the lease. Run must follow.
func Open(ctx context.Context, opts Options) (*Jobs, error) {
	opts.Retention = cmp.Or(opts.Retention, 30*24*time.Hour)
	opts.Window = cmp.Or(opts.Window, time.Hour)
	opts.Lease = cmp.Or(opts.Lease, 30*time.Second)
	opts.Backoff = cmp.Or(opts.Backoff, time.Second)
	opts.MinIdle = cmp.Or(opts.MinIdle, MinIdle)
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.Limits == nil {
		opts.Limits = func() Limits { return Limits{} }
	}
	if err := os.MkdirAll(opts.Dir, 0o700); err != nil {
		return nil, err
	}
	run, err := keyring.NewID("r_", opts.Keys.Random())
	if err != nil {
		return nil, err
	}
	j := &Jobs{opts: opts, store: opts.Store, keys: opts.Keys, log: opts.Log, dir: opts.Dir, run: run,
		quit: make(chan struct{}), live: map[string]*live{}, running: map[string]int{}, breakers: map[string]*breaker{}}
	if err := j.recover(ctx); err != nil {
		return nil, err
	}
	j.guard = time.AfterFunc(opts.Lease, func() {
		j.stopAll(reason{Failed, ExitFailure, "lease_lost", "the gate could not renew its hold on the job in time and ended it"})
	})
	if err := j.renew(ctx); err != nil {
		j.guard.Stop()
		return nil, err
	}
	return j, nil
}

// NewID makes the id of a job that is to be started, for those who must know
// it before.
func (j *Jobs) NewID() (string, error) { return keyring.NewID("job_", j.keys.Random()) }

// Run keeps the lease, hears what others want of this node's jobs, and drops
// what is too old, until the context ends. Then it ends all jobs and waits for
// the last of their processes.
func (j *Jobs) Run(ctx context.Context) error {
	defer j.close()
	lease, clean := time.NewTicker(j.opts.Lease/3), time.NewTicker(5*time.Minute)
	defer lease.Stop()
	defer clean.Stop()
	cancels := j.store.Subscribe(ctx, cancelTopic)
	standing := j.store.Subscribe(ctx, session.Topic)
	j.tidy(ctx)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-lease.C:
			j.tryRenew(ctx)
		case _, ok := <-cancels:
			if !ok {
				return nil
			}
			j.endWanted(ctx)
		case _, ok := <-standing:
			if !ok {
				return nil
			}
			j.endStopped(ctx)
		case <-clean.C:
			j.tidy(ctx)
		}
	}
}

// close ends everything this run of the gate has.
func (j *Jobs) close() {
	j.mu.Lock()
	j.closing = true
	close(j.quit)
	spare := j.spare
	j.spare = nil
	j.mu.Unlock()
	if spare != nil {
		spare.release()
	}
	j.stopAll(reason{Cancelled, ExitNone, "shutdown", "the gate was shut down"})
	j.work.Wait()
	j.guard.Stop()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	err := j.store.Write(ctx, func(tx *store.Tx) error {
		_, err := tx.Exec(`DELETE FROM job_lease WHERE run = $1`, j.run)
		return err
	})
	if err != nil {
		j.log.Warn("the lease on jobs was not given back; it ends by itself", "error", err)
	}
}

func (j *Jobs) stopAll(r reason) {
	for _, l := range j.all() {
		l.stop(r)
	}
}

func (j *Jobs) all() []*live {
	j.mu.Lock()
	defer j.mu.Unlock()
	list := make([]*live, 0, len(j.live))
	for _, l := range j.live {
		list = append(list, l)
	}
	return list
}

// Around returns the running job that a process belongs to, which is told by
// the processes it was started by.
func (j *Jobs) Around(chain []session.Process) (Job, bool) {
	for _, l := range j.all() {
		b := l.snapshot()
		if !b.process.IsZero() && slices.ContainsFunc(chain, b.process.Is) {
			return b, true
		}
	}
	return Job{}, false
}

func (j *Jobs) find(id string) *live {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.live[id]
}

// Get returns a job of the owner's.
func (j *Jobs) Get(ctx context.Context, owner call.Principal, id string) (Job, error) {
	var b Job
	err := j.store.Read(ctx, func(tx *store.Tx) (err error) {
		if b, err = j.read(tx, id, ""); err == nil && !sees(owner, &b) {
			b, err = Job{}, ErrNotFound
		}
		return err
	})
	return b, err
}

// Progress returns a job's events after one.
func (j *Jobs) Progress(ctx context.Context, owner call.Principal, id string, after int64) (list []Event, err error) {
	if _, err := j.Get(ctx, owner, id); err != nil {
		return nil, err
	}
	err = j.store.Read(ctx, func(tx *store.Tx) (err error) {
		list, err = j.events(tx, id, after)
		return err
	})
	return list, err
}

// Wait returns the job once it is over or has an event after the given one. It
// is woken up, it does not look. When the context ends first, it returns the
// job as it is with the context's error. Who may ask is the caller's matter.
func (j *Jobs) Wait(ctx context.Context, id string, after int64) (Job, error) {
	sub, stop := context.WithCancel(ctx)
	defer stop()
	changes := j.store.Subscribe(sub, topic(id))
	for {
		b, err := j.Get(context.WithoutCancel(ctx), Operator, id)
		if err != nil || b.State.Over() || b.Seq > after {
			return b, err
		}
		select {
		case <-ctx.Done():
			return b, context.Cause(ctx)
		case _, ok := <-changes:
			if !ok && ctx.Err() == nil {
				return b, store.ErrClosed
			}
		}
	}
}

// WaitOver is Wait for the end, whatever happens before.
func (j *Jobs) WaitOver(ctx context.Context, id string) (Job, error) {
	if l := j.find(id); l != nil { // then nothing has to be read to know that it runs
		select {
		case <-l.over:
		case <-ctx.Done():
		}
	}
	for after := int64(0); ; {
		b, err := j.Wait(ctx, id, after)
		if err != nil || b.State.Over() {
			return b, err
		}
		after = b.Seq
	}
}

// Outcome is WaitOver for those who need not wait for the record: it returns a
// job of this node as soon as its tree is dead and its result known. Should the
// gate end before that is on record, the record will say unknown.
func (j *Jobs) Outcome(ctx context.Context, id string) (Job, error) {
	if l := j.find(id); l != nil {
		select {
		case <-l.told:
			return l.snapshot(), nil
		case <-l.over:
		case <-ctx.Done():
		}
	}
	return j.WaitOver(ctx, id)
}

// Recorded returns when the ends that an owner may have been told of are on
// record, so that whoever reads then finds what it was told.
func (j *Jobs) Recorded(ctx context.Context, owner call.Principal) error {
	for _, l := range j.all() {
		b := l.snapshot()
		if !b.State.Over() || !sees(owner, &b) {
			continue
		}
		select {
		case <-l.over:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// Result returns a piece of the output.
func (j *Jobs) Result(ctx context.Context, owner call.Principal, id string, offset, most int64) (Page, error) {
	b, err := j.Get(ctx, owner, id)
	if err != nil {
		return Page{}, err
	}
	if offset < 0 || most <= 0 {
		return Page{}, errors.Join(ErrInvalid, errors.New("a page begins at 0 or later and has at least one byte"))
	}
	p := Page{Job: b}
	if b.Node != j.store.Node() {
		p.Elsewhere = b.Node
		return p, nil
	}
	var errOut, errErr error
	p.Stdout, errOut = j.readPart(id, "out", offset, most)
	p.Stderr, errErr = j.readPart(id, "err", offset, most)
	return p, errors.Join(errOut, errErr)
}

// List returns the owner's jobs, newest first, from the one after a job on.
func (j *Jobs) List(ctx context.Context, owner call.Principal, before string, limit int) (list []Job, err error) {
	err = j.store.Read(ctx, func(tx *store.Tx) error {
		asked, id := int64(1)<<62, ""
		if before != "" {
			b, err := j.read(tx, before, "")
			if err != nil {
				return err
			}
			asked, id = keyring.Micros(b.Asked), b.ID
		}
		args := []any{asked, id, limit}
		where := ``
		if owner.Agent != Operator.Agent {
			where, args = ` AND agent = $4`, append(args, owner.Agent)
		}
		list, err = store.All(tx, func(rows *store.Rows) (Job, error) { return j.scan(rows) },
			`SELECT `+columns+` FROM job WHERE (asked, id) < ($1, $2)`+where+` ORDER BY asked DESC, id DESC LIMIT CAST($3 AS BIGINT)`, args...)
		return err
	})
	return list, err
}
