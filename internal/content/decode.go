package content

import (
	"encoding/base64"
	"encoding/hex"
	"sort"
	"strings"
	"unicode/utf8"
)

const (
	minRun      = 16 // shortest base64 or hexadecimal run worth decoding
	minLine     = 40 // a run this long may go on in the next line
	minReadable = 6  // readable bytes in a row that make decoded bytes worth a scan
)

// decoder finds encoded stretches. Every byte is decoded at most once per encoding and level, so
// the work is linear.
type decoder struct{ buf []byte }

var base64Byte = func() (t [256]bool) {
	for _, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_") {
		t[c] = true
	}
	return t
}()

// blocks finds runs of base64 and hexadecimal digits. A run of at least minRun bytes covers one of
// every minRun-th positions, so most of the text is never looked at.
func (d *decoder) blocks(text string, emit func(code string, start, end int, decoded string)) {
	last := 0
	for i := minRun - 1; i < len(text); {
		if !base64Byte[text[i]] {
			i += minRun
			continue
		}
		start, end := i, i+1
		for start > last && base64Byte[text[start-1]] {
			start--
		}
		end = runEnd(text, start, end)
		last = end
		i = end + minRun
		if end-start >= minRun {
			d.block(text, start, end, emit)
		}
	}
}

// runEnd extends a run to the right, over line ends if it is long.
func runEnd(text string, start, end int) int {
	for {
		for end < len(text) && base64Byte[text[end]] {
			end++
		}
		next := end
		if next < len(text) && text[next] == '\r' {
			next++
		}
		if end-start < minLine || next+1 >= len(text) || text[next] != '\n' || !base64Byte[text[next+1]] {
			return end
		}
		end = next + 1
	}
}

func (d *decoder) block(text string, start, end int, emit func(code string, start, end int, decoded string)) {
	run := text[start:end]
	if len(run)%2 == 0 && isHex(run) {
		d.buf = append(d.buf[:0], make([]byte, len(run)/2)...)
		if n, err := hex.Decode(d.buf, []byte(run)); err == nil && readable(d.buf[:n]) {
			emit("hex", start, end, string(d.buf[:n]))
		}
		return
	}
	enc := base64.RawStdEncoding
	if strings.ContainsAny(run, "-_") {
		if strings.ContainsAny(run, "+/") {
			return // of two alphabets: a path, not an encoding
		}
		enc = base64.RawURLEncoding
	}
	digits := len(run) - strings.Count(run, "\n") - strings.Count(run, "\r")
	if digits%4 == 1 {
		run = run[:len(run)-1]
	}
	out, err := enc.AppendDecode(d.buf[:0], []byte(run))
	d.buf = out
	if err != nil {
		return
	}
	out = dropZeros(out)
	if readable(out) {
		emit("base64", start, end, string(out))
	}
}

func isHex(s string) bool {
	for i := 0; i < len(s); i++ {
		if hexDigit(s[i]) < 0 {
			return false
		}
	}
	return true
}

func hexDigit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return -1
}

// dropZeros reads UTF-16 as its ASCII half, which is how PowerShell encodes commands.
func dropZeros(b []byte) []byte {
	if len(b) < 8 || b[1] != 0 || b[3] != 0 || b[5] != 0 {
		return b
	}
	out := b[:0]
	for i := 0; i+1 < len(b); i += 2 {
		out = append(out, b[i])
	}
	return out
}

// readable reports whether decoded bytes hold text: enough printable ASCII in a row, or UTF-8.
func readable(b []byte) bool {
	row := 0
	for _, c := range b {
		if c >= ' ' && c < 0x7F || c == '\n' || c == '\t' {
			if row++; row >= minReadable {
				return true
			}
			continue
		}
		row = 0
	}
	return len(b) >= 12 && utf8.Valid(b)
}

// escaped is a stretch of text with its escapes undone.
type escaped struct {
	text  string
	codes string
	steps []escapeStep
}

