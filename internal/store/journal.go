package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unsafe"
)

// A commit of SQLite writes pages, syncs them and costs ten times what the rows in it do. So groups that only add rows
// that nobody reads at once ([Tx.Put]) are made durable in a journal: one write and one sync of a file that is there
// already. Its rows go into the database with the next transaction, in that transaction, and before any read: nobody
// who asks this store sees a database without them. After a crash they are put in before anything else happens.
//
// Entries begin at whole blocks, and are written past the system's page cache where the file system lets them: there
// they would be copied, noted as changed and looked for again by the sync that follows at once.
//
// The journal is for one process that has the database to itself ([Options.Alone]), so that what a group reads
// stays true until it is durable though no transaction of the database holds it: all writes pass one writer.

const (
	// journalFile is the name of the journal in the data directory.
	journalFile = "gatehouse.journal"
	// journalStep is by how much the file grows. Writing over what is there needs no change of the file's own data at
	// a sync; journalMax bounds it, and with it what waits in memory.
	journalStep, journalMax = 256 << 10, 4 << 20
	// entryHead is the length of magic, length of the rest, number and checksum.
	entryHead = 4 + 4 + 8 + 4
)

// entryMagic begins an entry, packedMagic one of a journal whose entries follow each other without a gap, as they did
// before.
const entryMagic, packedMagic = "ghj2", "ghj1"

// journalBlock is what an entry is filled up to.
const journalBlock = 4 << 10

// blocks rounds a length up to whole blocks.
func blocks(n int) int { return (n + journalBlock - 1) / journalBlock * journalBlock }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errHeavy says that a group cannot go into the journal: it needs a transaction of the database.
var errHeavy = errors.New("store: a transaction is needed")

// Table is a table whose rows can wait: what is put into it is read by nobody else in the same transaction. Its first
// column is its key.
type Table struct {
	name            string
	columns         string
	one, many, drop string
	width           int
}

// batch is how many rows one statement puts in.
const batch = 16

// NewTable names a table and its columns, the key first.
func NewTable(name string, columns ...string) *Table {
	t := &Table{name: name, columns: strings.Join(columns, ", "), width: len(columns)}
	marks := make([]string, len(columns))
	for i := range marks {
		marks[i] = fmt.Sprintf("$%d", i+1)
	}
	insert := "INSERT INTO " + name + " (" + t.columns + ") VALUES "
	t.one = insert + "(" + strings.Join(marks, ", ") + ")"
	// Only SQLite gets many at a time, and finds a parameter that has a name by looking through all of them.
	row := "(?" + strings.Repeat(", ?", len(columns)-1) + ")"
	t.many = insert + row + strings.Repeat(", "+row, batch-1)
	t.drop = "DELETE FROM " + name + " WHERE " + columns[0] + " = $1"
	return t
}

// change is one row put into a table, or taken out where it has only a key.
type change struct {
	table *Table
	row   []any
	drop  bool
}

// journal is the file. It belongs to the writer.
type journal struct {
	file *os.File // nil until the first entry
	path string
	size int64 // of the file
	end  int64 // of the entries that count
	// sync makes what was written durable; tests interpose on it.
	sync func(func() error) error
	buf  []byte
	page []byte // whole blocks, at an address that the device can read from
	// failed says that the last entry may or may not be there.
	failed bool
}

// append makes changes durable as entry number seq. With errHeavy nothing was written; any other error leaves open
// whether it was.
func (j *journal) append(seq, micros int64, changes []change) error {
	b := append(j.buf[:0], entryMagic...)
	b = append(b, make([]byte, entryHead-len(entryMagic))...)
	b = binary.AppendVarint(b, micros)
	for i := range changes {
		var err error
		if b, err = appendChange(b, &changes[i]); err != nil {
			return err
		}
	}
	j.buf = b
	binary.BigEndian.PutUint32(b[4:], uint32(len(b)-entryHead))
	binary.BigEndian.PutUint64(b[8:], uint64(seq))
	binary.BigEndian.PutUint32(b[16:], checksum(b))
	size := blocks(len(b))
	if j.end+int64(size) > journalMax {
		return errHeavy
	}
	if err := j.room(int64(size)); err != nil {
		return err
	}
	page := j.pages(size)
	clear(page[copy(page, b):])
	if _, err := j.file.WriteAt(page, j.end); err != nil {
		return err
	}
	if err := j.sync(func() error { return dataSync(j.file) }); err != nil {
		return err
	}
	j.end += int64(size)
	return nil
}

// pages returns room for whole blocks.
func (j *journal) pages(size int) []byte {
	if len(j.page) < size {
		b := make([]byte, size+journalBlock)
		skip := -uintptr(unsafe.Pointer(&b[0])) % journalBlock
		j.page = b[skip:][:size]
	}
	return j.page[:size]
}

// room makes the file, and makes it longer.
func (j *journal) room(n int64) (err error) {
	if j.file == nil {
		if j.file, err = openJournal(j.path, directIO); err != nil {
			return err
		}
	}
	if j.end+n <= j.size {
		return nil
	}
	size := (j.end + n + journalStep - 1) / journalStep * journalStep
	zeros := j.pages(int(size - j.size))
	clear(zeros)
	if _, err = j.file.WriteAt(zeros, j.size); errors.Is(err, syscall.EINVAL) {
		// The file system has blocks of another size.
		if err = j.file.Close(); err != nil {
			return err
		}
		if j.file, err = openJournal(j.path, 0); err != nil {
			return err
		}
		_, err = j.file.WriteAt(zeros, j.size)
	}
	if err != nil {
		return err
	}
	if err := errors.Join(j.file.Sync(), syncDir(filepath.Dir(j.path))); err != nil {
		return err
	}
	j.size = size
	return nil
}

