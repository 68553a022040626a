package audit

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

// SequencerOptions say how the log is sequenced and signed. Only Keys is needed.
type SequencerOptions struct {
	Keys  *Keys
	Sinks []Sink
	// Every and Interval say when a checkpoint is due: after so many records, and after so long if there were any.
	Every    int64
	Interval time.Duration
	// Gather is how long to wait after a record for others, so that they are sequenced together.
	Gather time.Duration
	// PublishTimeout bounds one publication.
	PublishTimeout time.Duration
	// Logger gets what nobody is there to be told; nil discards it.
	Logger *slog.Logger
}

func (o SequencerOptions) withDefaults() SequencerOptions {
	o.Every = cmp.Or(o.Every, 1000)
	o.Interval = cmp.Or(o.Interval, time.Minute)
	o.Gather = cmp.Or(o.Gather, 100*time.Millisecond)
	o.PublishTimeout = cmp.Or(o.PublishTimeout, 10*time.Second)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// Sequencer gives records their indexes, builds the tree and signs checkpoints. Every node runs one; they take turns.
type Sequencer struct {
	mu     sync.Mutex
	tail   *tail // as this node last saw it; nil before the first step
	signed int64 // the size of the newest checkpoint this node knows
	// upTo is how many of each node's records are in the tree, where only this one writes any; nil if that is not known.
	upTo map[int64]int64

	log    *Log
	opts   SequencerOptions
	outbox chan Checkpoint // the newest checkpoint that waits to be published
}

// NewSequencer prepares a sequencer for the log. Its methods Step and Checkpoint can be called without Run.
func NewSequencer(l *Log, opts SequencerOptions) *Sequencer {
	return &Sequencer{log: l, opts: opts.withDefaults(), outbox: make(chan Checkpoint, 1)}
}

// Run sequences records soon after they are committed and signs checkpoints when they are due, until ctx ends; then it
// takes in what is left and signs it. Failures are logged and tried again: the log's order can wait, decisions cannot.
func (q *Sequencer) Run(ctx context.Context) error {
	var publisher sync.WaitGroup
	done := make(chan struct{})
	publisher.Go(func() { q.publishAll(done) })
	defer publisher.Wait()
	defer close(done)

	wake := q.log.store.Subscribe(ctx, Topic)
	due := time.NewTicker(q.opts.Interval)
	defer due.Stop()
	if c, err := q.log.Latest(ctx); err == nil {
		q.mu.Lock()
		q.signed = c.Size
		q.mu.Unlock()
		q.publish(c) // a crash may have come between signing and publishing
	}
	for timeUp := false; ; timeUp = false {
		q.round(ctx, timeUp)
		select {
		case <-ctx.Done():
			return q.finish(ctx)
		case <-due.C:
			timeUp = true
		case _, open := <-wake:
			if !open && ctx.Err() == nil {
				return nil // the store was closed first
			}
			q.gather(ctx)
		}
		for len(wake) > 0 {
			<-wake
		}
	}
}

// gather lets a burst of records arrive, so that they share one step.
func (q *Sequencer) gather(ctx context.Context) {
	t := time.NewTimer(q.opts.Gather)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// round takes in everything that waits, and signs it if a checkpoint is due.
func (q *Sequencer) round(ctx context.Context, timeUp bool) {
	for {
		n, err := q.Step(ctx)
		if err != nil {
			q.complain(ctx, "audit: records could not be sequenced", err)
			return
		}
		if n < stepSize {
			break
		}
	}
	q.mu.Lock()
	grown := q.tail.head.size - q.signed
	q.mu.Unlock()
	if grown >= q.opts.Every || timeUp && grown > 0 {
		if _, err := q.Checkpoint(ctx); err != nil {
			q.complain(ctx, "audit: no checkpoint could be signed", err)
		}
	}
}

// finish runs after ctx has ended, within a limit of its own.
func (q *Sequencer) finish(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), q.opts.PublishTimeout)
	defer cancel()
	q.round(ctx, true)
	return nil
}

func (q *Sequencer) complain(ctx context.Context, what string, err error) {
	if ctx.Err() == nil || errors.Is(err, ErrTampered) {
		q.opts.Logger.Error(what, "error", err)
	}
}

// publish leaves the checkpoint for the publisher; a newer one takes the place of one that still waits.
func (q *Sequencer) publish(c Checkpoint) {
	for {
		select {
		case q.outbox <- c:
			return
		default:
		}
		select {
		case <-q.outbox:
		default:
		}
	}
}

// publishAll hands checkpoints to the sinks, apart from sequencing: a sink may be slow or away.
func (q *Sequencer) publishAll(done <-chan struct{}) {
	for {
		select {
		case c := <-q.outbox:
			q.publishOne(c)
		case <-done:
			select {
			case c := <-q.outbox:
				q.publishOne(c)
			default:
			}
			return
		}
	}
}

func (q *Sequencer) publishOne(c Checkpoint) {
	var all sync.WaitGroup
	for _, sink := range q.opts.Sinks {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), q.opts.PublishTimeout)
			defer cancel()
			if err := sink.Publish(ctx, c); err != nil {
				q.opts.Logger.Error("audit: a checkpoint could not be published", "size", c.Size, "error", err)
			}
		})
	}
	all.Wait()
}
