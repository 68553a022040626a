package changes

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/sandbox"
)

// Clone is a private copy of a repository for a run to work in. It shares no
// file with its source: no hard links, no alternates, no worktree. What the run
// commits there stays there until Accept fetches a ref of it.
//
// Every git command runs in a sandbox without network and home, because either
// repository may have been written by an agent. Between the two goes a pack,
// and nothing that git would obey.
type Clone struct {
	Source string
	Dir    string `json:"-"` // where it lies now
	About  About
	// Base are the commits that the source had: what is reachable from them
	// needs no fetching.
	Base  []string
	Refs  []Ref
	Loose int    // changed files that were not committed
	Odd   int    // refs whose names cannot be shown as they are
	Hash  string `json:"-"`
}

// Ref is a branch or tag of a clone that its source does not have like that.
type Ref struct {
	Name      string   `json:"name"` // refs/heads/topic
	Commit    string   `json:"commit"`
	Protected []string `json:"protected,omitempty"` // changed files with protected names
}

const cloneManifest = "clone.json"

// Repo is the directory to work in.
func (c *Clone) Repo() string { return filepath.Join(c.Dir, "repo") }

// NewClone copies the repository around a directory into dir.
func NewClone(ctx context.Context, source, dir string) (*Clone, error) {
	src, err := findRepository(source)
	if err != nil {
		return nil, err
	}
	c := &Clone{Source: src.top, Dir: dir}
	if err := os.Mkdir(c.Repo(), 0o755); err != nil {
		return nil, err
	}
	// Not as a local clone: that would copy the alternates along and link files.
	if _, err := git(ctx, gitRun{
		read: src.reads(), write: []string{c.Repo()},
		args: []string{"clone", "--quiet", "--no-local", "--no-hardlinks", "--template=", "--no-recurse-submodules", "--", src.top, c.Repo()},
	}); err != nil {
		return nil, err
	}
	if _, err := os.Lstat(filepath.Join(c.Repo(), ".git/objects/info/alternates")); err == nil {
		return nil, errors.New("the copy leans on its source")
	}
	refs, err := c.refs(ctx)
	for _, r := range refs {
		c.Base = append(c.Base, r.Commit)
	}
	slices.Sort(c.Base)
	c.Base = slices.Compact(c.Base)
	return c, err
}

// inside runs git over the clone, which it cannot change.
func (c *Clone) inside(ctx context.Context, args ...string) (string, error) {
	return git(ctx, gitRun{read: []string{c.Repo()}, args: append([]string{"-C", c.Repo()}, args...)})
}

func (c *Clone) refs(ctx context.Context) ([]Ref, error) {
	out, err := c.inside(ctx, "for-each-ref", "--format=%(objectname) %(refname)", "refs/heads", "refs/tags", "refs/remotes")
	var list []Ref
	for line := range strings.Lines(out) {
		commit, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		list = append(list, Ref{Name: name, Commit: commit})
	}
	return list, err
}

// Seal looks at what the run left. Call it when the run has returned.
func (c *Clone) Seal(ctx context.Context, about About) error {
	c.About, c.Refs, c.Odd = about, nil, 0
	refs, err := c.refs(ctx)
	if err != nil {
		return err
	}
	for _, r := range refs {
		if slices.Contains(c.Base, r.Commit) || strings.HasPrefix(r.Name, "refs/remotes/") {
			continue
		}
		if !plainRef(r.Name) || !objectName(r.Commit) {
			c.Odd++ // what cannot be shown cannot be accepted
			continue
		}
		paths, err := c.inside(ctx, append([]string{"log", "--no-show-signature", "--name-only", "-z", "--format=", r.Commit, "--not"}, c.Base...)...)
		if err != nil {
			return err
		}
		for _, p := range strings.FieldsFunc(paths, func(r rune) bool { return r == 0 || r == '\n' }) {
			if sandbox.ProtectedName(p) && !slices.Contains(r.Protected, p) {
				r.Protected = append(r.Protected, p)
			}
		}
		c.Refs = append(c.Refs, r)
	}
	status, err := c.inside(ctx, "status", "--porcelain=v1", "-z", "--untracked-files=normal")
	c.Loose = strings.Count(status, "\x00")
	return err
}

