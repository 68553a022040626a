package dispatch

import (
	"fmt"
	"hash"
	"io/fs"
	"syscall"
)

// stamp hashes what changes whenever a file does. Nobody can set a change time.
func stamp(h hash.Hash, info fs.FileInfo) {
	write(h, fmt.Sprint(info.Size(), info.ModTime().UnixNano()))
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		write(h, fmt.Sprint(st.Ino, st.Ctim.Nano()))
	}
}