// An escapeStep says that from text[at] on, the source is at offset src.
type escapeStep struct{ at, src int }

func (e *escaped) source(at int) int {
	k := sort.Search(len(e.steps), func(i int) bool { return e.steps[i].at > at })
	src := e.steps[k-1].src + at - e.steps[k-1].at
	if k < len(e.steps) {
		src = min(src, e.steps[k].src)
	}
	return src
}

const (
	escapeBefore = 64  // plain text kept ahead of an escape, since only part of a phrase may be encoded …
	escapeAfter  = 160 // … and behind it
)

// escapes finds stretches with URL, HTML and character escapes in them and undoes all three.
func (d *decoder) escapes(text string, emit func(escaped)) {
	next := newEscapeFinder(text)
	at, size := next.find()
	done := 0
	for at >= 0 {
		start := max(done, at-escapeBefore)
		end := at + size
		// The stretch grows as long as another escape begins within reach.
		marks := []int{at}
		for {
			at, size = next.find()
			if at < 0 || at > end+escapeAfter {
				break
			}
			marks = append(marks, at)
			end = at + size
		}
		end = min(len(text), end+escapeAfter)
		if at >= 0 {
			end = min(end, at)
		}
		done = end
		if e, ok := undo(text, start, end, marks); ok {
			emit(e)
		}
	}
}

// escapeFinder walks over the places where an escape stands.
type escapeFinder struct {
	text string
	pos  int
	next [3]int // next place of each lead byte, len(text) if there is none
}

var leads = [3]byte{'%', '&', '\\'}

func newEscapeFinder(text string) *escapeFinder {
	f := &escapeFinder{text: text}
	for k := range leads {
		f.seek(k, 0)
	}
	return f
}

func (f *escapeFinder) seek(k, from int) {
	f.next[k] = len(f.text)
	if from < len(f.text) {
		if i := strings.IndexByte(f.text[from:], leads[k]); i >= 0 {
			f.next[k] = from + i
		}
	}
}

// find returns the next escape and its length, or -1.
func (f *escapeFinder) find() (at, size int) {
	for {
		k := 0
		if f.next[1] < f.next[k] {
			k = 1
		}
		if f.next[2] < f.next[k] {
			k = 2
		}
		at = f.next[k]
		if at == len(f.text) {
			return -1, 0
		}
		f.seek(k, at+1)
		if at < f.pos {
			continue
		}
		if _, size, _ = escapeAt(f.text[at:]); size > 0 {
			f.pos = at + size
			return at, size
		}
	}
}

// undo decodes the escapes of text[start:end], which stand at marks.
func undo(text string, start, end int, marks []int) (escaped, bool) {
	e := escaped{steps: []escapeStep{{0, start}}}
	var b strings.Builder
	b.Grow(end - start)
	from := start
	seen := [4]bool{}
	for _, at := range marks {
		if at < from {
			continue
		}
		b.WriteString(text[from:at])
		decoded, size, code := escapeAt(text[at:])
		seen[code] = true
		if code == codeURL {
			b.WriteByte(byte(decoded))
		} else {
			b.WriteRune(decoded)
		}
		from = at + size
		e.steps = append(e.steps, escapeStep{b.Len(), from})
	}
	b.WriteString(text[from:end])
	e.text = b.String()
	var codes []string
	for code, name := range codeNames {
		if seen[code] {
			codes = append(codes, name)
		}
	}
	e.codes = strings.Join(codes, "+")
	return e, len(e.steps) > 1
}

const (
	codeNone = iota
	codeURL
	codeHTML
	codeEscape
)

var codeNames = [...]string{"", "url", "html", "escape"}

