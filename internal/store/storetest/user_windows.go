package storetest

import "syscall"

// attributes has nothing to say here: the tests' server is started on Unix.
func (u account) attributes() *syscall.SysProcAttr { return nil }
