package shell_test

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"

	"github.com/seed-3ebc6b8a/gatehouse/internal/shell"
)

// sameTree holds the quick tree against the parser's, if there is a quick one.
func sameTree(t *testing.T, text string) bool {
	t.Helper()
	got, ok := shell.QuickParse(text)
	if !ok {
		return false
	}
	file, err := syntax.NewParser().Parse(strings.NewReader(text), "")
	if err != nil {
		t.Fatalf("%q does not parse, and was read quickly: %v", text, err)
	}
	if !reflect.DeepEqual(file.Stmts, got) {
		var want, have strings.Builder
		_ = syntax.DebugPrint(&want, file)
		_ = syntax.DebugPrint(&have, &syntax.File{Stmts: got})
		t.Fatalf("%q\nthe parser: %s\nquickly: %s", text, &want, &have)
	}
	return true
}

// TestQuickMakesTheParsersTree compares the two on all commands there are, and
// on texts made to be taken for what they are not.
func TestQuickMakesTheParsersTree(t *testing.T) {
	t.Parallel()
	quick := 0
	for _, c := range ordinary {
		if sameTree(t, c) {
			quick++
		}
	}
	if quick < len(ordinary)/2 {
		t.Errorf("%d of %d ordinary commands are read quickly", quick, len(ordinary))
	}
	for _, r := range readRows(t, filepath.Join("testdata", "corpus.jsonl")) {
		sameTree(t, r.Cmd)
	}
	for _, text := range []string{
		"", " ", ";", "a;", "a ;b", "a;;b", "a&", "a&b", "a&&", "&& a", "a||b", "a|b|c", "a|&b", "a && b | c || d; e", "'a'b\"c\" d", "''", "\"\"",
		"a=b", "a=b c", "c a=b", "'a'=b", "\"a\"=b c", "if", "if a", "a if", "export a=b", "time ls", "! a", "{ a", "a }", "a{b,c}", "echo *.go a?b ~/x",
		"a 'b\nc'", "a \"b$c\"", "a\nb", "a #b", "a#b", "f() a", "a@(b)", "in", "then", "a  \t b", "a ;", "a; ;b", "a;&b", "let x=1", "'if' a", "i'f' a", "x+=1", "a[1]=2",
		"1>a", "2 >a", "-x", "a -", "+(", "@test x", "a|| b", "a|b||c|d&&e", "\"a b\"'c d'e f", "[[", "]]", "nameref a", "~", "^a^b", "%1", "a:b=c",
		"a >b", "a>b", "a 2>/dev/null", "a 2>&1 | b", "a >>b c", "a <b", "a 2>& 1", "a >&2", "a >&b", "a &>b", "a <<b", "a <<<b", "a >|b", "a <>b", "a <(b)", "a 22>x y",
		"a b2>c", "a 2 >c", "a >", "a > > b", "a >'b c'd", ">a b", "a 1<&2", "a >b;c", "a>b>c", "a 2>&1x", "a >1", "a 2>&1&&b", "a 12'x'>b",
	} {
		sameTree(t, text)
	}
}

// FuzzQuick: whatever is read quickly is read as the parser reads it.
func FuzzQuick(f *testing.F) {
	for _, c := range ordinary {
		f.Add(c)
	}
	for _, c := range growing {
		f.Add(c + c)
	}
	f.Fuzz(func(t *testing.T, text string) { sameTree(t, text) })
}
