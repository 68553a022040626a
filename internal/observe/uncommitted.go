package observe

import (
	"crypto/sha1" // git's own name for a file's content, not a protection of ours
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/seed-3ebc6b8a/gatehouse/internal/facts"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gitobj"
)

// The bounds of one look. What lies beyond them counts as touched.
const (
	maxNamed = 50       // files that are named; more would not be read
	maxWalk  = 5000     // files below a directory that are looked at
	maxBytes = 64 << 20 // of files that are compared, together
)

// Unsaved lists the work at or below the paths that is saved nowhere else:
// files that differ from the last commit, in the work tree or in the index, and
// files that git does not know. If the paths themselves are to be gone, so are
// the commits and stashes of a repository that lies there as a whole. It reads
// git's files itself and runs no git. Where it cannot tell it names the path:
// what is unknown counts as touched.
func (v *view) Unsaved(paths []string, gone bool) []facts.Work {
	var out []facts.Work
	for _, p := range paths {
		found, ok := v.unsaved[p]
		if !ok {
			found = v.unsavedAt(p)
			v.unsaved[p] = found
		}
		out = append(out, found...)
		if gone {
			out = append(out, v.repositoryAt(p)...)
		}
	}
	slices.SortFunc(out, facts.Work.Compare)
	out = slices.Compact(out)
	if len(out) > maxNamed {
		more := len(out) - maxNamed
		out = append(out[:maxNamed:maxNamed], facts.Work{Path: fmt.Sprintf("and %d more", more), State: facts.Unknown})
	}
	return out
}

// RefFiles lists the files in which a repository keeps what its branches, its
// stash and its index stand for.
func (v *view) RefFiles(dir string) (files []string) {
	_, gitDir, found, err := workTree(dir)
	if err != nil || !found {
		return nil
	}
	for _, name := range []string{"HEAD", "index"} {
		files = append(files, filepath.Join(gitDir, name))
	}
	common, err := commonDir(gitDir)
	if err != nil {
		return files
	}
	for _, name := range []string{"packed-refs", "refs/heads", "refs/stash", "logs/refs/stash"} {
		files = append(files, filepath.Join(common, name))
	}
	return files
}

// UnsavedIn lists all work in the repository that a directory
// is in: what Unsaved says of its work tree, the commits that no remote has,
// and the stashes.
func (v *view) UnsavedIn(dir string) []facts.Work {
	root, gitDir, found, err := workTree(dir)
	if err != nil {
		return []facts.Work{{Path: dir, State: facts.Unknown}}
	}
	if !found {
		return nil
	}
	return append(v.Unsaved([]string{root}, false), v.unpushed(root, gitDir)...)
}

// repositoryAt lists the commits and stashes that go with a path: if it is the
// root of a work tree, or git's own directory or something in it. Git's locks
// hold nothing.
func (v *view) repositoryAt(path string) []facts.Work {
	root, gitDir, found, err := workTree(path)
	if err != nil || !found {
		return nil // Unsaved says what there is to say
	}
	rel, err := filepath.Rel(root, path)
	rel = filepath.ToSlash(rel)
	if err != nil || rel != "." && rel != ".git" && !strings.HasPrefix(rel, ".git/") || strings.HasSuffix(rel, ".lock") {
		return nil
	}
	return v.unpushed(root, gitDir)
}

func (v *view) unsavedAt(path string) []facts.Work {
	unknown := []facts.Work{{Path: path, File: path, State: facts.Unknown}}
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil // what is not there cannot be lost
	}
	if err != nil {
		return unknown
	}
	dir := path
	if !info.IsDir() {
		dir = filepath.Dir(path)
	}
	root, gitDir, found, err := workTree(dir)
	if err != nil {
		return unknown
	}
	if !found {
		return v.repositoriesBelow(path) // outside a work tree nothing is committed by nature
	}
	l, err := v.newLook(root, gitDir, path)
	if err != nil {
		return unknown
	}
	return l.compare(path)
}

