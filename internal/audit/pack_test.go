package audit

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestPackKeepsBodies: whatever a body is, it comes back as it was.
func TestPackKeepsBodies(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.OneOf(
			rapid.SliceOfN(rapid.Byte(), 0, 40),
			rapid.Custom(func(t *rapid.T) []byte {
				from := rapid.IntRange(0, len(words)).Draw(t, "from")
				return words[from:rapid.IntRange(from, len(words)).Draw(t, "to")]
			}),
		)
		body := bytes.Join(rapid.SliceOfN(part, 0, 8).Draw(t, "parts"), nil)
		stored := pack(body)
		if got := Unpack(stored); !bytes.Equal(got, body) {
			t.Fatalf("%q is stored as %q and comes back as %q", body, stored, got)
		}
	})
}

// TestPackIsSmall: what every record says takes no room.
func TestPackIsSmall(t *testing.T) {
	t.Parallel()
	body := append(bytes.Clone(words), strings.Repeat("f", 300)...)
	if n := len(pack(body)); n > 400 {
		t.Errorf("a body of %d bytes, of which 300 are its own, is stored in %d", len(body), n)
	}
}

// TestUnpackRefuses: bytes that no record was packed into are not read as if one was, and cost no more memory than they
// are long.
func TestUnpackRefuses(t *testing.T) {
	t.Parallel()
	number := func(list ...uint64) (b []byte) {
		b = append(b, packed)
		for _, n := range list {
			b = binary.AppendUvarint(b, n)
		}
		return b
	}
	for name, stored := range map[string][]byte{
		"nothing but its mark":         {packed},
		"no parts":                     number(5),
		"shorter than it says":         append(number(9, 3), "abc"...),
		"longer than it says":          append(number(2, 3), "abc"...),
		"plain beyond the end":         append(number(9, 9), "abc"...),
		"a copy from beyond the text":  number(20, 0, uint64(len(words)), 20, 0),
		"a copy beyond the text's end": number(20, 0, uint64(len(words))-5, 20, 0),
		"a copy that never ends":       number(maxBody, 0, 0, maxBody, 0),
		"larger than any":              number(maxBody+1, 0, 0, 100, 0),
		"a number without an end":      append([]byte{packed}, bytes.Repeat([]byte{0xff}, 20)...),
		"half a copy":                  number(20, 0, 3),
		"something after the last":     append(number(24, 0, 0, 24), 0, 0, 0, 0),
	} {
		if got := Unpack(stored); !bytes.Equal(got, stored) {
			t.Errorf("%s: %q is read as %q", name, stored, got)
		}
	}
}

// FuzzUnpack looks for stored bodies that break it.
func FuzzUnpack(f *testing.F) {
	f.Add(pack([]byte(`{"outcome":{"outcome":"succeeded"},"manifest":"x"}`)))
	f.Add([]byte{packed, 3, 3, 'a', 'b', 'c'})
	f.Fuzz(func(t *testing.T, stored []byte) {
		if body := Unpack(stored); len(body) > 0 && !bytes.Equal(Unpack(pack(body)), body) {
			t.Errorf("%q comes back changed", body)
		}
	})
}

func BenchmarkPack(b *testing.B) {
	ballots := words[bytes.Index(words, []byte(`"posture":"advisory"`)):bytes.Index(words, []byte(`"},"verdict"`))]
	body := bytes.Replace(ballots, []byte(`"rule":"default"`), []byte(`"rule":"another"`), 1)
	body = slices.Concat([]byte(`{"call":{"id":"c_dio7fzuxkbvgcrvfflfnopkz","args":{"text":"hello"}},`), body, bytes.Repeat([]byte("0123456789abcdef"), 20))
	for b.Loop() {
		pack(body)
	}
	b.ReportMetric(float64(len(body)), "bytes")
	b.ReportMetric(float64(len(pack(body))), "packed-bytes")
}
