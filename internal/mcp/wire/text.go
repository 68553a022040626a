package wire

import (
	"bytes"
	"encoding/base64"
	"strings"
)

// OneLine returns a message without line breaks. In JSON they stand between
// tokens only, where a space says the same.
func OneLine(raw []byte) []byte {
	if bytes.IndexByte(raw, '\n') < 0 && bytes.IndexByte(raw, '\r') < 0 {
		return raw
	}
	out := bytes.Clone(raw)
	for i, b := range out {
		if b == '\n' || b == '\r' {
			out[i] = ' '
		}
	}
	return out
}

// DecodeHeader undoes the encoding of header values that are not plain text.
func DecodeHeader(v string) string {
	if rest, ok := strings.CutPrefix(v, "=?base64?"); ok {
		if enc, ok := strings.CutSuffix(rest, "?="); ok {
			if plain, err := base64.StdEncoding.DecodeString(enc); err == nil {
				return string(plain)
			}
		}
	}
	return v
}

// EncodeHeader is the inverse of [DecodeHeader].
func EncodeHeader(s string) string {
	plain := s == strings.TrimSpace(s) && !strings.HasPrefix(s, "=?base64?")
	for i := range len(s) {
		plain = plain && s[i] >= 0x20 && s[i] <= 0x7e
	}
	if plain {
		return s
	}
	return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(s)) + "?="
}
