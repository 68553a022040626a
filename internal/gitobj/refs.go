package gitobj

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxRefs bounds how many refs are read.
const maxRefs = 20_000

// Refs reads all refs of a repository: loose ones, which count, and packed
// ones. dir is what worktrees share.
func Refs(dir string) (map[string]Hash, error) {
	if _, err := os.Lstat(filepath.Join(dir, "reftable")); err == nil {
		return nil, fmt.Errorf("%w: refs in a reftable", ErrFormat)
	}
	refs, err := packedRefs(filepath.Join(dir, "packed-refs"))
	if err != nil {
		return nil, err
	}
	root := filepath.Join(dir, "refs")
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() || strings.HasSuffix(d.Name(), ".lock") {
			return nil
		}
		if len(refs) > maxRefs {
			return ErrLimit
		}
		text, err := readFile(path, maxText)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		value := strings.TrimSpace(string(text))
		if strings.HasPrefix(value, "ref:") {
			return nil // it stands for another one, which is on the list itself
		}
		h, err := ParseHash(value)
		if err != nil {
			return err
		}
		refs[filepath.ToSlash(rel)] = h
		return nil
	})
	return refs, err
}

func packedRefs(file string) (map[string]Hash, error) {
	refs := make(map[string]Hash)
	data, err := readFile(file, maxText)
	if errors.Is(err, fs.ErrNotExist) {
		return refs, nil
	}
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == '^' {
			continue
		}
		name, ref, ok := strings.Cut(line, " ")
		h, err := ParseHash(name)
		if !ok || err != nil || len(refs) > maxRefs {
			return nil, fmt.Errorf("%w: packed refs", ErrFormat)
		}
		refs[ref] = h
	}
	return refs, nil
}

// Head reads which commit is checked out, and on which branch: "" if on none.
// A branch without a commit yet has a zero hash.
func Head(gitDir string, refs map[string]Hash) (commit Hash, branch string, err error) {
	text, err := readFile(filepath.Join(gitDir, "HEAD"), maxText)
	if err != nil {
		return Hash{}, "", err
	}
	value := strings.TrimSpace(string(text))
	if ref, ok := strings.CutPrefix(value, "ref:"); ok {
		ref = strings.TrimSpace(ref)
		return refs[ref], ref, nil
	}
	commit, err = ParseHash(value)
	return commit, "", err
}

// Stashes counts the entries of the stash, whose log lists them.
func Stashes(dir string) (int, error) {
	data, err := readFile(filepath.Join(dir, "logs", "refs", "stash"), maxText)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	return strings.Count(string(data), "\n"), err
}
