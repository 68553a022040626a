package argument

import (
	"bytes"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
	"github.com/seed-3ebc6b8a/gatehouse/internal/shell"
	"github.com/seed-3ebc6b8a/gatehouse/tool/declare"
)

// walk goes through the arguments once.
type walk struct {
	gate  *Gate
	links match.Linker
	dec   *jsontext.Decoder
	buf   *bytes.Buffer
	// text is the whole of the arguments; the strings that are judged are cut
	// out of it instead of being copied one by one.
	text  string
	at    declare.Place
	index []int // of the items, for messages
	out   []call.Evidence
	words []string // of a command that is an array
	// granted says that something fell under what the declaration grants.
	granted bool
	// each, if set, hears of every string and its roles; nothing is judged.
	each func(where, text string, roles declare.RoleSet)
}

// walks are used again: a decoder and its stacks cost more than the judging.
var walks = sync.Pool{New: func() any {
	w := &walk{buf: new(bytes.Buffer), at: make(declare.Place, 0, 8), index: make([]int, 0, 8)}
	w.dec = jsontext.NewDecoder(w.buf)
	return w
}}

func newWalk(g *Gate, args []byte, links match.Linker) *walk {
	w := walks.Get().(*walk)
	*w.buf = *bytes.NewBuffer(args) // a Buffer is read in place
	w.dec.Reset(w.buf)
	w.gate, w.links, w.text = g, links, string(args)
	return w
}

// done gives the walk back.
func (w *walk) done() {
	*w.buf = bytes.Buffer{}
	*w = walk{dec: w.dec, buf: w.buf, at: w.at[:0], index: w.index[:0]}
	walks.Put(w)
}

func (w *walk) value() error {
	switch w.dec.PeekKind() {
	case '{':
		return w.object()
	case '[':
		return w.array()
	case '"':
		s, err := w.string()
		if err == nil {
			w.judge(s)
		}
		return err
	}
	return w.dec.SkipValue()
}

// string reads a string, as a part of the text unless it holds escapes.
func (w *walk) string() (string, error) {
	raw, err := w.dec.ReadValue()
	if err != nil {
		return "", err
	}
	end := int(w.dec.InputOffset())
	literal := w.text[end-len(raw) : end]
	if strings.IndexByte(literal, '\\') < 0 {
		return literal[1 : len(literal)-1], nil
	}
	plain, err := jsontext.AppendUnquote(nil, literal)
	return string(plain), err
}

func (w *walk) object() error {
	if _, err := w.dec.ReadToken(); err != nil {
		return err
	}
	for w.dec.PeekKind() != '}' {
		key, err := w.string()
		if err != nil {
			return err
		}
		if err := w.below(declare.Part{Name: key}, -1); err != nil {
			return err
		}
	}
	_, err := w.dec.ReadToken()
	return err
}

func (w *walk) array() error {
	if _, err := w.dec.ReadToken(); err != nil {
		return err
	}
	outer := w.words
	w.words = nil
	for i := 0; w.dec.PeekKind() != ']'; i++ {
		if err := w.below(declare.Part{Item: true}, i); err != nil {
			return err
		}
	}
	if len(w.words) > 0 {
		w.judged(w.gate.policy.Exec, w.gate.command(strings.Join(w.words, " "), w.links))
	}
	w.words = outer
	_, err := w.dec.ReadToken()
	return err
}

func (w *walk) below(part declare.Part, index int) error {
	w.at, w.index = append(w.at, part), append(w.index, index)
	if err := w.value(); err != nil {
		return err
	}
	w.at, w.index = w.at[:len(w.at)-1], w.index[:len(w.index)-1]
	return nil
}

// judge holds one string against every role that it has.
func (w *walk) judge(s string) {
	g := w.gate
	roles := g.roles.At(w.at)
	if w.each != nil {
		w.each(w.where(), s, roles)
		return
	}
	fs := &g.policy.Filesystem
	if roles&declare.IsURL != 0 {
		w.judged(g.policy.Network, g.url(s, w.links))
	}
	if roles&declare.IsEnv != 0 {
		w.judged(g.policy.Environment, g.variable(s))
	}
	if roles&declare.IsCommand != 0 {
		if n := len(w.index); n > 0 && w.index[n-1] >= 0 {
			w.words = append(w.words, shell.Quote(s)) // judged at the end of the array
		} else {
			w.judged(g.policy.Exec, g.command(s, w.links))
		}
	}
	if roles&declare.IsRead != 0 {
		_, err := g.path(declare.RoleRead, s, w.links)
		w.judged(granting(fs.Read, fs.Write), err)
	}
	if roles&declare.IsWrite != 0 {
		_, err := g.path(declare.RoleWrite, s, w.links)
		w.judged(fs.Write, err)
	}
	if roles == 0 && candidate(s) {
		_, err := g.path("", s, w.links)
		w.judged(granting(fs.Read, fs.Write), err)
	}
}

// judged notes how a string was judged against a side.
func (w *walk) judged(side declare.Stance, err error) {
	if err != nil {
		w.found(err.Error())
		return
	}
	w.granted = w.granted || side.Grants()
}

// granting returns the first stance that grants something, or else the second.
func granting(a, b declare.Stance) declare.Stance {
	if a.Grants() {
		return a
	}
	return b
}

// candidate says whether a string without a role is looked at.
func candidate(s string) bool {
	return strings.HasPrefix(s, "/") || s == "~" || strings.HasPrefix(s, "~/") || len(s) >= 5 && strings.EqualFold(s[:5], "file:")
}

func (w *walk) found(text string) {
	w.out = append(w.out, call.Evidence{Where: w.where(), Text: text})
}

// escape writes a member's name as a JSON pointer does.
var escape = strings.NewReplacer("~", "~0", "/", "~1")

// where is the JSON pointer to the value.
func (w *walk) where() string {
	var where strings.Builder
	for i, part := range w.at {
		where.WriteByte('/')
		if part.Item {
			where.WriteString(strconv.Itoa(w.index[i]))
			continue
		}
		_, _ = escape.WriteString(&where, part.Name)
	}
	return where.String()
}
