package changes

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// repository is where the parts of a repository lie. It is found by reading a
// few small files, not by asking git.
type repository struct {
	top    string // the working directory, or the bare repository
	git    string // .git, or where it points
	common string // what worktrees share
	others []string
}

func findRepository(dir string) (*repository, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, err
	}
	if real, err = filepath.Abs(real); err != nil {
		return nil, err
	}
	for top := real; ; top = filepath.Dir(top) {
		if _, err := os.Lstat(filepath.Join(top, ".git")); err == nil {
			return readRepository(top)
		}
		if top == "/" {
			return nil, fmt.Errorf("%s is not in a git repository", real)
		}
	}
}

func readRepository(top string) (*repository, error) {
	s := &repository{top: top, git: filepath.Join(top, ".git")}
	fi, err := os.Stat(s.git)
	if err != nil {
		return nil, err
	}
	if !fi.IsDir() {
		line, err := small(s.git)
		target, ok := strings.CutPrefix(line, "gitdir: ")
		if err != nil || !ok {
			return nil, errors.Join(err, fmt.Errorf("%s says nothing about a repository", s.git))
		}
		s.git = from(top, target)
	}
	s.common = s.git
	if line, err := small(filepath.Join(s.git, "commondir")); err == nil {
		s.common = from(s.git, line)
	}
	objects := filepath.Join(s.common, "objects")
	if text, err := small(filepath.Join(objects, "info/alternates")); err == nil {
		for line := range strings.Lines(text) {
			s.others = append(s.others, from(objects, strings.TrimSpace(line)))
		}
	}
	return s, nil
}

// reads are the places a command over the repository has to see.
func (s *repository) reads() []string {
	return append([]string{filepath.Join(s.top, ".git"), s.git, s.common}, s.others...)
}

func from(dir, path string) string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	return filepath.Clean(path)
}

func small(path string) (string, error) {
	fi, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if fi.Size() > 64<<10 || !fi.Mode().IsRegular() {
		return "", fmt.Errorf("%s: not a small file", path)
	}
	b, err := os.ReadFile(path)
	return strings.TrimSpace(string(b)), err
}

// plainRef admits names of branches and tags that are what they look like.
func plainRef(name string) bool {
	if !strings.HasPrefix(name, "refs/heads/") && !strings.HasPrefix(name, "refs/tags/") {
		return false
	}
	for _, part := range strings.Split(name, "/") {
		if part == "" || part[0] == '.' || part[0] == '-' || strings.HasSuffix(part, ".lock") || strings.HasSuffix(part, ".") || strings.Contains(part, "..") {
			return false
		}
		for i := range len(part) {
			c := part[i]
			if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("._-+#", c) >= 0) {
				return false
			}
		}
	}
	return true
}

func objectName(s string) bool {
	return (len(s) == 40 || len(s) == 64) && strings.Trim(s, "0123456789abcdef") == ""
}
