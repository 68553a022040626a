package changes

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Shelf is a directory of the caller's where sealed changes wait for a person.
// Each lies under the first digits of its hash: whatever changes afterwards is
// not what its name says any more.
type Shelf struct{ Dir string }

// idLen is how many digits of the hash make a name.
const idLen = 16

// Begin makes a place for a run's changes. Keep or Drop ends it.
func (sh Shelf) Begin() (string, error) {
	if err := os.MkdirAll(sh.Dir, 0o700); err != nil {
		return "", err
	}
	return os.MkdirTemp(sh.Dir, "open-")
}

// Drop deletes a place that nothing was kept in.
func (sh Shelf) Drop(dir string) error {
	if filepath.Dir(dir) != filepath.Clean(sh.Dir) {
		return errors.New("changes: not on this shelf")
	}
	return remove(dir)
}

// Keep seals the layer of a run that has returned and puts it under its name.
// A layer without changes is deleted, and its Set is returned all the same.
func (sh Shelf) Keep(dir, root string, about About) (*Set, error) {
	s, err := Seal(root, dir, about)
	if err != nil {
		return nil, err
	}
	if len(s.Changes) == 0 {
		return s, remove(dir)
	}
	s.Layer, err = sh.name(dir, s.Hash)
	return s, err
}

// KeepClone does the same for a private clone.
func (sh Shelf) KeepClone(c *Clone) error {
	if err := c.seal(); err != nil {
		return err
	}
	if len(c.Refs) == 0 && c.Loose == 0 {
		return remove(c.Dir)
	}
	dir, err := sh.name(c.Dir, c.Hash)
	c.Dir = dir
	return err
}

func (sh Shelf) name(dir, hash string) (string, error) {
	to := filepath.Join(sh.Dir, hash[:idLen])
	return to, os.Rename(dir, to)
}

// Entry is one thing on the shelf: a Set, a Clone, or why it is neither.
type Entry struct {
	ID      string
	Set     *Set
	Clone   *Clone
	Problem string
}

// List reads everything on the shelf, in the order of its names.
func (sh Shelf) List() ([]Entry, error) {
	names, err := sh.names()
	var list []Entry
	for _, n := range names {
		e, err := sh.open(n)
		if err != nil {
			e = &Entry{ID: n, Problem: err.Error()}
		}
		list = append(list, *e)
	}
	return list, err
}

func (sh Shelf) names() ([]string, error) {
	entries, err := os.ReadDir(sh.Dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var names []string
	for _, e := range entries {
		if _, err := hex.DecodeString(e.Name()); err == nil && len(e.Name()) == idLen && e.IsDir() {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, err
}

// Open reads one of them by its name, or by the beginning of it if no other
// begins so, and refuses what is not as it was sealed.
func (sh Shelf) Open(id string) (*Entry, error) {
	dir, err := sh.find(id)
	if err != nil {
		return nil, err
	}
	return sh.open(filepath.Base(dir))
}

func (sh Shelf) find(id string) (string, error) {
	names, err := sh.names()
	if err != nil {
		return "", err
	}
	names = slices.DeleteFunc(names, func(n string) bool { return !strings.HasPrefix(n, id) })
	switch {
	case len(id) < 4 || len(names) == 0:
		return "", fmt.Errorf("no changes are kept under %q", id)
	case len(names) > 1:
		return "", fmt.Errorf("%q could be any of %s", id, strings.Join(names, ", "))
	}
	return filepath.Join(sh.Dir, names[0]), nil
}

func (sh Shelf) open(id string) (*Entry, error) {
	dir := filepath.Join(sh.Dir, id)
	e := &Entry{ID: id}
	var hash string
	if _, err := os.Lstat(filepath.Join(dir, cloneManifest)); err == nil {
		if e.Clone, err = openClone(dir); err != nil {
			return nil, err
		}
		hash = e.Clone.Hash
	} else {
		if e.Set, err = Open(dir); err != nil {
			return nil, err
		}
		hash = e.Set.Hash
	}
	if hash[:idLen] != id {
		return nil, fmt.Errorf("%w: %s", ErrChanged, id)
	}
	return e, nil
}

// Discard deletes one of them, whatever state it is in.
func (sh Shelf) Discard(id string) error {
	dir, err := sh.find(id)
	if err != nil {
		return err
	}
	return remove(dir)
}

// remove deletes a tree that a confined run has had its way with: it may have
// left directories without permissions behind.
func remove(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := errors.Join(os.Chmod(dir, 0o700), openUp(root, ".")); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

func openUp(root *os.Root, rel string) error {
	f, err := root.Open(rel)
	if err != nil {
		return err
	}
	entries, err := f.ReadDir(-1)
	_ = f.Close()
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		sub := filepath.Join(rel, e.Name())
		if err := errors.Join(root.Chmod(sub, 0o700), openUp(root, sub)); err != nil {
			return err
		}
	}
	return nil
}
