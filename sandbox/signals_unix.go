//go:build unix

package sandbox

import (
	"os"
	"syscall"
)

// passedOn are the signals that a command gets from whoever started it, resized
// what a terminal sends when its size changes.
var (
	passedOn = []os.Signal{syscall.SIGHUP, syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2}
	resized  = []os.Signal{syscall.SIGWINCH}
)
