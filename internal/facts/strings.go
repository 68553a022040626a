package facts

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// String is one string somewhere in the arguments of a call.
type String struct {
	// Where is the JSON pointer to it.
	Where string
	// Name is the name of the member it is, or of the list it is in.
	Name string
	// Text is the string; for a Key the name of a member.
	Text string
	Key  bool
}

// Strings lists every string in the arguments, names of members included, in
// the order in which they stand.
func Strings(args jsontext.Value) []String {
	var out []String
	dec := jsontext.NewDecoder(bytes.NewBuffer(args))
	names := []string{""} // the member name at each depth
	for {
		tok, err := dec.ReadToken()
		if err != nil {
			return out // the arguments were checked; this is their end
		}
		depth := dec.StackDepth()
		for len(names) <= depth {
			names = append(names, names[len(names)-1])
		}
		names = names[:depth+1]
		if tok.Kind() != '"' {
			continue
		}
		kind, n := dec.StackIndex(depth)
		if kind == '{' && n%2 == 1 {
			names[depth] = tok.String()
			out = append(out, String{Where: string(dec.StackPointer()), Name: names[depth], Text: names[depth], Key: true})
			continue
		}
		out = append(out, String{Where: string(dec.StackPointer()), Name: names[depth], Text: tok.String()})
	}
}
