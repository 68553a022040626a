package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Lock claims a data directory for this process until release is called or the process ends. If another process
// holds it, the error wraps [ErrInUse] and names the holder's process id.
func Lock(dir string) (release func() error, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	held, err := lockFile(f)
	if err == nil && !held {
		err = fmt.Errorf("%w: %s belongs to process %s", ErrInUse, dir, holder(f))
	}
	if err == nil {
		err = writePID(f)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	// The file stays: removing it would let two processes lock two files of the same name.
	return f.Close, nil
}

func writePID(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

// holder reads the process id; between the lock and the write of its holder it is not there yet.
func holder(f *os.File) string {
	text, err := io.ReadAll(io.LimitReader(f, 32))
	pid, convErr := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || convErr != nil {
		return "unknown"
	}
	return strconv.Itoa(pid)
}
