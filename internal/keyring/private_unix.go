//go:build unix

package keyring

import (
	"fmt"
	"os"
	"syscall"
)

// private refuses a directory or file that is not what it should be, belongs
// to someone else or can be reached by others.
func private(path string, dir bool) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	switch {
	case dir && !info.IsDir():
		return fmt.Errorf("%w: %s is not a directory", ErrPermissions, path)
	case !dir && !info.Mode().IsRegular():
		return fmt.Errorf("%w: %s is not a regular file", ErrPermissions, path)
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("%w: %s has mode %#o; take away the rights of group and others", ErrPermissions, path, info.Mode().Perm())
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("%w: %s belongs to another user", ErrPermissions, path)
	}
	return nil
}
