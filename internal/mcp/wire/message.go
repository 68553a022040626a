package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// ErrBatch refuses an array of messages: a second message would hide behind
// the first one.
var ErrBatch = errors.New("batches are not accepted: send one message at a time")

// Span is a part of a message's bytes; the zero value is none.
type Span struct{ Start, End int }

// IsZero says that there is no such part.
func (s Span) IsZero() bool { return s.End == 0 }

// Of returns the part of a message.
func (s Span) Of(raw []byte) jsontext.Value {
	if s.IsZero() {
		return nil
	}
	return jsontext.Value(raw[s.Start:s.End])
}

// Message is one JSON-RPC message: its bytes, and where in them its parts are.
type Message struct {
	Raw    []byte
	Method string
	// ID, Params, Result and Error are members of the message.
	ID, Params, Result, Error Span

	params []member // of params, where that is an object
	meta   []member // of its _meta
}

// member is a member of an object.
type member struct {
	name  string
	value Span
}

// Kind says what a message is.
type Kind uint8

// The kinds; the zero value is none of them.
const (
	Invalid Kind = iota
	Request
	Notification
	Response
)

// Kind says what the message is.
func (m *Message) Kind() Kind {
	id := !m.ID.IsZero()
	answer := !m.Result.IsZero() || !m.Error.IsZero()
	switch {
	case m.Method != "" && answer:
		return Invalid
	case m.Method != "" && id:
		return Request
	case m.Method != "":
		return Notification
	case answer && m.Result.IsZero() != m.Error.IsZero():
		return Response
	}
	return Invalid
}

