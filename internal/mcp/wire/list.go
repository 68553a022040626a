package wire

import (
	"bytes"
	"errors"

	"github.com/go-json-experiment/json/jsontext"
)

// Item is one element of a list answer.
type Item struct {
	Span
	// Name is its name, or its URI where that is what names it.
	Name string
}

// List is the answer to a list request.
type List struct {
	Array Span
	Items []Item

	members []member // of the result
	result  Span
	raw     []byte
}

// ParseList reads the items of the array called member in the result of a
// response; key is what names an item. A response without one is an error.
func ParseList(m *Message, array, key string) (*List, error) {
	if m.Result.IsZero() {
		return nil, errors.New("the response has no result")
	}
	base := m.Result.Start
	l := &List{result: m.Result, raw: m.Raw}
	dec := jsontext.NewDecoder(bytes.NewBuffer(m.Value(m.Result)))
	if dec.PeekKind() != '{' {
		return nil, errors.New("the result is not an object")
	}
	err := eachMember(dec, func(name string) error {
		if name != array || dec.PeekKind() != '[' {
			v, err := readValue(dec)
			l.members = append(l.members, member{name, Span{v.Start + base, v.End + base}})
			return err
		}
		if _, err := dec.ReadToken(); err != nil {
			return err
		}
		l.Array.Start = base + int(dec.InputOffset()) - 1
		for dec.PeekKind() != ']' {
			v, err := readValue(dec)
			if err != nil {
				return err
			}
			item := Item{Span: Span{v.Start + base, v.End + base}}
			item.Name = Text(Member(item.Of(m.Raw), key))
			l.Items = append(l.Items, item)
		}
		_, err := dec.ReadToken()
		l.Array.End = base + int(dec.InputOffset())
		return err
	})
	if err == nil && l.Array.IsZero() {
		err = errors.New("the result has no " + array)
	}
	return l, err
}

// Raw returns the response that the list was read from.
func (l *List) Raw() []byte { return l.raw }

// Value returns a member of the result.
func (l *List) Value(name string) jsontext.Value { return find(l.members, name).Of(l.raw) }

// Write returns the response with the items for which keep returns bytes, and
// with members of the result replaced where set has them and they are there.
func (l *List) Write(keep func(Item) []byte, set map[string]jsontext.Value) []byte {
	var items bytes.Buffer
	items.WriteByte('[')
	for _, it := range l.Items {
		if v := keep(it); v != nil {
			if items.Len() > 1 {
				items.WriteByte(',')
			}
			items.Write(v)
		}
	}
	items.WriteByte(']')
	edits := []Edit{{l.Array, items.Bytes()}}
	for _, m := range l.members {
		if v, ok := set[m.name]; ok && v != nil {
			edits = append(edits, Edit{m.value, v})
		}
	}
	sortEdits(edits)
	return Splice(l.raw, edits...)
}

// Member returns the value of an object's member, nil if there is none.
func Member(object jsontext.Value, name string) (found jsontext.Value) {
	if bytes.IndexByte(object, '\\') < 0 && !bytes.Contains(object, []byte(name)) {
		return nil // without escapes a name is written as it is
	}
	r := read(object)
	defer r.done()
	dec := r.dec
	if dec.PeekKind() != '{' {
		return nil
	}
	_ = eachMember(dec, func(got string) error { // what is not JSON has no members
		v, err := readValue(dec)
		if err == nil && got == name {
			found = v.Of(object)
		}
		return err
	})
	return found
}

// Members lists the members of an object in their order.
func Members(object jsontext.Value) (names []string, values []jsontext.Value) {
	r := read(object)
	defer r.done()
	dec := r.dec
	if dec.PeekKind() != '{' {
		return nil, nil
	}
	_ = eachMember(dec, func(got string) error { // what is not JSON has no members
		v, err := readValue(dec)
		if err == nil {
			names, values = append(names, got), append(values, v.Of(object))
		}
		return err
	})
	return names, values
}