// openJournal opens the file, past the page cache if that can be had.
func openJournal(path string, direct int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|direct, 0o600)
	if direct != 0 && errors.Is(err, syscall.EINVAL) {
		return openJournal(path, 0)
	}
	return f, err
}

// rewind lets the next entry take the place of the first: all of them are in the database. After a failure the file is
// opened anew, since it may not be as long as it was thought to be.
func (j *journal) rewind() {
	j.end = 0
	if j.failed {
		if j.file != nil {
			_ = j.file.Close() // it is of no more use
		}
		j.failed, j.file, j.size = false, nil, 0
	}
}

// close removes the file when all of it is in the database.
func (j *journal) close(settled bool) error {
	if j.file == nil {
		return nil
	}
	err := j.file.Close()
	if settled {
		err = errors.Join(err, os.Remove(j.path))
	}
	return err
}

// entry is one group as it was written.
type entry struct {
	seq, micros int64
	changes     []change
}

// readJournal reads the entries that count: from the first on, while the numbers rise by one. What follows is older,
// or was not written to its end, and then nobody was told that it is durable.
func readJournal(path string) (all []entry, err error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for len(text) >= entryHead && (string(text[:4]) == entryMagic || string(text[:4]) == packedMagic) {
		n := entryHead + int(binary.BigEndian.Uint32(text[4:]))
		if n > len(text) || binary.BigEndian.Uint32(text[16:]) != checksum(text[:n]) {
			break
		}
		e := entry{seq: int64(binary.BigEndian.Uint64(text[8:]))}
		if len(all) > 0 && e.seq != all[len(all)-1].seq+1 {
			break
		}
		if err := e.decode(text[entryHead:n]); err != nil {
			return nil, fmt.Errorf("entry %d of %s: %w", e.seq, path, err)
		}
		if string(text[:4]) == entryMagic {
			n = min(blocks(n), len(text))
		}
		all, text = append(all, e), text[n:]
	}
	return all, nil
}

// checksum is of everything in an entry but itself.
func checksum(b []byte) uint32 {
	return crc32.Update(crc32.Checksum(b[:16], castagnoli), castagnoli, b[entryHead:])
}

// The kinds of values.
const (
	valueNil = iota
	valueInt
	valueText
	valueBytes
)

func appendChange(b []byte, c *change) ([]byte, error) {
	drop := byte(0)
	if c.drop {
		drop = 1
	}
	b = append(b, drop)
	b = appendText(b, c.table.name)
	b = appendText(b, c.table.columns)
	b = binary.AppendUvarint(b, uint64(len(c.row)))
	for _, v := range c.row {
		switch v := v.(type) {
		case nil:
			b = append(b, valueNil)
		case int:
			b = binary.AppendVarint(append(b, valueInt), int64(v))
		case int64:
			b = binary.AppendVarint(append(b, valueInt), v)
		case string:
			b = appendText(append(b, valueText), v)
		case []byte:
			b = appendText(append(b, valueBytes), v)
		default:
			return b, fmt.Errorf("store: a %T cannot wait in the journal", v)
		}
	}
	return b, nil
}

func appendText[T string | []byte](b []byte, s T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// errEntry says that an entry whose checksum is right cannot be read: another program wrote it.
var errEntry = fmt.Errorf("%w: it is not as this program writes it", ErrFuture)

// decoder reads an entry.
type decoder struct {
	b   []byte
	err error
}

func (d *decoder) number() int64 {
	v, n := binary.Varint(d.b)
	d.skip(n)
	return v
}

func (d *decoder) length() int {
	v, n := binary.Uvarint(d.b)
	d.skip(n)
	if v > uint64(len(d.b)) {
		d.err = errEntry
		return 0
	}
	return int(v)
}

func (d *decoder) skip(n int) {
	if n <= 0 || n > len(d.b) {
		d.err, d.b = errEntry, nil
		return
	}
	d.b = d.b[n:]
}

func (d *decoder) byte() byte {
	if len(d.b) == 0 {
		d.err = errEntry
		return 0
	}
	v := d.b[0]
	d.b = d.b[1:]
	return v
}

func (d *decoder) text() []byte {
	n := d.length()
	v := d.b[:n]
	d.b = d.b[n:]
	return v
}

func (d *decoder) value() any {
	switch d.byte() {
	case valueNil:
		return nil
	case valueInt:
		return d.number()
	case valueText:
		return string(d.text())
	case valueBytes:
		return append([]byte{}, d.text()...)
	}
	d.err = errEntry
	return nil
}

func (e *entry) decode(b []byte) error {
	d := &decoder{b: b}
	e.micros = d.number()
	for len(d.b) > 0 && d.err == nil {
		c := change{drop: d.byte() == 1}
		name, columns := string(d.text()), string(d.text())
		n := d.length()
		for range n {
			c.row = append(c.row, d.value())
		}
		if d.err == nil {
			c.table = NewTable(name, strings.Split(columns, ", ")...)
			e.changes = append(e.changes, c)
		}
	}
	return d.err
}

// syncDir makes the name of a new file durable.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Sync(); err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}
