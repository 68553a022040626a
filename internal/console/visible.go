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
	for i, line := range strings.Split(s, "\n") {
		if i > 0 {
			writeEscape(&b, `\n`)
		}
		for _, p := range match.Pieces(line) {
			writePiece(&b, p.Text, p.Escaped)
		}
	}
	return template.HTML(b.String())
}

// visibleText shows a text in lines, numbered where there are several. It
// returns how many lines and bytes are on screen.
func visibleText(s string) (html template.HTML, lines, size int) {
	var b strings.Builder
	for line := range strings.SplitSeq(s, "\n") {
		lines++
		b.WriteString(`<span class="ln">`)
		size += writeLine(&b, line) + 1
		b.WriteString("</span>")
	}
	return template.HTML(b.String()), lines, size
}

// writeLine writes one line; spaces at its end, which nobody sees, are marked.
func writeLine(b *strings.Builder, line string) (size int) {
	text := strings.TrimRight(line, " ")
	for _, p := range match.Pieces(text) {
		writePiece(b, p.Text, p.Escaped)
		size += len(p.Text)
	}
	if n := len(line) - len(text); n > 0 {
		fmt.Fprintf(b, `<span class="sp" title="%s at the end of the line">%s</span>`, plural(n, "space"), strings.Repeat("·", n))
		size += n
	}
	return size
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

func writePiece(b *strings.Builder, text string, escaped bool) {
	if !escaped {
		b.WriteString(template.HTMLEscapeString(text))
		return
	}
	for text != "" {
		n := escapeLen(text)
		writeEscape(b, text[:n])
		text = text[n:]
	}
}

// escapeLen returns the length of the escape that text starts with.
func escapeLen(text string) int {
	n := 2
	if len(text) > 1 {
		n += map[byte]int{'x': 2, 'u': 4, 'U': 8}[text[1]]
	}
	return min(n, len(text))
}

// writeEscape sets an escape apart. Because it does, a backslash need not be
// doubled to be told from one, and stays as it runs. A tab keeps the width of
// one, so that indented code stays readable.
func writeEscape(b *strings.Builder, esc string) {
	switch esc {
	case `\\`:
		b.WriteString(`\`)
	case `\t`:
		b.WriteString(`<span class="esc tab">\t</span>`)
	default:
		b.WriteString(`<span class="esc">` + template.HTMLEscapeString(esc) + `</span>`)
	}
}
