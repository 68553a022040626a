package changes

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// tree is a directory that is only ever walked downwards.
type tree struct{ f *os.File }

func openTree(dir string) (tree, error) {
	f, err := os.Open(dir)
	return tree{f}, err
}

func (t tree) close() { _ = t.f.Close() }

// at opens a path below the tree without following a single link.
func (t tree) at(rel string, flags int) (*os.File, error) {
	if flags&unix.O_PATH == 0 {
		flags |= unix.O_NONBLOCK // a pipe must not hold us up
	}
	fd, err := unix.Openat2(int(t.f.Fd()), rel, &unix.OpenHow{
		Flags:   uint64(flags | unix.O_CLOEXEC | unix.O_NOFOLLOW),
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: rel, Err: err}
	}
	return os.NewFile(uintptr(fd), rel), nil
}

// stat looks at a path itself; ok is false if nothing is there.
func (t tree) stat(rel string) (st unix.Stat_t, ok bool, err error) {
	dir, err := t.at(path.Dir(rel), unix.O_PATH|unix.O_DIRECTORY)
	if errors.Is(err, unix.ENOENT) {
		return st, false, nil
	}
	if err != nil {
		return st, false, err
	}
	defer dir.Close()
	err = unix.Fstatat(int(dir.Fd()), path.Base(rel), &st, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) {
		return st, false, nil
	}
	return st, err == nil, err
}

func (t tree) readlink(rel string) (string, error) {
	dir, err := t.at(path.Dir(rel), unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return "", err
	}
	defer dir.Close()
	buf := make([]byte, 4096)
	n, err := unix.Readlinkat(int(dir.Fd()), path.Base(rel), buf)
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}

func (t tree) hash(rel string) (string, error) {
	f, err := t.at(rel, unix.O_RDONLY)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// identity is what a base entry is bound to.
func (t tree) identity(rel string) (string, error) {
	st, ok, err := t.stat(rel)
	if err != nil || !ok {
		return "", err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		h, err := t.hash(rel)
		return "file:" + h, err
	case unix.S_IFDIR:
		return "dir", nil
	case unix.S_IFLNK:
		target, err := t.readlink(rel)
		return "link:" + target, err
	}
	return "other", nil
}

func contentOf(dir, rel string) ([]byte, error) {
	t, err := openTree(dir)
	if err != nil {
		return nil, err
	}
	defer t.close()
	f, err := t.at(rel, unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxDiff+1))
}

// read walks a layer.
func read(root, layer string) (*Set, error) {
	base, err := openTree(root)
	if err != nil {
		return nil, err
	}
	defer base.close()
	upper, err := openTree(filepath.Join(layer, "upper"))
	if err != nil {
		return nil, err
	}
	defer upper.close()
	var st unix.Stat_t
	if err := unix.Fstat(int(base.f.Fd()), &st); err != nil {
		return nil, err
	}
	s := &Set{Root: root, Layer: layer, RootID: fmt.Sprintf("%d:%d", st.Dev, st.Ino)}
	if err := s.walk(base, upper, "."); err != nil {
		return nil, err
	}
	for i := range s.Changes {
		judge(&s.Changes[i])
	}
	sortChanges(s.Changes)
	return s, nil
}

