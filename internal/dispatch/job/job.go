package job

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/session"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
	"github.com/seed-3ebc6b8a/gatehouse/sandbox"
)

// Spec is a process to run.
type Spec struct {
	// ID is from [Jobs.NewID], or made at the start if empty.
	ID string
	// CLI names the provider: limits and the breaker go by it.
	CLI string
	// CorrelationID joins the job to its approval, its tool calls and its
	// flight record.
	CorrelationID string
	// RequestKey is the de-duplication key. With Reuse, a job of the same owner
	// and key that is young enough is returned instead of a new one.
	RequestKey string
	Reuse      bool
	// Approval is the id of the decision that let it run.
	Approval string
	// Owner may see it.
	Owner call.Principal

	Path string
	Args []string // without the program's name
	Env  []string
	Dir  string
	// Stdin is written and closed, where Drive is nil.
	Stdin []byte
	// Drive speaks with the process: an in-run channel. What it writes to log is
	// the job's standard output. Its error fails the job.
	Drive func(ctx context.Context, in io.WriteCloser, out io.Reader, log io.Writer) error
	// Listens says that Drive only passes on what the process says: how the
	// process ends is how the job does.
	Listens bool
	// Idle is how long the process may say nothing: 10 minutes if 0, else 30 s
	// to an hour. See [Hold] for waits that do not count.
	Idle time.Duration
	// Wall bounds the whole run; 0 does not.
	Wall time.Duration
	// Parse makes the stored result from the standard output; nil stores none.
	Parse func(stdout []byte) any
	// Sandbox confines the process; its command, directory, streams and
	// environment are taken from here. Nil: not confined.
	Sandbox *sandbox.Spec
	// Entering runs in the transaction that makes the job durable, for what is to
	// be on record with it or not at all; it may run more than once.
	Entering func(*store.Tx) error
	// After runs when nothing of it runs any more, before the outcome is recorded;
	// not if Start fails.
	After func()
	// Over is told how it ended, once that is on record; not if Start fails.
	Over func(Job)
}

// The bounds of Spec.Idle.
const (
	DefaultIdle = 10 * time.Minute
	MinIdle     = 30 * time.Second
	MaxIdle     = time.Hour
)

// CheckIdle refuses an idle time-out outside its bounds; 0 is the default.
func CheckIdle(d time.Duration) error {
	if d != 0 && (d < MinIdle || d > MaxIdle) {
		return fmt.Errorf("%w: idleTimeoutMs is %d to %d", ErrInvalid, MinIdle.Milliseconds(), MaxIdle.Milliseconds())
	}
	return nil
}

func (s *Spec) verify(minIdle time.Duration) error {
	switch {
	case s.CLI == "" || s.Owner.Agent == "" || s.Owner.Agent == Operator.Agent:
		return fmt.Errorf("%w: a job has a CLI and an owner", ErrInvalid)
	case !filepath.IsAbs(s.Path) || !filepath.IsAbs(s.Dir):
		return fmt.Errorf("%w: program and directory of a job are absolute paths", ErrInvalid)
	case s.Drive != nil && s.Stdin != nil:
		return fmt.Errorf("%w: a driven process has no other standard input", ErrInvalid)
	}
	if minIdle == MinIdle {
		return CheckIdle(s.Idle)
	}
	return nil
}

// State is where a job stands.
type State string

// The states. The last five are final.
const (
	Queued    State = "queued"
	Running   State = "running"
	Completed State = "completed" // exit code 0
	Failed    State = "failed"
	Cancelled State = "cancelled"
	Expired   State = "expired" // it waited too long, or the gate ended; nothing ran
	Unknown   State = "unknown" // it had started, and nobody saw its end
)

// Over says whether the state is final.
func (s State) Over() bool { return s != Queued && s != Running }

// Exit codes beyond the program's own.
const (
	ExitNone     = -1  // no process has ended
	ExitFailure  = 1   // it could not be started, or driven
	ExitQueue    = 75  // it waited too long for its turn; may be tried again
	ExitWall     = 124 // its time was over
	ExitIdle     = 125 // it said nothing for too long; never tried again
	ExitOverflow = 126 // it said too much
	ExitNotFound = 127
)

