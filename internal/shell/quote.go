package shell

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// unescapeDouble removes the backslashes that double quotes remove.
func unescapeDouble(v string) string {
	if strings.IndexByte(v, '\\') < 0 {
		return v
	}
	var out strings.Builder
	for i := 0; i < len(v); i++ {
		if v[i] == '\\' && i+1 < len(v) {
			switch v[i+1] {
			case '$', '`', '"', '\\':
				i++
			case '\n':
				i++
				continue
			}
		}
		out.WriteByte(v[i])
	}
	return out.String()
}

// ansiC decodes the inside of $'…'.
func ansiC(v string) string {
	if strings.IndexByte(v, '\\') < 0 {
		return v
	}
	var out strings.Builder
	for i := 0; i < len(v); {
		if v[i] != '\\' || i+1 == len(v) {
			out.WriteByte(v[i])
			i++
			continue
		}
		c := v[i+1]
		i += 2
		if j := strings.IndexByte(`abefnrtv\'"?E`, c); j >= 0 {
			out.WriteByte("\a\b\x1b\f\n\r\t\v\\'\"?\x1b"[j])
			continue
		}
		switch {
		case c == 'x':
			n, used := digits(v[i:], 16, 2)
			i += used
			out.WriteByte(byte(n))
		case c == 'u' || c == 'U':
			width := 4
			if c == 'U' {
				width = 8
			}
			n, used := digits(v[i:], 16, width)
			i += used
			var buf [utf8.UTFMax]byte
			out.Write(buf[:utf8.EncodeRune(buf[:], rune(n))])
		case c == 'c' && i < len(v):
			out.WriteByte(v[i] & 0x1f)
			i++
		case c >= '0' && c <= '7':
			n, used := digits(v[i-1:], 8, 3)
			i += used - 1
			out.WriteByte(byte(n))
		default:
			out.WriteByte('\\')
			out.WriteByte(c)
		}
	}
	// The shell ends the word at a NUL.
	if s, _, ok := strings.Cut(out.String(), "\x00"); ok {
		return s
	}
	return out.String()
}

func digits(s string, base, max int) (value int64, used int) {
	for used < max && used < len(s) {
		if _, err := strconv.ParseInt(s[used:used+1], base, 32); err != nil {
			break
		}
		used++
	}
	value, _ = strconv.ParseInt(s[:used], base, 64)
	return value, used
}

// splitWords splits a string into words with quotes and backslashes, the way
// env -S and programs that take a command in one string do. It reports
// whether the string has nothing more in it than that.
func splitWords(s string) ([]string, bool) {
	var out []string
	var cur strings.Builder
	in, started := byte(0), false
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case in == '\'' && c == '\'', in == '"' && c == '"':
			in = 0
		case c == '\\' && in != '\'' && i+1 < len(s):
			i++
			cur.WriteByte(s[i])
			started = true
		case in != 0:
			cur.WriteByte(c)
		case c == '\'' || c == '"':
			in, started = c, true
		case c == ' ' || c == '\t' || c == '\n':
			if started {
				out, started = append(out, cur.String()), false
				cur.Reset()
			}
		case c == '$' || c == '`':
			return nil, false
		default:
			cur.WriteByte(c)
			started = true
		}
	}
	if started {
		out = append(out, cur.String())
	}
	return out, in == 0
}

// Quote writes a word so that a shell reads just that.
func Quote(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }
