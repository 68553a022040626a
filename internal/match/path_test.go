package match_test

import (
	"errors"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
)

func TestCleanPath(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		word string
		want match.Path
	}{
		{"a/b", match.Path{Clean: "/work/app/a/b", Raw: "/work/app/a/b"}},
		{".", match.Path{Clean: "/work/app", Raw: "/work/app"}},
		{"../../etc/passwd", match.Path{Clean: "/etc/passwd", Raw: "/work/app/../../etc/passwd"}},
		{"/../../x", match.Path{Clean: "/x", Raw: "/../../x"}},
		{"/a//b/./c/", match.Path{Clean: "/a/b/c", Raw: "/a/b/c"}},
		{"~", match.Path{Clean: "/home/ann", Raw: "/home/ann"}},
		{"~/.ssh/id_rsa", match.Path{Clean: "/home/ann/.ssh/id_rsa", Raw: "/home/ann/.ssh/id_rsa"}},
		{"file:///etc/passwd", match.Path{Clean: "/etc/passwd", Raw: "/etc/passwd"}},
		{"FILE://localhost/etc/passwd?x#y", match.Path{Clean: "/etc/passwd", Raw: "/etc/passwd"}},
		{"file:/etc/%2e%2e/%65tc", match.Path{Clean: "/etc", Raw: "/etc/../etc"}},
		{"/proc/self/root/etc/shadow", match.Path{Clean: "/etc/shadow", Raw: "/etc/shadow"}},
		{"/proc/self/cwd/x/../y", match.Path{Clean: "/work/app/y", Raw: "/work/app/x/../y"}},
		{"/proc/thread-self/root/proc/self/root/etc", match.Path{Clean: "/etc", Raw: "/etc"}},
		{"/proc/x/../self/task/12/root/etc", match.Path{Clean: "/etc", Raw: "/etc"}},
		{"/proc/self/fd/3", match.Path{Clean: "/proc/self/fd/3", Raw: "/proc/self/fd/3", Magic: true}},
		{"/dev/fd/9", match.Path{Clean: "/dev/fd/9", Raw: "/dev/fd/9", Magic: true}},
		{"é", match.Path{Clean: "/work/app/é", Raw: "/work/app/é", Form: match.FormNFC}},
		{"e\u0301", match.Path{Clean: "/work/app/e\u0301", Raw: "/work/app/e\u0301", Form: match.FormNFD}},
		{"e\u0301é", match.Path{Clean: "/work/app/e\u0301é", Raw: "/work/app/e\u0301é", Form: match.FormMixed}},
	} {
		got, err := match.CleanPath(base, c.word)
		if err != nil {
			t.Errorf("%q: %v", c.word, err)
			continue
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.word, diff)
		}
	}
	if p, err := match.CleanLiteral(base, "~/file:x"); err != nil || p.Clean != "/work/app/~/file:x" {
		t.Errorf("CleanLiteral: %v, %v", p, err)
	}
}

func TestCleanPathErrors(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]error{
		"":                        match.ErrEmptyPath,
		"a\x00b":                  match.ErrNUL,
		"file:///a%00b":           match.ErrNUL,
		"a\xffb":                  match.ErrBadUTF8,
		"file:///%ff":             match.ErrBadUTF8,
		"~root/x":                 match.ErrOtherHome,
		"file://evil/share":       match.ErrFileURL,
		"file:///a%zz":            match.ErrFileURL,
		"/proc/1/root/etc":        match.ErrMagicLink,
		"/proc/4711/cwd":          match.ErrMagicLink,
		strings.Repeat("a", 5000): match.ErrLongPath,
	} {
		if _, err := match.CleanPath(base, word); !errors.Is(err, want) {
			t.Errorf("%.40q: got %v, want %v", word, err, want)
		}
	}
	if _, err := match.CleanPath(match.Base{}, "a"); !errors.Is(err, match.ErrNoBase) {
		t.Errorf("no base: %v", err)
	}
	if _, err := match.CleanPath(match.Base{Dir: "/"}, "~/a"); !errors.Is(err, match.ErrNoHome) {
		t.Errorf("no home: %v", err)
	}
}

// links is a file system that consists of symbolic links.
type links map[string]string

func (l links) Readlink(p string) (string, bool, error) {
	if p == "/broken" {
		return "", false, errors.New("no answer")
	}
	t, ok := l[p]
	return t, ok, nil
}

func TestResolve(t *testing.T) {
	t.Parallel()
	fs := links{"/w/src": "/etc", "/w/rel": "../home/ann", "/w/loop": "loop", "/a": "/b", "/b": "c/d", "/c": "/", "/w/up": "src/.."}
	for _, c := range []struct{ in, want string }{
		{"/w/src/passwd", "/etc/passwd"},
		{"/w/src/../shadow", "/shadow"}, // lexically /w/shadow: the difference an attacker uses
		{"/w/rel/x", "/home/ann/x"},
		{"/a/x", "/d/x"},
		{"/w/up/x", "/x"},
		{"/missing/./x//y/", "/missing/x/y"},
		{"/../..", "/"},
	} {
		got, err := match.Resolve(c.in, fs)
		if err != nil || got.Path != c.want {
			t.Errorf("Resolve(%q) = %q, %v; want %q", c.in, got.Path, err, c.want)
		}
	}
	got, err := match.Resolve("/w/src/x", fs)
	if diff := cmp.Diff([]match.Link{{Path: "/w/src", Target: "/etc"}}, got.Links); err != nil || diff != "" {
		t.Errorf("links followed: %v %s", err, diff)
	}
	if _, err := match.Resolve("/w/loop/x", fs); !errors.Is(err, match.ErrLinkLoop) {
		t.Errorf("loop: %v", err)
	}
	if _, err := match.Resolve("/broken/x", fs); err == nil {
		t.Error("an unanswered question must be an error")
	}
	if _, err := match.Resolve("x", fs); !errors.Is(err, match.ErrNotAbsolute) {
		t.Errorf("relative: %v", err)
	}
}

func TestWithin(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		dir, p string
		want   bool
	}{{"/a", "/a", true}, {"/a", "/a/b", true}, {"/a", "/ab", false}, {"/", "/x", true}, {"/a", "/a/../b", false}, {"a", "a/b", false}} {
		if got := match.Within(c.dir, c.p); got != c.want {
			t.Errorf("Within(%q, %q) = %v", c.dir, c.p, got)
		}
	}
}

// TestCleanPathLaws: the result is clean, cleaning it again changes nothing, and without links
// Resolve agrees with lexical cleaning.
func TestCleanPathLaws(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`(~|~/|/|file:///)?((\.\.|\.|a|b|é|%2e|proc|self|root)/{0,2}){0,6}`).Draw(t, "word")
		p, err := match.CleanPath(base, word)
		if err != nil {
			return
		}
		if !path.IsAbs(p.Clean) || path.Clean(p.Clean) != p.Clean {
			t.Fatalf("not clean: %q", p.Clean)
		}
		again, err := match.CleanLiteral(base, p.Clean)
		if err != nil || again.Clean != p.Clean {
			t.Fatalf("not a fixed point: %q, %v", again.Clean, err)
		}
		r, err := match.Resolve(p.Raw, links{})
		if err != nil || r.Path != p.Clean {
			t.Fatalf("Resolve says %q, %v", r.Path, err)
		}
	})
}
