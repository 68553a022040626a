package observe

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// ErrNoFile says that something is not a file that can be read to its end.
var ErrNoFile = errors.New("not a regular file of a sensible size")

// ReadFile reads a file that an agent may have made. A pipe would hold the
// gate up, a device has no end, and a huge file would take its memory: what is
// not a regular file, or has more bytes than the limit, is refused.
func ReadFile(path string, limit int64) ([]byte, error) {
	// Without O_NONBLOCK opening a pipe waits for someone to write to it.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > limit {
		return nil, fmt.Errorf("%s: %w", path, ErrNoFile)
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("%s: %w", path, ErrNoFile)
	}
	return data, err
}

// ReadOwnFile is ReadFile for a file that must be there itself: a link in its
// place would have the gate read, and complain about, what its maker cannot.
func ReadOwnFile(path string, limit int64) ([]byte, error) {
	before, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !before.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: %w", path, ErrNoFile)
	}
	data, err := ReadFile(path, limit)
	if err != nil {
		return nil, err
	}
	// Who swaps it for a link in between has it looked at twice.
	after, err := os.Stat(path)
	if err != nil || !os.SameFile(before, after) {
		return nil, fmt.Errorf("%s: %w", path, ErrNoFile)
	}
	return data, nil
}
