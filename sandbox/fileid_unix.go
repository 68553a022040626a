//go:build unix

package sandbox

import (
	"fmt"
	"os"
	"syscall"
)

// fileID names what a path leads to, without following a link.
func fileID(path string) string {
	fi, err := os.Lstat(path)
	if err != nil {
		return ""
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%d:%d", st.Dev, st.Ino)
}
