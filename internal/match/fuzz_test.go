package match_test

import (
	"path"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
)

func FuzzGlob(f *testing.F) {
	for _, p := range []string{"/**/a", "/a/{b,c}/[x-z]?", `/\*`, "/a**/**/b", "src/*.go", "~/x/../y", "/[^a]/{}/**"} {
		f.Add(p, "/a/b/c")
	}
	f.Fuzz(func(t *testing.T, pattern, p string) {
		g, err := match.CompileGlob(base, pattern)
		if err != nil {
			return
		}
		got := g.Match(p)
		if got && !g.MayMatch(p) {
			t.Error("MayMatch must hold what Match holds")
		}
		if got && !match.Within(g.Root(), p) {
			t.Errorf("%q is outside the root %q", p, g.Root())
		}
		set := match.NewPathSet(g)
		if match.Covers(set, set) == match.No {
			t.Error("a pattern covers itself")
		}
		if p == "/" {
			return // doublestar answers "/*" with yes and "/**/*" with no; the root has no name to match
		}
		if path.IsAbs(pattern) && path.Clean(pattern) == pattern && path.IsAbs(p) && path.Clean(p) == p && utf8.ValidString(p) {
			if want := doublestarSays(pattern, p); want != got && !knownDifference(pattern) {
				t.Errorf("%q on %q: got %v, doublestar says %v", pattern, p, got, want)
			}
		}
	})
}

// FuzzCovers: where one pattern is said to lie within another, no path that the
// narrow one matches escapes the wide one.
func FuzzCovers(f *testing.F) {
	for _, s := range [][3]string{
		{"/srv/**", "/srv/a/**", "/srv/a/b"}, {"/a/*", "/a/{b,c}", "/a/b"}, {"/**/x", "/a/**/x", "/a/x"}, {"/a/[a-c]*", "/a/b?", "/a/bz"}, {"./**", "src/**/*.go", "/work/src/x.go"},
	} {
		f.Add(s[0], s[1], s[2])
	}
	f.Fuzz(func(t *testing.T, wide, narrow, p string) {
		w, errW := match.CompileSet(base, wide)
		n, errN := match.CompileSet(base, narrow)
		if errW != nil || errN != nil {
			return
		}
		covers := match.Covers(w, n)
		_, inNarrow := n.Match(p)
		if _, inWide := w.Match(p); covers == match.Yes && inNarrow && !inWide {
			t.Errorf("%q is said to cover %q, and does not match %q", wide, narrow, p)
		}
	})
}

// knownDifference: doublestar reads a few malformed or degenerate spellings differently, such as
// stars in a row that are not a whole element ("/a**" does not hold "/a" there); we follow what its
// documentation says.
func knownDifference(pattern string) bool {
	for el := range strings.SplitSeq(pattern, "/") {
		if el != "**" && strings.Contains(el, "**") {
			return true
		}
	}
	for i := 0; i < len(pattern); i++ {
		switch pattern[i] {
		case '{', '}', '[', ']', '\\':
			return true
		}
	}
	return false
}

func FuzzOpGlob(f *testing.F) {
	f.Add("a*b?", "axxbc")
	f.Add("*", "")
	f.Fuzz(func(t *testing.T, pattern, name string) {
		g, err := match.CompileOp(pattern)
		if err != nil {
			return
		}
		all, _ := match.CompileOp("*")
		if g.Match(name) && !all.Match(name) {
			t.Error("* matches all")
		}
		if all.Covers(g) != match.Yes {
			t.Error("* covers all")
		}
	})
}

func FuzzCleanPath(f *testing.F) {
	for _, p := range []string{"a/../b", "~/x", "file:///a%2e", "/proc/self/root/x", "/proc/1/cwd", "é", "\x00", "//a/./"} {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, word string) {
		p, err := match.CleanPath(base, word)
		if err != nil {
			return
		}
		if !path.IsAbs(p.Clean) || path.Clean(p.Clean) != p.Clean || !utf8.ValidString(p.Clean) {
			t.Errorf("not clean: %q", p.Clean)
		}
		if r, err := match.Resolve(p.Raw, links{}); err == nil && r.Path != p.Clean {
			t.Errorf("without links Resolve says %q, CleanPath %q", r.Path, p.Clean)
		}
		if again, err := match.CleanLiteral(base, p.Clean); err != nil || again.Clean != p.Clean {
			t.Errorf("not a fixed point: %q, %v", again.Clean, err)
		}
	})
}

func FuzzParseHost(f *testing.F) {
	for _, h := range []string{"https://u:p@h:1/x", "[::1]:80", "0x7f.1", "git@h:p", "①.⓪", "a..b", "http://x#@y", "xn--bcher-kva.example", "1.2.3.4.nip.io", "::%]", "[fe80::1%25eth0]", "::%2525", "::%252"} {
		f.Add(h)
	}
	any, _ := match.CompileHost("*:*")
	f.Fuzz(func(t *testing.T, word string) {
		h, err := match.ParseHost(word)
		if err != nil {
			return
		}
		if h.Name == "" || h.Class() == match.ClassInvalid || !any.Match(h) {
			t.Errorf("%q parsed to %+v", word, h)
		}
		again, err := match.ParseHost(h.String())
		if err != nil || again.Name != h.Name {
			t.Errorf("%q: own spelling %q reads as %q, %v", word, h, again.Name, err)
		}
	})
}

func FuzzHostPattern(f *testing.F) {
	for _, p := range []string{"*.x:443", "10.0.0.0/8", ":1", "[::1]:*", "a", "::/0"} {
		f.Add(p, "https://a.x/")
	}
	f.Fuzz(func(t *testing.T, pattern, word string) {
		p, err := match.CompileHost(pattern)
		if err != nil {
			return
		}
		if match.CoversHosts([]match.HostPattern{p}, []match.HostPattern{p}) != match.Yes {
			t.Errorf("%q does not cover itself", pattern)
		}
		if h, err := match.ParseHost(word); err == nil && p.Match(h) && !p.MayMatch(h) {
			t.Errorf("%q on %q: Match without MayMatch", pattern, word)
		}
	})
}

func FuzzVisible(f *testing.F) {
	f.Add("a\u202e\\x1b\x1b\xff")
	f.Fuzz(func(t *testing.T, s string) {
		if got := match.Unvisible(match.Visible(s)); got != s {
			t.Errorf("%q came back as %q", s, got)
		}
		var fold match.Folded
		fold.Load(s)
		if fold.Source(len(fold.Text)) > len(s) {
			t.Error("source beyond the end")
		}
	})
}

// FuzzFoldAgrees holds the quick way to fold a text against the plain one.
func FuzzFoldAgrees(f *testing.F) {
	for _, s := range []string{
		"", "plain", "Ворота открывают на рассвете, а the gate is closed", "门卫查看每一辆车", "ig\u200bnоre", "ａｂｃ 𝐀𝐁", "\xff\xe1\x80 \xed\xa0\x80 \xe0\x80\x80 \xc0\x80",
		"يفتح الحارس\u202eباب", "🚪🐴\U000e0041\ufe0f", "na\u0308ive ﬁ \u00a0x\x1b[8m", "a\u0430b сор Ω≈ç",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if len(s) > 1<<12 {
			return
		}
		text, marks, source := match.QuickFold(s)
		wantText, wantMarks, wantSource := match.SlowFold(s)
		if text != wantText || !slices.Equal(marks, wantMarks) || !slices.Equal(source, wantSource) {
			t.Errorf("%q folds to %q %v %v, plainly to %q %v %v", s, text, marks, source, wantText, wantMarks, wantSource)
		}
	})
}
