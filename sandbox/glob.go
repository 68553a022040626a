package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// maxMatches bounds how many entries one read pattern may stand for.
const maxMatches = 4096

// root is one declared place after every link on the way was resolved.
type root struct {
	path  string
	write bool
	dir   bool
	isNew bool // created for this run
	// private roots have no protected names.
	private bool
}

// InexactGlobError: a write pattern that no back-end can hold exactly. It is
// refused rather than widened to the directory around it.
type InexactGlobError struct{ Pattern string }

// Error names the pattern and the two forms that can be held.
func (e *InexactGlobError) Error() string {
	return fmt.Sprintf("write %q: cannot be enforced exactly; name a file, or a directory as DIR/**", e.Pattern)
}

// expandBraces turns {a,b} into alternatives; nesting is allowed.
func expandBraces(p string) ([]string, error) {
	open := strings.IndexByte(p, '{')
	if open < 0 {
		if strings.IndexByte(p, '}') >= 0 {
			return nil, fmt.Errorf("pattern %q: unbalanced braces", p)
		}
		return []string{p}, nil
	}
	depth, start := 0, open+1
	var parts []string
	for i := open; i < len(p); i++ {
		switch p[i] {
		case '{':
			depth++
		case ',':
			if depth == 1 {
				parts = append(parts, p[start:i])
				start = i + 1
			}
		case '}':
			depth--
			if depth > 0 {
				continue
			}
			parts = append(parts, p[start:i])
			var out []string
			for _, part := range parts {
				sub, err := expandBraces(p[:open] + part + p[i+1:])
				if err != nil {
					return nil, err
				}
				out = append(out, sub...)
			}
			if len(out) > maxMatches {
				return nil, fmt.Errorf("pattern %q: too many alternatives", p)
			}
			return out, nil
		}
	}
	return nil, fmt.Errorf("pattern %q: unbalanced braces", p)
}

// absolute makes a pattern absolute against dir and folds "." and "..".
func absolute(pattern, dir string) (string, error) {
	if pattern == "" {
		return "", errors.New("empty path")
	}
	if strings.ContainsAny(pattern, "\\\x00") {
		return "", fmt.Errorf("path %q: backslash and NUL are not accepted", pattern)
	}
	if !filepath.IsAbs(pattern) {
		pattern = filepath.Join(dir, pattern)
	}
	return filepath.Clean(pattern), nil
}

// trimTree removes the suffixes that say "and all beneath".
func trimTree(p string) (string, bool) {
	tree := false
	for {
		q := strings.TrimSuffix(p, "/**")
		if q == p {
			if q2 := strings.TrimSuffix(p, "/**/*"); q2 != p {
				q = q2
			}
		}
		if q == p {
			break
		}
		p, tree = q, true
	}
	if p == "" {
		p = "/"
	}
	return p, tree
}

func hasMeta(p string) bool { return strings.ContainsAny(p, "*?[{") }

// canonical resolves links of the deepest existing ancestor and appends the
// rest. missing is the part that does not exist.
func canonical(p string) (path string, missing bool, err error) {
	rest := ""
	for q := p; ; q = filepath.Dir(q) {
		real, err := filepath.EvalSymlinks(q)
		if err == nil {
			return filepath.Join(real, rest), rest != "", nil
		}
		if !errors.Is(err, os.ErrNotExist) {
			return "", false, err
		}
		// A link that dangles must not be taken for a missing name: what is
		// created there later would appear wherever it points.
		if fi, lerr := os.Lstat(q); lerr == nil && fi.Mode()&os.ModeSymlink != 0 {
			return "", false, fmt.Errorf("%s: dangling link", q)
		}
		if q == "/" || q == "." {
			return "", false, err
		}
		rest = filepath.Join(filepath.Base(q), rest)
	}
}

// unwritable are trees no Spec may declare writable: they are not files of a
// project but the kernel's or the system's own.
var unwritable = []string{"/proc", "/sys", "/dev", "/boot"}

// writeRoots turns write patterns into roots that mean exactly the same, or
// refuses. Missing places are created: a directory for a tree, an empty file
// for a name.
func writeRoots(patterns []string, dir string) ([]root, error) {
	var roots []root
	for _, pattern := range patterns {
		list, err := expandBraces(pattern)
		if err != nil {
			return nil, err
		}
		for _, p := range list {
			r, err := writeRoot(p, dir)
			if err != nil {
				return nil, err
			}
			roots = append(roots, r)
		}
	}
	return roots, nil
}

