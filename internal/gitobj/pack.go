package gitobj

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sort"
)

// pack is a pack with its index, version 2, which git has written since 2008.
type pack struct {
	idx, data         *os.File
	idxSize, dataSize int64
	count             int64
	fanout            [256]uint32
}

const (
	idxHead   = 8
	idxFanout = idxHead + 256*4
	packTail  = 20 // the checksum at the end of a pack
)

func openPack(base string) (*pack, error) {
	p := &pack{}
	var err error
	if p.idx, p.idxSize, err = openFile(base + ".idx"); err != nil {
		return nil, err
	}
	if p.data, p.dataSize, err = openFile(base + ".pack"); err != nil {
		p.close()
		return nil, err
	}
	if err := p.head(); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *pack) close() {
	for _, f := range []*os.File{p.idx, p.data} {
		if f != nil {
			_ = f.Close() // it was only read
		}
	}
}

// head reads the table that says how many names begin with up to which byte.
func (p *pack) head() error {
	var b [idxFanout]byte
	if _, err := p.idx.ReadAt(b[:], 0); err != nil {
		return fmt.Errorf("%w: an index of a pack: %w", ErrFormat, err)
	}
	if !bytes.Equal(b[:idxHead], []byte{0xff, 't', 'O', 'c', 0, 0, 0, 2}) {
		return fmt.Errorf("%w: an index of a pack that is not of version 2", ErrFormat)
	}
	var last uint32
	for i := range p.fanout {
		n := binary.BigEndian.Uint32(b[idxHead+4*i:])
		if n < last {
			return fmt.Errorf("%w: an index of a pack whose counts fall", ErrFormat)
		}
		p.fanout[i], last = n, n
	}
	p.count = int64(last)
	if idxFanout+p.count*28 > p.idxSize {
		return fmt.Errorf("%w: an index of a pack that is cut off", ErrFormat)
	}
	return nil
}

// lookup finds where in the pack an object begins.
func (p *pack) lookup(h Hash) (at int64, ok bool, err error) {
	low, high := int64(0), int64(p.fanout[h[0]])
	if h[0] > 0 {
		low = int64(p.fanout[h[0]-1])
	}
	var name Hash
	i := low + int64(sort.Search(int(high-low), func(i int) bool {
		if err == nil {
			_, err = p.idx.ReadAt(name[:], idxFanout+(low+int64(i))*int64(len(name)))
		}
		return err != nil || bytes.Compare(name[:], h[:]) >= 0
	}))
	if err != nil || i == high {
		return 0, false, err
	}
	if _, err = p.idx.ReadAt(name[:], idxFanout+i*int64(len(name))); err != nil || name != h {
		return 0, false, err
	}
	at, err = p.offset(i)
	return at, err == nil, err
}

// offset reads an entry's offset: four bytes, or eight in a second table.
func (p *pack) offset(i int64) (int64, error) {
	var b [8]byte
	offsets := idxFanout + p.count*24
	if _, err := p.idx.ReadAt(b[:4], offsets+i*4); err != nil {
		return 0, err
	}
	n := int64(binary.BigEndian.Uint32(b[:4]))
	if n&(1<<31) == 0 {
		return n, nil
	}
	if _, err := p.idx.ReadAt(b[:], offsets+p.count*4+(n&^(1<<31))*8); err != nil {
		return 0, fmt.Errorf("%w: an offset of a pack: %w", ErrFormat, err)
	}
	return int64(binary.BigEndian.Uint64(b[:]) & (1<<63 - 1)), nil
}

