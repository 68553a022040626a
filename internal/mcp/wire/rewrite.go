package wire

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Rewrite replaces strings at places of a message. A place is a JSON pointer in
// which "*" stands for any one part, such as "/result/tools/*/name"; it counts
// from the beginning of raw. A string for which change returns itself stays.
func Rewrite(raw []byte, places []string, change func(string) string) ([]byte, error) {
	patterns := make([][]string, len(places))
	for i, p := range places {
		patterns[i] = strings.Split(p, "/")[1:]
	}
	var edits []Edit
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw))
	for {
		tok, err := dec.ReadToken()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if tok.Kind() != '"' || !isValue(dec) {
			continue
		}
		end := int(dec.InputOffset())
		old := tok.String()
		if !matches(string(dec.StackPointer()), patterns) {
			continue
		}
		if now := change(old); now != old {
			start := end - quotedLen(raw[:end])
			edits = append(edits, Edit{Span{start, end}, Quote(now)})
		}
	}
	if len(edits) == 0 {
		return raw, nil
	}
	return Splice(raw, edits...), nil
}

// isValue says whether the string just read is a value and not a name.
func isValue(dec *jsontext.Decoder) bool {
	kind, n := dec.StackIndex(dec.StackDepth())
	return kind != '{' || n%2 == 0
}

// quotedLen is the length of the string that ends at the end of raw.
func quotedLen(raw []byte) int {
	for i := len(raw) - 2; i >= 0; i-- {
		if raw[i] != '"' {
			continue
		}
		slashes := 0
		for j := i - 1; j >= 0 && raw[j] == '\\'; j-- {
			slashes++
		}
		if slashes%2 == 0 {
			return len(raw) - i
		}
	}
	return len(raw)
}

func matches(pointer string, patterns [][]string) bool {
	parts := strings.Split(pointer, "/")[1:]
	return slices.ContainsFunc(patterns, func(p []string) bool {
		return slices.EqualFunc(p, parts, func(want, got string) bool { return want == "*" || want == got })
	})
}

func sortEdits(edits []Edit) {
	slices.SortFunc(edits, func(a, b Edit) int { return cmp.Compare(a.Start, b.Start) })
}
