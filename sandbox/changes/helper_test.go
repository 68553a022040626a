//go:build linux

package changes_test

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// links counts the names of a file.
func links(fi os.FileInfo) uint64 { return uint64(fi.Sys().(*syscall.Stat_t).Nlink) }

// rel writes a path as place.write takes it.
func rel(p place, path string) string {
	r, err := filepath.Rel(p.dir, path)
	if err != nil {
		panic(err)
	}
	return r
}

func unhex(t *testing.T, s string) string {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
