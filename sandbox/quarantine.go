package sandbox

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// baseline is what was protected when the run began. What exists is held by
// mounts; what did not exist is looked for afterwards and taken away, before
// the call returns and anyone else could trip over it.
type baseline struct {
	known map[string]finding
}

func newBaseline(p *plan) *baseline {
	b := &baseline{known: map[string]finding{}}
	for _, f := range p.sealed {
		b.known[f.path] = f
	}
	return b
}

// settle scans the writable roots once the tree is dead.
func (b *baseline) settle(p *plan) ([]Moved, error) {
	var moved []Moved
	var errs []error
	q := quarantine{dir: p.spec.Quarantine}
	for _, r := range p.roots {
		if !r.write || !r.dir || p.spec.Overlay.active() && r.path == p.overlayRoot() {
			continue
		}
		var found []finding
		if err := p.guard.in(r).scan(r.path, func(f finding) error {
			found = append(found, f)
			return nil
		}); err != nil {
			errs = append(errs, err)
			continue
		}
		for _, f := range found {
			old, known := b.known[f.path]
			if known && old.link == f.link && old.mode == f.mode && old.id == f.id || !known && inert(f) {
				continue
			}
			why := "a protected name appeared"
			if known {
				why = "a protected entry was replaced"
			}
			m, err := q.move(r.path, f, why)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			moved = append(moved, m)
			if known && old.link != "" {
				errs = append(errs, os.Symlink(old.link, f.path))
			}
		}
		errs = append(errs, b.restoreLinks(r.path))
	}
	return moved, errors.Join(errs...)
}

// restoreLinks puts back protected links that were removed: a link cannot be
// covered by a mount, only remembered.
func (b *baseline) restoreLinks(top string) error {
	for path, f := range b.known {
		if f.link == "" || !within(path, top) {
			continue
		}
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				return err
			}
			if err := os.Symlink(f.link, path); err != nil {
				return err
			}
		}
	}
	return nil
}

// quarantine keeps what was taken away, as plain data that runs nowhere.
type quarantine struct {
	dir string
	n   int
}

const maxKept = 16 << 20

// move copies an entry out and removes it, both through the root it was found
// in, so that a link planted meanwhile leads nowhere.
func (q *quarantine) move(top string, f finding, why string) (Moved, error) {
	if q.dir == "" {
		dir, err := os.MkdirTemp("", "gatehouse-quarantine-")
		if err != nil {
			return Moved{}, err
		}
		q.dir = dir
	}
	root, err := os.OpenRoot(top)
	if err != nil {
		return Moved{}, err
	}
	defer root.Close()
	rel, err := filepath.Rel(top, f.path)
	if err != nil {
		return Moved{}, err
	}
	q.n++
	keep := filepath.Join(q.dir, strings.ReplaceAll(strings.Trim(f.path, "/"), "/", "__"))
	if err := q.copy(root, rel, keep, 0); err != nil {
		keep = ""
	}
	if err := root.RemoveAll(rel); err != nil {
		return Moved{}, err
	}
	return Moved{Path: f.path, Kept: keep, Why: why}, nil
}

func (q *quarantine) copy(root *os.Root, rel, to string, depth int) error {
	fi, err := root.Lstat(rel)
	if err != nil || depth > 32 {
		return err
	}
	switch {
	case fi.IsDir():
		if err := os.MkdirAll(to, 0o700); err != nil {
			return err
		}
		d, err := root.Open(rel)
		if err != nil {
			return err
		}
		names, err := d.Readdirnames(1000)
		_ = d.Close()
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		for _, n := range names {
			if err := q.copy(root, filepath.Join(rel, n), filepath.Join(to, n), depth+1); err != nil {
				return err
			}
		}
		return nil
	case fi.Mode().IsRegular():
		return copyOut(root, rel, to)
	case fi.Mode()&fs.ModeSymlink != 0:
		target, err := root.Readlink(rel)
		if err != nil {
			return err
		}
		return os.WriteFile(to+".link", []byte(target), 0o600)
	}
	return nil
}

func copyOut(root *os.Root, rel, to string) error {
	src, err := root.Open(rel)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, io.LimitReader(src, maxKept))
	return errors.Join(err, dst.Close())
}
