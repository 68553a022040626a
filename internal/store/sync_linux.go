package store

import (
	"os"

	"golang.org/x/sys/unix"
)

// dataSync makes what was written over a file durable. Its times can wait.
func dataSync(f *os.File) error {
	for {
		if err := unix.Fdatasync(int(f.Fd())); err != unix.EINTR {
			return err
		}
	}
}
