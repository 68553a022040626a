package daemon

import (
	"os"

	"golang.org/x/sys/unix"
)

// hide keeps other processes of the same user from reading the daemon's
// memory, attaching a debugger to it or finding keys in a core dump.
func hide() { _ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }

// posture says whether the gate can hold agents: only if it runs as a user of
// its own, whose files they cannot touch. A gate that runs as a person's own
// user can be gone around by whatever runs as that user.
func posture() string {
	if os.Getenv("GATEHOUSE_SERVICE_USER") == "" {
		return "advisory"
	}
	return "held"
}
