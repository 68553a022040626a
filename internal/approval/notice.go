package approval

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
)

// Notice tells a person that a call waits, and where to look at it. It is
// never an approval by itself, and holds no argument of the call beyond the
// redacted line its maker puts in Summary.
type Notice struct {
	Request   string    `json:"request"`
	Operation string    `json:"operation"`
	Agent     string    `json:"agent"`
	Summary   string    `json:"summary,omitzero"`
	Link      string    `json:"link"`
	Expires   time.Time `json:"expires"`
	// Challenge and Code are set where the notice is about a code: whoever is
	// shown it may tell it to the agent.
	Challenge string `json:"challenge,omitzero"`
	Code      string `json:"code,omitzero"`
}

// maxLine keeps a notice a notice.
const maxLine = 200

// line makes agents' words fit to be shown by other programs: one line,
// nothing invisible, not too long.
func line(s string) string {
	s = match.Visible(s)
	if len(s) <= maxLine {
		return s
	}
	cut := maxLine
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

func (n *Notice) clean() {
	n.Operation, n.Agent, n.Summary = line(n.Operation), line(n.Agent), line(n.Summary)
}

func (n *Notice) title() string { return fmt.Sprintf("%s asks: %s", n.Agent, n.Operation) }

func (n *Notice) body() string {
	body := fmt.Sprintf("Waits until %s.", n.Expires.UTC().Format("15:04 MST"))
	if n.Code != "" {
		body = fmt.Sprintf("The code is %s %s. Tell it to nobody but the agent you want to let go on. %s", n.Code[:3], n.Code[3:], body)
	}
	if n.Summary != "" {
		body = n.Summary + "\n" + body
	}
	return body
}

// Sender is one way to reach a person.
type Sender interface {
	// Name is shown in reports.
	Name() string
	// Reachable says why nothing can be sent, nil if it may be tried.
	Reachable() error
	// Send delivers a notice. An error that is a [PermanentError] is not tried
	// again.
	Send(ctx context.Context, n Notice) error
}

// A Shower is a sender that goes on showing what it was sent: it is told when that is over.
type Shower interface {
	// Showing lists the challenges that are shown.
	Showing() []string
	// Close ends the showing of one.
	Close(challenge string)
}

// PermanentError says that trying again would not help.
type PermanentError struct{ Err error }

// Error returns the cause.
func (e *PermanentError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *PermanentError) Unwrap() error { return e.Err }

// NotifierOptions say how notices are sent. A zero field takes its default.
type NotifierOptions struct {
	Senders []Sender
	// Channels learns what was delivered; nil is valid.
	Channels *Channels
	Log      *slog.Logger
	// Queue is how many notices wait per sender; more are dropped, and said so.
	Queue int
	// Tries is how often one is sent, Backoff the first pause between tries,
	// which doubles, and Timeout the time one try may take.
	Tries            int
	Backoff, Timeout time.Duration
}

// Notifier sends notices. Its workers live in Run.
type Notifier struct {
	opts   NotifierOptions
	queues []chan job

	mu     sync.Mutex
	status []SenderStatus
}

type job struct {
	notice   Notice
	delivery *Delivery
}

// SenderStatus is how a sender is doing.
type SenderStatus struct {
	Name      string    `json:"name"`
	Delivered int       `json:"delivered"`
	Failed    int       `json:"failed"`
	Dropped   int       `json:"dropped"`
	LastOK    time.Time `json:"last_ok,omitzero"`
	// LastError is the last failure since LastOK, "" if none.
	LastError string `json:"last_error,omitzero"`
}

// NewNotifier makes a notifier; nothing is sent before Run.
func NewNotifier(opts NotifierOptions) *Notifier {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.Channels == nil {
		opts.Channels = NewChannels()
	}
	if opts.Queue <= 0 {
		opts.Queue = 64
	}
	if opts.Tries <= 0 {
		opts.Tries = 4
	}
	if opts.Backoff <= 0 {
		opts.Backoff = 500 * time.Millisecond
	}
	if opts.Timeout <= 0 {
		opts.Timeout = 5 * time.Second
	}
	n := &Notifier{opts: opts}
	for _, s := range opts.Senders {
		n.queues = append(n.queues, make(chan job, opts.Queue))
		n.status = append(n.status, SenderStatus{Name: s.Name()})
	}
	return n
}

// Run sends what is queued until ctx ends. Each sender has a worker of its
// own, so that one that hangs holds up no other.
func (n *Notifier) Run(ctx context.Context) error {
	var workers sync.WaitGroup
	for i := range n.opts.Senders {
		workers.Go(func() { n.work(ctx, i) })
	}
	workers.Wait()
	n.CloseSettled(func(string) bool { return true })
	return nil
}

// CloseSettled ends the showing of challenges that are settled.
func (n *Notifier) CloseSettled(settled func(challenge string) bool) {
	for _, s := range n.opts.Senders {
		shower, ok := s.(Shower)
		if !ok {
			continue
		}
		for _, challenge := range shower.Showing() {
			if settled(challenge) {
				shower.Close(challenge)
			}
		}
	}
}

func (n *Notifier) work(ctx context.Context, i int) {
	for {
		select {
		case <-ctx.Done():
			n.abandon(i)
			return
		case j := <-n.queues[i]:
			err := n.deliver(ctx, n.opts.Senders[i], j.notice)
			n.report(i, j.notice, err)
			j.delivery.report(err == nil)
		}
	}
}

// abandon tells those who wait that nothing more will be sent.
func (n *Notifier) abandon(i int) {
	for {
		select {
		case j := <-n.queues[i]:
			j.delivery.report(false)
		default:
			return
		}
	}
}

// deliver tries until it works, cannot work, or the request is over.
func (n *Notifier) deliver(ctx context.Context, s Sender, notice Notice) error {
	if err := s.Reachable(); err != nil {
		return err
	}
	pause := n.opts.Backoff
	for try := 1; ; try++ {
		attempt, cancel := context.WithTimeout(ctx, n.opts.Timeout)
		err := s.Send(attempt, notice)
		cancel()
		var permanent *PermanentError
		if err == nil || errors.As(err, &permanent) || try >= n.opts.Tries {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
		pause *= 2
		if time.Now().After(notice.Expires) {
			return fmt.Errorf("the request is over: %w", err)
		}
	}
}

func (n *Notifier) report(i int, notice Notice, err error) {
	n.mu.Lock()
	st := &n.status[i]
	if err == nil {
		st.Delivered++
		st.LastOK, st.LastError = time.Now().UTC(), ""
	} else {
		st.Failed++
		st.LastError = err.Error()
	}
	name := st.Name
	n.mu.Unlock()
	if err != nil {
		n.opts.Log.Warn("notice not delivered", "channel", name, "request", notice.Request, "error", err)
		return
	}
	n.opts.Channels.Delivered(notice.Request, notice.Expires)
}

// Notify queues a notice for every sender and returns at once. What becomes of
// it is in the delivery.
func (n *Notifier) Notify(notice Notice) *Delivery {
	notice.clean()
	d := newDelivery(len(n.queues))
	for i, q := range n.queues {
		select {
		case q <- job{notice, d}:
		default:
			n.mu.Lock()
			n.status[i].Dropped++
			n.mu.Unlock()
			n.opts.Log.Warn("notice dropped: the queue is full", "channel", n.opts.Senders[i].Name(), "request", notice.Request)
			d.report(false)
		}
	}
	return d
}

// Status says how each sender is doing.
func (n *Notifier) Status() []SenderStatus {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]SenderStatus(nil), n.status...)
}

// Delivery is one notice on its way over all senders.
type Delivery struct {
	mu   sync.Mutex
	left int
	ok   bool
	done chan struct{} // closed at the first success, or when all have failed
}

func newDelivery(senders int) *Delivery {
	d := &Delivery{left: senders, done: make(chan struct{})}
	if senders == 0 {
		close(d.done)
	}
	return d
}

func (d *Delivery) report(ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left--
	if d.ok || (!ok && d.left > 0) {
		return
	}
	d.ok = ok
	close(d.done)
}

// Wait returns true as soon as one sender has delivered the notice, and false
// when all have failed or ctx ends.
func (d *Delivery) Wait(ctx context.Context) bool {
	select {
	case <-d.done:
	case <-ctx.Done():
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ok
}