// look compares a part of one work tree with its last commit.
type look struct {
	view   *view
	root   string
	prefix string
	index  map[string]gitobj.Entry
	head   map[string]gitobj.Hash
	bytes  int64
	files  int
	out    []facts.Work
}

func (v *view) newLook(root, gitDir, path string) (*look, error) {
	rel, err := filepath.Rel(root, path)
	if err != nil {
		return nil, err
	}
	l := &look{view: v, root: root}
	if rel != "." {
		l.prefix = filepath.ToSlash(rel)
	}
	if l.index, err = gitobj.ReadIndex(filepath.Join(gitDir, "index")); err != nil {
		return nil, err
	}
	common, err := commonDir(gitDir)
	if err != nil {
		return nil, err
	}
	refs, err := gitobj.Refs(common)
	if err != nil {
		return nil, err
	}
	commit, _, err := gitobj.Head(gitDir, refs)
	if err != nil || commit.IsZero() {
		return l, err // before the first commit nothing is saved
	}
	objects := gitobj.Open(filepath.Join(common, "objects"))
	defer objects.Close()
	c, err := objects.Commit(commit)
	if err != nil {
		return nil, err
	}
	l.head, err = objects.Files(c.Tree, l.prefix)
	return l, err
}

// compare walks the files at and below a path, and the index for those that
// are there only.
func (l *look) compare(path string) []facts.Work {
	err := filepath.WalkDir(path, func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return l.enter(file, d)
		}
		if l.files++; l.files > maxWalk {
			return gitobj.ErrLimit
		}
		rel, err := filepath.Rel(l.root, file)
		if err != nil {
			return err
		}
		l.file(filepath.ToSlash(rel), file)
		return nil
	})
	if err != nil {
		return append(l.out, facts.Work{Path: path, File: path, State: facts.Unknown})
	}
	for _, name := range slices.Sorted(maps.Keys(l.index)) {
		e := l.index[name]
		if !below(name, l.prefix) || e.Blob == l.head[name] {
			continue
		}
		l.add(facts.Work{Path: name, File: filepath.Join(l.root, name), State: facts.Staged, ID: e.Blob.String()})
	}
	return l.out
}

func below(name, prefix string) bool {
	return prefix == "" || name == prefix || strings.HasPrefix(name, prefix+"/")
}

// enter looks at a directory on the way: a repository inside the work tree is
// judged by its own index, and the directory of git itself holds commits.
func (l *look) enter(dir string, d fs.DirEntry) error {
	if d.Name() == ".git" {
		return fs.SkipDir
	}
	if dir == l.root {
		return nil
	}
	if _, found, err := dotGit(dir); err != nil || found {
		l.out = append(l.out, l.view.UnsavedIn(dir)...)
		return fs.SkipDir
	}
	return nil
}

// file judges one file of the work tree. That the index differs from the
// commit is judged once for all, so that a file that is gone from the work tree
// is not passed over.
func (l *look) file(rel, file string) {
	e, tracked := l.index[rel]
	saved, committed := l.head[rel]
	if !tracked && !committed {
		l.add(facts.Work{Path: rel, File: file, State: facts.Untracked, ID: identify(file)})
		return
	}
	got, err := l.blob(file)
	switch {
	case err != nil:
		l.add(facts.Work{Path: rel, File: file, State: facts.Unknown})
	case got == saved && committed:
	case tracked && got == e.Blob: // as staged, which is said of it already
	default:
		l.add(facts.Work{Path: rel, File: file, State: facts.Changed, ID: got.String()})
	}
}

// add notes work. A file that was changed after it was staged is both, and
// named once.
func (l *look) add(w facts.Work) {
	i := slices.IndexFunc(l.out, func(o facts.Work) bool { return o.Path == w.Path })
	if i < 0 {
		l.out = append(l.out, w)
		return
	}
	if l.out[i].State == facts.Changed && w.State == facts.Staged {
		l.out[i].ID += " " + w.ID
	}
}

