package match

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Visible renders s so that a person sees every byte of it: control characters, invisible ones,
// odd spaces, private use and bytes that are not UTF-8 become escapes (\n, \x1b, \u202E,
// \U000E0041). A backslash is doubled where it could be taken for the start of such an escape, so
// that two different strings never look the same; [Unvisible] is the way back.
func Visible(s string) string { return visible(s, false) }

// VisibleLines is Visible that keeps line feeds as line ends, for text shown in lines.
func VisibleLines(s string) string { return visible(s, true) }

func visible(s string, lines bool) string {
	var b strings.Builder
	b.Grow(len(s))
	eachVisible(s, lines, func(text string) { b.WriteString(text) })
	return b.String()
}

func eachVisible(s string, lines bool, emit func(text string)) {
	from := 0
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		esc := escapeOf(s, i, r, size, lines)
		if esc != "" {
			if from < i {
				emit(s[from:i])
			}
			emit(esc)
			from = i + size
		}
		i += size
	}
	if from < len(s) {
		emit(s[from:])
	}
}

// escapeOf returns the escape for the rune at i, or "" if it is shown as it is.
func escapeOf(s string, i int, r rune, size int, lines bool) string {
	switch {
	case r == '\\':
		if i+1 == len(s) {
			return ""
		}
		// It also must not touch the backslash of an escape.
		next, n := utf8.DecodeRuneInString(s[i+1:])
		if strings.IndexByte(`\nrtxuU`, s[i+1]) >= 0 || escapeOf(s, i+1, next, n, lines) != "" {
			return `\\`
		}
		return ""
	case r >= ' ' && r < 0x7F:
		return ""
	case r == '\n':
		if lines {
			return ""
		}
		return `\n`
	case r == '\r':
		return `\r`
	case r == '\t':
		return `\t`
	case r == utf8.RuneError && size == 1, r < 0x80:
		return fmt.Sprintf(`\x%02x`, s[i])
	case markOf(r) == 0 && unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S):
		return ""
	case r > 0xFFFF:
		return fmt.Sprintf(`\U%08X`, r)
	}
	return fmt.Sprintf(`\u%04X`, r)
}

// Unvisible undoes [Visible] and [VisibleLines].
func Unvisible(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		switch c := s[i+1]; c {
		case '\\':
			b.WriteByte('\\')
			i++
		case 'n', 'r', 't':
			b.WriteByte(map[byte]byte{'n': '\n', 'r': '\r', 't': '\t'}[c])
			i++
		case 'x', 'u', 'U':
			digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
			v, ok := hexValue(s[i+2:], digits)
			if !ok {
				b.WriteByte('\\')
				continue
			}
			if c == 'x' {
				b.WriteByte(byte(v))
			} else {
				b.WriteRune(v)
			}
			i += 1 + digits
		default:
			b.WriteByte('\\')
		}
	}
	return b.String()
}

func hexValue(s string, digits int) (rune, bool) {
	if len(s) < digits {
		return 0, false
	}
	v := rune(0)
	for i := range digits {
		d := unhex(s[i])
		if d < 0 {
			return 0, false
		}
		v = v<<4 | rune(d)
	}
	return v, true
}
