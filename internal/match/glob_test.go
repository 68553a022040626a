package match_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
)

var base = match.Base{Dir: "/work/app", Home: "/home/ann"}

func mustGlob(t testing.TB, p string) match.Glob {
	t.Helper()
	g, err := match.CompileGlob(base, p)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestGlob(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern string
		yes, no []string
	}{
		{"./src/**", []string{"/work/app/src", "/work/app/src/a", "/work/app/src/a/b.go"}, []string{"/work/app/src2", "/work/app", "/work/app/srcx/a"}},
		{"src/*.go", []string{"/work/app/src/a.go", "/work/app/src/.go"}, []string{"/work/app/src/a/b.go", "/work/app/src/a.goo"}},
		{"~/.ssh/**", []string{"/home/ann/.ssh", "/home/ann/.ssh/id_rsa"}, []string{"/home/bob/.ssh/id_rsa"}},
		{"/**/.env", []string{"/.env", "/a/.env", "/a/b/c/.env"}, []string{"/a/x.env", "/.env/a"}},
		{"**/.env*", []string{"/work/app/.env", "/work/app/a/.env.local"}, []string{"/.env"}},
		{"/a/**/b/**/c", []string{"/a/b/c", "/a/x/b/y/z/c", "/a/b/b/c"}, []string{"/a/c", "/a/b", "/a/bc"}},
		{"/{a,b/c}/[x-z]?", []string{"/a/x1", "/b/c/zz"}, []string{"/a/w1", "/b/x1", "/a/x/"}},
		{"/a/[!x]", []string{"/a/y"}, []string{"/a/x", "/a/yy"}},
		{`/a/\*`, []string{"/a/*"}, []string{"/a/b"}},
		{"../lib/./x", []string{"/work/lib/x"}, []string{"/work/app/lib/x"}},
		{"/", []string{"/"}, []string{"/a"}},
		{"/**", []string{"/", "/a", "/a/b"}, []string{"a", "", "/a/", "/a/../b", "//a"}},
		{"/a/**/**", []string{"/a", "/a/b/c"}, []string{"/b"}},
		{"/é", []string{"/\u00e9"}, []string{"/e\u0301"}},
		{"/a**b", []string{"/ab", "/axxb"}, []string{"/a/b"}},
	} {
		g := mustGlob(t, c.pattern)
		for _, p := range c.yes {
			if !g.Match(p) {
				t.Errorf("%q should hold %q", c.pattern, p)
			}
		}
		for _, p := range c.no {
			if g.Match(p) {
				t.Errorf("%q should not hold %q", c.pattern, p)
			}
		}
	}
}

func TestGlobBaseIsLiteral(t *testing.T) {
	t.Parallel()
	g, err := match.CompileGlob(match.Base{Dir: "/w/[x]{a,b}*"}, "*.go")
	if err != nil {
		t.Fatal(err)
	}
	if !g.Match("/w/[x]{a,b}*/m.go") || g.Match("/w/xa1/m.go") {
		t.Error("characters of the base directory must stand for themselves")
	}
}

