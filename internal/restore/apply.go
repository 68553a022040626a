package restore

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/diff"
)

// State is how a path differs from what was kept of it.
type State string

// The states.
const (
	Same    State = "same"
	Differs State = "differs" // there is something else
	Missing State = "missing" // there is nothing any more
	Added   State = "added"   // there was nothing
)

// Change is what putting a point back would do to one path.
type Change struct {
	Path  string `json:"path"`
	State State  `json:"state"`
	Kind  Kind   `json:"kind"`
	// Newer says that what is there was changed after the batch was over.
	Newer bool `json:"newer,omitzero"`
	// Diff leads from what is there to what was kept.
	Diff string `json:"diff,omitzero"`
	// Problem says why it cannot be put back.
	Problem string `json:"problem,omitzero"`
}

// Plan is what putting a point back would do now.
type Plan struct {
	Changes []Change `json:"changes"`
	// Digest identifies what is there now, so that what was looked at is what
	// is overwritten.
	Digest string `json:"digest"`
}

// maxDiff is the largest file that is shown as a diff.
const maxDiff = 256 << 10

// Plan compares a point with what is there. Paths that are the same are left
// out.
func (s *Store) Plan(id string) (*Point, *Plan, error) {
	p, err := s.Point(id)
	if err != nil {
		return nil, nil, err
	}
	plan := &Plan{}
	h := sha256.New()
	for i := range p.Entries {
		c, now := s.compare(p, &p.Entries[i])
		fmt.Fprintf(h, "%q %q\n", c.Path, now)
		if c.State != Same {
			plan.Changes = append(plan.Changes, c)
		}
	}
	plan.Digest = hex.EncodeToString(h.Sum(nil))
	return p, plan, nil
}

// compare looks at one path; now says what is there.
func (s *Store) compare(p *Point, e *Entry) (c Change, now string) {
	c = Change{Path: e.Path, Kind: e.Kind, State: Differs}
	dir, name, err := parent(e.Path)
	if err == nil {
		defer dir.Close()
		var info fs.FileInfo
		if info, err = dir.Lstat(name); err == nil {
			c.Newer = info.ModTime().After(p.Ended) && !info.IsDir()
			return s.compareWith(c, e, dir, name, info)
		}
	}
	if !absent(err) {
		c.Problem = err.Error()
		return c, "unreadable"
	}
	c.State = Missing
	if e.Kind == None {
		c.State = Same
	}
	return c, "nothing"
}

func (s *Store) compareWith(c Change, e *Entry, dir *os.Root, name string, info fs.FileInfo) (_ Change, now string) {
	switch {
	case info.IsDir():
		now = "directory"
		switch e.Kind {
		case Dir:
			c.State = Same
		case None:
			c.State, c.Problem = Added, "a directory is left as it is: remove it yourself if nothing in it is needed"
		default:
			c.Problem = "a directory is in its place"
		}
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := dir.Readlink(name)
		now = "link " + target
		if err != nil {
			c.Problem = err.Error()
		}
		if e.Kind == Link && target == e.Target {
			c.State = Same
		}
	case info.Mode().IsRegular():
		return s.compareFile(c, e, dir, name, info)
	default:
		now, c.Problem = "special", "something that is no file is in its place"
	}
	if e.Kind == None && c.State == Differs {
		c.State = Added
	}
	return c, now
}

func (s *Store) compareFile(c Change, e *Entry, dir *os.Root, name string, info fs.FileInfo) (_ Change, now string) {
	if e.Kind == None {
		c.State = Added
	}
	f, err := openFile(dir, name, info)
	if err != nil {
		c.Problem = err.Error()
		return c, "unreadable"
	}
	defer f.Close()
	h := sha256.New()
	var text bytes.Buffer
	if _, err := io.Copy(io.MultiWriter(h, &capped{&text}), f); err != nil {
		c.Problem = err.Error()
		return c, "unreadable"
	}
	sum := hex.EncodeToString(h.Sum(nil))
	now = fmt.Sprintf("file %s %o", sum, info.Mode().Perm())
	if e.Kind == File && sum == e.Hash && uint32(info.Mode().Perm()) == e.Mode {
		c.State = Same
		return c, now
	}
	c.Diff = s.diff(e, text.Bytes())
	return c, now
}

// capped keeps no more than a diff needs.
type capped struct{ b *bytes.Buffer }

