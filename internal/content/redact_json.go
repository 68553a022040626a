package content

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
)

// maxNested is how many levels of JSON inside JSON strings are taken apart.
const maxNested = 3

// JSON redacts a JSON text. What is not secret stays byte for byte as it was. A text that is not
// strict JSON is replaced as a whole.
func (r *Redactor) JSON(raw []byte) ([]byte, []Commitment) {
	j := newRedaction(r)
	out, ok := j.settle(string(raw), j.document)
	if !ok {
		out, commits := j.whole(string(raw))
		return appendJSONString(nil, out), commits
	}
	return []byte(out), j.commits
}

// document redacts a JSON text once; it reports false if the text is not strict JSON.
func (j *redaction) document(text string) (string, bool) {
	doc, err := parseTree(text)
	if err != nil {
		return "", false
	}
	j.tree(doc, 0)
	words, ok := j.repeatWords()
	if !ok {
		return "", false
	}
	if words != nil {
		j.treeRepeats(words, doc)
	}
	return string(doc.render(nil)), true
}

// kindDocument is the kind of the one value of a text with the white space around it.
const kindDocument = 'd'

// A tree is a parsed JSON value that still has its text.
type tree struct {
	kind     byte   // '{', '[', '"', or 's' for other scalars
	raw      string // as written
	str      string // value of a string
	changed  bool   // str replaces raw
	names    []*tree
	children []*tree
	gaps     []string // what stands between the children, as written
}

// parseTree builds on the strict lexer: it walks the same grammar and keeps what it passes.
func parseTree(text string) (*tree, error) {
	l := &lexer{text: text}
	lead := l.skipped()
	t, err := l.tree(0)
	if err != nil {
		return nil, err
	}
	tail := l.skipped()
	if l.pos != len(text) {
		return nil, l.fail("text behind the value")
	}
	return &tree{kind: kindDocument, children: []*tree{t}, gaps: []string{lead, tail}}, nil
}

// skipped passes white space and returns it.
func (l *lexer) skipped() string {
	from := l.pos
	l.space()
	return l.text[from:l.pos]
}

func (l *lexer) tree(depth int) (*tree, error) {
	if depth > maxJSONDepth {
		return nil, l.fail("nested too deeply")
	}
	from := l.pos
	switch l.peek() {
	case '{', '[':
		return l.branch(depth)
	case '"':
		s, err := l.str()
		return &tree{kind: '"', raw: l.text[from:l.pos], str: s}, err
	default:
		err := l.scalar()
		return &tree{kind: 's', raw: l.text[from:l.pos]}, err
	}
}

// branch parses an object or array; l.pos is at its bracket.
func (l *lexer) branch(depth int) (*tree, error) {
	t := &tree{kind: l.text[l.pos]}
	end := byte(']')
	if t.kind == '{' {
		end = '}'
	}
	gap := l.pos
	l.pos++
	if l.peek() == end {
		l.pos++
		t.gaps = []string{l.text[gap:l.pos]}
		return t, nil
	}
	for {
		l.space()
		t.gaps = append(t.gaps, l.text[gap:l.pos])
		if t.kind == '{' {
			name, err := l.name()
			if err != nil {
				return nil, err
			}
			t.names = append(t.names, name)
		}
		child, err := l.tree(depth + 1)
		if err != nil {
			return nil, err
		}
		t.children = append(t.children, child)
		gap = l.pos
		done, err := l.more(end)
		if err != nil {
			return nil, err
		}
		if done {
			t.gaps = append(t.gaps, l.text[gap:l.pos])
			return t, nil
		}
	}
}

// name parses a member's name with its colon, which is kept in raw behind the string.
func (l *lexer) name() (*tree, error) {
	if l.peek() != '"' {
		return nil, l.fail("no member name")
	}
	from := l.pos
	s, err := l.str()
	if err != nil {
		return nil, err
	}
	n := &tree{kind: '"', raw: l.text[from:l.pos], str: s}
	from = l.pos
	if l.peek() != ':' {
		return nil, l.fail("no colon")
	}
	l.pos++
	l.space()
	n.gaps = []string{l.text[from:l.pos]}
	return n, nil
}

func (t *tree) set(s string) {
	if t.str != s || t.kind != '"' {
		*t = tree{kind: '"', str: s, changed: true, gaps: t.gapOfName()}
	}
}

func (t *tree) gapOfName() []string {
	if t.kind == '"' {
		return t.gaps
	}
	return nil
}

func (t *tree) render(b []byte) []byte {
	switch t.kind {
	case '{', '[', kindDocument:
		for i, c := range t.children {
			b = append(b, t.gaps[i]...)
			if t.kind == '{' {
				b = t.names[i].render(b)
				b = append(b, t.names[i].gaps[0]...)
			}
			b = c.render(b)
		}
		return append(b, t.gaps[len(t.children)]...)
	case '"':
		if t.changed {
			return appendJSONString(b, t.str)
		}
	}
	return append(b, t.raw...)
}

