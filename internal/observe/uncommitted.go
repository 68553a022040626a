package observe

import (
	"bytes"
	"crypto/sha1" // git's own name for a file's content, not a protection of ours
	"encoding/binary"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxUncommitted is how many files are named; more would not be read.
const maxUncommitted = 50

// maxWalk is how many files below a directory are looked at.
const maxWalk = 5000

// Uncommitted lists the files at or below the paths whose content no git
// commit and no index holds: changed or untracked work that would be lost for
// good. It reads the index itself and runs no git. Where it cannot tell it
// names the path, because the person who is asked would rather know.
func (v *view) Uncommitted(paths []string) []string {
	var out []string
	for _, p := range paths {
		out = append(out, uncommittedAt(p)...)
		if len(out) >= maxUncommitted {
			out = append(out[:maxUncommitted], "and more")
			break
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func uncommittedAt(path string) []string {
	info, err := os.Lstat(path)
	if err != nil {
		return nil // what is not there cannot be lost
	}
	dir := path
	if !info.IsDir() {
		dir = filepath.Dir(path)
	}
	root, gitDir, found := workTree(dir)
	if !found {
		return nil // not a work tree: nothing is committed there by nature
	}
	index, err := readIndex(filepath.Join(gitDir, "index"))
	if err != nil {
		return []string{path + " (whether it is committed cannot be told)"}
	}
	var out []string
	looked := 0
	walk := func(file string, d fs.DirEntry, err error) error {
		if err != nil || looked > maxWalk || len(out) > maxUncommitted {
			return fs.SkipAll
		}
		if d.IsDir() {
			if d.Name() == ".git" {
				return fs.SkipDir
			}
			return nil
		}
		looked++
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return nil
		}
		if why := index.misses(filepath.ToSlash(rel), file); why != "" {
			out = append(out, rel+" ("+why+")")
		}
		return nil
	}
	_ = filepath.WalkDir(path, walk) // what cannot be read is not lost by reading
	return out
}

// workTree finds the root of the work tree that a directory is in.
func workTree(dir string) (root, gitDir string, found bool) {
	for d := dir; ; d = filepath.Dir(d) {
		gitDir, found, err := dotGit(d)
		if err == nil && found && isRepository(gitDir) {
			return d, gitDir, true
		}
		if d == filepath.Dir(d) {
			return "", "", false
		}
	}
}

// gitIndex is what a repository's index holds: each path with the name of its
// content.
type gitIndex map[string][sha1.Size]byte

// misses says why the index does not hold a file as it is, "" if it does.
func (x gitIndex) misses(rel, file string) string {
	want, tracked := x[rel]
	if !tracked {
		return "untracked"
	}
	got, err := blobName(file)
	if err != nil || got != want {
		return "changed"
	}
	return ""
}

// blobName is git's name for a file's content.
func blobName(file string) (name [sha1.Size]byte, err error) {
	info, err := os.Lstat(file)
	if err != nil {
		return name, err
	}
	var content []byte
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(file)
		if err != nil {
			return name, err
		}
		content = []byte(target)
	case info.Size() > maxHash:
		return name, fmt.Errorf("too large to compare")
	default:
		if content, err = os.ReadFile(file); err != nil {
			return name, err
		}
	}
	h := sha1.New()
	fmt.Fprintf(h, "blob %d\x00", len(content))
	h.Write(content)
	return [sha1.Size]byte(h.Sum(nil)), nil
}

// readIndex reads an index of version 2 or 3, which git writes unless it is
// told otherwise. A missing one is empty.
func readIndex(file string) (gitIndex, error) {
	data, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		return gitIndex{}, nil
	}
	if err != nil {
		return nil, err
	}
	if len(data) < 12 || string(data[:4]) != "DIRC" {
		return nil, fmt.Errorf("not an index")
	}
	version, count := binary.BigEndian.Uint32(data[4:]), binary.BigEndian.Uint32(data[8:])
	if version != 2 && version != 3 {
		return nil, fmt.Errorf("an index of version %d", version)
	}
	index := make(gitIndex)
	rest := data[12:]
	for range count {
		n, err := index.entry(rest)
		if err != nil {
			return nil, err
		}
		rest = rest[n:]
	}
	return index, nil
}

// entry reads one entry and returns its length: 62 bytes of numbers (64 with
// the extended flags of version 3), the path, and padding to eight bytes.
func (x gitIndex) entry(data []byte) (int, error) {
	const name, flags = 40, 60
	if len(data) < 62 {
		return 0, fmt.Errorf("an index that is cut off")
	}
	head := 62
	if binary.BigEndian.Uint16(data[flags:])&0x4000 != 0 {
		head = 64
	}
	end := -1
	if head < len(data) {
		end = bytes.IndexByte(data[head:], 0)
	}
	if end < 0 {
		return 0, fmt.Errorf("an index that is cut off")
	}
	x[strings.Clone(string(data[head:head+end]))] = [sha1.Size]byte(data[name : name+sha1.Size])
	size := (head + end + 8) &^ 7
	if size > len(data) {
		return 0, fmt.Errorf("an index that is cut off")
	}
	return size, nil
}
