//go:build linux

package changes_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/needtest"
	"github.com/seed-3ebc6b8a/gatehouse/sandbox"
	"github.com/seed-3ebc6b8a/gatehouse/sandbox/changes"
)

func gitIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=n", "-c", "user.email=e@x.test"}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// newRepository makes a source with one commit, and a shelf beside it.
func newRepository(t *testing.T) (place, changes.Shelf) {
	t.Helper()
	needtest.Programs(t, "git")
	p := newPlace(t)
	gitIn(t, p.root, "init", "-q", "-b", "main")
	gitIn(t, p.root, "add", ".")
	gitIn(t, p.root, "commit", "-qm", "one")
	return p, changes.Shelf{Dir: p.dir + "/shelf"}
}

func newClone(t *testing.T, p place, sh changes.Shelf) *changes.Clone {
	t.Helper()
	dir, err := sh.Begin()
	if err != nil {
		t.Fatal(err)
	}
	c, err := changes.NewClone(t.Context(), p.root, dir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func keep(t *testing.T, sh changes.Shelf, c *changes.Clone) {
	t.Helper()
	if err := errors.Join(c.Seal(t.Context(), changes.About{}), sh.KeepClone(c)); err != nil {
		t.Fatal(err)
	}
}

// The clone shares no file with its source, even where that leans on another
// repository or is a worktree, so nothing written to it can reach them.
func TestAttack40CloneSharesNothing(t *testing.T) {
	p, sh := newRepository(t)
	gitIn(t, p.root, "worktree", "add", "-q", p.dir+"/tree", "-b", "side")
	gitIn(t, p.dir, "clone", "-q", "--shared", p.root, p.dir+"/leaning")
	for _, source := range []string{p.root, p.root + "/sub", p.dir + "/tree", p.dir + "/leaning"} {
		dir, err := sh.Begin()
		if err != nil {
			t.Fatal(err)
		}
		c, err := changes.NewClone(t.Context(), source, dir)
		if err != nil {
			t.Fatalf("%s: %v", source, err)
		}
		seen := 0
		_ = filepath.Walk(c.Repo(), func(path string, fi os.FileInfo, err error) error {
			if err != nil {
				t.Error(err)
				return nil
			}
			if fi.Mode().IsRegular() && links(fi) != 1 {
				t.Errorf("%s has another name", path)
			}
			if strings.HasSuffix(path, "alternates") || strings.HasSuffix(path, "commondir") {
				t.Errorf("%s leads elsewhere", path)
			}
			seen++
			return nil
		})
		if seen < 10 {
			t.Errorf("%s: only %d files", source, seen)
		}
		gitIn(t, c.Repo(), "-c", "safe.directory=*", "fsck")
	}
}

// Settings in a clone that make git run programs are obeyed nowhere but in a
// sandbox: the marks they would leave outside do not appear, neither when the
// clone is looked at nor when it is fetched from.
func TestAttack28GitOnTheClone(t *testing.T) {
	p, sh := newRepository(t)
	c := newClone(t, p, sh)
	mark := p.dir + "/mark"
	if err := os.Mkdir(mark, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(mark, 0o777); err != nil {
		t.Fatal(err)
	}
	gitIn(t, c.Repo(), "-c", "safe.directory=*", "checkout", "-qb", "topic")
	p.write(t, rel(p, c.Repo()+"/a.txt"), "changed\n")
	p.write(t, rel(p, c.Repo()+"/.gitattributes"), "* filter=evil diff=evil\n")
	gitIn(t, c.Repo(), "-c", "safe.directory=*", "add", ".")
	gitIn(t, c.Repo(), "-c", "safe.directory=*", "commit", "-qm", "two")
	p.write(t, rel(p, c.Repo()+"/a.txt"), "changed again\n")
	var config strings.Builder
	for key, value := range map[string]string{
		"filter \"evil\"": "clean", "diff \"evil\"": "textconv", "core": "fsmonitor", "uploadpack": "packObjectsHook", "pager": "log",
	} {
		config.WriteString("[" + key + "]\n\t" + value + " = \"touch " + mark + "/" + value + "; cat\"\n")
	}
	config.WriteString("[diff]\n\texternal = touch " + mark + "/external\n[core]\n\thooksPath = " + c.Repo() + "/hooks\n\tsshCommand = touch " + mark + "/ssh\n")
	p.write(t, rel(p, c.Repo()+"/.git/config"), "[core]\n\trepositoryformatversion = 0\n"+config.String())
	for _, hook := range []string{"post-checkout", "reference-transaction", "pre-push", "update"} {
		p.write(t, rel(p, c.Repo()+"/hooks/"+hook), "#!/bin/sh\ntouch "+mark+"/"+hook+"\n")
		_ = os.Chmod(c.Repo()+"/hooks/"+hook, 0o755)
	}
	// Without a sandbox the filter and the monitor do run.
	_ = exec.Command("git", "-C", c.Repo(), "-c", "safe.directory=*", "status").Run()
	if left, _ := os.ReadDir(mark); len(left) == 0 {
		t.Fatal("the trap does not work even without a sandbox, so it proves nothing")
	}
	_ = os.RemoveAll(mark + "/clean")
	_ = os.RemoveAll(mark + "/fsmonitor")
	_ = os.RemoveAll(mark)
	_ = os.Mkdir(mark, 0o777)
	_ = os.Chmod(mark, 0o777)

	keep(t, sh, c)
	var show bytes.Buffer
	if err := c.Show(t.Context(), &show); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(show.String(), "+changed") {
		t.Errorf("%s", show.String())
	}
	if _, err := c.Accept(t.Context(), c.Hash, "topic"); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(mark)
	if err != nil || len(left) != 0 {
		t.Errorf("%v ran outside: %v", left, err)
	}
	if got := gitIn(t, p.root, "show", "gatehouse/"+c.Hash[:16]+"/topic:a.txt"); got != "changed\n" {
		t.Errorf("%q", got)
	}
}

// Objects that do not hold together are not given a branch.
func TestAttack40BrokenObjects(t *testing.T) {
	p, sh := newRepository(t)
	for name, plant := range map[string]func(c *changes.Clone){
		// A tree with an entry that leads into the repository itself.
		"tree with .git": func(c *changes.Clone) {
			blob := strings.TrimSpace(gitIn(t, c.Repo(), "-c", "safe.directory=*", "hash-object", "-w", "a.txt"))
			raw := "100644 .git\x00" + unhex(t, blob)
			p.write(t, rel(p, c.Repo()+"/tree"), raw)
			tree := strings.TrimSpace(gitIn(t, c.Repo(), "-c", "safe.directory=*", "hash-object", "-w", "-t", "tree", "--literally", "tree"))
			_ = os.Remove(c.Repo() + "/tree")
			commit := strings.TrimSpace(gitIn(t, c.Repo(), "-c", "safe.directory=*", "commit-tree", "-m", "x", "-p", "HEAD", tree))
			gitIn(t, c.Repo(), "-c", "safe.directory=*", "update-ref", "refs/heads/topic", commit)
		},
		"missing blob": func(c *changes.Clone) {
			p.write(t, rel(p, c.Repo()+"/fresh"), "fresh\n")
			gitIn(t, c.Repo(), "-c", "safe.directory=*", "checkout", "-qb", "topic")
			gitIn(t, c.Repo(), "-c", "safe.directory=*", "add", "fresh")
			gitIn(t, c.Repo(), "-c", "safe.directory=*", "commit", "-qm", "fresh")
			blob := strings.TrimSpace(gitIn(t, c.Repo(), "-c", "safe.directory=*", "rev-parse", "HEAD:fresh"))
			_ = os.Remove(c.Repo() + "/.git/objects/" + blob[:2] + "/" + blob[2:])
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClone(t, p, sh)
			plant(c)
			keep(t, sh, c)
			if done, err := c.Accept(t.Context(), c.Hash, "topic"); err == nil {
				t.Errorf("accepted %v", done)
			}
			if got := gitIn(t, p.root, "branch", "--list", "gatehouse/*"); got != "" {
				t.Errorf("a branch was made: %s", got)
			}
		})
	}
}

// What was sealed is what is fetched, whatever the clone says later.
func TestAttack40RefMovedAfterTheDiff(t *testing.T) {
	p, sh := newRepository(t)
	c := newClone(t, p, sh)
	gitIn(t, c.Repo(), "-c", "safe.directory=*", "checkout", "-qb", "topic")
	p.write(t, rel(p, c.Repo()+"/a.txt"), "shown\n")
	gitIn(t, c.Repo(), "-c", "safe.directory=*", "commit", "-qam", "shown")
	keep(t, sh, c)
	p.write(t, rel(p, c.Repo()+"/a.txt"), "not shown\n")
	gitIn(t, c.Repo(), "-c", "safe.directory=*", "commit", "-qam", "not shown")
	e, err := sh.Open(c.Hash[:16])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Clone.Accept(t.Context(), e.Clone.Hash); err != nil {
		t.Fatal(err)
	}
	if got := gitIn(t, p.root, "show", "gatehouse/"+c.Hash[:16]+"/topic:a.txt"); got != "shown\n" {
		t.Errorf("%q", got)
	}
	// A rewritten manifest is not what its name says.
	path := e.Clone.Dir + "/clone.json"
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_ = os.Remove(path)
	if err := os.WriteFile(path, append(raw, ' '), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := sh.Open(c.Hash[:16]); !errors.Is(err, changes.ErrChanged) {
		t.Errorf("%v", err)
	}
	if err := sh.Discard(c.Hash[:16]); err != nil {
		t.Error(err)
	}
}

// A layer on the shelf is found under its hash, and gone when it is discarded.
func TestShelf(t *testing.T) {
	p := newPlace(t)
	sh := changes.Shelf{Dir: p.dir + "/shelf"}
	if list, err := sh.List(); err != nil || len(list) != 0 {
		t.Fatalf("%v %v", list, err)
	}
	dir, err := sh.Begin()
	if err != nil {
		t.Fatal(err)
	}
	r, err := sandbox.Run(t.Context(), sandbox.Spec{
		Command: []string{"/bin/sh", "-c", "echo x > new; mkdir closed; echo y > closed/f; chmod 0 closed"}, Dir: p.root,
		Overlay: sandbox.Overlay{Root: p.root, Layer: dir},
	})
	if err != nil || r.ExitCode != 0 {
		t.Fatalf("%v %+v", err, r)
	}
	_ = os.Chmod(dir+"/upper/closed", 0o700) // sealing takes reading it
	s, err := sh.Keep(dir, p.root, changes.About{Command: []string{"x"}})
	if err != nil {
		t.Fatal(err)
	}
	e, err := sh.Open(s.Hash[:6])
	if err != nil || e.Set == nil || e.Set.Hash != s.Hash || e.Set.About.Command[0] != "x" {
		t.Fatalf("%v %+v", err, e)
	}
	for _, id := range []string{"", "..", "zz", s.Hash[:3], "0000000000000000"} {
		if _, err := sh.Open(id); err == nil {
			t.Errorf("%q was found", id)
		}
	}
	_ = os.Chmod(s.Layer+"/upper/closed", 0)
	if err := sh.Discard(s.Hash[:16]); err != nil {
		t.Error(err)
	}
	if list, err := sh.List(); err != nil || len(list) != 0 {
		t.Errorf("%v %v", list, err)
	}
}