func writeRoot(pattern, dir string) (root, error) {
	trailing := strings.HasSuffix(pattern, "/")
	p, err := absolute(pattern, dir)
	if err != nil {
		return root{}, fmt.Errorf("write %w", err)
	}
	p, tree := trimTree(p)
	if hasMeta(p) {
		return root{}, &InexactGlobError{Pattern: pattern}
	}
	real, missing, err := canonical(p)
	if err != nil {
		return root{}, fmt.Errorf("write %q: %w", pattern, err)
	}
	for _, bad := range unwritable {
		if within(real, bad) {
			return root{}, fmt.Errorf("write %q: %s is never writable", pattern, bad)
		}
	}
	if real == "/" {
		return root{}, fmt.Errorf("write %q: the whole file system is never writable", pattern)
	}
	r := root{path: real, write: true, dir: tree || trailing}
	if !missing {
		fi, err := os.Lstat(real)
		if err != nil {
			return root{}, err
		}
		if tree && !fi.IsDir() {
			return root{}, fmt.Errorf("write %q: not a directory", pattern)
		}
		if !fi.IsDir() && !fi.Mode().IsRegular() {
			return root{}, fmt.Errorf("write %q: neither a file nor a directory", pattern)
		}
		r.dir = fi.IsDir()
		return r, nil
	}
	r.isNew = true
	if r.dir {
		return r, os.MkdirAll(real, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(real), 0o755); err != nil {
		return root{}, err
	}
	f, err := os.OpenFile(real, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return root{}, err
	}
	return r, f.Close()
}

// readRoots expands read patterns. A match that is a link counts only if what
// it points to is declared as well, otherwise the link alone would pull a file
// of its author's choice into view.
func readRoots(patterns []string, dir string) ([]root, error) {
	var roots []root
	for _, pattern := range patterns {
		list, err := expandBraces(pattern)
		if err != nil {
			return nil, err
		}
		for _, p := range list {
			more, err := readRoot(p, dir)
			if err != nil {
				return nil, fmt.Errorf("read %q: %w", pattern, err)
			}
			roots = append(roots, more...)
		}
	}
	return roots, nil
}

func readRoot(pattern, dir string) ([]root, error) {
	p, err := absolute(pattern, dir)
	if err != nil {
		return nil, err
	}
	p, _ = trimTree(p)
	if !hasMeta(p) {
		real, missing, err := canonical(p)
		if err != nil || missing {
			return nil, err // what does not exist is not there inside either
		}
		fi, err := os.Lstat(real)
		if err != nil {
			return nil, err
		}
		return []root{{path: real, dir: fi.IsDir()}}, nil
	}
	base, rest := doublestar.SplitPattern(p)
	real, missing, err := canonical(base)
	if err != nil || missing {
		return nil, err
	}
	var roots []root
	err = doublestar.GlobWalk(os.DirFS(real), rest, func(path string, d os.DirEntry) error {
		if d.Type()&os.ModeSymlink != 0 {
			return nil
		}
		if len(roots) >= maxMatches {
			return fmt.Errorf("more than %d matches", maxMatches)
		}
		roots = append(roots, root{path: filepath.Join(real, path), dir: d.IsDir()})
		return nil
	}, doublestar.WithNoFollow())
	return roots, err
}

// within reports whether path is base or lies beneath it.
func within(path, base string) bool {
	return path == base || base == "/" || strings.HasPrefix(path, base+"/")
}

// mergeRoots sorts parents before children, drops what a parent of the same
// right already covers, and lets write win over read on the same path.
func mergeRoots(roots []root) []root {
	sort.SliceStable(roots, func(i, j int) bool {
		if roots[i].path != roots[j].path {
			return roots[i].path < roots[j].path
		}
		return roots[i].write && !roots[j].write
	})
	var out []root
next:
	for _, r := range roots {
		for _, o := range out {
			if o.path == r.path || within(r.path, o.path) && o.dir && (o.write || !r.write) {
				continue next
			}
		}
		out = append(out, r)
	}
	return out
}
