//go:build !linux

package dispatch

import (
	"fmt"
	"hash"
	"io/fs"
)

// stamp hashes what changes with a file; jobs run on Linux only.
func stamp(h hash.Hash, info fs.FileInfo) {
	write(h, fmt.Sprint(info.Size(), info.ModTime().UnixNano()))
}
