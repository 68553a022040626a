//go:build unix

package observe

import (
	"fmt"
	"io/fs"
	"syscall"
)

// inode names a file by device and inode, which a swapped directory changes.
func inode(info fs.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "?"
	}
	return fmt.Sprintf("%d:%d", st.Dev, st.Ino)
}
