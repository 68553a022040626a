package keyring

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"time"
)

// Row is the signature of one database row in the making. Fields go in one
// after the other, each with its type and length in front, so that no two rows
// run together to the same bytes.
type Row struct {
	h   hash.Hash
	buf [9]byte
}

// Row starts the signature of a row of one kind. A signature of one kind is no
// good for another, even over the same fields.
func (k *Keyring) Row(kind string) *Row {
	r := &Row{h: hmac.New(sha256.New, k.mac[:])}
	return r.Text("gatehouse/row/1", kind)
}

func (r *Row) head(tag byte, n uint64) {
	r.buf[0] = tag
	binary.BigEndian.PutUint64(r.buf[1:], n)
	r.h.Write(r.buf[:])
}

// Text adds strings.
func (r *Row) Text(fields ...string) *Row {
	for _, s := range fields {
		r.head('s', uint64(len(s)))
		r.h.Write([]byte(s))
	}
	return r
}

// Bytes adds byte strings. Nil and empty are the same, as they are in a
// database that knows no difference.
func (r *Row) Bytes(fields ...[]byte) *Row {
	for _, b := range fields {
		r.head('b', uint64(len(b)))
		r.h.Write(b)
	}
	return r
}

// Int adds numbers.
func (r *Row) Int(fields ...int64) *Row {
	for _, n := range fields {
		r.head('i', uint64(n))
	}
	return r
}

// Bool adds truth values.
func (r *Row) Bool(fields ...bool) *Row {
	for _, b := range fields {
		var n uint64
		if b {
			n = 1
		}
		r.head('t', n)
	}
	return r
}

// Time adds times, as the whole microseconds the database keeps.
func (r *Row) Time(fields ...time.Time) *Row {
	for _, t := range fields {
		r.head('d', uint64(Micros(t)))
	}
	return r
}

// Sum ends the signature.
func (r *Row) Sum() []byte { return r.h.Sum(nil) }

// Is says, in constant time, whether this is the row's signature.
func (r *Row) Is(mac []byte) bool { return hmac.Equal(r.h.Sum(nil), mac) }

// Micros is a time as the database keeps it: microseconds since 1970, 0 for
// no time.
func Micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// Time is what Micros wrote.
func Time(micros int64) time.Time {
	if micros == 0 {
		return time.Time{}
	}
	return time.UnixMicro(micros).UTC()
}
