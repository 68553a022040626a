package content

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// ErrJSON is wrapped with the offset at which a text stops being JSON.
var ErrJSON = errors.New("not valid JSON")

// maxJSONDepth is far above what the gate accepts; it keeps the walk off the end of the stack.
const maxJSONDepth = 256

// ScanJSON scans every string of a JSON text, names of members included. An error means that the
// text is not strict JSON and was not seen whole; the caller denies.
func ScanJSON(raw []byte, opts *Options) ([]Finding, error) {
	s := newState(scanner(), opts)
	defer s.release()
	if len(raw) > s.opts.maxBytes() {
		s.load(string(raw))
		return s.out, nil
	}
	l := &lexer{text: string(raw)}
	l.visit = func(value string, key bool) {
		from := len(s.out)
		s.load(value)
		if len(s.out) == from {
			return
		}
		pointer := l.pointer()
		for i := range s.out[from:] {
			s.out[from+i].Pointer, s.out[from+i].Key = pointer, key
		}
	}
	err := l.document()
	return s.out, err
}

// A lexer walks over strict JSON without building it. visit sees each string.
type lexer struct {
	text  string
	pos   int
	path  []step
	visit func(value string, key bool)
}

// A step of the way to a value: a member's name or, if name is nil, an index.
type step struct {
	name  *string
	index int
}

var pointerEscape = strings.NewReplacer("~", "~0", "/", "~1")

func (l *lexer) pointer() string {
	var b strings.Builder
	for _, s := range l.path {
		b.WriteByte('/')
		if s.name != nil {
			b.WriteString(pointerEscape.Replace(*s.name))
		} else {
			b.WriteString(strconv.Itoa(s.index))
		}
	}
	return b.String()
}

func (l *lexer) fail(what string) error {
	return fmt.Errorf("%w: %s at byte %d", ErrJSON, what, l.pos)
}

func (l *lexer) document() error {
	if err := l.value(); err != nil {
		return err
	}
	if l.space(); l.pos != len(l.text) {
		return l.fail("text behind the value")
	}
	return nil
}

func (l *lexer) space() {
	for l.pos < len(l.text) && strings.IndexByte(" \t\r\n", l.text[l.pos]) >= 0 {
		l.pos++
	}
}

// peek returns the next byte that is no white space, 0 at the end.
func (l *lexer) peek() byte {
	if l.space(); l.pos < len(l.text) {
		return l.text[l.pos]
	}
	return 0
}

func (l *lexer) value() error {
	switch c := l.peek(); {
	case c == '{':
		return l.object()
	case c == '[':
		return l.array()
	case c == '"':
		s, err := l.str()
		if err == nil && l.visit != nil {
			l.visit(s, false)
		}
		return err
	default:
		return l.scalar()
	}
}

func (l *lexer) object() error {
	if len(l.path) >= maxJSONDepth {
		return l.fail("nested too deeply")
	}
	l.pos++
	if l.peek() == '}' {
		l.pos++
		return nil
	}
	for {
		if l.peek() != '"' {
			return l.fail("no member name")
		}
		name, err := l.str()
		if err != nil {
			return err
		}
		l.path = append(l.path, step{name: &name})
		if l.visit != nil {
			l.visit(name, true)
		}
		if l.peek() != ':' {
			return l.fail("no colon")
		}
		l.pos++
		if err := l.value(); err != nil {
			return err
		}
		l.path = l.path[:len(l.path)-1]
		if done, err := l.more('}'); done || err != nil {
			return err
		}
	}
}

func (l *lexer) array() error {
	if len(l.path) >= maxJSONDepth {
		return l.fail("nested too deeply")
	}
	l.pos++
	if l.peek() == ']' {
		l.pos++
		return nil
	}
	for i := 0; ; i++ {
		l.path = append(l.path, step{index: i})
		if err := l.value(); err != nil {
			return err
		}
		l.path = l.path[:len(l.path)-1]
		if done, err := l.more(']'); done || err != nil {
			return err
		}
	}
}

// more passes a comma, or the end of the array or object.
func (l *lexer) more(end byte) (done bool, err error) {
	switch l.peek() {
	case ',':
		l.pos++
		return false, nil
	case end:
		l.pos++
		return true, nil
	}
	return false, l.fail("no comma")
}

