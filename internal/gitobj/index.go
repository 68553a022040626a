package gitobj

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
)

// Entry is one file of the index.
type Entry struct {
	Blob Hash
	// Size is the file's size when it was added; 0 may mean unknown.
	Size uint32
	// Stage is above 0 while a merge has conflicts.
	Stage int
}

// maxIndex is the largest index that is read, and bounds the length of all
// paths in it together: in version 4 a few bytes stand for a long one.
const maxIndex = 64 << 20

// ReadIndex reads an index of version 2, 3 or 4. A missing one is empty.
func ReadIndex(file string) (map[string]Entry, error) {
	data, err := readFile(file, maxIndex)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]Entry{}, nil
	}
	if err != nil {
		return nil, err
	}
	return ParseIndex(data)
}

var errIndex = fmt.Errorf("%w: an index that is cut off", ErrFormat)

// ParseIndex reads the content of an index.
func ParseIndex(data []byte) (map[string]Entry, error) {
	if len(data) < 12+len(Hash{}) || string(data[:4]) != "DIRC" {
		return nil, fmt.Errorf("%w: not an index", ErrFormat)
	}
	version, count := binary.BigEndian.Uint32(data[4:]), binary.BigEndian.Uint32(data[8:])
	if version < 2 || version > 4 {
		return nil, fmt.Errorf("%w: an index of version %d", ErrFormat, version)
	}
	index := make(map[string]Entry)
	rest := data[12 : len(data)-len(Hash{})]
	last, names := "", 0
	for range count {
		name, e, n, err := indexEntry(rest, last, version == 4)
		if err != nil {
			return nil, err
		}
		if names += len(name); names > maxIndex {
			return nil, ErrLimit
		}
		if _, twice := index[name]; !twice || e.Stage == 0 {
			index[name] = e
		}
		last, rest = name, rest[n:]
	}
	return index, extensions(rest)
}

// extensions refuses an index that does not hold all of its entries itself.
func extensions(rest []byte) error {
	for len(rest) >= 8 {
		name, size := string(rest[:4]), binary.BigEndian.Uint32(rest[4:])
		if name == "link" || name == "sdir" {
			return fmt.Errorf("%w: a split or sparse index", ErrFormat)
		}
		if int64(size) > int64(len(rest)-8) {
			return errIndex
		}
		rest = rest[8+size:]
	}
	return nil
}

// indexEntry reads one entry and returns its length: 62 bytes of numbers (64
// with extended flags) and the path, which in version 4 is what differs from
// the one before, else padded to eight bytes.
func indexEntry(data []byte, last string, prefixed bool) (name string, e Entry, n int, err error) {
	const size, hash, flags = 36, 40, 60
	if len(data) < 62 {
		return "", e, 0, errIndex
	}
	bits := binary.BigEndian.Uint16(data[flags:])
	e = Entry{Blob: Hash(data[hash:flags]), Size: binary.BigEndian.Uint32(data[size:]), Stage: int(bits>>12) & 3}
	head := 62
	if bits&0x4000 != 0 {
		head = 64
	}
	if head > len(data) {
		return "", e, 0, errIndex
	}
	if prefixed {
		strip, used := stripped(data[head:])
		if used == 0 || strip > len(last) {
			return "", e, 0, errIndex
		}
		head, name = head+used, last[:len(last)-strip]
	}
	end := bytes.IndexByte(data[head:], 0)
	if end < 0 {
		return "", e, 0, errIndex
	}
	name += string(data[head : head+end])
	n = head + end + 1
	if !prefixed {
		n = (head + end + 8) &^ 7
	}
	if n > len(data) {
		return "", e, 0, errIndex
	}
	return name, e, n, nil
}

// stripped reads how many bytes of the path before are not shared, in the
// encoding that offsets in packs have.
func stripped(data []byte) (n, used int) {
	back, err := offsetBack(&byteCounter{r: bytes.NewReader(data)})
	if err != nil || back > 1<<20 {
		return 0, 0
	}
	used = 1
	for used < len(data) && data[used-1]&0x80 != 0 {
		used++
	}
	return int(back), used
}