func TestGlobErrors(t *testing.T) {
	t.Parallel()
	for p, want := range map[string]error{
		"":                                      match.ErrEmptyPattern,
		"a[":                                    match.ErrGlobSyntax,
		"a[]":                                   match.ErrGlobSyntax,
		"{a,b":                                  match.ErrGlobSyntax,
		`a\`:                                    match.ErrGlobSyntax,
		"a\x00":                                 match.ErrNUL,
		"a\xff":                                 match.ErrBadUTF8,
		"src/":                                  match.ErrGlobTrailing,
		"/*/../etc":                             match.ErrGlobParent,
		"~bob/x":                                match.ErrOtherHome,
		"{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}":   match.ErrGlobBraces,
		strings.Repeat("a", match.MaxPattern+1): match.ErrLongPattern,
	} {
		if _, err := match.CompileGlob(base, p); !errors.Is(err, want) {
			t.Errorf("%q: got %v, want %v", p, err, want)
		}
	}
	if _, err := match.CompileSet(base, "a[", "ok", "{"); err == nil || !strings.Contains(err.Error(), `"a["`) || !strings.Contains(err.Error(), `"{"`) {
		t.Errorf("CompileSet must name every bad pattern: %v", err)
	}
}

func TestGlobMayMatch(t *testing.T) {
	t.Parallel()
	g := mustGlob(t, "/w/**/.git/**")
	for _, p := range []string{"/w/.GIT/config", "/W/sub/.Git"} {
		if g.Match(p) {
			t.Errorf("Match must be exact: %q", p)
		}
		if !g.MayMatch(p) {
			t.Errorf("MayMatch must ignore case: %q", p)
		}
	}
	if !mustGlob(t, "/w/é").MayMatch("/w/e\u0301") || !mustGlob(t, "/w/e\u0301").MayMatch("/w/É") || !mustGlob(t, "/w/[a-f]").MayMatch("/w/C") {
		t.Error("MayMatch must ignore Unicode form and case of classes")
	}
}

func TestGlobRoot(t *testing.T) {
	t.Parallel()
	for p, want := range map[string]string{
		"./src/**": "/work/app/src", "src/*.go": "/work/app/src", "/a/b": "/a/b", "/**": "/", "/*": "/",
		"/a/{b,c}/**": "/a", "/a/**/x": "/a", "/a/b*/c": "/a", "/{a/x,a/y}": "/a", "/{ab,a}/**": "/",
	} {
		if got := mustGlob(t, p).Root(); got != want {
			t.Errorf("Root(%q) = %q, want %q", p, got, want)
		}
	}
}

var (
	smallGlob = rapid.StringMatching(`/(a|b|\*|\?|\*\*|ab|a\*|\*b|\[ab\]|\[!a\]|\{a,b\}|\{a,b/a\})(/(a|b|\*|\?|\*\*|\*\*b|\[^b\]|b\*a|\.a)){0,3}`)
	smallPath = rapid.StringMatching(`/(a|b|ab|ba|c|\.a|aab)(/(a|b|ab|c|\.a)){0,3}`)
)

// TestGlobAgreesWithDoublestar: on clean paths our linear machine and the library say the same.
func TestGlobAgreesWithDoublestar(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		pattern, p := smallGlob.Draw(t, "pattern"), smallPath.Draw(t, "path")
		g, err := match.CompileGlob(base, pattern)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := g.Match(p), doublestarSays(pattern, p); got != want {
			t.Fatalf("%q on %q: got %v, doublestar says %v", pattern, p, got, want)
		}
	})
}

// doublestarSays asks the library, and again without a "/**" at the end: "/a*/**" does not hold
// "/a" there though "/a/**" does, and we keep the rule, not the exception.
func doublestarSays(pattern, p string) bool {
	if doublestar.MatchUnvalidated(pattern, p) {
		return true
	}
	dir, ok := strings.CutSuffix(pattern, "/**")
	return ok && doublestarSays(dir, p)
}

// smallPaths are all clean paths of up to three elements over a small alphabet.
var smallPaths = func() []string {
	elems := []string{"a", "b", "c", "ab", "ba", "aa", "bb", ".a", "aab"}
	out := []string{"/"}
	level := []string{""}
	for range 3 {
		var next []string
		for _, p := range level {
			for _, e := range elems {
				next = append(next, p+"/"+e)
			}
		}
		out = append(out, next...)
		level = next
	}
	return out
}()

// TestCoversSound: Yes means subset, No means there is a path outside, on every small path; and
// between such patterns the answer is never Unknown.
func TestCoversSound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		wide, err := match.CompileSet(base, rapid.SliceOfN(smallGlob, 0, 3).Draw(t, "wide")...)
		if err != nil {
			t.Fatal(err)
		}
		narrow, err := match.CompileSet(base, rapid.SliceOfN(smallGlob, 0, 2).Draw(t, "narrow")...)
		if err != nil {
			t.Fatal(err)
		}
		answer := match.Covers(wide, narrow)
		counter := ""
		for _, p := range smallPaths {
			_, n := narrow.Match(p)
			_, w := wide.Match(p)
			if n && !w {
				counter = p
				break
			}
		}
		switch {
		case answer == match.Unknown:
			t.Fatal("Unknown for small patterns")
		case answer == match.Yes && counter != "":
			t.Fatalf("Yes, but %q is in narrow alone", counter)
		}
	})
}

func TestCovers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		wide, narrow []string
		want         match.Answer
	}{
		{[]string{"./src/**"}, []string{"src/*.go"}, match.Yes},
		{[]string{"src/*.go"}, []string{"./src/**"}, match.No},
		{[]string{"/a/**"}, []string{"/a/*", "/a/b/**/c"}, match.Yes},
		{[]string{"/a/?*"}, []string{"/a/*"}, match.Yes}, // no clean path has an empty element
		{[]string{"/a/[a-m]*", "/a/[!a-m]*"}, []string{"/a/*"}, match.Yes},
		{[]string{"/a/[a-m]*", "/a/[n-z]*"}, []string{"/a/*"}, match.No},
		{[]string{"/a", "/a/*", "/a/*/**"}, []string{"/a/**"}, match.Yes},
		{[]string{"/a/{b,c}"}, []string{"/a/b", "/a/c"}, match.Yes},
		{[]string{"/**/x"}, []string{"/a/**/x"}, match.Yes},
		{[]string{"/a/**/x"}, []string{"/**/x"}, match.No},
		{nil, nil, match.Yes},
		{nil, []string{"/a"}, match.No},
		{[]string{"/a"}, nil, match.Yes},
		{[]string{"/**"}, []string{"/a/**"}, match.Yes},
		{[]string{"~/x"}, []string{"/home/ann/x"}, match.Yes},
	} {
		w, err := match.CompileSet(base, c.wide...)
		if err != nil {
			t.Fatal(err)
		}
		n, err := match.CompileSet(base, c.narrow...)
		if err != nil {
			t.Fatal(err)
		}
		if got := match.Covers(w, n); got != c.want {
			t.Errorf("Covers(%q, %q) = %v, want %v", c.wide, c.narrow, got, c.want)
		}
	}
}

// TestCoversBounded: a question made to explode ends, and not with Yes.
func TestCoversBounded(t *testing.T) {
	t.Parallel()
	wide := mustGlob(t, "/"+strings.Repeat("*a"+strings.Repeat("?", 20), 12))
	narrow := mustGlob(t, "/"+strings.Repeat("*[ab]", 100)+strings.Repeat("?", 200))
	got := match.Covers(match.NewPathSet(wide), match.NewPathSet(narrow))
	if got == match.Yes {
		t.Error("Yes for what is no subset")
	}
}

func TestOpGlob(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern string
		yes, no []string
	}{
		{"list_*", []string{"list_", "list_elements"}, []string{"List_elements", "xlist_", "list"}},
		{"*", []string{"", "a", "a/b"}, nil},
		{"?et", []string{"get", "set", "éet"}, []string{"et", "gets"}},
		{"mcp__*__read_*", []string{"mcp__git__read_file"}, []string{"mcp__git__write_file"}},
		{"delete_element", []string{"delete_element"}, []string{"delete_elements", ""}},
	} {
		g, err := match.CompileOp(c.pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range c.yes {
			if !g.Match(s) {
				t.Errorf("%q should match %q", c.pattern, s)
			}
		}
		for _, s := range c.no {
			if g.Match(s) {
				t.Errorf("%q should not match %q", c.pattern, s)
			}
		}
	}
	if (match.OpGlob{}).Match("") || (match.Glob{}).Match("/") || (match.HostPattern{}).Match(match.Host{Name: "a", Port: 80}) {
		t.Error("zero values must match nothing")
	}
}

func TestOpGlobCovers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		wide, narrow string
		want         match.Answer
	}{
		{"*", "a*b?", match.Yes}, {"a*", "ab*", match.Yes}, {"ab*", "a*", match.No}, {"?*", "*", match.No}, {"*?", "?*", match.Yes}, {"a", "a", match.Yes},
	} {
		w, _ := match.CompileOp(c.wide)
		n, _ := match.CompileOp(c.narrow)
		if got := w.Covers(n); got != c.want {
			t.Errorf("%q covers %q = %v, want %v", c.wide, c.narrow, got, c.want)
		}
	}
}

// TestOpGlobLinear: the classic exponential trap ends. A matcher that backtracks would not live to see it.
func TestOpGlobLinear(t *testing.T) {
	t.Parallel()
	g, err := match.CompileOp(strings.Repeat("a*", 30) + "b")
	if err != nil {
		t.Fatal(err)
	}
	if g.Match(strings.Repeat("a", 1<<16)) {
		t.Error("no b at the end")
	}
}

func TestNearest(t *testing.T) {
	t.Parallel()
	ops := []string{"list_elements", "get_element", "delete_element", "create_element", "clear", "abort_execution"}
	for name, want := range map[string]string{
		"listElements": "list_elements", "LIST-ELEMENTS": "list_elements", "delete_elemnt": "delete_element", "claer": "clear",
		"abort_exection": "abort_execution", "frobnicate": "", "": "", "x": "",
	} {
		got, _ := match.Nearest(name, ops)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Nearest(%q): %s", name, diff)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(rapid.StringMatching(`[ab]{1,4}`), 1, 6).Draw(t, "list")
		name := rapid.StringMatching(`[abc]{1,4}`).Draw(t, "name")
		a, ok1 := match.Nearest(name, list)
		b, ok2 := match.Nearest(name, rapid.Permutation(list).Draw(t, "other order"))
		if ok1 != ok2 || ok1 && a != b {
			t.Fatalf("order matters: %q, %q", a, b)
		}
	})
}