// scalar passes a number, true, false or null.
func (l *lexer) scalar() error {
	for _, lit := range []string{"true", "false", "null"} {
		if strings.HasPrefix(l.text[l.pos:], lit) {
			l.pos += len(lit)
			return nil
		}
	}
	start := l.pos
	l.accept("-")
	switch {
	case l.accept("0"):
	case l.digits() == 0:
		l.pos = start
		return l.fail("no value")
	}
	if l.accept(".") && l.digits() == 0 {
		return l.fail("no digits")
	}
	if l.accept("eE") {
		l.accept("+-")
		if l.digits() == 0 {
			return l.fail("no digits")
		}
	}
	return nil
}

func (l *lexer) accept(set string) bool {
	if l.pos < len(l.text) && strings.IndexByte(set, l.text[l.pos]) >= 0 {
		l.pos++
		return true
	}
	return false
}

func (l *lexer) digits() int {
	from := l.pos
	for l.pos < len(l.text) && l.text[l.pos] >= '0' && l.text[l.pos] <= '9' {
		l.pos++
	}
	return l.pos - from
}

// str passes a string and returns its value; without escapes that is a part of the text.
func (l *lexer) str() (string, error) {
	l.pos++
	start := l.pos
	l.plain()
	ascii := true
	for l.pos < len(l.text) {
		switch c := l.text[l.pos]; {
		case c == '"':
			s := l.text[start:l.pos]
			if !ascii && !utf8.ValidString(s) {
				return "", l.fail("invalid UTF-8")
			}
			l.pos++
			return s, nil
		case c == '\\':
			return l.strEscaped(start)
		case c < ' ':
			return "", l.fail("control character in a string")
		case c >= utf8.RuneSelf:
			ascii = false
		}
		l.pos++
	}
	return "", l.fail("string without end")
}

// plain passes eight letters at a time while there is nothing else among them: most of a long string.
func (l *lexer) plain() {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	t, i := l.text, l.pos
	for ; i+8 <= len(t); i += 8 {
		v := uint64(t[i]) | uint64(t[i+1])<<8 | uint64(t[i+2])<<16 | uint64(t[i+3])<<24 | uint64(t[i+4])<<32 | uint64(t[i+5])<<40 | uint64(t[i+6])<<48 | uint64(t[i+7])<<56
		quote, back := v^(ones*'"'), v^(ones*'\\')
		// The top bit of a byte is set where it is a quote, a backslash or below a space, or was set before; one that is
		// set for nothing only costs a closer look.
		if ((quote-ones)|(back-ones)|(v-ones*' ')|v)&tops != 0 {
			break
		}
	}
	l.pos = i
}

func (l *lexer) strEscaped(start int) (string, error) {
	b := append(make([]byte, 0, 64), l.text[start:l.pos]...)
	for l.pos < len(l.text) {
		switch c := l.text[l.pos]; {
		case c == '"':
			if !utf8.Valid(b) {
				return "", l.fail("invalid UTF-8")
			}
			l.pos++
			return string(b), nil
		case c < ' ':
			return "", l.fail("control character in a string")
		case c == '\\':
			var err error
			if b, err = l.escape(b); err != nil {
				return "", err
			}
		default:
			b = append(b, c)
			l.pos++
		}
	}
	return "", l.fail("string without end")
}

const simpleEscapes, simpleValues = `"\/bfnrt`, "\"\\/\b\f\n\r\t"

func (l *lexer) escape(b []byte) ([]byte, error) {
	rest := l.text[l.pos:]
	if len(rest) < 2 {
		return nil, l.fail("escape without end")
	}
	if i := strings.IndexByte(simpleEscapes, rest[1]); i >= 0 {
		l.pos += 2
		return append(b, simpleValues[i]), nil
	}
	r, ok := hexAt(rest, 2, 4)
	if rest[1] != 'u' || !ok {
		return nil, l.fail("unknown escape")
	}
	size := 6
	if utf16.IsSurrogate(r) {
		low, ok := hexAt(rest, 8, 4)
		if !ok || rest[6] != '\\' || rest[7] != 'u' {
			return nil, l.fail("half a surrogate pair")
		}
		if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
			return nil, l.fail("half a surrogate pair")
		}
		size = 12
	}
	l.pos += size
	return utf8.AppendRune(b, r), nil
}
