//go:build unix

package gatetest

import "syscall"

// ownSession starts a process in a session of its own, with its standard input
// as the terminal if it has one.
func ownSession(terminal bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Setctty: terminal}
}
