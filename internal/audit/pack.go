package audit

import (
	_ "embed"
	"encoding/binary"
	"math/bits"
)

// Most of what a record says every record says: the names of its members, the stages that had nothing to object. Bodies
// are stored without that, as copies from a text that all know: what is not written needs no page, no checksum and no
// sync. The hash of a body is of the body itself, so that the form in which it is stored proves nothing and hides
// nothing.
//
// A stored body is the number of its text, the length of the body, and parts in turns: so many bytes as they are, then
// a place in the text and so many bytes from there. A body that begins otherwise is stored as it is; that of JSON does.

// packed is the first byte of a packed body, and the number of the text. A text never changes: another gets another
// number.
const packed = 1

//go:embed words1.txt
var words []byte

const (
	// window is how many bytes must be the same for a copy: so many that the beginnings of two ballots differ in them.
	window = 24
	// maxBody bounds what a stored body may claim to be.
	maxBody  = 64 << 20
	hashBits = 12
)

// places says where in the text a window may be found: one more than the last place, 0 for nowhere.
type places [1 << hashBits]uint16

// wordPlaces is made from the text alone.
var wordPlaces = func() (p places) {
	for i := 0; i+window <= len(words); i++ {
		p[hashOf(words[i:])] = uint16(i + 1)
	}
	return p
}()

func hashOf(s []byte) uint64 {
	v := binary.LittleEndian.Uint64(s) * 0x9e3779b97f4a7c15
	v = (v ^ binary.LittleEndian.Uint64(s[8:])) * 0x9e3779b97f4a7c15
	return (v ^ binary.LittleEndian.Uint64(s[16:])) * 0x9e3779b97f4a7c15 >> (64 - hashBits)
}

// pack returns a body as it is stored.
func pack(body []byte) []byte {
	if len(body) == 0 || len(body) > maxBody {
		return body
	}
	out := binary.AppendUvarint(append(make([]byte, 0, len(body)/2+16), packed), uint64(len(body)))
	plain := 0 // where what is not written yet begins
	for i := 0; i+window <= len(body); {
		if c := body[i]; '0' <= c && c <= '9' || 'a' <= c && c <= 'z' {
			i++ // what records have in common begins at a quote or a bracket
			continue
		}
		at := int(wordPlaces[hashOf(body[i:])]) - 1
		n := 0
		if at >= 0 {
			n = alike(body[i:], words[at:])
		}
		if n < window {
			i += 1 + (i-plain)>>6 // what is the call's own is passed over faster and faster
			continue
		}
		out = appendPlain(out, body[plain:i])
		out = binary.AppendUvarint(binary.AppendUvarint(out, uint64(at)), uint64(n))
		i += n
		plain = i
	}
	out = appendPlain(out, body[plain:])
	if len(out) >= len(body) && body[0] != packed {
		return body
	}
	return out
}

func appendPlain(out, text []byte) []byte {
	return append(binary.AppendUvarint(out, uint64(len(text))), text...)
}

// alike counts how many bytes two texts begin with in common.
func alike(a, b []byte) (n int) {
	for ; n+8 <= min(len(a), len(b)); n += 8 {
		if differ := binary.LittleEndian.Uint64(a[n:]) ^ binary.LittleEndian.Uint64(b[n:]); differ != 0 {
			return n + bits.TrailingZeros64(differ)/8
		}
	}
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// Unpack returns the body that is stored so. What is not as [Append] writes it is returned as it is: its hash tells
// that somebody changed it.
func Unpack(stored []byte) []byte {
	if len(stored) == 0 || stored[0] != packed {
		return stored
	}
	rest := stored[1:]
	next := func() (int, bool) {
		v, n := binary.Uvarint(rest)
		if n <= 0 || bits.Len64(v) > 31 {
			return 0, false
		}
		rest = rest[n:]
		return int(v), true
	}
	size, ok := next()
	if !ok || size > maxBody {
		return stored
	}
	var body []byte
	for {
		n, ok := next()
		if !ok || n > len(rest) || len(body)+n > size {
			return stored
		}
		if body == nil {
			body = make([]byte, 0, min(size, n+len(words)))
		}
		body, rest = append(body, rest[:n]...), rest[n:]
		if len(rest) == 0 {
			break
		}
		at, ok := next()
		n, also := next()
		if !ok || !also || n < window || at > len(words) || n > len(words)-at || len(body)+n > size {
			return stored
		}
		body = append(body, words[at:at+n]...)
	}
	if len(body) != size {
		return stored
	}
	return body
}