func (c *capped) Write(p []byte) (int, error) {
	if room := maxDiff + 1 - c.b.Len(); room > 0 {
		c.b.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

// diff shows what putting a file back changes, if it is text of a sensible
// size.
func (s *Store) diff(e *Entry, now []byte) string {
	var kept []byte
	if e.Kind == File {
		var err error
		if kept, err = os.ReadFile(s.blob(e.Hash)); err != nil {
			return ""
		}
	}
	if max(len(kept), len(now)) > maxDiff || !utf8.Valid(kept) || !utf8.Valid(now) {
		return ""
	}
	return string(diff.Diff("now", now, "kept", kept))
}

func (s *Store) blob(hash string) string { return filepath.Join(s.opts.Dir, "blobs", hash) }

// Apply is what a person asks for.
type Apply struct {
	// Digest is that of the plan that was looked at.
	Digest string
	// Paths are what to put back; none is everything.
	Paths []string
	// Newer says to overwrite what was changed after the batch as well.
	Newer bool
	// By is the approver.
	By string
}

// RefusedError says why nothing was put back.
type RefusedError struct{ Reason string }

// Error returns the reason.
func (e *RefusedError) Error() string { return e.Reason }

// Public returns the reason, which may be shown.
func (e *RefusedError) Public() string { return e.Reason }

// HTTPStatus returns the status that fits.
func (e *RefusedError) HTTPStatus() int { return 409 }

// Apply puts a point back and returns what was done, path by path. What is
// there now is kept in a point of its own first, so that this can be undone
// too.
func (s *Store) Apply(id string, a Apply) (undo string, done []Change, err error) {
	p, plan, err := s.Plan(id)
	if err != nil {
		return "", nil, err
	}
	if a.Digest != plan.Digest {
		return "", nil, &RefusedError{"something has changed since it was looked at: look again"}
	}
	changes, err := chosen(plan.Changes, &a)
	if err != nil {
		return "", nil, err
	}
	sub := Subject{By: a.By}
	for _, c := range changes {
		sub.Paths = append(sub.Paths, c.Path)
	}
	undo, notKept, err := s.Keep(sub)
	if err != nil {
		return "", nil, err
	}
	if len(notKept) > 0 {
		return "", nil, &RefusedError{"what is there now could not be kept, so nothing was overwritten: " + strings.Join(notKept, "; ")}
	}
	for _, c := range changes {
		i := slices.IndexFunc(p.Entries, func(e Entry) bool { return e.Path == c.Path })
		if c.Problem == "" {
			if err := s.put(&p.Entries[i]); err != nil {
				c.Problem = err.Error()
			}
		}
		done = append(done, c)
	}
	return undo, done, nil
}

// chosen picks the changes that were asked for. Newer work is not overwritten
// by accident.
func chosen(all []Change, a *Apply) (out []Change, err error) {
	var newer []string
	for _, c := range all {
		if len(a.Paths) > 0 && !slices.Contains(a.Paths, c.Path) {
			continue
		}
		if c.Newer && !a.Newer && c.State != Missing {
			newer = append(newer, c.Path)
		}
		out = append(out, c)
	}
	if len(newer) > 0 {
		return nil, &RefusedError{"changed after the batch was over, and would be overwritten: " + strings.Join(newer, ", ") + "; say that newer changes may go, or choose the paths"}
	}
	if len(out) == 0 {
		return nil, &RefusedError{"there is nothing to put back: everything is as it was kept"}
	}
	return out, nil
}

// put brings one path to what was kept of it.
func (s *Store) put(e *Entry) error {
	if e.Kind == Dir {
		dir, err := makeDir(e.Path, fs.FileMode(e.Mode).Perm())
		if err != nil {
			return err
		}
		return dir.Close()
	}
	if e.Kind == None {
		return remove(e.Path)
	}
	dir, err := makeDir(filepath.Dir(e.Path), 0o755)
	if err != nil {
		return err
	}
	defer dir.Close()
	name := filepath.Base(e.Path)
	tmp := fmt.Sprintf(".gatehouse-restore-%d", time.Now().UnixNano())
	if e.Kind == Link {
		err = dir.Symlink(e.Target, tmp)
	} else {
		err = s.putFile(dir, tmp, e)
	}
	if err == nil {
		err = dir.Rename(tmp, name)
	}
	if err != nil {
		return errors.Join(err, ignoreAbsent(dir.Remove(tmp)))
	}
	return nil
}

// putFile writes the kept content under a new name in a directory that is held
// open.
func (s *Store) putFile(dir *os.Root, name string, e *Entry) error {
	content, err := os.Open(s.blob(e.Hash))
	if err != nil {
		return err
	}
	defer content.Close()
	f, err := dir.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	h := sha256.New()
	_, err = io.Copy(io.MultiWriter(f, h), content)
	if err == nil && hex.EncodeToString(h.Sum(nil)) != e.Hash {
		err = errors.New("the copy is damaged")
	}
	return errors.Join(err, f.Chmod(fs.FileMode(e.Mode).Perm()), f.Sync(), f.Close())
}

// makeDir opens a directory, making what is missing of it, without following
// a link.
func makeDir(abs string, mode fs.FileMode) (*os.Root, error) {
	dir, err := openDir(abs)
	if !errors.Is(err, fs.ErrNotExist) {
		return dir, err
	}
	up, err := makeDir(filepath.Dir(abs), 0o755)
	if err != nil {
		return nil, err
	}
	defer up.Close()
	if err := up.Mkdir(filepath.Base(abs), mode); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return enter(up, filepath.Base(abs))
}

// remove takes away a file or link where there was nothing. A directory stays:
// what is in it was not looked at.
func remove(abs string) error {
	dir, name, err := parent(abs)
	if err != nil {
		return ignoreAbsent(err)
	}
	defer dir.Close()
	info, err := dir.Lstat(name)
	if err != nil {
		return ignoreAbsent(err)
	}
	if info.IsDir() {
		return errors.New("a directory is left as it is")
	}
	return ignoreAbsent(dir.Remove(name))
}

func ignoreAbsent(err error) error {
	if absent(err) {
		return nil
	}
	return err
}