func (c *Clone) seal() error {
	raw, err := json.MarshalIndent(c, "", " ")
	if err != nil {
		return err
	}
	c.Hash = hashOf(raw)
	return os.WriteFile(filepath.Join(c.Dir, cloneManifest), raw, 0o400)
}

func openClone(dir string) (*Clone, error) {
	raw, err := os.ReadFile(filepath.Join(dir, cloneManifest))
	if err != nil {
		return nil, err
	}
	c := &Clone{Dir: dir, Hash: hashOf(raw)}
	return c, json.Unmarshal(raw, c)
}

func hashOf(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// List prints one line per ref.
func (c *Clone) List(w io.Writer) error {
	for _, r := range c.Refs {
		mark := ""
		if len(r.Protected) > 0 {
			mark = "  protected: " + plain(strings.Join(r.Protected, " "))
		}
		if _, err := fmt.Fprintf(w, "%s %s%s\n", r.Commit, r.Name, mark); err != nil {
			return err
		}
	}
	if c.Loose > 0 {
		if _, err := fmt.Fprintf(w, "%d changed files were not committed and cannot be fetched\n", c.Loose); err != nil {
			return err
		}
	}
	if c.Odd > 0 {
		if _, err := fmt.Fprintf(w, "%d refs have names that cannot be shown and cannot be fetched\n", c.Odd); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "clone %s\n", c.Hash)
	return err
}

// Show writes the commits of refs with their differences, all if none is named.
func (c *Clone) Show(ctx context.Context, w io.Writer, names ...string) error {
	refs, err := c.choose(names)
	if err != nil {
		return err
	}
	for _, r := range refs {
		out, err := c.inside(ctx, append([]string{
			"log", "--patch", "--stat", "--no-color", "--no-ext-diff", "--no-textconv", "--no-show-signature", r.Commit, "--not",
		}, c.Base...)...)
		if err != nil {
			return err
		}
		if !text([]byte(out)) {
			out = fmt.Sprintf("%q\n", out) // a terminal would obey what stands in it
		}
		if _, err := fmt.Fprintf(w, "%s %s\n%s", r.Commit, r.Name, out); err != nil {
			return err
		}
	}
	return nil
}

// choose picks refs by their full or short names; none means all.
func (c *Clone) choose(names []string) ([]Ref, error) {
	if len(names) == 0 {
		return c.Refs, nil
	}
	var out []Ref
	for _, n := range names {
		i := slices.IndexFunc(c.Refs, func(r Ref) bool { return r.Name == n || shortRef(r.Name) == n })
		if i < 0 {
			return nil, fmt.Errorf("%s: the clone has no such new branch or tag", plain(n))
		}
		out = append(out, c.Refs[i])
	}
	return out, nil
}

func shortRef(name string) string {
	name = strings.TrimPrefix(name, "refs/heads/")
	return strings.TrimPrefix(name, "refs/tags/")
}

// maxPack bounds what one acceptance may bring into a repository.
const maxPack = 4 << 30

// Accept fetches refs into the source as branches named gatehouse/ID/NAME and
// returns those names. The commits are those that were sealed, whatever the
// refs say now; every object is checked before a branch points at it.
func (c *Clone) Accept(ctx context.Context, hash string, names ...string) ([]string, error) {
	if hash != c.Hash {
		return nil, fmt.Errorf("%w: the acceptance is for another clone", ErrChanged)
	}
	refs, err := c.choose(names)
	if err != nil {
		return nil, err
	}
	src, err := findRepository(c.Source)
	if err != nil {
		return nil, err
	}
	branches := filepath.Join(src.common, "refs/heads/gatehouse")
	if err := os.MkdirAll(branches, 0o755); err != nil {
		return nil, err
	}
	var done []string
	for _, r := range refs {
		pack, err := c.pack(ctx, r)
		if err != nil {
			return done, err
		}
		branch := "gatehouse/" + c.Hash[:idLen] + "/" + shortRef(r.Name)
		err = src.take(ctx, pack, r.Commit, branch, branches)
		_ = pack.Close()
		if err != nil {
			return done, err
		}
		done = append(done, branch)
	}
	return done, nil
}

// pack writes the objects of a ref that the source lacks to a file without a
// name.
func (c *Clone) pack(ctx context.Context, r Ref) (*os.File, error) {
	f, err := os.CreateTemp(c.Dir, "pack-")
	if err != nil {
		return nil, err
	}
	_ = os.Remove(f.Name())
	revs := r.Commit + "\n"
	for _, b := range c.Base {
		revs += "^" + b + "\n"
	}
	_, err = git(ctx, gitRun{
		read: []string{c.Repo()}, stdin: strings.NewReader(revs), stdout: f,
		args: []string{"-C", c.Repo(), "pack-objects", "--quiet", "--revs", "--thin", "--stdout"},
	})
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// take brings a pack into the repository, checks what is in it, and points a
// new branch at it. The repository's hooks and settings are read-only there.
func (s *repository) take(ctx context.Context, pack io.Reader, commit, branch, branches string) error {
	objects := filepath.Join(s.common, "objects")
	run := gitRun{read: s.reads(), write: []string{objects, branches}}
	at := []string{"--git-dir=" + s.common}
	step := func(stdin io.Reader, args ...string) error {
		run.stdin, run.args = stdin, append(slices.Clone(at), args...)
		_, err := git(ctx, run)
		return err
	}
	if err := step(pack, "index-pack", "--stdin", "--fix-thin", "--strict", "--keep=gatehouse"); err != nil {
		return fmt.Errorf("the objects do not pass the check: %w", err)
	}
	// Everything that the commit leads to must be there, as a fetch checks it.
	if err := step(nil, "rev-list", "--objects", "--quiet", commit, "--not", "--all"); err != nil {
		return fmt.Errorf("%s is incomplete: %w", commit, err)
	}
	none := strings.Repeat("0", len(commit)) // it must not be there yet
	return step(nil, "-c", "core.logAllRefUpdates=false", "update-ref", "refs/heads/"+branch, commit, none)
}

// gitRun is one git command in a sandbox of its own.
type gitRun struct {
	read, write []string
	args        []string
	stdin       io.Reader
	stdout      io.Writer
}

// inertGit turns off what settings of a repository could make git run, as far
// as there are switches; the sandbox holds what is left.
var inertGit = []string{
	"-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "core.pager=cat", "-c", "gc.auto=0", "-c", "maintenance.auto=false",
	"-c", "protocol.ext.allow=never", "-c", "diff.external=", "-c", "submodule.recurse=false", "-c", "safe.directory=*",
}

func git(ctx context.Context, g gitRun) (string, error) {
	var out bytes.Buffer
	stdout := g.stdout
	if stdout == nil {
		stdout = &out
	}
	r, err := sandbox.Run(ctx, sandbox.Spec{
		Command: append(append([]string{"git"}, inertGit...), g.args...),
		// A copy brings protected names along; in the source only objects and
		// branches can be written at all.
		Dir: "/", Read: g.read, Private: g.write,
		Env:    sandbox.Env{Pass: []string{"PATH"}, Set: map[string]string{"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C.UTF-8"}},
		Limits: sandbox.Limits{Output: maxPack},
		Stdin:  g.stdin, Stdout: stdout,
	})
	if err != nil {
		return "", err
	}
	if r.ExitCode != 0 || r.StdoutTruncated {
		return "", fmt.Errorf("git %s: exit %d: %s", g.args[0], r.ExitCode, strings.TrimSpace(string(r.Stderr)))
	}
	return out.String(), nil
}
