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

// ownedByRoot says whether a file belongs to the system.
func ownedByRoot(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Uid == 0
}
