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
type decoder struct {
	buf   []byte
	out   []byte
	steps []escapeStep
}

var base64Byte = func() (t [256]bool) {
	for _, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_") {
		t[c] = true
	}
	return t
}()

// blocks finds runs of base64 and hexadecimal digits. A run of at least minRun bytes covers one of
// every minRun-th positions, so most of the text is never looked at. What is emitted is valid until
// the next one is.
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

// block decodes a run. If it is no text as a whole its lines are decoded one by one too: a line that
// only looks like more of the encoding must not hide the next one.
func (d *decoder) block(text string, start, end int, emit func(code string, start, end int, decoded string)) {
	if d.run(text, start, end, emit) {
		return
	}
	from := start
	for line := range strings.Lines(text[start:end]) {
		if n := len(strings.TrimRight(line, "\r\n")); n >= minRun && n < end-start {
			d.run(text, from, from+n, emit)
		}
		from += len(line)
	}
}

// run decodes text[start:end] and reports whether all of it is text.
func (d *decoder) run(text string, start, end int, emit func(code string, start, end int, decoded string)) bool {
	run := text[start:end]
	if len(run)%2 == 0 && isHex(run) {
		d.buf = append(d.buf[:0], make([]byte, len(run)/2)...)
		n, err := hex.Decode(d.buf, []byte(run))
		return err == nil && show("hex", d.buf[:n], start, end, emit)
	}
	enc := base64.RawStdEncoding
	if strings.ContainsAny(run, "-_") {
		if strings.ContainsAny(run, "+/") {
			return false // of two alphabets: a path, not an encoding
		}
		enc = base64.RawURLEncoding
	}
	digits := len(run) - strings.Count(run, "\n") - strings.Count(run, "\r")
	if digits%4 == 1 {
		run = run[:len(run)-1]
	}
	out, err := enc.AppendDecode(d.buf[:0], []byte(run))
	d.buf = out
	return err == nil && show("base64", out, start, end, emit)
}

// show emits decoded bytes if they hold text, UTF-16 as its ASCII half too, and reports whether they
// are nothing but text.
func show(code string, out []byte, start, end int, emit func(code string, start, end int, decoded string)) bool {
	whole := utf8.Valid(out)
	if readable(out) {
		emit(code, start, end, borrow(out))
	}
	if half := dropZeros(out); len(half) < len(out) && readable(half) {
		emit(code, start, end, borrow(half))
	}
	return whole
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

// escaped is a stretch of text with its escapes undone. It is valid until the next one is emitted.
type escaped struct {
	text  string
	codes string
	steps []escapeStep
}

// An escapeStep says that from text[at] on, the source is at offset src, and every out bytes of text
// come from in bytes of source. Escapes of one kind in a row make one step.
type escapeStep struct {
	at, src int32
	in, out int32
}

func (e *escaped) source(at int) int {
	k := sort.Search(len(e.steps), func(i int) bool { return int(e.steps[i].at) > at })
	st := e.steps[k-1]
	src := int(st.src) + (at-int(st.at))/int(st.out)*int(st.in)
	if k < len(e.steps) {
		src = min(src, int(e.steps[k].src))
	}
	return src
}

const (
	escapeBefore = 64  // plain text kept ahead of an escape, since only part of a phrase may be encoded …
	escapeAfter  = 160 // … and behind it
)

// escapes finds stretches with URL, HTML and character escapes in them and undoes all three.
func (d *decoder) escapes(text string, emit func(escaped)) {
	f := leadFinder{text: text}
	done := 0
	for at := f.next(0); at < len(text); {
		first, size := at, 0
		for at < len(text) && size == 0 {
			if _, size, _ = escapeAt(text[at:]); size == 0 {
				at = f.next(at + 1)
			}
			first = at
		}
		if size == 0 {
			return
		}
		from := max(done, first-escapeBefore)
		e, end := d.undo(&f, from, first)
		done = end
		emit(e)
		at = f.next(end)
	}
}

// undo decodes text from the first escape on, until no other follows within reach. It returns the
// stretch and where it ends.
func (d *decoder) undo(f *leadFinder, from, first int) (escaped, int) {
	text := f.text
	d.out = append(d.out[:0], text[from:first]...)
	d.steps = append(d.steps[:0], escapeStep{0, int32(from), 1, 1})
	var seen [4]bool
	at, last := first, first
	for at < len(text) {
		if n := d.percents(text, at); n > 0 {
			seen[codeURL] = true
			at += n
			last = at
		} else if r, size, code := escapeAt(text[at:]); size == 0 {
			d.out = append(d.out, text[at])
			at++
		} else {
			was := len(d.out)
			d.out = utf8.AppendRune(d.out, r)
			d.step(was, at, size, len(d.out)-was)
			seen[code] = true
			at += size
			last = at
		}
		if at < len(text) && isLead[text[at]] {
			continue
		}
		next := f.next(at)
		if next > last+escapeAfter {
			break
		}
		d.plain(at)
		d.out = append(d.out, text[at:next]...)
		at = next
	}
	end := max(at, min(len(text), last+escapeAfter))
	d.plain(at)
	d.out = append(d.out, text[at:end]...)
	return escaped{borrow(d.out), codeList(seen), d.steps}, end
}

// percents undoes the %XX escapes in a row at text[at:] and returns how long they are.
func (d *decoder) percents(text string, at int) int {
	i, was := at, len(d.out)
	for i+2 < len(text) && text[i] == '%' {
		hi, lo := hexValue[text[i+1]], hexValue[text[i+2]]
		if hi|lo < 0 {
			break
		}
		d.out = append(d.out, byte(hi<<4|lo))
		i += 3
	}
	if i > at {
		d.step(was, at, 3, 1)
	}
	return i - at
}

var hexValue = func() (t [256]int8) {
	for c := range t {
		t[c] = int8(hexDigit(byte(c)))
	}
	return t
}()

// step notes that in bytes of source at src became out bytes at len(d.out).
func (d *decoder) step(at, src, in, out int) {
	if out == 0 {
		return
	}
	if last := d.steps[len(d.steps)-1]; int(last.in) == in && int(last.out) == out && last.in != last.out {
		if (at-int(last.at))/out*in == src-int(last.src) {
			return
		}
	}
	d.steps = append(d.steps, escapeStep{int32(at), int32(src), int32(in), int32(out)})
}

// plain notes that what follows is copied from offset src on.
func (d *decoder) plain(src int) {
	if last := d.steps[len(d.steps)-1]; last.in != last.out {
		d.steps = append(d.steps, escapeStep{int32(len(d.out)), int32(src), 1, 1})
	}
}

func codeList(seen [4]bool) string {
	list := ""
	for code, name := range codeNames {
		if seen[code] {
			if list != "" {
				list += "+"
			}
			list += name
		}
	}
	return list
}

// leadFinder walks over the bytes an escape can start with.
type leadFinder struct {
	text string
	at   [3]int // next place of each lead byte, len(text) if there is none
	init bool
}

var leads = [3]byte{'%', '&', '\\'}

var isLead = [256]bool{'%': true, '&': true, '\\': true}

// next returns the first place at or behind from, len(text) if there is none.
func (f *leadFinder) next(from int) int {
	least := len(f.text)
	for k, c := range leads {
		if !f.init || f.at[k] < from {
			f.at[k] = len(f.text)
			if from < len(f.text) {
				if i := strings.IndexByte(f.text[from:], c); i >= 0 {
					f.at[k] = from + i
				}
			}
		}
		least = min(least, f.at[k])
	}
	f.init = true
	return least
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