// Parse reads a message. The message keeps raw, which must not change.
func Parse(raw []byte) (*Message, error) {
	r := read(raw)
	defer r.done()
	dec := r.dec
	switch dec.PeekKind() {
	case '{':
	case '[':
		return nil, ErrBatch
	default:
		if _, err := dec.ReadToken(); err != nil {
			return nil, fmt.Errorf("not a JSON-RPC message: %w", err)
		}
		return nil, errors.New("not a JSON-RPC message: it must be an object")
	}
	m := &Message{Raw: raw}
	version := false
	err := eachMember(dec, func(name string) error {
		switch name {
		case "params":
			if dec.PeekKind() == '{' {
				return m.readParams(dec)
			}
		case "method":
			if dec.PeekKind() != '"' {
				return errors.New("the method is not a string")
			}
		}
		span, err := readValue(dec)
		if err != nil {
			return err
		}
		switch name {
		case "jsonrpc":
			version = string(span.Of(raw)) == `"2.0"`
		case "id":
			if k := span.Of(raw).Kind(); k != '"' && k != '0' && k != 'n' {
				return errors.New("the id is neither a string nor a number")
			}
			m.ID = span
		case "method":
			m.Method = Text(span.Of(raw))
		case "params":
			m.Params = span
		case "result":
			m.Result = span
		case "error":
			m.Error = span
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("not a JSON-RPC message: %w", err)
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, errors.New("not a JSON-RPC message: something follows it")
	}
	if !version {
		return nil, errors.New(`not a JSON-RPC message: it lacks "jsonrpc":"2.0"`)
	}
	if m.Kind() == Invalid {
		return nil, errors.New("not a JSON-RPC message: neither a request, a notification nor a response")
	}
	return m, nil
}

// reading is a decoder that is used again: what it needs while it reads is made
// once.
type reading struct {
	dec *jsontext.Decoder
	buf bytes.Buffer
}

var readings = sync.Pool{New: func() any {
	r := new(reading)
	r.dec = jsontext.NewDecoder(&r.buf)
	return r
}}

// read returns a decoder of a text, which must be given back.
func read(raw []byte) *reading {
	r := readings.Get().(*reading)
	r.buf = *bytes.NewBuffer(raw)
	r.dec.Reset(&r.buf)
	return r
}

// done gives the decoder back, without the text.
func (r *reading) done() {
	r.buf = bytes.Buffer{}
	r.dec.Reset(&r.buf)
	readings.Put(r)
}

// readParams notes the members of the parameters and of their metadata.
func (m *Message) readParams(dec *jsontext.Decoder) error {
	start := -1
	err := eachMemberFrom(dec, &start, func(name string) error {
		var span Span
		var err error
		if name == "_meta" && dec.PeekKind() == '{' {
			at := -1
			err = eachMemberFrom(dec, &at, func(key string) error {
				v, err := readValue(dec)
				m.meta = append(m.meta, member{key, v})
				return err
			})
			span = Span{at, int(dec.InputOffset())}
		} else {
			span, err = readValue(dec)
		}
		m.params = append(m.params, member{name, span})
		return err
	})
	m.Params = Span{start, int(dec.InputOffset())}
	return err
}

// eachMember reads an object and calls fn for each member, to read its value.
func eachMember(dec *jsontext.Decoder, fn func(name string) error) error {
	var start int
	return eachMemberFrom(dec, &start, fn)
}

func eachMemberFrom(dec *jsontext.Decoder, start *int, fn func(name string) error) error {
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	*start = int(dec.InputOffset()) - 1
	for dec.PeekKind() != '}' {
		tok, err := dec.ReadToken()
		if err != nil {
			return err
		}
		if err := fn(tok.String()); err != nil {
			return err
		}
	}
	_, err := dec.ReadToken()
	return err
}

func readValue(dec *jsontext.Decoder) (Span, error) {
	v, err := dec.ReadValue()
	end := int(dec.InputOffset())
	return Span{end - len(v), end}, err
}

// Param returns a member of the parameters.
func (m *Message) Param(name string) Span { return find(m.params, name) }

// Meta returns a member of the parameters' _meta.
func (m *Message) Meta(name string) Span { return find(m.meta, name) }

// ParamNames lists the members of the parameters.
func (m *Message) ParamNames() []string {
	out := make([]string, len(m.params))
	for i, e := range m.params {
		out[i] = e.name
	}
	return out
}

func find(list []member, name string) Span {
	for _, e := range list {
		if e.name == name {
			return e.value
		}
	}
	return Span{}
}

// Value returns the bytes of a part.
func (m *Message) Value(s Span) jsontext.Value { return s.Of(m.Raw) }

// String returns a member of the parameters that is a string, "" otherwise.
func (m *Message) String(name string) string { return Text(m.Value(m.Param(name))) }

// Text returns the string that a JSON value is, "" if it is none.
func Text(v jsontext.Value) string {
	if v.Kind() != '"' {
		return ""
	}
	if len(v) >= 2 && v[0] == '"' && bytes.IndexByte(v, '\\') < 0 {
		return string(v[1 : len(v)-1])
	}
	out, err := jsontext.AppendUnquote(nil, v)
	if err != nil {
		return ""
	}
	return string(out)
}

// Quote writes a string as JSON.
func Quote(s string) jsontext.Value {
	out, err := jsontext.AppendQuote(nil, s)
	if err != nil {
		out, _ = jsontext.AppendQuote(nil, strings.ToValidUTF8(s, "\uFFFD")) // valid now, so it cannot fail
	}
	return out
}

// Edit replaces a part of a message.
type Edit struct {
	Span
	New []byte
}

// Splice returns the bytes with the parts replaced. The edits are in the order
// of the bytes and do not overlap.
func Splice(raw []byte, edits ...Edit) []byte {
	size := len(raw)
	for _, e := range edits {
		size += len(e.New)
	}
	out := make([]byte, 0, size)
	at := 0
	for _, e := range edits {
		out = append(append(out, raw[at:e.Start]...), e.New...)
		at = e.End
	}
	return append(out, raw[at:]...)
}

// WithParams returns the message with members of its parameters set, or taken
// out where the value is nil.
func (m *Message) WithParams(change map[string]jsontext.Value) []byte {
	if m.Params.IsZero() {
		end := len(bytes.TrimRight(m.Raw, " \t\r\n")) - 1
		return Splice(m.Raw, Edit{Span{end, end}, append([]byte(`,"params":`), Set(jsontext.Value("{}"), change)...)})
	}
	return Splice(m.Raw, Edit{m.Params, Set(m.Value(m.Params), change)})
}

// WithResult is WithParams for the result of a response.
func (m *Message) WithResult(change map[string]jsontext.Value) []byte {
	return Splice(m.Raw, Edit{m.Result, Set(m.Value(m.Result), change)})
}

// Set returns an object with members set, or taken out where the value is nil.
// The others keep their bytes and their order.
func Set(object jsontext.Value, change map[string]jsontext.Value) jsontext.Value {
	out := []byte{'{'}
	write := func(name string, v jsontext.Value) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, Quote(name)...), ':'), v...)
	}
	names, values := Members(object)
	for i, name := range names {
		v, changed := change[name]
		if !changed {
			v = values[i]
		}
		if v != nil {
			write(name, v)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(change)) {
		if change[name] != nil && !slices.Contains(names, name) {
			write(name, change[name])
		}
	}
	return append(out, '}')
}
