package console

import (
	"bytes"
	"fmt"
	"html/template"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
)

// visibleLine shows a short text so that nothing in it is invisible: what a
// reader would not see becomes an escape, set apart from text that merely
// looks like one.
func visibleLine(s string) template.HTML {
	var b strings.Builder
	writeVisible(&b, s)
	return template.HTML(b.String())
}

// visibleText shows a text in lines, numbered where there are several. It
// returns how many lines and bytes are on screen.
func visibleText(s string) (html template.HTML, lines, size int) {
	var b strings.Builder
	for line := range strings.SplitSeq(s, "\n") {
		lines++
		b.WriteString(`<span class="ln">`)
		text := strings.TrimRight(line, " ")
		size += writeVisible(&b, text) + len(line) - len(text) + 1
		if n := len(line) - len(text); n > 0 {
			fmt.Fprintf(&b, `<span class="sp" title="%s at the end of the line">%s</span>`, plural(n, "space"), strings.Repeat("·", n))
		}
		b.WriteString("</span>")
	}
	return template.HTML(b.String()), lines, size
}

// writeVisible writes a text with its escapes and returns its size on screen.
// The escapes are [match.Visible]'s, asked for rune by rune: set apart from
// the text around them, they need no doubled backslashes to be told from it,
// so that a backslash looks as it runs.
func writeVisible(b *strings.Builder, s string) (size int) {
	from := 0
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r < ' ' || r >= 0x7f {
			if esc := match.Visible(s[i : i+n]); esc != s[i:i+n] {
				b.WriteString(template.HTMLEscapeString(s[from:i]))
				writeEscape(b, esc)
				size += i - from + len(esc)
				from = i + n
			}
		}
		i += n
	}
	b.WriteString(template.HTMLEscapeString(s[from:]))
	return size + len(s) - from
}

// visibleJSON shows a JSON value in lines. What is invisible is written as a
// JSON escape, so that the text on screen is the same value: the form for
// editing starts from it.
func visibleJSON(v jsontext.Value) (html template.HTML, plain string, lines, size int) {
	text := pretty(v)
	var page, form strings.Builder
	for line := range strings.SplitSeq(text, "\n") {
		lines++
		page.WriteString(`<span class="ln">`)
		from := 0
		for i, r := range line {
			esc := jsonEscape(r)
			if esc == "" {
				continue
			}
			page.WriteString(template.HTMLEscapeString(line[from:i]))
			writeEscape(&page, esc)
			form.WriteString(line[from:i] + esc)
			from = i + utf8.RuneLen(r)
		}
		page.WriteString(template.HTMLEscapeString(line[from:]) + "</span>")
		form.WriteString(line[from:] + "\n")
	}
	return template.HTML(page.String()), strings.TrimSuffix(form.String(), "\n"), lines, form.Len()
}

// pretty indents a JSON value, changing nothing in its strings and numbers;
// what is no JSON stays as it is.
func pretty(v []byte) string {
	p := jsontext.Value(bytes.Clone(v))
	if err := p.Indent(jsontext.WithIndent("  ")); err != nil {
		return strings.ToValidUTF8(string(v), "\uFFFD")
	}
	return string(p)
}

// jsonEscape returns the JSON escape of a rune that one would not see in a
// JSON text, "" for the others. Backslashes are the JSON text's own.
func jsonEscape(r rune) string {
	if r >= ' ' && r < 0x7f || match.Visible(string(r)) == string(r) {
		return ""
	}
	if r1, r2 := utf16.EncodeRune(r); r1 != utf8.RuneError {
		return fmt.Sprintf(`\u%04x\u%04x`, r1, r2)
	}
	return fmt.Sprintf(`\u%04x`, r)
}

// writeEscape sets an escape apart. A tab keeps the width of one, so that
// indented code stays readable.
func writeEscape(b *strings.Builder, esc string) {
	if esc == `\t` {
		b.WriteString(`<span class="esc tab">\t</span>`)
		return
	}
	b.WriteString(`<span class="esc">` + esc + `</span>`) // hexadecimal digits and letters
}
