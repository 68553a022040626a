//go:build unix

package storetest

import "syscall"

// attributes start a process as the user, in a group of its own.
func (u account) attributes() *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setpgid: true}
	if u.set {
		a.Credential = &syscall.Credential{Uid: u.uid, Gid: u.gid}
	}
	return a
}
