//go:build unix && !linux

package sandbox

import (
	"os"
	"syscall"
)

// ownGroup starts a process in a session of its own, which endGroup ends with
// everything in it.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

func endGroup(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) } // it may have ended
