//go:build unix

package content_test

import (
	"syscall"
	"time"
)

// busy returns the processor time this process has used. Unlike a clock it does not run while
// other programs have the processor.
func busy() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
