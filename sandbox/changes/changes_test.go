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

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/seed-3ebc6b8a/gatehouse/internal/needtest"
	"github.com/seed-3ebc6b8a/gatehouse/sandbox"
	"github.com/seed-3ebc6b8a/gatehouse/sandbox/changes"
)

func TestMain(m *testing.M) {
	sandbox.MaybeLaunch()
	os.Exit(m.Run())
}

type place struct{ dir, root, layer string }

func newPlace(t *testing.T) place {
	t.Helper()
	dir, err := os.MkdirTemp("", "gh-changes-")
	if err != nil {
		t.Fatal(err)
	}
	p := place{dir, dir + "/root", dir + "/layer"}
	t.Cleanup(func() {
		_ = filepath.Walk(dir, func(q string, fi os.FileInfo, err error) error {
			if fi != nil && fi.IsDir() {
				_ = os.Chmod(q, 0o700)
			}
			return nil
		})
		_ = os.RemoveAll(dir)
	})
	p.write(t, "root/a.txt", "one\ntwo\n")
	p.write(t, "root/gone.txt", "bye\n")
	p.write(t, "root/sub/deep.txt", "deep\n")
	if err := os.MkdirAll(p.layer+"/upper", 0o755); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p place) write(t *testing.T, rel, content string) {
	t.Helper()
	path := filepath.Join(p.dir, rel)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (p place) seal(t *testing.T) *changes.Set {
	t.Helper()
	s, err := changes.Seal(p.root, p.layer, changes.About{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (p place) files(t *testing.T) map[string]string {
	t.Helper()
	m := map[string]string{}
	_ = filepath.Walk(p.root, func(q string, fi os.FileInfo, err error) error {
		rel, _ := filepath.Rel(p.root, q)
		switch {
		case fi.Mode().IsRegular():
			b, _ := os.ReadFile(q)
			m[rel] = string(b)
		case fi.Mode()&os.ModeSymlink != 0:
			target, _ := os.Readlink(q)
			m[rel] = "-> " + target
		}
		return nil
	})
	return m
}

// A real run, sealed, shown, accepted.
func TestRunAcceptDiscard(t *testing.T) {
	p := newPlace(t)
	if err := os.RemoveAll(p.layer); err != nil {
		t.Fatal(err)
	}
	r, err := sandbox.Run(t.Context(), sandbox.Spec{
		Command: []string{"/bin/sh", "-c", "echo three >> a.txt; rm gone.txt; mkdir new; echo x > new/f; chmod +x new/f; rm -rf sub; mkdir sub; echo other > sub/o; ln -s a.txt l; mkdir .git; echo evil > .git/config"},
		Dir:     p.root, Overlay: sandbox.Overlay{Root: p.root, Layer: p.layer},
	})
	if err != nil || r.ExitCode != 0 {
		t.Fatalf("%v %+v", err, r)
	}
	before := p.files(t)
	s := p.seal(t)
	var list, show bytes.Buffer
	if err := s.List(&list); err != nil {
		t.Fatal(err)
	}
	if err := s.Show(&show, "a.txt"); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(show.String(), "+three\n") || !strings.Contains(list.String(), "protected") {
		t.Errorf("%s\n%s", list.String(), show.String())
	}
	if diff := cmp.Diff(before, p.files(t)); diff != "" {
		t.Fatalf("sealing changed the root: %s", diff)
	}
	again, err := changes.Open(p.layer)
	if err != nil || again.Hash != s.Hash {
		t.Fatalf("%v %v", err, again)
	}
	if _, err := again.Accept(changes.Acceptance{Hash: s.Hash}); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"a.txt": "one\ntwo\nthree\n", "new/f": "x\n", "sub/o": "other\n", "l": "-> a.txt"}
	if diff := cmp.Diff(want, p.files(t)); diff != "" {
		t.Error(diff)
	}
	if fi, err := os.Stat(p.root + "/new/f"); err != nil || fi.Mode().Perm() != 0o755 {
		t.Errorf("%v %v", fi, err)
	}
	if err := again.Discard(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(p.layer); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

func TestAttack36ProtectedNeedsItsName(t *testing.T) {
	p := newPlace(t)
	p.write(t, "layer/upper/sub/.git/hooks/pre-commit", "evil\n")
	p.write(t, "layer/upper/.mcp.json", "{}\n")
	// The names below it come with a link, wherever the files are.
	if err := os.Symlink("sub", p.layer+"/upper/.vscode"); err != nil {
		t.Fatal(err)
	}
	s := p.seal(t)
	if _, err := s.Accept(changes.Acceptance{Hash: s.Hash, Paths: []string{".vscode"}}); err == nil {
		t.Error("a link in place of a directory with protected names was accepted without its name")
	}
	if _, err := s.Accept(changes.Acceptance{Hash: s.Hash, Paths: []string{".mcp.json"}}); err == nil {
		t.Error("accepted without its name")
	}
	if done, err := s.Accept(changes.Acceptance{Hash: s.Hash}); err != nil || len(done) != 0 {
		t.Errorf("%v %v", done, err)
	}
	if _, err := s.Accept(changes.Acceptance{Hash: s.Hash, Protected: []string{".mcp.json"}}); err != nil {
		t.Error(err)
	}
}

// The attacks of the threat table: each is planted in a layer and must not
// get any further.
func TestAttack36HostileLayers(t *testing.T) {
	for name, c := range map[string]struct {
		plant func(t *testing.T, p place)
		path  string
	}{
		"set-user-id": {func(t *testing.T, p place) {
			p.write(t, "layer/upper/s", "x")
			_ = os.Chmod(p.layer+"/upper/s", os.ModeSetuid|0o755)
		}, "s"},
		"pipe":             {func(t *testing.T, p place) { _ = unix.Mkfifo(p.layer+"/upper/f", 0o644) }, "f"},
		"link out":         {func(t *testing.T, p place) { _ = os.Symlink("../../../etc/passwd", p.layer+"/upper/l") }, "l"},
		"absolute link":    {func(t *testing.T, p place) { _ = os.Symlink("/etc/passwd", p.layer+"/upper/l") }, "l"},
		"control in name":  {func(t *testing.T, p place) { p.write(t, "layer/upper/a\x1b[2Jb", "x") }, "a\x1b[2Jb"},
		"bidi in name":     {func(t *testing.T, p place) { p.write(t, "layer/upper/a\u202eb", "x") }, "a\u202eb"},
		"file over a tree": {func(t *testing.T, p place) { p.write(t, "layer/upper/sub", "x") }, "sub"},
		"hard link": {func(t *testing.T, p place) {
			p.write(t, "layer/upper/h1", "x")
			_ = os.Link(p.layer+"/upper/h1", p.layer+"/upper/h2")
		}, "h1"},
		"through a link in the root": {func(t *testing.T, p place) {
			p.write(t, "outside/file", "original")
			_ = os.Symlink("../outside", p.root+"/via")
			p.write(t, "layer/upper/via/file", "evil")
		}, "via/file"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			c.plant(t, p)
			before := p.files(t)
			s := p.seal(t)
			if _, err := s.Accept(changes.Acceptance{Hash: s.Hash, Paths: []string{c.path}}); err == nil {
				t.Error("accepted")
			}
			if done, err := s.Accept(changes.Acceptance{Hash: s.Hash}); err != nil || len(done) > 0 {
				t.Errorf("took over %v: %v", done, err)
			}
			if b, err := os.ReadFile(p.dir + "/outside/file"); err == nil && string(b) != "original" {
				t.Error("the write was redirected")
			}
			if diff := cmp.Diff(before, p.files(t)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The root, or the layer, changes after it was shown.
func TestAttack36WhatChangedSinceIsRefused(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, p place){
		"base content": func(t *testing.T, p place) { p.write(t, "root/a.txt", "somebody else\n") },
		"base becomes link": func(t *testing.T, p place) {
			p.write(t, "outside/file", "original")
			_ = os.Remove(p.root + "/a.txt")
			_ = os.Symlink("../outside/file", p.root+"/a.txt")
		},
		"base deleted": func(t *testing.T, p place) { _ = os.Remove(p.root + "/a.txt") },
		"layer content": func(t *testing.T, p place) {
			_ = os.Chmod(p.layer+"/upper", 0o755)
			p.write(t, "layer/upper/a.txt", "evil\n")
		},
		"layer becomes link": func(t *testing.T, p place) {
			_ = os.Chmod(p.layer+"/upper", 0o755)
			_ = os.Remove(p.layer + "/upper/a.txt")
			_ = os.Symlink("/etc/passwd", p.layer+"/upper/a.txt")
		},
		"other root": func(t *testing.T, p place) {
			_ = os.Rename(p.root, p.root+"2")
			p.write(t, "root/a.txt", "one\ntwo\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			p.write(t, "layer/upper/a.txt", "new\n")
			s := p.seal(t)
			change(t, p)
			before := p.files(t)
			if _, err := s.Accept(changes.Acceptance{Hash: s.Hash}); err == nil {
				t.Error("accepted")
			}
			if diff := cmp.Diff(before, p.files(t)); diff != "" {
				t.Error(diff)
			}
			if b, err := os.ReadFile(p.dir + "/outside/file"); err == nil && string(b) != "original" {
				t.Error("the write was redirected")
			}
		})
	}
}

func TestAttack36AlteredLayer(t *testing.T) {
	p := newPlace(t)
	p.write(t, "layer/upper/a.txt", "new\n")
	p.seal(t)
	_ = os.Chmod(p.layer+"/upper", 0o755)
	p.write(t, "layer/upper/extra", "x")
	if _, err := changes.Open(p.layer); !errors.Is(err, changes.ErrChanged) {
		t.Errorf("%v", err)
	}
}

func TestAttack36AcceptanceIsForOneHash(t *testing.T) {
	p := newPlace(t)
	p.write(t, "layer/upper/a.txt", "new\n")
	s := p.seal(t)
	for _, h := range []string{"", strings.Repeat("0", 64)} {
		if _, err := s.Accept(changes.Acceptance{Hash: h}); !errors.Is(err, changes.ErrChanged) {
			t.Errorf("%v", err)
		}
	}
}

// TestAttack36MarksFromInside: what an overlay notes about its own files are
// attributes and a device that anybody may make in a plain directory. Made in
// the overlay they must mean nothing: no deletion that was not one, no directory
// that hides what is below it, no file with another's content.
func TestAttack36MarksFromInside(t *testing.T) {
	needtest.Programs(t, "python3")
	const marks = `
import os, stat
os.mkdir("made"); open("f", "w").write("x")
done = []
for name in ["opaque", "redirect", "metacopy", "origin", "whiteout", "whiteouts", "impure"]:
    for prefix in ["user.overlay.", "trusted.overlay."]:
        for where in ["sub", "made", "a.txt", "f", "."]:
            try: os.setxattr(where, prefix + name, b"y" if name != "redirect" else b"/gone.txt"); done.append(where + " " + prefix + name)
            except OSError: pass
for where in ["gone.txt.w", "made/w", "sub/w"]:
    try: os.mknod(where, 0o600 | stat.S_IFCHR, os.makedev(0, 0)); done.append("device " + where)
    except OSError: pass
print("\n".join(done))`
	p := newPlace(t)
	free := exec.Command("python3", "-c", marks)
	free.Dir = p.dir + "/free"
	p.write(t, "free/a.txt", "")
	p.write(t, "free/sub/x", "")
	if out, err := free.CombinedOutput(); err != nil || !strings.Contains(string(out), "made user.overlay.opaque") || !strings.Contains(string(out), "device made/w") {
		t.Fatalf("it does not even work in a plain directory: %v\n%s", err, out)
	}
	if err := os.RemoveAll(p.layer); err != nil {
		t.Fatal(err)
	}
	before := p.files(t)
	r, err := sandbox.Run(t.Context(), sandbox.Spec{
		Command: []string{"/usr/bin/python3", "-c", marks}, Dir: p.root, Overlay: sandbox.Overlay{Root: p.root, Layer: p.layer},
	})
	if err != nil || r.ExitCode != 0 {
		t.Fatalf("%v %+v", err, r)
	}
	if strings.Contains(string(r.Stdout), "device") {
		t.Errorf("devices were made: %s", r.Stdout)
	}
	s := p.seal(t)
	var list bytes.Buffer
	if err := s.List(&list); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Accept(changes.Acceptance{Hash: s.Hash}); err != nil {
		t.Logf("%s", list.String())
		t.Fatal(err)
	}
	before["f"] = "x"
	if diff := cmp.Diff(before, p.files(t)); diff != "" {
		t.Errorf("accepting %s%s", list.String(), diff)
	}
}
