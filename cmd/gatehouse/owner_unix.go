//go:build unix

package main

import (
	"errors"
	"os"
	"syscall"
)

// ownerOf is the user whom a directory belongs to.
func ownerOf(dir string) (int, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return 0, err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, errors.New("this system has no owners of files")
	}
	return int(st.Uid), nil
}