// blob is git's name for a file's content.
func (l *look) blob(file string) (name gitobj.Hash, err error) {
	info, err := os.Lstat(file)
	if err != nil {
		return name, err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		target, err := os.Readlink(file)
		if err != nil {
			return name, err
		}
		return gitobj.Hash(sha1.Sum(fmt.Appendf(nil, "blob %d\x00%s", len(target), target))), nil
	}
	if l.bytes += info.Size(); !info.Mode().IsRegular() || info.Size() > maxHash || l.bytes > maxBytes {
		return name, gitobj.ErrLimit
	}
	content, err := ReadFile(file, maxHash)
	if err != nil {
		return name, err
	}
	h := sha1.New()
	fmt.Fprintf(h, "blob %d\x00", len(content))
	_, err = io.Writer(h).Write(content)
	return gitobj.Hash(h.Sum(nil)), err
}

// repositoriesBelow lists the work of repositories at or below a path that is
// itself in none: deleting the parent of a work tree deletes it.
func (v *view) repositoriesBelow(path string) []facts.Work {
	var out []facts.Work
	looked := 0
	err := filepath.WalkDir(path, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if looked++; looked > maxWalk {
			return gitobj.ErrLimit
		}
		if !d.IsDir() {
			return nil
		}
		if _, found, err := dotGit(file); err != nil || found {
			out = append(out, v.UnsavedIn(file)...)
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		out = append(out, facts.Work{Path: path, File: path, State: facts.Unknown})
	}
	return out
}

// unpushed lists the commits of branches that no remote has, by branch, and
// the stashes.
func (v *view) unpushed(root, gitDir string) []facts.Work {
	unknown := []facts.Work{{Path: root, State: facts.Unpushed, ID: "unknown"}}
	common, err := commonDir(gitDir)
	if err != nil {
		return unknown
	}
	refs, err := gitobj.Refs(common)
	if err != nil {
		return unknown
	}
	objects := gitobj.Open(filepath.Join(common, "objects"))
	defer objects.Close()
	var remote []gitobj.Hash
	for name, h := range refs {
		if strings.HasPrefix(name, "refs/remotes/") {
			remote = append(remote, h)
		}
	}
	var out []facts.Work
	for _, name := range slices.Sorted(maps.Keys(refs)) {
		branch, ok := strings.CutPrefix(name, "refs/heads/")
		if !ok {
			continue
		}
		missing, err := objects.Missing([]gitobj.Hash{refs[name]}, remote)
		if err != nil {
			return append(out, unknown...)
		}
		if len(missing) > 0 {
			out = append(out, facts.Work{Path: fmt.Sprintf("%d %s of %s", len(missing), plural(len(missing), "commit"), branch), State: facts.Unpushed, ID: missing[0].String()})
		}
	}
	n, err := gitobj.Stashes(common)
	if err != nil {
		return append(out, unknown...)
	}
	if n > 0 {
		out = append(out, facts.Work{Path: fmt.Sprintf("%d %s", n, plural(n, "stash entry")), State: facts.Stashed, ID: refs["refs/stash"].String()})
	}
	return out
}

func plural(n int, noun string) string {
	if n == 1 {
		return noun
	}
	if stem, ok := strings.CutSuffix(noun, "y"); ok {
		return stem + "ies"
	}
	return noun + "s"
}

// workTree finds the root of the work tree that a directory is in.
func workTree(dir string) (root, gitDir string, found bool, err error) {
	for d := dir; ; d = filepath.Dir(d) {
		gitDir, found, err := dotGit(d)
		if err != nil {
			return "", "", false, err
		}
		if found && isRepository(gitDir) {
			return d, gitDir, true, nil
		}
		if d == filepath.Dir(d) {
			return "", "", false, nil
		}
	}
}
