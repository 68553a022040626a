package call

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/go-json-experiment/json/jsontext"
)

// MaxArgs is the largest size of a call's arguments, MaxDepth how deep they
// may nest. More is refused, never cut.
const (
	MaxArgs  = 1 << 20
	MaxDepth = 64
)

// InvalidError says which part of a call is wrong and why. A call with an
// invalid part is refused before it is decided on.
type InvalidError struct {
	Field   string
	Problem string
}

// Error names the field and the problem.
func (e *InvalidError) Error() string { return e.Field + " " + e.Problem }

// Canonical returns arguments in their one form: object members sorted,
// strings in their shortest spelling, no white space, numbers as the literal
// text they came in (2^53 and 2^53+1 stay apart, as they do upstream).
// Duplicate names, invalid UTF-8, trailing data, more than [MaxDepth] levels
// and more than [MaxArgs] bytes are refused. No arguments are an empty object.
func Canonical(raw []byte) (jsontext.Value, error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return jsontext.Value("{}"), nil
	}
	if len(raw) > MaxArgs {
		return nil, &InvalidError{Field: "args", Problem: fmt.Sprintf("are %d bytes; the limit is %d", len(raw), MaxArgs)}
	}
	if err := checkDepth(raw); err != nil {
		return nil, err
	}
	v := jsontext.Value(bytes.Clone(raw))
	// Numbers keep their literal text: rounding them here would give two
	// different calls one digest.
	if err := v.Canonicalize(jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false)); err != nil {
		return nil, &InvalidError{Field: "args", Problem: fmt.Sprintf("are not strict JSON: %v", err)}
	}
	if v.Kind() != '{' {
		return nil, &InvalidError{Field: "args", Problem: "must be a JSON object"}
	}
	return v, nil
}

// checkDepth reads the tokens once, refusing what is too deep before any
// recursive code sees it, and whatever is not one strict JSON value.
func checkDepth(raw []byte) error {
	if bytes.Count(raw, []byte("{"))+bytes.Count(raw, []byte("[")) <= MaxDepth {
		return nil // it cannot be too deep, and what else is wrong with it is found later
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw))
	for {
		_, err := dec.ReadToken()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return &InvalidError{Field: "args", Problem: fmt.Sprintf("are not strict JSON: %v", err)}
		}
		if dec.StackDepth() > MaxDepth {
			return &InvalidError{Field: "args", Problem: fmt.Sprintf("nest deeper than %d levels", MaxDepth)}
		}
	}
}

// StringArg returns the string member called name of a JSON object.
func StringArg(args jsontext.Value, name string) (string, bool) {
	for n, v := range StringArgs(args) {
		if n == name {
			return v, true
		}
	}
	return "", false
}

// StringArgs yields the members of a JSON object that are strings.
func StringArgs(args jsontext.Value) iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		dec := jsontext.NewDecoder(bytes.NewBuffer(args))
		if tok, err := dec.ReadToken(); err != nil || tok.Kind() != '{' {
			return
		}
		for dec.PeekKind() != '}' {
			tok, err := dec.ReadToken()
			if err != nil {
				return
			}
			name := tok.String() // the token is only good until the next read
			if dec.PeekKind() != '"' {
				if dec.SkipValue() != nil {
					return
				}
				continue
			}
			if tok, err = dec.ReadToken(); err != nil || !yield(name, tok.String()) {
				return
			}
		}
	}
}