// packed reads the object that begins at an offset of a pack.
func (s *Store) packed(p *pack, at int64, depth int) (kind, []byte, error) {
	if depth > maxDelta {
		return 0, nil, ErrLimit
	}
	if at < 12 || at >= p.dataSize-packTail {
		return 0, nil, fmt.Errorf("%w: an offset outside of its pack", ErrFormat)
	}
	r := &byteCounter{r: io.NewSectionReader(p.data, at, p.dataSize-packTail-at)}
	k, size, err := packHeader(r)
	if err != nil {
		return 0, nil, err
	}
	if err := s.spend(size); err != nil {
		return 0, nil, err
	}
	var base []byte
	switch k {
	case kindOffDelta:
		back, err := offsetBack(r)
		if err != nil || back <= 0 || back > at {
			return 0, nil, fmt.Errorf("%w: a delta against something before its pack", ErrFormat)
		}
		if k, base, err = s.packed(p, at-back, depth+1); err != nil {
			return 0, nil, err
		}
	case kindRefDelta:
		var h Hash
		if _, err := io.ReadFull(r, h[:]); err != nil {
			return 0, nil, fmt.Errorf("%w: %w", ErrFormat, err)
		}
		if k, base, err = s.find(h, depth+1); err != nil {
			return 0, nil, err
		}
	case kindCommit, kindTree, kindBlob, kindTag:
	default:
		return 0, nil, fmt.Errorf("%w: an object of kind %d", ErrFormat, k)
	}
	data, err := inflate(io.NewSectionReader(p.data, at+r.n, p.dataSize-packTail-at-r.n), size)
	if err != nil {
		return 0, nil, err
	}
	if int64(len(data)) != size {
		return 0, nil, fmt.Errorf("%w: an object that is cut off", ErrFormat)
	}
	if base != nil {
		data, err = s.patch(base, data)
	}
	return k, data, err
}

// byteCounter counts what was read, one byte at a time.
type byteCounter struct {
	r io.Reader
	n int64
}

func (c *byteCounter) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += int64(n)
	return n, err
}

func (c *byteCounter) ReadByte() (byte, error) {
	var b [1]byte
	_, err := io.ReadFull(c, b[:])
	return b[0], err
}

// packHeader reads the kind and the unpacked size of an object.
func packHeader(r io.ByteReader) (k kind, size int64, err error) {
	b, err := r.ReadByte()
	if err != nil {
		return 0, 0, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	k, size = kind(b>>4&7), int64(b&15)
	for shift := 4; b&0x80 != 0; shift += 7 {
		if b, err = r.ReadByte(); err != nil || shift > 40 {
			return 0, 0, fmt.Errorf("%w: the size of an object", ErrFormat)
		}
		size |= int64(b&0x7f) << shift
	}
	return k, size, nil
}

// offsetBack reads how far back the base of a delta lies.
func offsetBack(r io.ByteReader) (int64, error) {
	b, err := r.ReadByte()
	n := int64(b & 0x7f)
	for b&0x80 != 0 && err == nil {
		if n > 1<<48 {
			return 0, ErrFormat
		}
		b, err = r.ReadByte()
		n = (n+1)<<7 | int64(b&0x7f)
	}
	return n, err
}

var errDelta = fmt.Errorf("%w: a delta that does not fit its base", ErrFormat)

// patch applies a delta: copies from the base, and bytes of its own.
func (s *Store) patch(base, delta []byte) ([]byte, error) {
	from, delta, err := deltaSize(delta)
	if err != nil || from != int64(len(base)) {
		return nil, errDelta
	}
	size, delta, err := deltaSize(delta)
	if err != nil {
		return nil, err
	}
	if err := s.spend(size); err != nil {
		return nil, err
	}
	out := make([]byte, 0, size)
	for len(delta) > 0 {
		op := delta[0]
		delta = delta[1:]
		var piece []byte
		switch {
		case op&0x80 != 0:
			if piece, delta, err = deltaCopy(op, base, delta); err != nil {
				return nil, err
			}
		case op == 0 || int(op) > len(delta):
			return nil, errDelta
		default:
			piece, delta = delta[:op], delta[op:]
		}
		if int64(len(out)+len(piece)) > size {
			return nil, errDelta
		}
		out = append(out, piece...)
	}
	if int64(len(out)) != size {
		return nil, errDelta
	}
	return out, nil
}

func deltaSize(b []byte) (size int64, rest []byte, err error) {
	n, used := binary.Uvarint(b)
	if used <= 0 || n > maxObject {
		return 0, nil, errors.Join(errDelta, ErrLimit)
	}
	return int64(n), b[used:], nil
}

// deltaCopy reads a copy instruction: the bits of op say which bytes of offset
// and length follow.
func deltaCopy(op byte, base, delta []byte) (piece, rest []byte, err error) {
	var offset, length int
	for i := range 7 {
		if op&(1<<i) == 0 {
			continue
		}
		if len(delta) == 0 {
			return nil, nil, errDelta
		}
		if i < 4 {
			offset |= int(delta[0]) << (8 * i)
		} else {
			length |= int(delta[0]) << (8 * (i - 4))
		}
		delta = delta[1:]
	}
	if length == 0 {
		length = 0x10000
	}
	if offset > len(base) || length > len(base)-offset {
		return nil, nil, errDelta
	}
	return base[offset : offset+length], delta, nil
}
