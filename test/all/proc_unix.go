//go:build unix

package main

import (
	"context"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// ownGroup puts the child into a process group, so that an interrupt reaches
// the test binaries and servers below it and not only the go command.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
}

// endGroup ends what the child left behind. The group is gone in the usual
// case, and the error says only that.
func endGroup(cmd *exec.Cmd) {
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
}

// giveWay lowers the child's priority. That it cannot be lowered changes
// nothing but the time the other steps take.
func giveWay(cmd *exec.Cmd) {
	_ = syscall.Setpriority(syscall.PRIO_PGRP, cmd.Process.Pid, 10)
}

// watchParent calls stop when the parent is gone: go run does not pass a
// SIGTERM on, and tests that nobody waits for must not go on.
func watchParent(ctx context.Context, stop func()) {
	parent := os.Getppid()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if os.Getppid() != parent {
				stop()
				return
			}
		}
	}
}
