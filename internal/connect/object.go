package connect

import (
	"bytes"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// object is a JSON object that keeps the order of its members, so that a
// settings file changes only where it is changed.
type object []member

type member struct {
	name  string
	value jsontext.Value
}

// parseObject reads a settings file. An empty one is an empty object.
func parseObject(text []byte) (object, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, nil
	}
	dec := jsontext.NewDecoder(bytes.NewReader(text))
	if dec.PeekKind() != '{' {
		return nil, fmt.Errorf("it is not a JSON object")
	}
	if _, err := dec.ReadToken(); err != nil {
		return nil, err
	}
	var o object
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return nil, err
		}
		key := name.String()
		value, err := dec.ReadValue()
		if err != nil {
			return nil, err
		}
		o = append(o, member{key, value.Clone()})
	}
	if _, err := dec.ReadToken(); err != nil {
		return nil, err
	}
	return o, nil
}

// get returns a member, nil if there is none.
func (o object) get(name string) jsontext.Value {
	for _, m := range o {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// set puts a member in its place, or at the end.
func (o *object) set(name string, v any) error {
	value, err := encode(v)
	if err != nil {
		return err
	}
	for i := range *o {
		if (*o)[i].name == name {
			(*o)[i].value = value
			return nil
		}
	}
	*o = append(*o, member{name, value})
	return nil
}

// drop takes a member out.
func (o *object) drop(name string) {
	for i := range *o {
		if (*o)[i].name == name {
			*o = append((*o)[:i:i], (*o)[i+1:]...)
			return
		}
	}
}

func encode(v any) (jsontext.Value, error) {
	switch v := v.(type) {
	case jsontext.Value:
		return v, nil
	case object:
		return v.join(), nil
	}
	text, err := json.Marshal(v, json.Deterministic(true))
	return text, err
}

// join writes the object without white space.
func (o object) join() jsontext.Value {
	out := []byte{'{'}
	for i, m := range o {
		if i > 0 {
			out = append(out, ',')
		}
		name, err := jsontext.AppendQuote(nil, m.name)
		if err != nil {
			continue // it was read as a name, so it can be written as one
		}
		out = append(append(append(out, name...), ':'), m.value...)
	}
	return append(out, '}')
}

// format writes the object as a settings file, nil for an empty one.
func (o object) format() ([]byte, error) {
	if len(o) == 0 {
		return nil, nil
	}
	v := o.join()
	if err := v.Indent(jsontext.WithIndent("  ")); err != nil {
		return nil, err
	}
	return append(v, '\n'), nil
}

// list reads a member that is a list.
func list(v jsontext.Value) ([]jsontext.Value, error) {
	if len(v) == 0 {
		return nil, nil
	}
	var out []jsontext.Value
	err := json.Unmarshal(v, &out)
	return out, err
}