// escapeAt decodes the escape s starts with; size 0 means that it starts with none.
func escapeAt(s string) (r rune, size, code int) {
	if len(s) < 3 {
		return 0, 0, codeNone
	}
	switch s[0] {
	case '%':
		if s[1]|0x20 == 'u' {
			if v, ok := hexAt(s, 2, 4); ok {
				return v, 6, codeEscape
			}
			return 0, 0, codeNone
		}
		if v, ok := hexAt(s, 1, 2); ok {
			return v, 3, codeURL
		}
	case '\\':
		return backslash(s)
	case '&':
		return entity(s)
	}
	return 0, 0, codeNone
}

func hexAt(s string, from, digits int) (rune, bool) {
	if len(s) < from+digits {
		return 0, false
	}
	v := rune(0)
	for i := from; i < from+digits; i++ {
		d := hexDigit(s[i])
		if d < 0 {
			return 0, false
		}
		v = v<<4 | rune(d)
	}
	return v, true
}

func backslash(s string) (rune, int, int) {
	switch c := s[1]; {
	case c == 'x':
		if v, ok := hexAt(s, 2, 2); ok {
			return v, 4, codeEscape
		}
	case c == 'u' && s[2] == '{':
		if end := strings.IndexByte(s[:min(len(s), 11)], '}'); end > 3 {
			if v, ok := hexAt(s, 3, end-3); ok && v <= utf8.MaxRune {
				return v, end + 1, codeEscape
			}
		}
	case c == 'u':
		if v, ok := hexAt(s, 2, 4); ok {
			if v >= 0xD800 && v < 0xDC00 && len(s) >= 12 && s[6] == '\\' && s[7] == 'u' {
				if low, ok := hexAt(s, 8, 4); ok && low >= 0xDC00 && low < 0xE000 {
					return (v-0xD800)<<10 + low - 0xDC00 + 0x10000, 12, codeEscape
				}
			}
			return v, 6, codeEscape
		}
	case c == 'U':
		if v, ok := hexAt(s, 2, 8); ok && v >= 0 && v <= utf8.MaxRune {
			return v, 10, codeEscape
		}
	case c >= '0' && c <= '3' && len(s) >= 4 && s[2] >= '0' && s[2] <= '7' && s[3] >= '0' && s[3] <= '7':
		return rune(c-'0')<<6 | rune(s[2]-'0')<<3 | rune(s[3]-'0'), 4, codeEscape
	}
	return 0, 0, codeNone
}

var entities = map[string]rune{"lt": '<', "gt": '>', "amp": '&', "quot": '"', "apos": '\'', "nbsp": ' ', "sol": '/', "bsol": '\\',
	"period": '.', "colon": ':', "semi": ';', "lpar": '(', "rpar": ')', "lsqb": '[', "rsqb": ']', "lbrace": '{', "rbrace": '}', "lcub": '{',
	"rcub": '}', "Tab": '\t', "NewLine": '\n', "excl": '!', "num": '#', "dollar": '$', "percnt": '%', "ast": '*', "plus": '+', "comma": ',',
	"hyphen": '-', "lowbar": '_', "verbar": '|', "vert": '|', "equals": '=', "commat": '@', "grave": '`', "zwnj": 0x200C, "zwj": 0x200D, "shy": 0xAD}

func entity(s string) (rune, int, int) {
	end := strings.IndexByte(s[:min(len(s), 12)], ';')
	if s[1] != '#' {
		if end > 1 {
			if r, ok := entities[s[1:end]]; ok {
				return r, end + 1, codeHTML
			}
		}
		return 0, 0, codeNone
	}
	digits, from, base := 0, 2, rune(10)
	if s[2]|0x20 == 'x' {
		from, base = 3, 16
	}
	v := rune(0)
	for i := from; i < len(s) && digits < 8; i++ {
		d := hexDigit(s[i])
		if d < 0 || rune(d) >= base {
			break
		}
		v = min(v*base+rune(d), utf8.MaxRune+1)
		digits++
	}
	if digits == 0 || v > utf8.MaxRune {
		return 0, 0, codeNone
	}
	size := from + digits
	if size < len(s) && s[size] == ';' {
		size++ // browsers do without it
	}
	return v, size, codeHTML
}
