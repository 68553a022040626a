package library

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path"

	"github.com/seed-3ebc6b8a/gatehouse/internal/element"
)

// ExistsError says that the name is taken.
type ExistsError struct{ Type, Name string }

// Error says it in words.
func (e *ExistsError) Error() string { return fmt.Sprintf("there is a %s %q already", e.Type, e.Name) }

// Public returns the words, which may be shown.
func (e *ExistsError) Public() string { return e.Error() }

// Create writes a new element. It fails if the name is taken.
func (l *Library) Create(d *element.Document) error {
	l.turn.Lock()
	defer l.turn.Unlock()
	var missing *NotFoundError
	if _, err := l.Get(d.Type, d.Name); err == nil {
		return &ExistsError{d.Type, d.Name}
	} else if !errors.As(err, &missing) {
		return err
	}
	data, err := d.Encode()
	if err != nil {
		return err
	}
	return l.write(data, Place(d), true)
}

// Place is the path of the file of a new element.
func Place(d *element.Document) string {
	ext := ".md"
	if d.Format == element.YAML {
		ext = ".yaml"
	}
	return path.Join(Folder(d.Type), element.FileName(d.Name)+ext)
}

// ErrChanged says that a file is not the one that was read any more.
var ErrChanged = errors.New("the file has changed meanwhile")

// Replace writes an element in place of the file that it was read from, if
// that is still there as it was read. Writing the same twice is no change.
func (l *Library) Replace(f *File, d *element.Document) error {
	l.turn.Lock()
	defer l.turn.Unlock()
	data, err := d.Encode()
	if err != nil {
		return err
	}
	old, err := l.bytes(f.Path)
	if err != nil {
		return err
	}
	switch {
	case bytes.Equal(old, data):
		return nil
	case sha256.Sum256(old) != f.Digest:
		return ErrChanged
	}
	return l.write(data, f.Path, false)
}

// Text reads what is at a path, nil if nothing is.
func (l *Library) Text(name string) ([]byte, error) {
	data, err := l.bytes(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if data == nil {
		data = []byte{}
	}
	return data, err
}

// Restore puts one text of a file in place of another; nil is no file. It says
// whether the file has the text now: one that has neither is left alone.
func (l *Library) Restore(name string, from, to []byte) (done bool, err error) {
	l.turn.Lock()
	defer l.turn.Unlock()
	now, err := l.Text(name)
	if err != nil {
		return false, err
	}
	is := func(want []byte) bool { return (now == nil) == (want == nil) && bytes.Equal(now, want) }
	switch {
	case is(to):
		return true, nil
	case !is(from):
		return false, nil
	case to == nil:
		return true, errors.Join(l.root.Remove(name), l.syncDir(path.Dir(name)))
	}
	return true, l.write(to, name, now == nil)
}

// Remove takes an element's file away.
func (l *Library) Remove(f *File) error {
	if err := l.root.Remove(f.Path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return l.syncDir(path.Dir(f.Path))
}

// write makes a file durable under another name and puts it in place whole.
func (l *Library) write(data []byte, name string, fresh bool) (err error) {
	if len(data) > element.MaxFile {
		return fmt.Errorf("the element would have %d bytes, %d are allowed", len(data), element.MaxFile)
	}
	tmp := path.Join(path.Dir(name), "."+rand.Text()+".tmp")
	if err := l.writeNew(tmp, data); err != nil {
		return errors.Join(err, l.root.Remove(tmp))
	}
	if fresh {
		// A link fails where the name is taken; a rename would replace it.
		err = errors.Join(l.root.Link(tmp, name), l.root.Remove(tmp))
	} else {
		err = l.root.Rename(tmp, name)
	}
	if err != nil {
		return err
	}
	return l.syncDir(path.Dir(name))
}

func (l *Library) writeNew(name string, data []byte) error {
	f, err := l.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}

// syncDir makes a change of a directory durable.
func (l *Library) syncDir(dir string) error {
	d, err := l.root.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
