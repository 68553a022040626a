package store

import (
	"os"

	"golang.org/x/sys/unix"
)

// directIO opens a file past the page cache.
const directIO = unix.O_DIRECT

// dataSync makes what was written over a file durable. Its times can wait.
func dataSync(f *os.File) error {
	for {
		if err := unix.Fdatasync(int(f.Fd())); err != unix.EINTR {
			return err
		}
	}
}