func (s *Set) walk(base, upper tree, rel string) error {
	dir, err := upper.at(rel, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	names, err := dir.Readdirnames(-1)
	opaque := isOpaque(dir)
	_ = dir.Close()
	if err != nil {
		return err
	}
	if opaque {
		if err := s.deleteRest(base, rel, names); err != nil {
			return err
		}
	}
	for _, n := range names {
		if err := s.entry(base, upper, path.Join(rel, n)); err != nil {
			return err
		}
	}
	return nil
}

func isOpaque(dir *os.File) bool {
	buf := make([]byte, 8)
	n, err := unix.Fgetxattr(int(dir.Fd()), "user.overlay.opaque", buf)
	return err == nil && n == 1 && buf[0] == 'y'
}

// deleteRest: an opaque directory hides what the base has under its name.
func (s *Set) deleteRest(base tree, rel string, kept []string) error {
	dir, err := base.at(rel, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
			return nil
		}
		return err
	}
	names, err := dir.Readdirnames(-1)
	_ = dir.Close()
	if err != nil {
		return err
	}
	have := map[string]bool{}
	for _, k := range kept {
		have[k] = true
	}
	for _, n := range names {
		if !have[n] {
			if err := s.deleted(base, path.Join(rel, n)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Set) deleted(base tree, rel string) error {
	id, err := base.identity(rel)
	if err != nil {
		return err
	}
	if id == "" {
		return nil
	}
	kind, _, _ := strings.Cut(id, ":")
	c := Change{Path: rel, Kind: Deleted, Type: kind, Base: id}
	if kind == "other" {
		c.Refused = "a special file"
	}
	if kind == "dir" {
		if err := s.deleteRest(base, rel, nil); err != nil {
			return err
		}
	}
	s.Changes = append(s.Changes, c)
	return nil
}

func (s *Set) entry(base, upper tree, rel string) error {
	st, ok, err := upper.stat(rel)
	if err != nil || !ok {
		return errors.Join(err, notThere(ok, rel))
	}
	if st.Mode&unix.S_IFMT == unix.S_IFCHR && st.Rdev == 0 {
		return s.deleted(base, rel)
	}
	c := Change{Path: rel, Kind: Added, Size: st.Size, Mode: st.Mode & 0o777}
	if c.Base, err = base.identity(rel); err != nil {
		// A link or a file stands on the way in the base: what the overlay
		// shows there is not what a write through the root would reach.
		c.Refused = "no directory on the way in the root"
	}
	if c.Base != "" {
		c.Kind = Modified
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		c.Type, c.Size = "dir", 0
		if kind, _, _ := strings.Cut(c.Base, ":"); kind != "" && kind != "dir" {
			c.Refused = "replaces a " + kind + " by a directory"
		}
		if c.Base != "dir" {
			s.Changes = append(s.Changes, c)
		}
		return s.walk(base, upper, rel)
	case unix.S_IFREG:
		c.Type = "file"
		if c.Hash, err = upper.hash(rel); err != nil {
			return err
		}
		if st.Mode&(unix.S_ISUID|unix.S_ISGID) != 0 {
			c.Refused = "set-user-id or set-group-id"
		}
		if st.Nlink > 1 {
			c.Refused = "a hard link"
		}
	case unix.S_IFLNK:
		c.Type = "link"
		if c.Link, err = upper.readlink(rel); err != nil {
			return err
		}
	default:
		c.Type, c.Refused = "other", "a special file"
	}
	if kind, _, _ := strings.Cut(c.Base, ":"); c.Refused == "" && (kind == "dir" || kind == "other") {
		c.Refused = "replaces a " + kind + " by a " + c.Type
	}
	s.Changes = append(s.Changes, c)
	return nil
}

func notThere(ok bool, rel string) error {
	if ok {
		return nil
	}
	return fmt.Errorf("%w: %s vanished", ErrChanged, rel)
}

// Accept applies the chosen changes to the root and returns their paths. All
// are checked before the first is applied; each is checked again as it is.
func (s *Set) Accept(a Acceptance) ([]string, error) {
	chosen, err := s.choose(a)
	if err != nil {
		return nil, err
	}
	base, err := openTree(s.Root)
	if err != nil {
		return nil, err
	}
	defer base.close()
	var st unix.Stat_t
	if err := unix.Fstat(int(base.f.Fd()), &st); err != nil {
		return nil, err
	}
	if fmt.Sprintf("%d:%d", st.Dev, st.Ino) != s.RootID {
		return nil, fmt.Errorf("%w: the root is another directory", ErrChanged)
	}
	upper, err := openTree(filepath.Join(s.Layer, "upper"))
	if err != nil {
		return nil, err
	}
	defer upper.close()
	for _, c := range chosen {
		if err := unchanged(base, c); err != nil {
			return nil, err
		}
	}
	var done []string
	for _, c := range inOrder(chosen) {
		if err := apply(base, upper, c); err != nil {
			return done, fmt.Errorf("%s: %w", plain(c.Path), err)
		}
		done = append(done, c.Path)
	}
	return done, nil
}

// inOrder puts directories before what goes into them, and deletions last,
// deepest first.
func inOrder(list []Change) []Change {
	var out []Change
	for _, c := range list {
		if c.Kind != Deleted {
			out = append(out, c)
		}
	}
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].Kind == Deleted {
			out = append(out, list[i])
		}
	}
	return out
}

func unchanged(base tree, c Change) error {
	now, err := base.identity(c.Path)
	if err != nil {
		return err
	}
	if now != c.Base {
		return fmt.Errorf("%w: %s in the root", ErrChanged, plain(c.Path))
	}
	return nil
}

func apply(base, upper tree, c Change) error {
	parent, err := parentOf(base, c.Path)
	if err != nil {
		return err
	}
	defer parent.Close()
	name := path.Base(c.Path)
	if err := unchanged(base, c); err != nil {
		return err
	}
	switch {
	case c.Kind == Deleted && c.Type == "dir":
		return unix.Unlinkat(int(parent.Fd()), name, unix.AT_REMOVEDIR)
	case c.Kind == Deleted:
		return unix.Unlinkat(int(parent.Fd()), name, 0)
	case c.Type == "dir":
		return unix.Mkdirat(int(parent.Fd()), name, c.Mode)
	}
	tmp := ".gatehouse-" + random()
	if c.Type == "link" {
		err = unix.Symlinkat(c.Link, int(parent.Fd()), tmp)
	} else {
		err = copyFile(upper, parent, tmp, c)
	}
	if err == nil {
		err = unix.Renameat(int(parent.Fd()), tmp, int(parent.Fd()), name)
	}
	if err != nil {
		_ = unix.Unlinkat(int(parent.Fd()), tmp, 0)
	}
	return err
}

// parentOf opens the directory of a path, making what is missing on the way.
func parentOf(base tree, rel string) (*os.File, error) {
	dir := path.Dir(rel)
	f, err := base.at(dir, unix.O_RDONLY|unix.O_DIRECTORY)
	if !errors.Is(err, unix.ENOENT) {
		return f, err
	}
	up, err := parentOf(base, dir)
	if err != nil {
		return nil, err
	}
	defer up.Close()
	if err := unix.Mkdirat(int(up.Fd()), path.Base(dir), 0o755); err != nil && !errors.Is(err, unix.EEXIST) {
		return nil, err
	}
	return base.at(dir, unix.O_RDONLY|unix.O_DIRECTORY)
}

// copyFile writes the new content beside its destination and compares it with
// what was sealed before it takes the name.
func copyFile(upper tree, parent *os.File, tmp string, c Change) error {
	src, err := upper.at(c.Path, unix.O_RDONLY)
	if err != nil {
		return err
	}
	defer src.Close()
	fd, err := unix.Openat(int(parent.Fd()), tmp, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	dst := os.NewFile(uintptr(fd), tmp)
	defer dst.Close()
	h := sha256.New()
	if _, err := io.Copy(io.MultiWriter(dst, h), src); err != nil {
		return err
	}
	if hex.EncodeToString(h.Sum(nil)) != c.Hash {
		return fmt.Errorf("%w: the layer", ErrChanged)
	}
	if err := unix.Fchmod(fd, c.Mode&0o777); err != nil {
		return err
	}
	return dst.Sync()
}

func random() string {
	var b [8]byte
	_, _ = rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
