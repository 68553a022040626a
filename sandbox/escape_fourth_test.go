//go:build linux

package sandbox_test

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// fourthAttempts go through doors that stand beside others: the older way into
// the kernel from a program that need not take it, an ABI between the two, and a
// signal that is aimed at nobody.
func fourthAttempts() []attempt {
	list := []attempt{
		call("foreign calls", "32-bit calls of a 64-bit program", "int80wide"),
		call("signal", "to everybody", "everybody "+strconv.Itoa(escapeUser)).with(func(h *host) {
			if os.Getuid() == 0 {
				h.env["OWNER"] = strconv.Itoa(escapeUser)
			}
			startVictim(h, "resizable")
		}).judged(victimHurt),
	}
	// Kernels are seldom built with it.
	if sys(x32|unix.SYS_GETPID, 0, 0, 0, 0) == nil {
		list = append(list, call("foreign calls", "x32", "x32"))
	}
	return list
}
