package sandbox

import "time"

// Result is what a run did and what held it.
type Result struct {
	Backend    Backend
	Guarantees Guarantee // achieved and proven for this very run
	Waived     Guarantee // needed, but given up by Spec.Without
	Passed     []Attempt // back-ends that were tried before this one

	ExitCode int    // the command's; 128 plus the signal if it was killed
	Ended    Ending // why it ended
	StartErr string // set when the sandbox stood but the program did not start

	Stdout, Stderr                   []byte
	StdoutTruncated, StderrTruncated bool

	Refusals    []Refusal
	Dropped     int      // refusals beyond the first thousand, counted only
	Quarantined []Moved  // protected entries that appeared during the run
	Stripped    []string // environment variables that were withheld by name
	Usage       Usage
}

// Ending says why a run ended.
type Ending string

// The endings.
const (
	EndExit      Ending = "exit"      // by itself
	EndWall      Ending = "wall"      // wall clock limit
	EndIdle      Ending = "idle"      // no output for too long
	EndCancelled Ending = "cancelled" // the caller's context
	EndKilled    Ending = "killed"    // Process.Kill
)

// RefusalKind says who refused.
type RefusalKind string

// The kinds. RefusedPath is reported where the kernel tells; where it does
// not there is no entry, and none is guessed from output.
const (
	RefusedHost    RefusalKind = "host"
	RefusedSyscall RefusalKind = "syscall"
	RefusedPath    RefusalKind = "path"
	RefusedLimit   RefusalKind = "limit"
)

// Refusal is one thing the command was not allowed, as told by the proxy or
// the kernel. Unknown parts say "unknown".
type Refusal struct {
	Kind    RefusalKind
	Subject string // host:port, syscall name, path or limit
	Program string // the name of the process that tried, as it calls itself
	Reason  string
	Count   int
}

// Moved is an entry that was taken out of a writable root.
type Moved struct {
	Path, Kept, Why string
}

// Usage is what the whole tree consumed.
type Usage struct {
	Wall, User, System time.Duration
	MaxRSS             int64 // bytes; of the largest process
	PeakMemory         int64 // bytes; of the tree, where a control group tells
	OOMKills           int64
}
