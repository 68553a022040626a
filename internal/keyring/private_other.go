//go:build !unix

package keyring

import (
	"fmt"
	"os"
)

// private can only tell what a thing is here: who may reach it is not in its
// mode, and is left to the directory it was put in.
func private(path string, dir bool) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if info.IsDir() != dir || (!dir && !info.Mode().IsRegular()) {
		return fmt.Errorf("%w: %s is not what it should be", ErrPermissions, path)
	}
	return nil
}