// tree redacts a value and what is in it.
func (j *redaction) tree(t *tree, nested int) {
	at := j.pointer
	switch t.kind {
	case kindDocument:
		j.tree(t.children[0], nested)
	case '"':
		t.set(j.jsonString(t.str, nested))
	case '{':
		pair := j.r.secretPair(t)
		for i, c := range t.children {
			name := t.names[i].str
			j.pointer = at + "/" + pointerEscape.Replace(name)
			t.names[i].set(j.text(name))
			if secret, plural := j.r.secretField(name); secret || pair == c {
				j.field(c, plural && pair != c)
			} else {
				j.tree(c, nested)
			}
		}
	case '[':
		for i, c := range t.children {
			j.pointer = at + "/" + strconv.Itoa(i)
			if i > 0 && t.children[i-1].kind == '"' && c.kind == '"' && secretFlag(t.children[i-1].str) && !strings.HasPrefix(c.str, "-") {
				j.field(c, false)
				continue
			}
			j.tree(c, nested)
		}
	}
	j.pointer = at
}

// field redacts the value of a field with a telling name. null, true, false and "" hide nothing; a
// number under a plural ("tokens": 500) is a count.
func (j *redaction) field(t *tree, plural bool) {
	value := t.raw
	switch {
	case t.kind == '"':
		value = t.str
		if value == "" || isMarker(value) || reference(value) {
			return
		}
	case t.kind == 's':
		if value == "null" || value == "true" || value == "false" || plural {
			return
		}
	default:
		value = string(t.render(nil))
		j.leaves(t)
	}
	t.set(j.hide("field", value))
}

// leaves makes every string inside a value that goes as a whole known as a secret, so that it is
// also found elsewhere.
func (j *redaction) leaves(t *tree) {
	for _, c := range t.children {
		j.leaves(c)
	}
	if t.kind == '"' && t.str != "" && !isMarker(t.str) {
		j.hide("field", t.str)
	}
}

// jsonString redacts a string, as JSON if it is JSON.
func (j *redaction) jsonString(s string, nested int) string {
	if trimmed := strings.TrimLeft(s, " \t\r\n"); nested < maxNested && trimmed != "" && (trimmed[0] == '{' || trimmed[0] == '[') {
		if inner, err := parseTree(s); err == nil {
			at := j.pointer
			j.tree(inner, nested+1)
			j.pointer = at
			return string(inner.render(nil))
		}
	}
	return j.text(s)
}

// treeRepeats removes further occurrences of the secrets found.
func (j *redaction) treeRepeats(words *automaton, t *tree) {
	switch t.kind {
	case '"':
		t.set(j.replaceRepeats(words, t.str))
	case 's':
		if m, ok := j.markers[t.raw]; ok && len(t.raw) >= minRepeat {
			t.set(m)
		}
	}
	for _, n := range t.names {
		n.set(j.replaceRepeats(words, n.str))
	}
	for _, c := range t.children {
		j.treeRepeats(words, c)
	}
}

// secretEndings end the names of fields that hold secrets, written without case and separators.
var secretEndings = []string{"password", "passwd", "passphrase", "passcode", "secret", "token", "apikey", "accesskey", "secretkey", "privatekey",
	"signingkey", "encryptionkey", "authkey", "sshkey", "authorization", "cookie", "credential", "sessionid", "connectionstring", "mfacode", "webhookurl", "seedphrase"}

// wholeNames are secret only as the whole name: as an ending they would hit "pin" in "mapping".
var wholeNames = map[string]bool{"pin": true, "otp": true, "totp": true, "pwd": true, "jwt": true, "mnemonic": true, "bearer": true}

// secretField reports whether a field of that name holds a secret, and whether the name is a plural.
func (r *Redactor) secretField(name string) (secret, plural bool) {
	bare := bareField(name)
	if r.names[bare] || secretName(bare) {
		return true, false
	}
	one, ok := strings.CutSuffix(bare, "s")
	return ok && secretName(one), ok
}

func secretName(bare string) bool {
	for _, end := range secretEndings {
		if strings.HasSuffix(bare, end) {
			return true
		}
	}
	return wholeNames[bare]
}

// bareField drops case, separators and disguises from a name.
func bareField(name string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c >= 'A' && c <= 'Z':
			return c + 'a' - 'A'
		case c < utf8.RuneSelf && !alnum(byte(c)):
			return -1
		}
		return c
	}, match.Fold(name))
}

// secretPair returns the value of an object like {"name": "DB_PASSWORD", "value": "x"}.
func (r *Redactor) secretPair(t *tree) *tree {
	var value *tree
	telling := false
	for i, n := range t.names {
		switch c := t.children[i]; bareField(n.str) {
		case "name", "key", "header", "variable", "env":
			if c.kind == '"' {
				secret, _ := r.secretField(c.str)
				telling = telling || secret
			}
		case "value", "val", "content":
			value = c
		}
	}
	if !telling {
		return nil
	}
	return value
}

// secretFlag reports whether a command line argument announces a secret as the next one.
func secretFlag(arg string) bool {
	name, ok := strings.CutPrefix(arg, "--")
	if !ok || strings.ContainsAny(name, "= ") {
		return false
	}
	bare := bareField(name)
	return secretName(bare) || bare == "pass" || bare == "auth"
}

// appendJSONString appends s as a JSON string. s is valid UTF-8, since strict JSON holds nothing
// else; only in the way out for unreadable text are markers all there is.
func appendJSONString(b []byte, s string) []byte {
	b = append(b, '"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < ' ':
			if k := strings.IndexByte(simpleValues, c); k >= 0 {
				b = append(b, '\\', simpleEscapes[k])
			} else {
				b = append(b, '\\', 'u', '0', '0', "0123456789abcdef"[c>>4], "0123456789abcdef"[c&15])
			}
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}
