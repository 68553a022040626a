package dispatch

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/seed-3ebc6b8a/gatehouse/internal/gitobj"
)

// maxEntries bounds how much of a directory is looked at. In one that has more
// no two requests are equal.
const maxEntries = 200_000

var errTooMany = errors.New("too many files")

// stateOf identifies the state of a working directory: which commit is checked
// out, and every file by its place, size, times and inode, read without git (a
// repository's own settings have git run programs). A file cannot change
// without its change time, so a review after a fix is another request.
func stateOf(dir string) (string, error) {
	h := sha256.New()
	if root, gitDir := repository(dir); gitDir != "" {
		refs, err := gitobj.Refs(gitDir)
		if err != nil {
			return "", err
		}
		commit, branch, err := gitobj.Head(gitDir, refs)
		if err != nil {
			return "", err
		}
		write(h, commit.String(), branch)
		dir = root
	}
	n := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && d.Name() == ".git" {
			return filepath.SkipDir
		}
		if n++; n > maxEntries {
			return errTooMany
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		write(h, path, info.Mode().String())
		if !d.IsDir() {
			stamp(h, info)
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			write(h, target)
		}
		return nil
	})
	return hex.EncodeToString(h.Sum(nil)), err
}

// repository finds the repository around a directory.
func repository(dir string) (root, gitDir string) {
	for at := dir; ; at = filepath.Dir(at) {
		if info, err := os.Lstat(filepath.Join(at, ".git")); err == nil && info.IsDir() {
			return at, filepath.Join(at, ".git")
		}
		if at == filepath.Dir(at) {
			return "", ""
		}
	}
}

// write hashes texts with their lengths in front.
func write(h hash.Hash, texts ...string) {
	for _, t := range texts {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(t)))
		h.Write(n[:])
		_, _ = io.WriteString(h, t) // a hash takes everything
	}
}
