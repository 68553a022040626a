//go:build unix

package link

import (
	"os/exec"
	"syscall"
)

// group gives the process a group of its own, so that what it starts ends with
// it and a signal to the gate's terminal does not reach it.
func group(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // it may be gone
