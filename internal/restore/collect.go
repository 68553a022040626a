package restore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Kind is what was at a path.
type Kind string

// The kinds. None is a path where nothing was.
const (
	File Kind = "file"
	Dir  Kind = "dir"
	Link Kind = "link"
	None Kind = "none"
)

// Entry is one path as it was.
type Entry struct {
	Path string `json:"path"`
	Kind Kind   `json:"kind"`
	Mode uint32 `json:"mode,omitzero"`
	Size int64  `json:"size,omitzero"`
	// Hash names the content of a file.
	Hash string `json:"hash,omitzero"`
	// Target is where a link leads.
	Target string `json:"target,omitzero"`
}

// errLimit is a path with too much in it.
var errLimit = errors.New("too large")

// collector lists what is at and below paths. Without a keep function it only
// counts.
type collector struct {
	limits Limits
	bytes  int64
	keep   func(f *os.File) (hash string, size int64, err error)

	entries []Entry
}

// add lists one path with all below it, or says why it cannot be kept. What
// was listed of a path that fails is forgotten.
func (c *collector) add(path string) (notKept string, err error) {
	entries, bytes := len(c.entries), c.bytes
	err = c.at(path)
	var own *ownError
	if err == nil || errors.As(err, &own) {
		return "", err
	}
	c.entries, c.bytes = c.entries[:entries], bytes
	switch {
	case errors.Is(err, errLimit):
		return fmt.Sprintf("%s: too large (a restore point holds %d files and %s)", path, c.limits.Files, size(c.limits.Bytes)), nil
	case errors.Is(err, fs.ErrPermission):
		return path + ": the gate may not read it", nil
	case errors.Is(err, errMoved):
		return path + ": " + errMoved.Error(), nil
	}
	return path + ": it cannot be read", nil
}

// ownError is a failure of the store itself, and not of what is to be kept.
type ownError struct{ cause error }

func (e *ownError) Error() string { return "the restore point cannot be written: " + e.cause.Error() }

// Unwrap returns the cause.
func (e *ownError) Unwrap() error { return e.cause }

func (c *collector) at(path string) error {
	dir, name, err := parent(path)
	if absent(err) {
		return c.entry(Entry{Path: path, Kind: None})
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	return c.in(dir, name, path)
}

func (c *collector) entry(e Entry) error {
	if len(c.entries) >= c.limits.Files {
		return errLimit
	}
	c.entries = append(c.entries, e)
	return nil
}

// in lists one name in a directory that is held open.
func (c *collector) in(dir *os.Root, name, path string) error {
	info, err := dir.Lstat(name)
	if absent(err) {
		return c.entry(Entry{Path: path, Kind: None})
	}
	if err != nil {
		return err
	}
	e := Entry{Path: path, Mode: uint32(info.Mode().Perm())}
	switch {
	case info.IsDir():
		return c.tree(dir, name, path, e)
	case info.Mode()&fs.ModeSymlink != 0:
		e.Kind, e.Mode = Link, 0
		if e.Target, err = dir.Readlink(name); err != nil {
			return err
		}
	case info.Mode().IsRegular():
		e.Kind, e.Size = File, info.Size()
		if c.bytes += e.Size; c.bytes > c.limits.Bytes {
			return errLimit
		}
		if c.keep != nil {
			if e.Hash, e.Size, err = c.file(dir, name, info); err != nil {
				return err
			}
		}
	default:
		return fmt.Errorf("%s is neither a file nor a directory", path)
	}
	return c.entry(e)
}

func (c *collector) file(dir *os.Root, name string, info fs.FileInfo) (hash string, size int64, err error) {
	f, err := openFile(dir, name, info)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	return c.keep(f)
}

// tree lists a directory and what is in it.
func (c *collector) tree(dir *os.Root, name, path string, e Entry) error {
	e.Kind = Dir
	if err := c.entry(e); err != nil {
		return err
	}
	sub, err := enter(dir, name)
	if err != nil {
		return err
	}
	defer sub.Close()
	f, err := sub.Open(".")
	if err != nil {
		return err
	}
	// One more than fits, to tell a directory that does not.
	names, err := f.Readdirnames(c.limits.Files + 1)
	if err := errors.Join(ignoreEOF(err), f.Close()); err != nil {
		return err
	}
	slices.Sort(names)
	for _, n := range names {
		if err := c.in(sub, n, filepath.Join(path, n)); err != nil {
			return err
		}
	}
	return nil
}

// size writes a number of bytes for people.
func size(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d bytes", n)
}
