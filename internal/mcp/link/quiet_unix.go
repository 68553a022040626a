//go:build unix

package link

import (
	"errors"
	"net"
	"syscall"
)

// poolWorks says that it can be told whether a connection is still good without reading from it.
const poolWorks = true

// quiet says that the other side has neither closed a connection nor sent anything: what it sends before it is asked is
// the answer to nothing.
func quiet(c *net.TCPConn) bool {
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	ok := false
	err = raw.Read(func(fd uintptr) bool {
		var one [1]byte
		_, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		ok = errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EWOULDBLOCK)
		return true
	})
	return ok && err == nil
}
