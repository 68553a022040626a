package job

import (
	"io"

	"github.com/seed-3ebc6b8a/gatehouse/internal/session"
)

// marker is a variable that a job's tree inherits. With it the tree is found
// even if everything that held it is dead.
const marker = "GATEHOUSE_JOB"

// ending is how a process ended.
type ending struct {
	Code   int    // exit code, 128 and the signal's number for a signal
	Failed string // why it could not be started
	Lost   bool   // the supervisor went without a word
}

// tree is a process with all it starts. Nothing runs before start.
type tree interface {
	// process is who holds the tree, as long as it lives.
	process() session.Process
	start(id string, s *Spec) error
	stdin() io.WriteCloser
	stdout() io.ReadCloser
	stderr() io.ReadCloser
	// kill ends all of the tree; any goroutine may call it, more than once.
	kill()
	// wait returns when all of the tree is dead.
	wait() ending
	// release frees what is left, started or not.
	release()
}
