package gatetest

import "syscall"

// ownSession has nothing to say here: there are no sessions of processes.
func ownSession(bool) *syscall.SysProcAttr { return nil }
