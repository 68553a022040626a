package match_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
)

func TestInspect(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		want []match.Mark
	}{
		{"plain text\n\twith lines\r\n", nil},
		{"Привет, это GitHub и Docker", nil},
		{"日本語とEnglish、ひらがな", nil},
		{"Δt in μm, λx.x, ρgh? no: 3 letters", []match.Mark{{Kind: match.MarkMixedScript, Start: 19, End: 23, Count: 3}}},
		{"a\u202eb", []match.Mark{{Kind: match.MarkBidiForce, Start: 1, End: 4, Count: 1}}},
		{"\u2067x\u2069", []match.Mark{{Kind: match.MarkBidiRTL, Start: 0, End: 3, Count: 1}, {Kind: match.MarkBidiPop, Start: 4, End: 7, Count: 1}}},
		{"ig\u200b\u200bnore", []match.Mark{{Kind: match.MarkZeroWidth, Start: 2, End: 8, Count: 2}}},
		{"x\U000E0041\U000E0042", []match.Mark{{Kind: match.MarkTag, Start: 1, End: 9, Count: 2}}},
		{"x\uFE0F", []match.Mark{{Kind: match.MarkVariation, Start: 1, End: 4, Count: 1}}},
		{"\x1b[31m", []match.Mark{{Kind: match.MarkControl, Start: 0, End: 1, Count: 1}}},
		{"a\u00a0b", []match.Mark{{Kind: match.MarkSpace, Start: 1, End: 3, Count: 1}}},
		{"a\xffb", []match.Mark{{Kind: match.MarkInvalid, Start: 1, End: 2, Count: 1}}},
		{"pаypal login", []match.Mark{{Kind: match.MarkMixedScript, Start: 0, End: 7, Count: 6}}},
		{"visit аррӏе now", []match.Mark{{Kind: match.MarkLookAlike, Start: 6, End: 16, Count: 5}}},
		{"сор из избы", nil}, // a Russian proverb, the first word all look-alikes
		{"\uFDD0", []match.Mark{{Kind: match.MarkNonChar, Start: 0, End: 3, Count: 1}}},
		{"\uE000", []match.Mark{{Kind: match.MarkPrivate, Start: 0, End: 3, Count: 1}}},
	} {
		if diff := cmp.Diff(c.want, match.Inspect(c.text)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.text, diff)
		}
	}
}

func TestFold(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain":                  "plain",
		"ig\u200bnore":           "ignore",
		"Ｉｇｎｏｒｅ":                 "Ignore",
		"𝐢𝐠𝐧𝐨𝐫𝐞":                 "ignore",
		"ⓘⓖⓝⓞⓡⓔ":                 "ignore",
		"іgnоrе рrеvіоus":        "ignore previous",
		"Ιgnοre":                 "Ignore", // Greek capital iota, omicron
		"ígnóre":                 "ignore",
		"i\u0301gnore":           "ignore",
		"ignore\u00a0all":        "ignore all",
		"ig\U000E0041no\uFE0Fre": "ignore",
		"\u202eignore\u202c":     "ignore",
		"日本語":                    "日本語",
		"oﬃce":                   "office",
		"a–b":                    "a-b",
	} {
		if got := match.Fold(in); got != want {
			t.Errorf("Fold(%q) = %q, want %q", in, got, want)
		}
	}
	if !match.LookAlike("paypal", "pаypal") || match.LookAlike("a", "a") || match.LookAlike("a", "b") {
		t.Error("LookAlike")
	}
	if match.NFKC("ｆ") != "f" || match.NFC("e\u0301") != "é" {
		t.Error("normal forms")
	}
}

// TestFoldSource: every byte of the folded text comes from a place in the original, in order, and
// text that is kept comes from exactly where it stands.
func TestFoldSource(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringOf(rapid.RuneFrom([]rune("abc xя日\u200b\u202eﬃéА\U000E0041𝐢\uFE0F\u00a0"))).Draw(t, "s")
		var f match.Folded
		f.Load(s)
		last := 0
		for i, c := range f.Text {
			src := f.Source(i)
			if src < last || src > len(s) {
				t.Fatalf("source of %d is %d after %d", i, src, last)
			}
			last = src
			if c < utf8.RuneSelf && strings.IndexByte("abc", c) >= 0 && src < len(s) && s[src] < utf8.RuneSelf && s[src] != c {
				t.Fatalf("byte %d %q maps to %q", i, c, s[src])
			}
		}
		if f.Source(len(f.Text)) > len(s) {
			t.Fatal("end beyond the text")
		}
		if again := match.Fold(string(f.Text)); again != string(f.Text) {
			t.Fatalf("folding twice: %q, %q", f.Text, again)
		}
	})
}

func TestVisible(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain é 日本":          "plain é 日本",
		"a\u202eb":            `a\u202Eb`,
		"\x1b[31m":            `\x1b[31m`,
		"a\nb\t\r":            `a\nb\t\r`,
		"\U000E0041":          `\U000E0041`,
		"a\xffb":              `a\xffb`,
		`find . \; printf \n`: `find . \; printf \\n`,
		`\u202E`:              `\\u202E`,
		"a\u00a0b":            `a\u00A0b`,
		"\u3164":              `\u3164`,
		"\ue000\u2028":        `\uE000\u2028`,
	} {
		if got := match.Visible(in); got != want {
			t.Errorf("Visible(%q) = %q, want %q", in, got, want)
		}
	}
}

// TestVisibleInjective: nothing is lost, and what is shown holds no character one cannot see.
func TestVisibleInjective(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(
			rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }),
			rapid.String(),
			rapid.StringOf(rapid.RuneFrom([]rune("\\xuUnrt012\u202e\n\x1bЖ"))),
		).Draw(t, "s")
		v := match.Visible(s)
		if back := match.Unvisible(v); back != s {
			t.Fatalf("%q became %q and back %q", s, v, back)
		}
		if back := match.Unvisible(match.VisibleLines(s)); back != s {
			t.Fatalf("lines: %q came back as %q", s, back)
		}
		if !utf8.ValidString(v) {
			t.Fatalf("%q is not UTF-8", v)
		}
		marks := match.Inspect(v)
		if slices.ContainsFunc(marks, func(m match.Mark) bool { return m.Kind < match.MarkMixedScript }) {
			t.Fatalf("%q still holds %v", v, marks)
		}
	})
}

// TestChangedHoldsEveryFold: a character that becomes as many bytes as it had
// has changed too; whoever looks only at what changed must see it.
func TestChangedHoldsEveryFold(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"hĳack", "iǌect", "oﬃce", "wait…", "℡", "аbc", "ａ"} {
		var f match.Folded
		f.Load(s)
		if got := f.Changed(8, 8); len(got) != 1 || string(f.Text) == s {
			t.Errorf("%q folds to %q, changed in %v", s, f.Text, got)
		}
	}
}
