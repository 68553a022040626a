package restore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// errMoved is a place that is a link, or became something else while it was
// opened.
var errMoved = errors.New("there is a link on the way, or it was swapped meanwhile")

// openDir opens a directory by its absolute path without following a link:
// name by name, each compared with what was seen there. What is swapped
// afterwards does not matter, because the directory itself is held open.
func openDir(abs string) (*os.Root, error) {
	if !filepath.IsAbs(abs) {
		return nil, fmt.Errorf("%s is not an absolute path", abs)
	}
	top := filepath.VolumeName(abs) + string(filepath.Separator)
	dir, err := os.OpenRoot(top)
	if err != nil {
		return nil, err
	}
	rest := strings.Trim(strings.TrimPrefix(filepath.Clean(abs), top), string(filepath.Separator))
	for name := range strings.SplitSeq(rest, string(filepath.Separator)) {
		if name == "" {
			continue
		}
		next, err := enter(dir, name)
		_ = dir.Close() // nothing was written through it
		if err != nil {
			return nil, err
		}
		dir = next
	}
	return dir, nil
}

// enter opens a directory in another, if it is one.
func enter(dir *os.Root, name string) (*os.Root, error) {
	before, err := dir.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !before.IsDir() {
		if before.Mode()&fs.ModeSymlink != 0 {
			return nil, fmt.Errorf("%s: %w", name, errMoved)
		}
		return nil, fmt.Errorf("%s: %w", name, syscall.ENOTDIR)
	}
	next, err := dir.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	after, err := next.Stat(".")
	if err == nil && !os.SameFile(before, after) {
		err = fmt.Errorf("%s: %w", name, errMoved)
	}
	if err != nil {
		return nil, errors.Join(err, next.Close())
	}
	return next, nil
}

// openFile opens a regular file in a directory, if it is the one that was
// seen.
func openFile(dir *os.Root, name string, seen fs.FileInfo) (*os.File, error) {
	// A pipe in its place would wait for someone to write to it.
	f, err := dir.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && (!info.Mode().IsRegular() || !os.SameFile(seen, info)) {
		err = fmt.Errorf("%s: %w", name, errMoved)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// parent opens the directory that a path lies in.
func parent(abs string) (dir *os.Root, name string, err error) {
	dir, err = openDir(filepath.Dir(abs))
	return dir, filepath.Base(abs), err
}

// absent says whether an error means that there is nothing.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}
