package risk_test

import (
	"syscall"
	"time"
	"unsafe"
)

// threadTime is the processor time of this thread, which other work on the
// machine hardly changes. The caller has locked the thread.
func threadTime() time.Duration {
	const threadClock = 3 // CLOCK_THREAD_CPUTIME_ID, which package syscall does not name
	var ts syscall.Timespec
	if _, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, threadClock, uintptr(unsafe.Pointer(&ts)), 0); errno != 0 {
		return time.Duration(time.Now().UnixNano())
	}
	return time.Duration(ts.Nano())
}
