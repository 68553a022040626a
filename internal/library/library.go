package library

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/element"
	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
)

// File is an element's file as it is on disk.
type File struct {
	Type string
	// Name is what the element is called; for a file that cannot be read it is
	// the file's.
	Name string
	// Path is relative to the library.
	Path   string
	Digest call.Digest
	// Doc is nil if the file cannot be read; Broken says why.
	Doc    *element.Document
	Broken string
}

// ID names the element as type/name, in its canonical form.
func (f *File) ID() string { return ID(f.Type, f.Name) }

// ID is the canonical id of an element.
func ID(elementType, name string) string { return elementType + "/" + element.FileName(name) }

// Library is a directory of elements. It is safe for concurrent use.
type Library struct {
	root *os.Root
	turn sync.Mutex // held while a file is written

	mu    sync.Mutex
	known map[string]seen // by path
}

// seen is a file that was read before.
type seen struct {
	size int64
	when int64
	file *File
}

// Folder is the directory of a type.
func Folder(elementType string) string {
	if elementType == "memory" {
		return "memories"
	}
	return elementType + "s"
}

// Open opens a library and makes its folders.
func Open(dir string) (*Library, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	for _, t := range call.ElementTypes() {
		if err := root.Mkdir(Folder(t), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, errors.Join(err, root.Close())
		}
	}
	return &Library{root: root, known: make(map[string]seen)}, nil
}

// Close lets go of the directory.
func (l *Library) Close() error { return l.root.Close() }

// maxFiles bounds a folder; what is beyond is an error, not left out.
const maxFiles = 10_000

// List returns the elements of a type, of all for "", by type and name. It
// may answer from what it has read before.
func (l *Library) List(elementType string) ([]*File, error) {
	types := []string{elementType}
	if elementType == "" {
		types = call.ElementTypes()
	}
	var out []*File
	for _, t := range types {
		paths, err := l.paths(t)
		if err != nil {
			return nil, err
		}
		var files []*File
		for _, p := range paths {
			files = append(files, l.remembered(t, p))
		}
		slices.SortFunc(files, func(a, b *File) int {
			return strings.Compare(element.FileName(a.Name)+"\x00"+a.Path, element.FileName(b.Name)+"\x00"+b.Path)
		})
		out = append(out, doubled(files)...)
	}
	return out, nil
}

// doubled marks files that claim the same name.
func doubled(files []*File) []*File {
	for i := 1; i < len(files); i++ {
		if a, b := files[i-1], files[i]; a.ID() == b.ID() {
			why := fmt.Sprintf("two files claim this name: %s and %s", a.Path, b.Path)
			x, y := *a, *b
			x.Broken, x.Doc, y.Broken, y.Doc = why, nil, why, nil
			files[i-1], files[i] = &x, &y
		}
	}
	return files
}

// paths lists the files of a type, two folders deep.
func (l *Library) paths(elementType string) ([]string, error) {
	var out []string
	dirs := []string{Folder(elementType)}
	for depth := 0; depth < 2 && len(dirs) > 0; depth++ {
		var below []string
		for _, dir := range dirs {
			entries, err := fs.ReadDir(l.root.FS(), dir)
			if err != nil {
				return nil, err
			}
			for _, e := range entries {
				switch name := e.Name(); {
				case strings.HasPrefix(name, "."):
				case e.IsDir():
					below = append(below, path.Join(dir, name))
				case formatOf(name) != "":
					out = append(out, path.Join(dir, name))
				}
				if len(out)+len(below) > maxFiles {
					return nil, fmt.Errorf("%s holds more than %d files", Folder(elementType), maxFiles)
				}
			}
		}
		dirs = below
	}
	return out, nil
}

// formatOf returns the ending of an element's file, "" if it is none.
func formatOf(name string) string {
	switch ext := path.Ext(name); ext {
	case ".md", ".yaml", ".yml":
		return ext
	}
	return ""
}

// remembered returns a file, read anew if it looks changed. What is taken into
// force is always read anew.
func (l *Library) remembered(elementType, name string) *File {
	info, err := l.root.Lstat(name)
	if err != nil {
		return broken(elementType, name, err)
	}
	l.mu.Lock()
	old, ok := l.known[name]
	l.mu.Unlock()
	if ok && old.size == info.Size() && old.when == info.ModTime().UnixNano() {
		return old.file
	}
	f := l.read(elementType, name)
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.known) > maxFiles {
		clear(l.known)
	}
	l.known[name] = seen{info.Size(), info.ModTime().UnixNano(), f}
	return f
}

// read reads a file.
func (l *Library) read(elementType, name string) *File {
	data, err := l.bytes(name)
	if err != nil {
		return broken(elementType, name, err)
	}
	f := &File{Type: elementType, Name: baseName(name), Path: name, Digest: sha256.Sum256(data)}
	format := element.Markdown
	if formatOf(name) != ".md" {
		format = element.YAML
	}
	if f.Doc, err = element.Parse(elementType, f.Name, format, data); err != nil {
		f.Broken = err.Error()
		return f
	}
	f.Name = f.Doc.Name
	return f
}

// broken is a file that cannot be read.
func broken(elementType, name string, err error) *File {
	return &File{Type: elementType, Name: baseName(name), Path: name, Broken: err.Error()}
}

func baseName(name string) string { return strings.TrimSuffix(path.Base(name), path.Ext(name)) }

// bytes reads a regular file of a size that is allowed.
func (l *Library) bytes(name string) ([]byte, error) {
	if info, err := l.root.Lstat(name); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", name)
	}
	f, err := l.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, element.MaxFile+1))
	if err == nil && len(data) > element.MaxFile {
		err = fmt.Errorf("%s is larger than %d bytes", name, element.MaxFile)
	}
	return data, err
}

// NotFoundError says that there is no such element, and what comes near.
type NotFoundError struct{ Type, Name, Near string }

// Error says it in words.
func (e *NotFoundError) Error() string {
	text := fmt.Sprintf("there is no %s %q", e.Type, e.Name)
	if e.Near != "" {
		text += fmt.Sprintf("; did you mean %q?", e.Near)
	}
	return text
}

// Public returns the words, which may be shown.
func (e *NotFoundError) Public() string { return e.Error() }

// Get reads an element from disk.
func (l *Library) Get(elementType, name string) (*File, error) {
	files, err := l.List(elementType)
	if err != nil {
		return nil, err
	}
	names := make(map[string]string) // by file name, which is how names are compared
	for _, f := range files {
		if f.ID() != ID(elementType, name) {
			names[element.FileName(f.Name)] = f.Name
			continue
		}
		if f.Broken != "" && f.Doc == nil && strings.HasPrefix(f.Broken, "two files") {
			return f, nil
		}
		if again := l.read(elementType, f.Path); again.Doc == nil || again.ID() == f.ID() {
			return again, nil
		}
	}
	near, _ := match.Nearest(element.FileName(name), slices.Sorted(maps.Keys(names)))
	return nil, &NotFoundError{elementType, name, names[near]}
}
