package gitobj

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1" // git's own name for an object, not a protection of ours
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Hash is git's name for an object.
type Hash [sha1.Size]byte

// String returns the name in hexadecimal.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// IsZero reports whether h names nothing.
func (h Hash) IsZero() bool { return h == Hash{} }

// ParseHash reads a name of forty hexadecimal digits.
func ParseHash(s string) (h Hash, err error) {
	if len(s) != 2*len(h) {
		return h, fmt.Errorf("%w: a name of %d digits", ErrFormat, len(s))
	}
	if _, err := hex.Decode(h[:], []byte(s)); err != nil {
		return Hash{}, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	return h, nil
}

// The ways in which reading fails. A missing object is fs.ErrNotExist.
var (
	// ErrFormat is a file that is not what git writes, or of a kind that is
	// not read here.
	ErrFormat = errors.New("not a git file that can be read")
	// ErrLimit is a repository that is too large to be looked through.
	ErrLimit = errors.New("too much to look through")
)

// The limits of one store.
const (
	maxObject     = 16 << 20  // of one object that is read
	maxWork       = 128 << 20 // of all objects together
	maxDelta      = 64        // deltas on top of each other; git makes 50 at most
	maxPacks      = 256
	maxAlternates = 8
	maxText       = 4 << 20 // of refs, alternates and the like
)

// kind is the kind of an object, as packs number it.
type kind uint8

const (
	kindCommit   kind = 1
	kindTree     kind = 2
	kindBlob     kind = 3
	kindTag      kind = 4
	kindOffDelta kind = 6
	kindRefDelta kind = 7
)

var kindNames = map[kind]string{kindCommit: "commit", kindTree: "tree", kindBlob: "blob", kindTag: "tag"}

// Store reads the objects of one repository. It is not safe for concurrent
// use. Close it when done.
type Store struct {
	dirs   []string
	packs  []*pack
	loaded bool
	work   int64
}

// Open returns the store of an objects directory. Nothing is read yet.
func Open(objects string) *Store { return &Store{dirs: []string{objects}} }

// Close closes the packs that were opened.
func (s *Store) Close() {
	for _, p := range s.packs {
		p.close()
	}
	s.packs = nil
}

// load finds the packs and the directories of objects that this one borrows
// from.
func (s *Store) load() error {
	if s.loaded {
		return nil
	}
	s.loaded = true
	for i := 0; i < len(s.dirs); i++ {
		if i > maxAlternates {
			return ErrLimit
		}
		more, err := alternates(s.dirs[i])
		if err != nil {
			return err
		}
		s.dirs = append(s.dirs, more...)
		names, err := filepath.Glob(filepath.Join(globEscape(s.dirs[i]), "pack", "pack-*.idx"))
		if err != nil {
			return err
		}
		for _, name := range names {
			if len(s.packs) >= maxPacks {
				return ErrLimit
			}
			p, err := openPack(strings.TrimSuffix(name, ".idx"))
			if err != nil {
				return err
			}
			s.packs = append(s.packs, p)
		}
	}
	return nil
}

func globEscape(dir string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(dir)
}

func alternates(objects string) (dirs []string, err error) {
	data, err := readFile(filepath.Join(objects, "info", "alternates"), maxText)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if !filepath.IsAbs(line) {
			line = filepath.Join(objects, line)
		}
		dirs = append(dirs, line)
	}
	return dirs, nil
}

// read returns an object, checked against its name.
func (s *Store) read(h Hash, want kind) ([]byte, error) {
	got, data, err := s.find(h, 0)
	if err != nil {
		return nil, err
	}
	if got != want {
		return nil, fmt.Errorf("%w: %s is a %s, not a %s", ErrFormat, h, kindNames[got], kindNames[want])
	}
	if name := nameOf(got, data); name != h {
		return nil, fmt.Errorf("%w: %s does not hold what its name says", ErrFormat, h)
	}
	return data, nil
}

func nameOf(k kind, data []byte) Hash {
	sum := sha1.New()
	fmt.Fprintf(sum, "%s %d\x00", kindNames[k], len(data))
	sum.Write(data)
	return Hash(sum.Sum(nil))
}

// find looks for an object among the loose ones and in the packs.
func (s *Store) find(h Hash, depth int) (kind, []byte, error) {
	if err := s.load(); err != nil {
		return 0, nil, err
	}
	for _, dir := range s.dirs {
		k, data, err := s.loose(dir, h)
		if !errors.Is(err, fs.ErrNotExist) {
			return k, data, err
		}
	}
	for _, p := range s.packs {
		at, ok, err := p.lookup(h)
		if err != nil {
			return 0, nil, err
		}
		if ok {
			return s.packed(p, at, depth)
		}
	}
	return 0, nil, fmt.Errorf("%s: %w", h, fs.ErrNotExist)
}

// spend counts bytes that were unpacked.
func (s *Store) spend(n int64) error {
	if s.work += n; n > maxObject || s.work > maxWork {
		return ErrLimit
	}
	return nil
}

// loose reads an object from a file of its own.
func (s *Store) loose(dir string, h Hash) (kind, []byte, error) {
	name := h.String()
	data, err := readFile(filepath.Join(dir, name[:2], name[2:]), maxObject)
	if err != nil {
		return 0, nil, err
	}
	// Room for the header, which is short.
	data, err = inflate(bytes.NewReader(data), maxObject+64)
	if err != nil {
		return 0, nil, err
	}
	if err := s.spend(int64(len(data))); err != nil {
		return 0, nil, err
	}
	head, body, ok := bytes.Cut(data, []byte{0})
	word, length, spaced := strings.Cut(string(head), " ")
	if n, err := strconv.Atoi(length); !ok || !spaced || err != nil || n != len(body) {
		return 0, nil, fmt.Errorf("%w: the head of %s", ErrFormat, h)
	}
	for k, kindName := range kindNames {
		if word == kindName {
			return k, body, nil
		}
	}
	return 0, nil, fmt.Errorf("%w: %s is a %q", ErrFormat, h, word)
}

// inflate unpacks at most limit bytes; more is an error.
func inflate(r io.Reader, limit int64) ([]byte, error) {
	z, err := zlib.NewReader(r)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	data, err := io.ReadAll(io.LimitReader(z, limit+1))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	if int64(len(data)) > limit {
		return nil, ErrLimit
	}
	return data, nil
}

// openFile opens a file that an agent may have made: a pipe must not hold the
// gate up, and a device has no end.
func openFile(path string) (*os.File, int64, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ENOTDIR) {
		return nil, 0, fmt.Errorf("%s: %w", path, fs.ErrNotExist)
	}
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%w: %s is no file", ErrFormat, path)
	}
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, info.Size(), nil
}

func readFile(path string, limit int64) ([]byte, error) {
	f, size, err := openFile(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if size > limit {
		return nil, ErrLimit
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = ErrLimit
	}
	return data, err
}