// Job is what is known about a run.
type Job struct {
	ID            string         `json:"id"`
	CLI           string         `json:"cli"`
	CorrelationID string         `json:"correlationId"`
	RequestKey    string         `json:"-"`
	Approval      string         `json:"approvalId,omitzero"`
	Owner         call.Principal `json:"owner"`
	State         State          `json:"status"`
	ExitCode      int            `json:"exitCode"`
	Error         string         `json:"error,omitzero"`
	// Category says what kind of failure: spawn_error, idle_timeout, timeout,
	// output_overflow, saturated, cli_error, channel_error, cancelled, stopped,
	// shutdown, lease_lost, node_lost.
	Category string `json:"errorCategory,omitzero"`
	// Retries counts starts that failed before the start record.
	Retries int       `json:"retryCount"`
	Node    string    `json:"node"`
	Asked   time.Time `json:"queuedAt"`
	Started time.Time `json:"startedAt,omitzero"`
	Ended   time.Time `json:"finishedAt,omitzero"`
	Expires time.Time `json:"expiresAt,omitzero"`
	// Seq is the number of the last progress event.
	Seq      int64 `json:"lastSeq"`
	Stdout   int64 `json:"stdoutBytes"`
	Stderr   int64 `json:"stderrBytes"`
	Confined bool  `json:"confined,omitzero"`
	// Result is what Spec.Parse made of the output, redacted.
	Result jsontext.Value `json:"result,omitzero"`
	// Deduplicated says that this job was there before it was asked for, and
	// Age how old it was.
	Deduplicated bool          `json:"deduplicated,omitzero"`
	Age          time.Duration `json:"-"`

	run     string // the run of the gate it belongs to
	process session.Process
	cancel  bool // somebody wants it to end
	sealed  []byte
	result  []byte // sealed
}

// Event is one step of a job's progress. Its words are ours, never the CLI's.
type Event struct {
	Seq   int64     `json:"seq"`
	Time  time.Time `json:"at"`
	Phase string    `json:"phase"` // queued, starting, thinking, tool, writing, completed, failed
	Kind  string    `json:"kind"`  // lifecycle, output, tool, terminal
	Text  string    `json:"message"`
}

// Part is a piece of one output stream. Offsets are bytes; a piece never ends
// within a character.
type Part struct {
	Text   string `json:"text"`
	Offset int64  `json:"offset"`
	Next   int64  `json:"next"`
	Total  int64  `json:"total"`
}

// Page is a piece of a job's output, the same offset for both streams.
type Page struct {
	Job    Job  `json:"job"`
	Stdout Part `json:"stdout"`
	Stderr Part `json:"stderr"`
	// Elsewhere names the node that has the output, if it is not this one.
	Elsewhere string `json:"elsewhere,omitzero"`
}

// Operator sees every job. No agent can have the name.
var Operator = call.Principal{Agent: "*"}

// What can be wrong with a job.
var (
	// ErrNotFound says that the asker has no such job.
	ErrNotFound = errors.New("there is no such job of yours")
	// ErrInvalid refuses a spec that cannot be run.
	ErrInvalid = errors.New("invalid")
	// ErrSaturated refuses a job because too many wait already.
	ErrSaturated = errors.New("too many jobs are running and waiting: try again later")
	// ErrOpen refuses a job of a CLI that keeps failing to start.
	ErrOpen = errors.New("the CLI failed to start several times in a row and is left alone for a minute")
	// ErrStopped refuses a job whose owner is stopped.
	ErrStopped = errors.New("the agent is stopped: nothing is started for it")
	// ErrForged says that a row was changed by something else than the gate.
	ErrForged = errors.New("a job's row does not bear the gate's signature: the database was edited")
	// ErrClosing refuses a job while the gate shuts down.
	ErrClosing = errors.New("the gate is shutting down")
	// ErrAlive says that processes of a job could not be ended.
	ErrAlive = errors.New("processes of the job could not be ended")
)
