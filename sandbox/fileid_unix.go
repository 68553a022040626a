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

// giveTo makes paths belong to the owner of another, which only root can do and
// only root needs to.
func giveTo(owner string, paths []string) error {
	fi, err := os.Stat(owner)
	if err != nil {
		return err
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok || os.Geteuid() != 0 {
		return nil
	}
	for _, p := range paths {
		if err := os.Lchown(p, int(st.Uid), int(st.Gid)); err != nil {
			return err
		}
	}
	return nil
}
