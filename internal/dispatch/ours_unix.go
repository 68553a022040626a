//go:build unix

package dispatch

import (
	"io/fs"
	"os"
	"syscall"
)

// ours says whether a file belongs to the gate's user.
func ours(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}
